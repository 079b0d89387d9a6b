"""Messages for texts that are not SPARQL."""

import pytest

from halfgraph.errors import SparqlError
from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import Prefixes

GIVEN = Prefixes({}, "http://example.org/")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("BASE <http://[> SELECT ?x { ?x <a> ?y }", r"line 1, column 6: the BASE <http://\[> is not a valid IRI"),
        ("BASE <1:a>\nSELECT ?x { ?x <a> ?y }", "line 1, column 6: the BASE <1:a> is not a valid IRI"),
        ("BASE <http://a/>\nBASE <http://x/%> ASK { ?x <y> ?z }", "line 2, column 6: the BASE <http://x/%> is not"),
        ("BASE <http://[> SELECT (IRI('x') AS ?y) {}", r"column 6: the BASE <http://\[> is not a valid IRI"),
        ("PREFIX a: <http://[/> ASK { ?x a:c ?z }", r"column 11: <http://\[/> is not a valid IRI"),
        ("BASE <http://a/> ASK { ?x <[> ?z }", r"column 27: <\[> is not a valid IRI"),
        ("SELECT ?x { ?x <a> ?y BIND(1 AS ?y) }", "A BIND must name a new variable|already"),
    ],
)
def test_an_invalid_iri_is_named_and_other_mistakes_are_not_taken_for_one(text: str, said: str) -> None:
    with pytest.raises(SparqlError, match=said):
        parse(text, GIVEN)


@pytest.mark.parametrize("text", ["BASE <x> ASK { ?x <a> ?y }", "BASE <http://a/> BASE <b/> ASK { ?x <c> ?y }"])
def test_a_base_may_be_relative(text: str) -> None:
    parse(text, GIVEN)
