"""What texts of each form are read as: uncertain patterns, the variables of candidate rows, and the rest."""

from collections.abc import Iterator

import pytest

from halfgraph.errors import SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.query.rows import (
    AnyRelation,
    Exclusion,
    Given,
    LinkPattern,
    PathChoice,
    PathRepeat,
    PathSequence,
    Relation,
    TypePattern,
)
from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.read import request_of
from halfgraph.sparql.row_completion import completed
from halfgraph.sparql.row_groups import NAMED_GRAPHS
from halfgraph.sparql.row_reading import Branch, RowReading, read_rows
from halfgraph.sparql.scopes import projected
from halfgraph.sparql.syntax_tree import Iri, Values, walk
from halfgraph.sparql.unsupported import MOST_BRANCHES
from halfgraph.sparql.writer import write
from sparql.w3c import cases, needs_w3c
from sparql_row_texts import BASE, names_graph

R0, R1 = Relation(0), Relation(2)
CLASS = f"{BASE}C0"


@pytest.fixture(scope="module")
def names() -> Iterator[Graph]:
    with names_graph() as graph:
        yield graph


def rows(text: str, graph: Graph) -> RowReading:
    return read_rows(request_of(text, graph), graph)


def only_branch(text: str, graph: Graph) -> Branch:
    (branch,) = rows(text, graph).branches
    return branch


def rest_of(text: str, graph: Graph) -> str:
    return write(only_branch(text, graph).rest, Prefixes.of(graph).short)


def refusal(text: str, graph: Graph) -> SparqlError | UnknownName:
    with pytest.raises((SparqlError, UnknownName)) as caught:
        rows(text, graph)
    return caught.value  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("?a :r0 :e0", LinkPattern("a", R0, 0)),
        (":e0 :r1 :e1", LinkPattern(0, R1, 1)),
        ("?a :r0 ?a", LinkPattern("a", R0, "a")),
        ("?a ^:r0 ?b", LinkPattern("b", R0, "a")),
        ("?a a :C0", TypePattern("a", CLASS)),
        ("?a a ?t", TypePattern("a", None, "t")),
        (":e0 a :C0", TypePattern(0, CLASS)),
        ("?a a/rdfs:subClassOf* :C0", TypePattern("a", CLASS, subclasses=True)),
        (":C0 ^a ?a", TypePattern("a", CLASS)),
        ("?a ?p :e0", LinkPattern("a", AnyRelation("p"), 0)),
        ("?a :r0* ?b", LinkPattern("a", PathRepeat(R0, 0, None), "b")),
        ("?a :r0+ ?b", LinkPattern("a", PathRepeat(R0, 1, None), "b")),
        ("?a :r0? ?b", LinkPattern("a", PathRepeat(R0, 0, 1), "b")),
        ("?a (:r0/^:r1)* ?b", LinkPattern("a", PathRepeat(PathSequence((R0, Relation(3))), 0, None), "b")),
        ("?a ^(:r0/:r1)+ ?b", LinkPattern("b", PathRepeat(PathSequence((R0, R1)), 1, None), "a")),
        ("?a (:r0|^(:r1/:r0)) ?b", LinkPattern("a", PathChoice((R0, PathSequence((Relation(1), Relation(3))))), "b")),
        ("?a !:r0 ?b", LinkPattern("a", AnyRelation(None, frozenset({0})), "b")),
        ("?a !^:r1 ?b", LinkPattern("a", AnyRelation(None, frozenset({2}), inverse=True), "b")),
        ("?a !(:label|^:r1) ?b", LinkPattern("a", PathChoice(
            (AnyRelation(None, frozenset()), AnyRelation(None, frozenset({2}), inverse=True))
        ), "b")),
    ],
)  # fmt: skip
def test_a_pattern_is_read(names: Graph, pattern: str, expected: object) -> None:
    assert only_branch(f"SELECT * {{ {pattern} }}", names).conjunction == (expected,)


def test_domains_tell_which_variables_are_relations_and_classes(names: Graph) -> None:
    reading = rows("SELECT * { ?a ?p ?b ; a ?t }", names)
    assert reading.domains == {"p": "relation", "t": "class"}


def test_a_sequence_becomes_links_with_new_variables(names: Graph) -> None:
    text = "SELECT ?a ?_1 { ?a :r0/:r1/:label ?_1 }"
    branch = only_branch(text, names)
    assert branch.conjunction == (LinkPattern("a", R0, "_2"), LinkPattern("_2", R1, "_3"))
    assert rest_of(text, names) == "{ ?_3 :label ?_1 . }"
    assert branch.variables == ("a", "_3")


