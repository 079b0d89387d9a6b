import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode

from halfgraph.errors import SettingError
from halfgraph.graph.names import Namer
from strategies import cells

BASES = ["http://halfgraph.local/", "http://a.org/ns#", "urn:x:", "http://a.org/?id="]


@given(cells, st.sampled_from(BASES))
@settings(max_examples=200)
def test_a_name_is_one_of_the_names_of_its_iri(name: str, base: str) -> None:
    namer = Namer(base)
    iri = namer.iri(name)
    assert NamedNode(iri).value == iri
    assert name in namer.names(iri)


@given(st.lists(cells, unique=True, max_size=12), st.sampled_from(BASES))
def test_names_that_do_not_clash_have_different_iris(names: list[str], base: str) -> None:
    namer = Namer(base)
    names = [*names, *(f"/{name}" for name in names[:2]), *(namer.iri(name) for name in names[2:4])]
    iris = {name: namer.iri(name) for name in names}
    assert (namer.clash(iris) is None) == (len(set(iris.values())) == len(iris))


@pytest.mark.parametrize("base", ["nonsense", "http://a.org", "", "http://a b/", "/"])
def test_a_base_that_is_none_is_refused(base: str) -> None:
    with pytest.raises(SettingError, match="base"):
        Namer(base)


def test_only_what_can_label_a_blank_node_is_one() -> None:
    namer = Namer()
    assert namer.term("_:b1") == BlankNode("b1")
    assert namer.term("_:two words") == NamedNode("http://halfgraph.local/_:two%20words")
    assert namer.term("_:") == NamedNode("http://halfgraph.local/_:")


def test_an_absolute_iri_is_its_own_name_and_others_are_not() -> None:
    namer = Namer()
    expected = {
        "http://a.org/b?c#d": "http://a.org/b?c#d",
        "wd:Q5": "wd:Q5",
        "http://a.org/b c": "http://halfgraph.local/http://a.org/b%20c",
        "http://[": "http://halfgraph.local/http://%5B",
        "100%": "http://halfgraph.local/100%25",
        "a:100%": "http://halfgraph.local/a:100%25",
        "/m/027rn": "http://halfgraph.local/m/027rn",
        "Gödel": "http://halfgraph.local/Gödel",
    }
    assert {name: namer.iri(name) for name in expected} == expected
