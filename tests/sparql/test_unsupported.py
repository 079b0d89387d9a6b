from pathlib import Path

import pytest

from halfgraph.errors import SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.sparql.unsupported import NO_TREES, UNSUPPORTED
from imported_graphs import made
from sparql_reading import refusal

HERE = "?x dbo:guest dbr:Escape_Clause"
REFUSED = {
    "OPTIONAL": (f"SELECT ?x {{\n {HERE}\n  OPTIONAL {{ ?x dbo:guest ?y }} }}", 3, 3),
    "UNION": (f"SELECT ?x {{ {{ {HERE} }}\nUNION {{ ?y dbo:guest dbr:Escape_Clause }} }}", 1, 15),
    "FILTER": (f"SELECT ?x {{ # FILTER\n {HERE} . ?x dbo:spouse ?y FILTER(?x != ?y) }}", 2, 52),
    "EXISTS": (f"SELECT ?x {{ {HERE} FILTER(?x != 1 && NOT EXISTS {{ {HERE} }}) }}", 1, 62),
    "literal type": (f"SELECT ?x {{ {HERE} ; dbo:height ?h FILTER(?h > '5'^^dbo:feet) }}", 1, 72),
    "negation": (f"SELECT ?x {{ {HERE} MINUS {{ ?y dbo:guest dbr:Escape_Clause }} }}", 1, 44),
    "only negative": (f"SELECT ?x {{ FILTER NOT EXISTS {{ {HERE} }} }}", 1, 33),
    "choices": (
        f"SELECT ?x {{ {HERE} . "
        + " . ".join(f"?x dbo:guest|dbo:spouse ?y{n} . dbr:Escape_Clause dbo:guest ?y{n}" for n in range(6))
        + " }",
        None,
        None,
    ),
    "BIND": ("SELECT ?x { BIND(dbr:Escape_Clause AS ?x) }", 1, 13),
    "VALUES": ("SELECT ?x { ?x dbo:guest ?y } VALUES (?x ?y) { (dbr:Escape_Clause UNDEF) }", 1, 31),
    "aggregate": ("SELECT (count(?x) AS ?n) { ?x dbo:guest ?y }", 1, 9),
    "GROUP BY": (f"SELECT ?x {{ {HERE} }}\ngroup by ?x", 2, 1),
    "HAVING": (f"SELECT ?x {{ {HERE} }} HAVING(?x > 1)", 1, 46),
    "ORDER BY": (f"SELECT ?x {{ {HERE} }} ORDER BY ?x", 1, 46),
    "expression": (f"SELECT (?x AS ?y) {{ {HERE} }}", 1, 15),
    "subquery": (f"SELECT ?x {{ {{ SELECT ?x {{ {HERE} }} }} }}", 1, 15),
    "GRAPH": (f"SELECT ?x {{ GRAPH <http://g/> {{ {HERE} }} }}", 1, 13),
    "SERVICE": (f"SELECT ?x {{ SERVICE <http://127.0.0.1:9/> {{ {HERE} }} }}", 1, 13),
    "FROM": (f"SELECT ?x FROM <http://g/> {{ {HERE} }}", 1, 11),
    "form": (f"PREFIX a: <http://a/>\n  ASK {{ {HERE} }}", 2, 3),
    "update": ("PREFIX a: <http://a/>\nINSERT DATA { a:b a:c a:d }", 2, 1),
    "path operator": ("SELECT ?x { ?x dbo:guest/dbo:spouse* dbr:Escape_Clause }", 1, 36),
    "triple term": ("SELECT ?x { ?x dbo:guest << dbr:a dbr:b dbr:c >> }", 1, 26),
    "LATERAL": (f"SELECT ?x {{ LATERAL {{ {HERE} }} }}", 1, 13),
    "function": (f"SELECT ?x {{ {HERE} FILTER(dbo:near(?x)) }}", 1, 51),
    "several variables": ("SELECT ?x ?y { ?x dbo:guest ?y }", 1, 11),
    "no variable": ("SELECT * { dbr:Escape_Clause dbo:guest dbr:Escape_Clause }", 1, 1),
    "missing variable": (f"SELECT ?y {{ {HERE} }}", 1, 8),
    "variable relation": ("SELECT ?p {\n ?x ?p dbr:Escape_Clause }", 2, 5),
    "variable class": (f"SELECT ?x {{ {HERE} ; a ?c }}", 1, 48),
    "literal": ("SELECT ?x {\n\n ?x dbo:guest 'nobody at all'@en }", 3, 15),
    "list": ("SELECT ?x { ?x dbo:guest (dbr:Escape_Clause) }", 1, 26),
    "no variable in a pattern": (f"SELECT ?x {{ {HERE} . dbr:Escape_Clause a dbo:Work }}", 1, 46),
    "loop": (f"SELECT ?x {{ {HERE} .\n ?x dbo:spouse ?x }}", 2, 2),
    "two classes": (f"SELECT ?x {{ {HERE} ; a dbo:Person, dbo:Work }}", 1, 60),
    "untied": (f"SELECT ?x {{ {HERE} .\n ?x dbo:spouse ?y }}", 2, 16),
    "unconnected": (f"SELECT ?x {{ {HERE} .\n ?y dbo:guest dbr:Escape_Clause }}", 2, 2),
    "length": (f"SELECT ?x {{ {HERE} }} #{'-' * 500_000}", None, None),
    "nesting": ("SELECT ?x " + "{" * 65 + HERE + "}" * 65, None, None),
    "size": ("SELECT ?x { ?x " + "dbo:guest/" * 200 + "dbo:guest dbr:Escape_Clause }", None, None),
}


