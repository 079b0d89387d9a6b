"""Content negotiation: q-values, specific ranges before wide ones, the order of the server among equals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import QueryResultsFormat

from halfgraph.serving.negotiation import choose, media_ranges, table_format, wants_page
from halfgraph.serving.problems import Problem

OFFERS = [("a/x", "a/y"), ("a/z",), ("b/x",)]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", 0),
        ("*/*", 0),
        ("a/z", 1),
        ("A/Z ; q=0.5, b/x;q=0.4", 1),
        ("a/*;q=0.1, b/*;q=0.2", 2),
        ("*/*, a/x;q=0, a/y;q=0", 1),
        ("a/*, a/x;q=0.5, a/y;q=0.2", 1),
        ("c/d, b/x;q=0.001", 2),
        ("a/x;q=0", None),
        ("c/d", None),
        ("b/x;q=nonsense, a/z;q=0.2", 1),
    ],
)
def test_the_format_that_is_wanted_most_is_chosen(accept, chosen):
    assert choose(accept, OFFERS) == chosen


@given(st.text(max_size=80))
def test_any_header_is_read_without_an_error(accept):
    assert all(0 <= quality <= 1 for quality in media_ranges(accept).values())
    assert choose(accept, OFFERS) in (None, 0, 1, 2)


@given(st.lists(st.sampled_from(["a/x", "a/z", "b/x", "c/d"]), min_size=1, unique=True), st.randoms())
def test_the_order_of_a_header_does_not_matter(parts, random):
    weighted = [f"{part};q={0.1 * (1 + place):.1f}" for place, part in enumerate(parts)]
    shuffled = list(weighted)
    random.shuffle(shuffled)
    assert choose(", ".join(weighted), OFFERS) == choose(",".join(shuffled), OFFERS)


def test_a_format_by_name_comes_before_the_header():
    assert table_format("text/csv", "xml")[0] == QueryResultsFormat.XML
    assert table_format("text/csv", "text/tab-separated-values")[0] == QueryResultsFormat.TSV


@pytest.mark.parametrize("name", [None, "parquet"])
def test_what_cannot_be_given_is_406(name):
    with pytest.raises(Problem) as caught:
        table_format("image/png", name)
    assert caught.value.status == 406


@pytest.mark.parametrize(
    ("accept", "page"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("*/*", False),
        ("", False),
        ("text/turtle, text/html;q=0.5", False),
    ],
)
def test_only_browsers_get_the_page(accept, page):
    assert wants_page(accept) == page
