"""Predicted rows of SPARQL texts against possible worlds: the store answers the text in every world."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox
import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.sparql.read import request_of
from halfgraph.sparql.row_reading import read_rows
from halfgraph.sparql.syntax_tree import Ask
from halfgraph.sparql.writer import write
from imported_graphs import made, short_lived
from sparql_comparison import store_relations
from sparql_worlds import Worlds, answer_key, ask, iri_triple, predicted_rows, unrounded

EX = "http://t/"
KNOWN = f"""@prefix : <{EX}> .
:e0 :r0 :e1 ; :r1 :e2 ; :size 1 ; a :A .
:e1 :r0 :e2 ; :r0 :e3 ; :size 2 ; a :A, :B .
:e2 :r1 :e0 ; :size 1 ; a :B .
:e3 :r1 :e1 ; :r0 :e0 ; :name "three" ; a :B .
"""
UNCERTAIN = [  # of these some are drawn
    ("e0", "r0", "e2"),
    ("e0", "r1", "e3"),
    ("e1", "r1", "e0"),
    ("e2", "r0", "e3"),
    ("e2", "r1", "e1"),
    ("e3", "r0", "e2"),
    ("e3", "r1", "e3"),
    ("e2", "r0", "e2"),
]


def facts(uncertain: Mapping[tuple[str, str, str], float]) -> dict[ox.Triple, float]:
    return {iri_triple(*(EX + name for name in link)): likely for link, likely in uncertain.items()}


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with TemporaryDirectory() as folder:
        yield made(Path(folder), KNOWN, "ttl")


@pytest.fixture(scope="module", autouse=True)
def full_confidences() -> Iterator[None]:
    with unrounded():
        yield


variables = st.sampled_from(["?x", "?y", "?z"])
entities = st.sampled_from([f":e{number}" for number in range(4)])
terms = st.one_of(variables, variables, entities)
relations = st.sampled_from([":r0", ":r1"])
paths = st.one_of(
    relations,
    relations,
    st.sampled_from(["^:r0", ":r0|:r1", ":r0/:r1", "^:r1/:r0", ":r0?", "(:r0/:r1)?", "?p"]),
)
links = st.builds("{} {} {} .".format, terms, paths, terms)
others = st.one_of(
    st.builds("{} a {} .".format, variables, st.sampled_from([":A", ":B"])),
    st.builds("{} :size ?n .".format, variables),
    st.builds("FILTER({} != {})".format, variables, terms),
    st.builds("VALUES {} {{ {} {} }}".format, variables, entities, entities),
    st.builds("FILTER NOT EXISTS {{ {} {} {} }}".format, variables, relations, terms),
    st.builds("MINUS {{ {} {} {} }}".format, variables, relations, terms),
    st.builds("{{ {} }} UNION {{ {} }}".format, links, links),
    st.builds("{{ SELECT {} {{ {} }} }}".format, variables, links),
)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    some = draw(st.lists(links, min_size=1, max_size=2)) + draw(st.lists(others, max_size=2))
    return " ".join(some)


heads = st.sampled_from(["SELECT *", "SELECT ?x", "SELECT ?x ?y", "SELECT DISTINCT ?y ?z", "SELECT ?z"])
uncertain_links = st.dictionaries(
    st.sampled_from(UNCERTAIN), st.sampled_from([0.1, 0.3, 0.5, 0.9]), min_size=1, max_size=5
)


def has_entities(cells: dict[str, object]) -> bool:
    """Whether ?x, ?y and ?z are entities: a path of length zero leads from a literal or class to itself too."""
    values = [cells[name] for name in "xyz" if cells.get(name) is not None]
    return all(kind == "uri" and value not in (EX + "A", EX + "B") for kind, value, *_ in values)  # type: ignore[misc]


def check(worlds: Worlds, text: str) -> bool:
    """Compare predicted rows with those of all worlds; return whether there are any."""
    request = request_of(text, worlds.graph)
    columns, likely, known = worlds.expected(write(request.tree))
    answers = ask(worlds, request)
    own, rows = list(answers.variables), predicted_rows(answers)
    known_rows = {answer_key(one.row, own) for one in answers.known}
    assert sorted(own) == sorted(columns)
    order = [columns.index(name) for name in own]
    expected = {tuple(row[place] for place in order): p for row, p in likely.items() if row not in known}
    assert known_rows == {tuple(row[place] for place in order) for row in known}
    expected = {row: p for row, p in expected.items() if p > 1e-12 and has_entities(dict(zip(own, row, strict=True)))}
    assert rows == pytest.approx(expected, abs=1e-6)
    return bool(rows)


@given(heads, patterns(), uncertain_links)
@settings(max_examples=300)
def test_the_probability_of_a_row_is_that_of_the_worlds_in_which_the_store_has_it(
    graph: Graph, head: str, pattern: str, uncertain: dict[tuple[str, str, str], float]
) -> None:
    text = f"{head} {{ {pattern} }}"
    try:
        request = request_of(text, graph)
        reading = read_rows(request, graph)
    except SparqlError:
        reject()
    if {EX + "r0", EX + "r1"}.intersection(store_relations(reading)):
        reject()  # a negation of variables that no link binds, which the store decides by known triples
    event(f"predicted: {check(Worlds(graph, facts(uncertain)), text)}")


FORMS = [
    "SELECT ?x ?y { ?x :r0 ?y . ?y :r0 ?x }",
    "SELECT ?x ?y { ?x :r0 ?z . ?z :r1 ?y }",
    "SELECT ?x { ?x :r0 ?y . ?y :r1 ?z . ?z :r0 ?w }",
    "SELECT ?x ?n { ?x :r0 ?y ; :size ?n }",
    "SELECT ?n { ?x :r0 :e2 ; :size ?n }",
    "SELECT ?p { :e0 ?p :e2 }",
    "SELECT ?p ?o { :e3 ?p ?o FILTER(ISIRI(?o)) }",
    "SELECT * { ?x :r0 ?y FILTER NOT EXISTS { ?x :r1 ?y } }",
    "SELECT ?x { { ?x :r0 ?y . ?y :r1 :e0 } UNION { ?x :r1 :e3 } }",
    "SELECT ?x ?y { ?x (:r0|:r1)/:r0 ?y . ?x a :B }",
    "SELECT ?x (?n + 1 AS ?m) { ?x :r0 :e2 ; :size ?n }",
    "SELECT ?x ?y { ?x :r0 :e2 . ?y :r1 :e3 }",
]


@pytest.mark.parametrize("text", FORMS)
def test_each_form_is_predicted_as_its_worlds_say(graph: Graph, text: str) -> None:
    uncertain = {link: 0.1 + 0.1 * number for number, link in enumerate(UNCERTAIN)}
    assert check(Worlds(graph, facts(uncertain)), text)


UNCONNECTED = "?a :r1 :e3 . ?b :r0 ?c . ?d :r0 ?e"  # so many variables that they are folded


@pytest.mark.parametrize("pattern", ["?x :r0 :e2 . ?x :r1 ?y", ":e0 :r0 :e2", ":e2 :r0/:r0 ?x . ?x a :A", UNCONNECTED])
def test_the_probability_of_ask_is_that_of_the_worlds_that_say_yes(graph: Graph, pattern: str) -> None:
    worlds = Worlds(graph, facts({link: 0.1 + 0.1 * number for number, link in enumerate(UNCERTAIN)}))
    text = f"ASK {{ {pattern} }}"
    request = request_of(text, graph)
    assert isinstance(request.tree, Ask)
    expected = sum(share for store, share in worlds.stores if bool(store.query(write(request.tree))))
    truth = ask(worlds, request, 10).truth
    assert truth is not None
    assert truth.probability == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("aggregate", ["COUNT(?y)", "COUNT(*)", "COUNT(DISTINCT ?y)", "SUM(?n)"])
def test_an_expected_value_is_the_mean_over_all_worlds(graph: Graph, aggregate: str) -> None:
    worlds = Worlds(graph, facts({link: 0.1 + 0.1 * number for number, link in enumerate(UNCERTAIN[:6])}))
    text = f"PREFIX : <{EX}> SELECT ?x ({aggregate} AS ?out) {{ ?x :r0 ?y . ?y :size ?n }} GROUP BY ?x"
    mean: dict[str, float] = {}
    for store, share in worlds.stores:
        result = store.query(text)
        assert isinstance(result, ox.QuerySolutions)
        for row in result:
            mean[row["x"].value] = mean.get(row["x"].value, 0.0) + share * float(row["out"].value)
    answers = ask(worlds, request_of(text, graph), 100)
    found = {one.row["x"].value: (one.expected or {})["out"] for one in (*answers.known, *answers.predicted)}
    assert found == pytest.approx(mean, abs=1e-3)


@pytest.mark.parametrize("given", ['VALUES ?n { "old" }', 'BIND("old" AS ?n)'])
def test_a_variable_with_literals_is_no_entity_even_where_its_relation_has_links(given: str) -> None:
    with short_lived(KNOWN + ':e0 :r1 "old" .', "ttl") as mixed:
        assert check(Worlds(mixed, facts({("e0", "r0", "e2"): 0.5})), f"SELECT * {{ {given} ?x :r1 ?n ; :r0 :e2 }}")


def test_rows_that_a_distinct_subquery_merges_have_no_expected_count(graph: Graph) -> None:
    worlds = Worlds(graph, facts({("e0", "r1", "e3"): 0.5}))
    merged = "{ SELECT DISTINCT ?x { { ?x :r0 ?y } UNION { ?x :r1 ?y } } }"
    for pattern, has_count in ((merged, False), (merged.replace("DISTINCT", ""), True)):
        text = f"PREFIX : <{EX}> SELECT (COUNT(?x) AS ?out) {{ {pattern} }}"
        (known,) = ask(worlds, request_of(text, graph), 10).known
        assert bool(known.expected) == has_count