ROWS = ". `ask` and `/sparql/predict` predict rows for it."
BY_ROWS = {"nothing uncertain", "VALUES after groups"}  # refused by row_reading.py


def test_every_refusal_has_an_example() -> None:
    assert set(REFUSED) | BY_ROWS == {*UNSUPPORTED, *NO_TREES}


@pytest.mark.parametrize("feature", REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(dbpedia: Graph, feature: str) -> None:
    text, line, column = REFUSED[feature]
    error = refusal(text, dbpedia)
    assert isinstance(error, SparqlError)
    assert (error.feature, error.line, error.column) == (feature, line, column)
    assert error.advice
    assert "{" not in str(error).replace("{ ... }", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT ?x {\n ?x dbo:spouse dbr:Fritz_Feld .\n OPTIONAL { ?x dbo:guest ?y } }",
            "line 3, column 2: a query tree has no OPTIONAL part" + ROWS,
        ),
        (
            "SELECT ?x {\n\n\n ?x    dbo:almaMatter dbr:Escape_Clause }",
            "line 4, column 8: no relation dbo:almaMatter in this graph. Did you mean dbo:almaMater?",
        ),
        (
            "SELECT ?x { ?x dbo:guest dbr:Escape_Claus }",
            "line 1, column 26: no entity dbr:Escape_Claus in this graph. Did you mean dbr:Escape_Clause?",
        ),
        (
            "SELECT ?x { ?x dbo:deathCause dbr:Heart_Troubles }",
            "line 1, column 31: no entity dbr:Heart_Troubles in this graph. Did you mean dbr:Cardiovascular_disease "
            "(heart trouble)?",
        ),
        (
            "PREFIX r: <http://dbpedia.org/resource/>\nSELECT ?x { ?x dbo:guest r:Frits_Feld }",
            "line 2, column 26: no entity r:Frits_Feld in this graph. Did you mean dbr:Fritz_Feld?",
        ),
        (
            "SELECT ?x { ?x dbo:guest <http://nowhere/> }",
            "line 1, column 26: no entity <http://nowhere/> in this graph",
        ),
        (
            "SELECT ?x { ?x dbo:guest dbr:Escape_Clause ; a dbo:Persons }",
            "line 1, column 48: no type dbo:Persons in this graph. Did you mean dbo:Person?",
        ),
        (
            "SELECT ?x { ?x dbo:guest dbr:Escape_Clause ; a dbo:Xyzzy }",
            "line 1, column 48: no type dbo:Xyzzy in this graph. Its types are dbo:Person, dbo:Work, dbo:Disease.",
        ),
        (
            "SELECT ?x {\n ?x dbo:guest dbr:Escape_Clause .\n ?film dbo:guest ?x }",
            "line 3, column 2: ?film is not connected to any entity other than through ?x" + ROWS,
        ),
        (
            "SELECT ?x { ?x dbo:guest ?y }",
            "line 1, column 13: ?x is not connected to any entity" + ROWS,
        ),
        (
            "SELECT ?x ?y { ?x dbo:guest ?y }",
            "line 1, column 11: the query selects 2 variables (?x, ?y), and none of them follows from the others"
            + ROWS,
        ),
        (
            'SELECT ?x { ?x dbo:guest "escape clause" }',
            'line 1, column 26: "escape clause" is a literal, and a query tree connects entities'
            + ", such as dbr:Escape_Clause"
            + ROWS,
        ),
        (
            "SELECT ?x { ?x dbo:guest -5 }",
            "line 1, column 26: -5 is a literal, and a query tree connects entities" + ROWS,
        ),
    ],
)
def test_a_refusal_says_what_where_and_what_to_try(dbpedia: Graph, text: str, message: str) -> None:
    assert str(refusal(text, dbpedia)) == message