def test_blank_nodes_are_variables_that_are_not_selected(names: Graph) -> None:
    branch = only_branch("SELECT * { ?a :r0 [ :r1 :e0 ] }", names)
    assert branch.conjunction == (LinkPattern("a", R0, "_1"), LinkPattern("_1", R1, 0))
    assert branch.variables == ("a",)


@pytest.mark.parametrize(
    "element",
    [
        "?a :label ?l .",
        "OPTIONAL { ?a :r1 ?c . }",
        "FILTER (?a != ?b)",
        "BIND(STR(?a) AS ?s)",
        "?a :r0 1 .",
        "FILTER ((?a = :e0) || EXISTS { ?a :r1 :e1 . })",
        "{ SELECT ?a (COUNT(*) AS ?n) WHERE { ?a :r1 ?c . } GROUP BY ?a }",
        "{ SELECT ?a WHERE { ?a :r1 ?c . } LIMIT 3 }",
        "GRAPH ?g { ?a :label ?l . }",
    ],
)
def test_the_rest_stays_as_it_is(names: Graph, element: str) -> None:
    text = f"SELECT * {{ ?a :r0 ?b . {element} }}"
    assert only_branch(text, names).conjunction == (LinkPattern("a", R0, "b"),)
    assert rest_of(text, names) == f"{{ {element} }}"


def test_candidate_rows_bind_what_is_selected_or_used_in_the_rest(names: Graph) -> None:
    def variables(text: str) -> tuple[str, ...]:
        return only_branch(text, names).variables

    pattern = "?a :r0 ?b . ?b :r1 ?c . ?c :r0 ?d"
    assert variables(f"SELECT ?a {{ {pattern} }}") == ("a",)
    assert variables(f"SELECT ?a {{ {pattern} FILTER(?c != :e0) }} ORDER BY ?d") == ("a", "c", "d")
    assert variables(f"SELECT (STR(?b) AS ?s) {{ {pattern} }}") == ("b",)
    assert variables(f"SELECT ?a (COUNT(DISTINCT ?c) AS ?n) {{ {pattern} }} GROUP BY ?a") == ("a", "c")
    assert variables(f"SELECT ?a (MAX(?c) AS ?n) {{ {pattern} }} GROUP BY ?a HAVING(MIN(?d) > 1)") == ("a", "c", "d")
    assert variables(f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}") == ("a", "b", "c", "d")
    assert variables(f"ASK {{ {pattern} }}") == ()


def test_an_aggregate_that_counts_rows_needs_all_variables_that_multiply_them(names: Graph) -> None:
    text = "SELECT (COUNT(?a) AS ?n) { ?a :r0/:r1 ?b FILTER EXISTS { ?b :r0 ?c } { SELECT DISTINCT ?b { ?b :r1 ?d } } }"
    assert only_branch(text, names).variables == ("a", "_1", "b")


def test_existence_joins_the_patterns_with_variables_of_its_own(names: Graph) -> None:
    branch = only_branch("SELECT * { { ?a :r0 ?b FILTER EXISTS { ?b :r1 ?c } } ?a :r1 ?c }", names)
    expected = (LinkPattern("a", R0, "b"), LinkPattern("b", R1, "_1"), LinkPattern("a", R1, "c"))
    assert branch.conjunction == expected
    assert branch.rest.elements == ()


@pytest.mark.parametrize("negation", ["MINUS", "FILTER NOT EXISTS"])
def test_a_negation_excludes_and_stays_with_the_store(names: Graph, negation: str) -> None:
    text = f"SELECT * {{ {{ ?a :r0 ?b {negation} {{ ?a :r1 ?b . ?b :r0 ?c }} }} ?b :r1 ?c }}"
    branch = only_branch(text, names)
    excluded = Exclusion(((LinkPattern("a", R1, "b"), LinkPattern("b", R0, "_1")),))
    assert branch.conjunction == (LinkPattern("a", R0, "b"), excluded, LinkPattern("b", R1, "c"))
    assert negation in write(completed(rows(text, names), branch, []))


@pytest.mark.parametrize(
    "negation",
    [
        "MINUS { ?x :r1 :e0 }",
        "MINUS { ?a :label ?l }",
        "OPTIONAL { ?a :r1 ?c } MINUS { ?c :r0 ?b }",
        "FILTER NOT EXISTS { ?a :r1 ?c FILTER(?c != ?b) }",
    ],
)
def test_a_negation_that_is_not_of_links_alone_is_left_to_the_store(names: Graph, negation: str) -> None:
    branch = only_branch(f"SELECT * {{ ?a :r0 ?b {negation} }}", names)
    assert branch.conjunction == (LinkPattern("a", R0, "b"),)


