"""LIMIT and OFFSET taken out of a text, wherever they stand."""

import pytest

from halfgraph.answering.cutting import Cut, uncut


@pytest.mark.parametrize("cut", ["LIMIT 3", "OFFSET 2", "limit 3 offset 2", "OFFSET 2\nLIMIT 3 # LIMIT 4"])
def test_the_text_without_its_cut_is_the_rest(graph, cut):
    text = "SELECT ?limit { ?limit <LIMIT> <city0> } "
    assert uncut(text + cut, graph).split("#")[0].strip() == text.strip()


def test_predicted_answers_fill_what_known_ones_leave():
    assert Cut.of(5, None, 10) == Cut(0, 10)
    assert Cut.of(5, 7, 10) == Cut(0, 2)
    assert Cut.of(5, 4, 10) == Cut(0, 0)
    assert Cut.of(-3, 4, 10) == Cut(3, 4)