@pytest.mark.parametrize("operator", ["*", "+", "?"])
def test_repetition_in_a_path_is_refused_with_or_without_space(dbpedia: Graph, operator: str) -> None:
    for space in ("", " "):
        error = refusal(f"SELECT ?x {{ ?x dbo:guest{space}{operator} dbr:Escape_Clause }}", dbpedia)
        place = f"line 1, column {25 + len(space)}"
        assert str(error).startswith(f"{place}: a query tree has no path operator {operator}")


@pytest.mark.parametrize("path", ["!dbo:guest", "!(dbo:guest|^dbo:spouse)"])
def test_choices_in_a_path_are_refused(dbpedia: Graph, path: str) -> None:
    error = refusal(f"SELECT ?x {{ ?x {path} dbr:Escape_Clause }}", dbpedia)
    assert isinstance(error, SparqlError)
    assert error.feature == "path operator"


def test_an_unknown_name_has_fields(dbpedia: Graph) -> None:
    error = refusal("SELECT ?x { ?x dbo:almaMatter dbr:Escape_Clause }", dbpedia)
    assert isinstance(error, UnknownName)
    assert (error.name, error.what, error.nearest) == ("dbo:almaMatter", "relation", ("dbo:almaMater",))
    assert (error.line, error.column) == (1, 16)


def test_a_name_of_another_namespace_is_offered(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text("P31\tinstance of\n")
    graph = made(tmp_path, "Q1\tP31\tQ2\n", labels_files=(tmp_path / "labels",))
    assert str(refusal("SELECT ?x { wd:Q1 wdt:P31 ?x }", graph)).endswith("Did you mean :Q1?")
    assert str(refusal("SELECT ?x { :Q1 wdt:P31 ?x }", graph)).endswith("Did you mean :P31 (instance of)?")


def test_words_inside_names_strings_and_comments_are_not_taken_for_keywords(dbpedia: Graph) -> None:
    text = "PREFIX union: <http://x/FILTER> SELECT ?optional { ?optional union: dbr:Escape_Clause } # GROUP"
    assert str(refusal(text, dbpedia)) == "line 1, column 62: no relation union: in this graph"


def test_the_guide_shows_the_table_of_refusals() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "sparql.md").read_text(encoding="utf-8")
    table = guide.partition("| feature |")[2].partition("\n\n")[0].split("\n")[2:]
    rows = [f"| {feature} | {reason} | {advice} |" for feature, (reason, advice) in UNSUPPORTED.items()]
    assert table == [row.replace("{{", "{").replace("}}", "}") for row in rows]