@pytest.mark.parametrize(
    ("condition", "given"),
    [
        ("FILTER(?a = :e1)", Given(("a",), ((1,),))),
        ("FILTER(:e1 = ?a)", Given(("a",), ((1,),))),
        ("FILTER(?a IN (:e1, :e2))", Given(("a",), ((1,), (2,)))),
        ("FILTER(?a = :e0 || ?a IN (:e2))", Given(("a",), ((0,), (2,)))),
        ("VALUES ?a { :e1 :e2 }", Given(("a",), ((1,), (2,)))),
        ("VALUES (?a ?l ?b) { (:e1 1 UNDEF) (:e2 2 :e0) }", Given(("a", "b"), ((1, None), (2, 0)))),
        ("VALUES ?a { :e1 :nobody 5 }", Given(("a",), ((1,),))),
        ("VALUES ?p { :r0 }", Given(("p",), ((0,),))),
        ("VALUES ?t { :C0 }", Given(("t",), ((CLASS,),))),
    ],
)
def test_values_and_comparisons_are_given_and_stay_in_the_rest(names: Graph, condition: str, given: Given) -> None:
    branch = only_branch(f"SELECT * {{ ?a ?p ?b ; a ?t {condition} }}", names)
    assert branch.conjunction[-1] == given
    assert len(branch.rest.elements) == 1


def test_a_constant_is_a_value_before_its_pattern_and_after_the_query(names: Graph) -> None:
    expected = (LinkPattern("a", R0, "b"), Given(("a",), ((0,),)))
    assert only_branch("SELECT * { BIND(:e0 AS ?a) ?a :r0 ?b }", names).conjunction == expected
    assert only_branch("SELECT * { ?a :r0 ?b } VALUES ?a { :e0 }", names).conjunction == expected


def test_alternatives_are_branches_and_known_ones_are_dropped(names: Graph) -> None:
    reading = rows("SELECT * { ?a :r0 ?b { ?b :r1 ?c } UNION { ?b :label ?l } }", names)
    assert [len(branch.conjunction) for branch in reading.branches] == [2, 1]
    assert len(rows("SELECT * { { ?b :r1 ?c } UNION { ?b :label ?l } }", names).branches) == 1
    mixed = only_branch("SELECT * { ?a (:r0|:label|a) ?x }", names)
    assert mixed.conjunction == (LinkPattern("a", R0, "x"),)


def test_too_many_alternatives_are_left_to_the_store_with_a_note(names: Graph) -> None:
    union = " ".join(f"{{ ?x{n} :r0 ?a }} UNION {{ ?x{n} :r1 ?a }}" for n in range(7))
    reading = rows(f"SELECT ?a {{ {union} }}", names)
    assert len(reading.branches) == MOST_BRANCHES
    assert "too many to predict" in reading.notes[0]


def test_many_conditions_inside_each_other_take_no_longer_than_each_alone(names: Graph) -> None:
    group = "?a :r0 ?b"
    for level in range(8):
        unions = " ".join(f"{{ ?a :r0 ?x }} UNION {{ ?a :r1 ?x{level} }}" for _ in range(6))
        group = f"?a :r1 ?b {unions} FILTER EXISTS {{ {group} }}"
    assert rows(f"SELECT ?a {{ {group} }}", names).branches


def test_a_subquery_is_flattened_with_variables_of_its_own(names: Graph) -> None:
    branch = only_branch("SELECT * { ?a :r0 ?b { SELECT DISTINCT ?b { ?b :r1 ?a } ORDER BY ?a } }", names)
    assert branch.conjunction == (LinkPattern("a", R0, "b"), LinkPattern("b", R1, "_1"))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * { ?b :r0 ?a MINUS { ?a :r1 ?c } FILTER(?d = 1) BIND(1 AS ?x) }", ("b", "a", "x")),
        ("ASK { ?a :r0 ?b }", ()),
        ("SELECT * { :e0 :r0 :e1 }", ()),
        ("CONSTRUCT { ?b :r1 ?nothing , ?a } WHERE { ?a :r0 ?b . ?b :r1 ?c }", ("b", "a")),
        ("CONSTRUCT WHERE { ?a :r0 ?b }", ("a", "b")),
        ("DESCRIBE ?b :e0 { ?a :r0 ?b }", ("b",)),
        ("DESCRIBE * { ?a :r0 ?b }", ("a", "b")),
    ],
)
def test_every_form_has_its_columns(names: Graph, text: str, columns: tuple[str, ...]) -> None:
    select = rows(text, names).select
    assert (projected(select) if select.projection else ()) == columns


