"""The parser: W3C's tests, positions, and texts that are not SPARQL."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import SparqlError
from halfgraph.sparql.parse import parse, parse_update
from halfgraph.sparql.prefixes import COMMON, Prefixes
from halfgraph.sparql.scanner import scan
from halfgraph.sparql.syntax_tree import BlankNode, Iri, Literal, Select, Triple, Update, Variable, walk
from sparql.w3c import cases, needs_w3c

PREFIXES = Prefixes({"": "http://h/", **COMMON}, "http://h/")


def failure(text: str) -> SparqlError:
    with pytest.raises(SparqlError) as caught:
        parse(text, PREFIXES)
    return caught.value


@needs_w3c
def test_every_positive_test_of_w3c_parses() -> None:
    queries = [case for case in cases("rq") if not case.is_negative]
    assert len(queries) >= 786
    for case in queries:
        assert not isinstance(parse(case.text, PREFIXES).tree, Update), case.name
    for case in cases("ru"):
        if not case.is_negative:
            assert parse_update(scan(case.text, PREFIXES)), case.name


@needs_w3c
def test_every_negative_test_of_w3c_is_refused() -> None:
    negative = [case for case in cases("rq") if case.is_negative]
    assert len(negative) >= 80
    for case in negative:
        with pytest.raises(SparqlError):
            parse(case.text, Prefixes({}, "http://h/"))


def triples(text: str) -> list[Triple]:
    tree = parse(text, PREFIXES).tree
    return [node for node in walk(tree) if isinstance(node, Triple)]


def test_names_are_resolved_by_the_text_then_by_the_graph() -> None:
    text = "BASE <http://b/> PREFIX dbo: <o#> SELECT * { <a> dbo:p dbr:b }"
    assert triples(text) == [Triple(Iri("http://b/a"), Iri("http://b/o#p"), Iri(COMMON["dbr"] + "b"))]
    assert triples("SELECT * { <a> :p wd:Q1 }")[0].subject == Iri("http://h/a")


def test_a_comma_before_an_underscore_belongs_to_the_name() -> None:
    expected = Iri(COMMON["dbr"] + "University_of_California,_Los_Angeles")
    for comma in (",", "\\,"):
        assert triples(f"SELECT * {{ ?x a dbr:University_of_California{comma}_Los_Angeles }}")[0].object == expected
    assert len(triples("SELECT * { ?x a dbr:a,_:b }")) == 2


def test_codepoint_escapes_are_decoded_and_positions_are_those_of_the_original_text() -> None:
    text = r"SELECT ?x { ?x :\u0061\U00000062 'A\\u0041\u00e9' , ?yy }"
    request = parse(text, PREFIXES)
    first, second = triples(text)
    assert first == Triple(Variable("x"), Iri("http://h/ab"), Literal("A\\u0041é"))
    assert request.source.text_of(second.object) == "?yy"
    assert request.source.place_of(second.object) == (1, text.index("?yy") + 1)
    assert request.source.text_of(first.predicate) == r":\u0061\U00000062"


def test_every_node_knows_where_it_stands() -> None:
    text = "SELECT ?x {\n ?x :p/^:q :a ;\n  :r [ :s 5 ] FILTER(?x != :b) }\nLIMIT 3"
    request = parse(text, PREFIXES)
    for node in walk(request.tree):
        start, end = node.span
        assert 0 <= start < end <= len(text)
    shown = [request.source.text_of(node) for node in walk(request.tree)]
    assert {text, ":p/^:q", "^:q", "[ :s 5 ]", "FILTER(?x != :b)", "?x != :b", "LIMIT 3"} <= set(shown)


def test_abbreviations_are_written_out() -> None:
    first, second, third = triples("SELECT * { [] :p [ :q :a, 'b'@en ] }")
    assert isinstance(first.subject, BlankNode)
    assert second.subject == third.subject == first.object
    assert third.object == Literal("b", language="en")
    assert len({one.subject for one in (first, second)}) == 2
    assert len(triples("SELECT * { ?x :p (1 ?y) }")) == 5
    assert (
        len(
            {
                node.label
                for node in walk(parse("SELECT * { _:_1 :p [] , [] }", PREFIXES).tree)
                if isinstance(node, BlankNode)
            }
        )
        == 3
    )


def test_an_aggregate_may_be_a_condition_by_itself() -> None:
    assert parse("SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING COUNT(?y) (SUM(?y) > 2)", PREFIXES)


def test_numbers_may_have_a_sign() -> None:
    assert [one.object.value for one in triples("SELECT * { ?x :p -1.5 , +2, -1e3 }")] == ["-1.5", "+2", "-1e3"]
    assert parse("SELECT * { ?x :p ?y FILTER(?y -1 > ?y - 1 && ?y+1*2 = -?y) }", PREFIXES)


@pytest.mark.parametrize(
    "text",
    ["CLEAR SILENT GRAPH <g>", "LOAD <a> INTO GRAPH <b>", "PREFIX a: <b> insert data { a:b a:c 5 } ; DROP ALL"],
)
def test_an_update_is_recognised(text: str) -> None:
    assert isinstance(parse(text, PREFIXES).tree, Update)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text has no query. Write one such as SELECT ?x WHERE { ?x :relation :entity }."),
        ("# a comment", "the text has no query. Write one such as SELECT ?x WHERE { ?x :relation :entity }."),
        (
            "who died of it?",
            "line 1, column 1: the text has no SELECT. A query begins with SELECT ?x WHERE {, after its prefixes.",
        ),
        (
            "SELECT ?x {\n ?x foo:bar dbr:a }",
            "line 2, column 5: the prefix foo: is not declared. Begin the query with PREFIX foo: <...>. Known without: "
            ":, bd:, dbo:, dbp:, dbr:, fb:, foaf:, owl:, rdf:, rdfs:, schema:, skos:, wd:, wdt:, wikibase:, xsd:.",
        ),
        ("SELECT ?x WHERE { ?x dbo:guest dbr:a", "line 1, column 17: this { is not closed. Put a } at its end."),
        (
            "SELECT ?x { ?x dbo:guest dbr:a }}",
            "line 1, column 33: this } closes nothing. Remove it, or open it before.",
        ),
        (
            "SELECT ?x { ?x dbo:guest [ dbo:spouse dbr:a }",
            "line 1, column 45: this } does not close the [ before it. Put a ] before it.",
        ),
        ("SELECT ?x WERE { ?x ?y ?z }", "line 1, column 11: WERE is not a keyword of SPARQL. Did you mean WHERE?"),
        (
            "SELECT ?x { ?x ?y ?z FILTER(STRLENGTH(?z) > 1) }",
            "line 1, column 29: STRLENGTH is not a function of SPARQL. Did you mean STRLEN?",
        ),
        (
            "SELECT x { ?x dbo:guest dbr:a }",
            "line 1, column 8: x is not a keyword of SPARQL. A variable is ?x, a name :x.",
        ),
        (
            "SELECT ?x { ?x dbo:guest dbr:Titanic_(film) }",
            "line 1, column 38: ( in the name dbr:Titanic_ needs a backslash. Write \\( there, or the whole IRI "
            "between < and >.",
        ),
        (
            "SELECT ?x { ?x dbo:guest <http://a b> }",
            "line 1, column 26: this IRI is not closed, or has a space in it. Write %20 for a space, and > at its end.",
        ),
        ("SELECT ?x { ?x dbo:guest 'a }", "line 1, column 26: this quote is not closed. Put a ' at its end."),
        (
            r"SELECT ?x { ?x dbo:guest 'a\z' }",
            "line 1, column 26: this string has an unknown escape. Only "
            "\\t \\b \\n \\r \\f \\\\ \\\" and \\' are known.",
        ),
        (
            "SELECT ?x {\n ?x dbo:guest dbr:a\n ?x dbo:guest dbr:b }",
            "line 3, column 2: unexpected ?x. Is a dot missing before it?",
        ),
        ("SELECT ?x { ?x dbo:guest }", "line 1, column 26: unexpected }. Expected a variable or a name."),
        ("SELECT { ?x dbo:guest dbr:a }", "line 1, column 8: unexpected {. Expected a variable."),
        (
            "SELECT ?x { ?x ?y ?z } LIMIT x",
            "line 1, column 30: x is not a keyword of SPARQL. A variable is ?x, a name :x.",
        ),
        ("SELECT ?x { ?x ?y ?z } LIMIT -1", "line 1, column 30: unexpected -1. Expected a number."),
        ("SELECT ?x { ?x ?y ?z } LIMIT", "line 1, column 29: the query ends too early. Expected a number."),
        ("SELECT ?x { ?x 'y' ?z }", "line 1, column 16: unexpected 'y'. Expected a variable or a name."),
        (
            "PREFIX dbo <http://a/> SELECT * {}",
            "line 1, column 8: dbo is not a keyword of SPARQL. A variable is ?dbo, a name :dbo.",
        ),
        (
            "SELECT ?x { ?x :p ?y FILTER(?x<5&&?y>3) }",
            "line 1, column 31: unexpected <5&&?y>. It is read as an IRI. To compare, put spaces around < and >.",
        ),
        (
            "SELECT (?x AS ?x) {\n ?x ?y ?z }",
            "line 2, column 12: the SELECT overrides an existing variable using an expression",
        ),
    ],
)
def test_a_syntax_error_says_what_where_and_what_to_do(text: str, message: str) -> None:
    error = failure(text)
    assert str(error) == message
    assert error.feature == "syntax"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { ?x ?y ?z BIND(1 AS ?x) }",
        "SELECT ?x (COUNT(?y) AS ?n) { ?x ?y ?z }",
        "SELECT ?x { { _:a ?y ?z } { _:a ?y ?z } }",
        "SELECT ?x { VALUES (?x ?y) { (1) } }",
        "SELECT ?x { VALUES (?x) { (1 2) } }",
        "SELECT ?x { FILTER(STRLEN(1, 2)) }",
        "SELECT ?x { ?x ?y '\ud800' }",
        "FOO BAR SELECT ?x { ?x ?y ?z }",
    ],
)
def test_what_the_store_refuses_is_refused(text: str) -> None:
    assert failure(text).feature == "syntax"


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("SELECT ?x " + "{" * 2400 + "}" * 2400, "nesting"),
        ("SELECT ?x { ?x ?y ?z FILTER(" + "(" * 2000 + "1" + ")" * 2000 + ") }", "nesting"),
        ("(" * 99_000, "length"),
        ("a." * 49_000, "length"),
        ("'''" * 99_000, "length"),
        ("<a" * 49_000, "length"),
        ("x" * 10_000_000, "length"),
    ],
)
def test_a_text_that_is_too_long_or_too_deep_is_refused(text: str, feature: str) -> None:
    assert failure(text).feature == feature


def test_a_long_chain_is_not_deep() -> None:
    chain = " && ".join(f"?x + {number} - 1 != 1" for number in range(600))
    assert isinstance(parse(f"SELECT ?x {{ ?x ?y ?z FILTER({chain}) }}", PREFIXES).tree, Select)
    twice, often = (parse(f"ASK {{ FILTER({'!' * count} true) }}", PREFIXES).tree for count in (2, 4000))
    assert twice == often


def test_texts_are_parsed_by_several_threads_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: parse(f"SELECT * {{ ?x ?y ?z }} LIMIT {number}", PREFIXES), range(40)))
    assert [one.tree.modifiers.limit for one in found] == list(range(40))


WORDS = "SELECT ?x * { } ( ) [ ] . ; , a :a <b> 'c' 5 -1 _:d ^ / | # \n FILTER AS < � é IN NOT EXISTS COUNT"


@given(
    st.lists(st.sampled_from(WORDS.split(" ")))
    | st.lists(st.sampled_from(WORDS.split(" "))).map(lambda some: ["SELECT", "*", "{", *some, "}"])
)
def test_no_text_ends_in_anything_but_a_tree_or_one_clear_line(words: list[str]) -> None:
    with contextlib.suppress(SparqlError):
        parse(" ".join(words), PREFIXES)


@given(st.text())
def test_nor_does_any_other_text(text: str) -> None:
    assert failure(text)
