from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.query.tree import Project, children
from halfgraph.sparql.ordering import Net
from halfgraph.sparql.read import read
from halfgraph.sparql.unsupported import refused
from sparql_reading import entity, line_of, relation

links = st.sets(st.tuples(st.sampled_from("abcdx"), st.sampled_from("eabcdx")).filter(lambda pair: pair[0] != pair[1]))


def is_order(order: tuple[str, ...], pairs: set[tuple[str, str]]) -> bool:
    """Whether each variable has a neighbour before it, and each but the last one after it; e is an entity."""
    place = {name: number for number, name in enumerate(("e", *order))}
    both = pairs | {(second, first) for first, second in pairs}
    return all(
        any(first == name and place[second] < place[name] for first, second in both)
        and (name == "x" or any(first == name and place[second] > place[name] for first, second in both))
        for name in order
    )


@given(links)
def test_the_first_order_of_all_is_found_or_there_is_none(pairs: set[tuple[str, str]]) -> None:
    names = sorted({name for pair in pairs for name in pair} - {"e", "x"})
    orders = [(*some, "x") for some in permutations(names) if is_order((*some, "x"), pairs)]
    term = {name: name for name in "abcdx"} | {"e": 0}
    net = Net.of([(term[first], 0, term[second]) for first, second in pairs], "x")
    if orders:
        net.check(refusing)
        assert tuple(net.order()) == orders[0]
    else:
        with pytest.raises(SparqlError) as caught:
            net.check(refusing)
        assert caught.value.feature in ("untied", "unconnected")


def refusing(feature: str, name: str, **fields: object) -> SparqlError:
    return refused(feature, None, name=name, **fields)


def test_in_a_cycle_the_first_order_by_name_is_taken(dbpedia: Graph) -> None:
    def text(first: str, second: str) -> str:
        return (
            f"SELECT ?x {{ ?{first} dbo:spouse ?{second} . dbr:Escape_Clause dbo:guest ?{first} , ?{second} ."
            f" ?{second} dbo:guest ?x . ?{first} dbo:guest ?x }}"
        )

    forwards, backwards = read(text("a", "b"), dbpedia), read(text("b", "a"), dbpedia)
    assert forwards.variables["a"] == Project(entity(dbpedia, "Escape_Clause"), relation(dbpedia, "guest"))
    assert list(forwards.variables) == list(backwards.variables) == ["a", "b", "x"]
    spouse = relation(dbpedia, "spouse")
    assert Project(forwards.variables["a"], spouse) in children(forwards.variables["b"])
    assert Project(backwards.variables["a"], spouse ^ 1) in children(backwards.variables["b"])
    assert read(text("v2", "v10"), dbpedia).query == forwards.query


def test_a_name_gives_way_where_no_order_begins_with_it(dbpedia: Graph) -> None:
    # ?a comes first by name, and only ?b is tied to an entity.
    text = "SELECT ?x { ?a dbo:spouse ?b . dbr:Escape_Clause dbo:guest ?b . ?b dbo:guest ?x . ?a dbo:guest ?x }"
    assert line_of(text, dbpedia) == (
        "?answer . ∃ ?v1, ?v2 : guest(Escape Clause, ?v1) ∧ guest(?v1, ?answer) ∧ spouse⁻¹(?v1, ?v2) "
        "∧ guest(?v2, ?answer)"
    )


def test_a_name_gives_way_where_an_order_that_begins_with_it_cannot_end(dbpedia: Graph) -> None:
    # ?a is tied, but leads to ?x through ?b only and ?b has no other way in: ?a must still come first, ?c last.
    text = "SELECT ?x { dbr:Escape_Clause dbo:guest ?a , ?c . ?a dbo:spouse ?b . ?b dbo:spouse ?c . ?c dbo:guest ?x }"
    reading = read(text, dbpedia)
    assert list(reading.variables) == ["a", "b", "c", "x"]
    renamed = text.replace("?c", "?0")
    assert list(read(renamed, dbpedia).variables) == ["a", "b", "0", "x"]