def test_groups_have_keys_and_columns_for_their_aggregates(names: Graph) -> None:
    text = """SELECT ?y (SUM(?n + 1) AS ?s) { ?a :r0 ?b ; :born ?d ; :size ?n }
        GROUP BY (YEAR(?d) AS ?y) LANG(?n) HAVING(COUNT(?a) > 1)"""
    reading = rows(text, names)
    assert [write(call) for call, _ in reading.measures] == ["SUM(?n + 1)", "COUNT(?a)"]
    asked = write(completed(reading, reading.branches[0], [(Iri("http://e/0"), Iri("http://e/1"))]))
    head = "SELECT (YEAR(?d) AS ?y) (LANG(?n) AS ?_1) (?n + 1 AS ?_2) ?a ?b WHERE { VALUES (?a ?b) "
    assert asked.startswith(head)


@pytest.mark.parametrize(
    "text",
    ["SELECT * { GRAPH ?g { ?a :r0 ?b } }", "SELECT * FROM <http://g/> { ?a :r0 ?b }"],
)
def test_named_graphs_are_noted(names: Graph, text: str) -> None:
    reading = rows(text, names)
    assert reading.branches[0].conjunction == (LinkPattern("a", R0, "b"),)
    assert reading.notes == (NAMED_GRAPHS,)


def test_unknown_names_are_noted_where_something_remains(names: Graph) -> None:
    reading = rows("SELECT * { ?a :r0 ?b . ?a :r1 :e7 . ?a :r9 ?c }", names)
    assert reading.branches[0].conjunction == (LinkPattern("a", R0, "b"),)
    assert [note.partition(".")[0] for note in reading.notes] == ["line 1, column 31: no entity :e7 in this graph"]
    assert reading.predicates == (Iri(f"{BASE}r9"),)


def test_a_query_for_literals_is_refused(names: Graph) -> None:
    error = refusal("SELECT ?l { BIND(1 AS ?l) }", names)
    assert isinstance(error, SparqlError)
    assert (error.feature, error.line) == ("nothing uncertain", 1)
    assert isinstance(refusal("SELECT ?l { :e0 :label ?l }", names), UnknownName)  # the store says what :label is
    assert isinstance(refusal("SELECT ?a { ?a :r0 :nobody_at_all }", names), UnknownName)
    assert isinstance(refusal("SELECT ?a { ?a :r9 :e0 }", names), UnknownName)
    text = "SELECT (COUNT(*) AS ?n) { ?a :r0 ?b } VALUES ?a { :e0 }"
    assert refusal(text, names).feature == "VALUES after groups"  # type: ignore[union-attr]
    assert rows("SELECT ?a (COUNT(*) AS ?n) { ?a :r0 ?b } GROUP BY ?a VALUES ?a { :e0 }", names).branches


def test_literal_columns_of_an_uncertain_pattern_are_predicted(names: Graph) -> None:
    branch = only_branch("SELECT ?l { ?a :r0 :e0 ; :label ?l }", names)
    assert branch.variables == ("a",)


def test_thousands_of_values_and_deep_brackets_are_read(names: Graph) -> None:
    values = " ".join(f"<http://dbpedia.org/resource/entity_{number}>" for number in range(6_000))
    reading = rows(f"SELECT ?a {{ VALUES ?a {{ {values} :e0 }} ?a :r0 :e1 }}", names)
    assert reading.branches[0].conjunction[-1] == Given(("a",), ((0,),))
    assert len(next(node for node in walk(reading.select) if isinstance(node, Values)).rows) == 6_001
    for depth in (25, 60):
        assert only_branch(f"SELECT * {'{' * depth} ?a :r0 ?b {'}' * depth}", names).conjunction
    deep = "{ ?a :r0 ?b FILTER NOT EXISTS " * 30 + "{ ?a :r1 ?b } " + "}" * 30
    assert rows(f"SELECT * {deep}", names).branches


def test_names_with_a_comma_and_variables_with_an_underscore_are_read(names: Graph) -> None:
    assert only_branch("SELECT ?_x { ?_x :r0 :e0 }", names).variables == ("_x",)
    error = refusal("SELECT ?x { ?x :r0 :Mobile,_Alabama }", names)
    assert isinstance(error, UnknownName)
    assert error.iri == f"{BASE}Mobile,_Alabama"


@needs_w3c
def test_every_text_of_w3c_is_read_or_refused(names: Graph) -> None:
    read = 0
    for case in cases("rq"):
        if case.is_negative:
            continue
        request = parse(case.text, Prefixes({"": BASE, **Prefixes.of(names).namespaces}, BASE))
        try:
            reading = read_rows(request, names)
        except (SparqlError, UnknownName):
            continue
        read += 1
        for branch in reading.branches:
            row = tuple(Iri("http://e/x") for _ in branch.variables)
            parse(write(completed(reading, branch, [row])), Prefixes.of(names))
    assert read > 100
