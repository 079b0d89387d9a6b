"""LIMIT and OFFSET over known answers and then predicted ones."""

from halfgraph.answering.cutting import Cut


def test_predicted_answers_fill_what_known_ones_leave():
    assert Cut.of(5, None, 10) == Cut(0, 10)
    assert Cut.of(5, 7, 10) == Cut(0, 2)
    assert Cut.of(5, 4, 10) == Cut(0, 0)
    assert Cut.of(-3, 4, 10) == Cut(3, 4)
