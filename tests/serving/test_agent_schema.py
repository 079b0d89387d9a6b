"""Results for agents are as short as asked for, and say what was cut."""

import json

from hypothesis import given
from hypothesis import strategies as st

from halfgraph.answering.cells import NamedEntity, to_json
from halfgraph.serving.agent_schema import MEANING, QueryAnswer, RowItem, short_text, shortened

ROWS = st.lists(st.builds(lambda text: RowItem("known", {"x": NamedEntity(text, text)}), st.text(max_size=40)))


@given(ROWS, ROWS, st.integers(1_000, 5_000))
def test_a_result_fits_and_is_whole_if_it_does(known: list[RowItem], predicted: list[RowItem], characters: int) -> None:
    result = QueryAnswer(known=known, predicted=predicted, known_count=len(known))
    cut = shortened(result, characters)
    assert len(json.dumps(to_json(cut), ensure_ascii=False, separators=(",", ":"))) <= characters
    assert cut.meaning == MEANING
    assert known[: len(cut.known)] == list(cut.known)
    assert predicted[: len(cut.predicted)] == list(cut.predicted)
    is_whole = (len(cut.known), len(cut.predicted)) == (len(known), len(predicted))
    assert is_whole == (not cut.notes)


def test_the_note_says_how_much_is_left() -> None:
    rows = [RowItem("known", {"x": NamedEntity("e" * 40, "e" * 40)}) for _ in range(100)]
    cut = shortened(QueryAnswer(known=rows), 2_000)
    (note,) = cut.notes
    assert f"only {len(cut.known)} of 100 known are given" in note


def test_a_long_text_is_cut() -> None:
    assert short_text("a" * 500) == "a" * 500
    assert short_text("a" * 501) == "a" * 500 + "..."
