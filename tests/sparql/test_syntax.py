import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asking import refusal
from halfgraph.errors import HalfgraphError, SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.sparql.reading import read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no query in this text. Write one such as SELECT ?x WHERE { ?x :relation :entity }."),
        ("# nothing", "there is no query in this text. Write one such as SELECT ?x WHERE { ?x :relation :entity }."),
        (
            "who died of it?",
            "line 1, column 1: this text has no SELECT. A query begins with SELECT ?x WHERE {, after its prefixes.",
        ),
        (
            "SELECT ?x {\n ?x foo:bar dbr:a }",
            "line 2, column 5: the prefix foo: is not declared. Begin the query with PREFIX foo: <...>.",
        ),
        ("SELECT ?x WHERE { ?x dbo:guest dbr:a", "line 1, column 17: this { is not closed. Put a } at its end."),
        (
            "SELECT ?x { ?x dbo:guest dbr:a }}",
            "line 1, column 33: this } closes nothing. Take it out, or open it before.",
        ),
        (
            "SELECT ?x { ?x dbo:guest [ dbo:spouse dbr:a }",
            "line 1, column 45: this } does not close the [ before it. A ] should come before.",
        ),
        ("SELECT ?x WERE { ?x ?y ?z }", "line 1, column 11: WERE is not a word of SPARQL. Did you mean WHERE?"),
        (
            "SELECT x { ?x dbo:guest dbr:a }",
            "line 1, column 8: x is not a word of SPARQL. A variable is ?x, a name :x.",
        ),
        (
            "SELECT ?x { ?x dbo:guest dbr:Titanic_(film) }",
            "line 1, column 38: the sign ( cannot stand in the name dbr:Titanic_ as it is. Write \\( there, or the "
            "whole IRI between < and >.",
        ),
        (
            "SELECT ?x { ?x dbo:guest <http://a b> }",
            "line 1, column 26: this IRI is not closed, or has a space in it. Write %20 for a space, and > at its end.",
        ),
        ("SELECT ?x { ?x dbo:guest 'a }", "line 1, column 26: this quote is not closed. Put a ' at its end."),
        (
            "SELECT ?x {\n ?x dbo:guest dbr:a\n ?x dbo:guest dbr:b }",
            "line 3, column 2: ?x cannot stand here. Perhaps a dot is missing before it.",
        ),
        ("SELECT ?x { ?x dbo:guest }", "line 1, column 26: } cannot stand here. Expected a variable or a name."),
        ("SELECT { ?x dbo:guest dbr:a }", "line 1, column 8: { cannot stand here. Expected a variable."),
        (
            "SELECT ?x { ?x ?y ?z } LIMIT x",
            "line 1, column 30: x is not a word of SPARQL. A variable is ?x, a name :x.",
        ),
        ("SELECT ?x { ?x ?y ?z } LIMIT -1", "line 1, column 30: - cannot stand here. Expected a number."),
        ("SELECT ?x { ?x ?y ?z } LIMIT", "line 1, column 29: the query ends too early. Expected a number."),
        ("SELECT ?x { ?x 'y' ?z }", "line 1, column 16: 'y' cannot stand here. Expected a variable or a name."),
    ],
)
def test_a_syntax_error_says_what_where_and_what_to_try(dbpedia: Graph, text: str, message: str) -> None:
    error = refusal(text, dbpedia)
    assert str(error) == message
    assert isinstance(error, SparqlError)
    assert error.feature == "syntax"


@given(
    st.lists(
        st.sampled_from(
            [
                "SELECT",
                "?x",
                "*",
                "{",
                "}",
                "(",
                ")",
                "[",
                "]",
                ".",
                ";",
                ",",
                "a",
                ":a",
                "<b>",
                "'c'",
                "5",
                "_:d",
                "^",
                "/",
                "|",
                "#",
                "\n",
                "FILTER",
                "AS",
                "<",
                "�",
                "é",
            ]
        )
    )
)
def test_no_text_ends_in_anything_but_a_reading_or_one_clear_line(graph, words) -> None:
    with contextlib.suppress(HalfgraphError):
        read(" ".join(words), graph)


@given(st.text())
def test_nor_does_any_other_text(graph, text) -> None:
    with pytest.raises(HalfgraphError):
        read(text, graph)
