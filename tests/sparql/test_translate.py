"""Choices, negations and entities: the queries that they become."""

import pytest

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.query.structures import structure_name
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union
from halfgraph.sparql.read import read
from small_graphs import made_anew
from sparql_reading import entity, refusal, relation

CLAUSE = "dbr:Escape_Clause"


@pytest.fixture
def guest(dbpedia: Graph) -> Query:
    return Project(entity(dbpedia, "Escape_Clause"), relation(dbpedia, "guest"))


@pytest.fixture
def spouse(dbpedia: Graph) -> Query:
    return Project(entity(dbpedia, "Fritz_Feld"), relation(dbpedia, "spouse") ^ 1)


FELD = "?x dbo:spouse dbr:Fritz_Feld"


@pytest.mark.parametrize(
    "body",
    [
        f"{{ {CLAUSE} dbo:guest ?x }} UNION {{ {FELD} }}",
        f"{{ {FELD} }} UNION {{ {{ {CLAUSE} dbo:guest ?x }} }}",
    ],
)
def test_a_union_becomes_a_union(dbpedia: Graph, guest: Query, spouse: Query, body: str) -> None:
    assert read(f"SELECT ?x {{ {body} }}", dbpedia).query == Union((guest, spouse))


def test_a_choice_in_a_path_is_a_union_where_it_stands(dbpedia: Graph) -> None:
    text = f"SELECT ?x {{ {CLAUSE} (dbo:guest|^dbo:almaMater)/dbo:spouse ?x }}"
    assert structure_name(read(text, dbpedia).query) == "3-chain_union"
    both = Union(tuple(Project(entity(dbpedia, "Escape_Clause"), way) for way in ways(dbpedia)))
    assert read(text, dbpedia).query == Project(both, relation(dbpedia, "spouse"))


def ways(graph: Graph) -> tuple[int, int]:
    return relation(graph, "guest"), relation(graph, "almaMater") ^ 1


def test_a_choice_between_two_variables_is_drawn_to_the_front(dbpedia: Graph, guest: Query) -> None:
    text = f"SELECT ?x {{ {CLAUSE} dbo:guest ?y . ?y dbo:spouse|dbo:almaMater ?x }}"
    reading = read(text, dbpedia)
    names = ("spouse", "almaMater")
    assert reading.query == Union(tuple(Project(made_anew(guest), relation(dbpedia, name)) for name in names))
    assert list(reading.variables) == ["x"]


@pytest.mark.parametrize("no", [f"MINUS {{ {FELD} }}", f"FILTER NOT EXISTS {{ {FELD} }}"])
def test_what_is_taken_away_becomes_a_negation(dbpedia: Graph, guest: Query, spouse: Query, no: str) -> None:
    query = read(f"SELECT ?x {{ {CLAUSE} dbo:guest ?x {no} }}", dbpedia).query
    assert query == Intersect((guest, Negate(spouse)))
    assert structure_name(query) == "2-inter_not"


def test_the_other_variables_of_a_negation_are_its_own(dbpedia: Graph, guest: Query) -> None:
    first, second = (f"{{ ?x dbo:{name} ?y . {CLAUSE} dbo:guest ?y }}" for name in ("spouse", "guest"))
    text = f"SELECT ?x {{ {CLAUSE} dbo:guest ?x MINUS {first} FILTER NOT EXISTS {second} }}"
    paths = (Project(made_anew(guest), relation(dbpedia, name) ^ 1) for name in ("spouse", "guest"))
    none = map(Negate, paths)
    assert read(text, dbpedia).query == Intersect((guest, *none))


def test_minus_does_not_see_what_comes_after_it(dbpedia: Graph) -> None:
    no = f"MINUS {{ ?x dbo:guest ?y . {CLAUSE} dbo:guest ?y }}"
    text = f"SELECT ?x {{ {FELD} {no} ?x dbo:guest ?y . ?y dbo:spouse dbr:Fritz_Feld }}"
    assert isinstance(read(text, dbpedia).query, Intersect)
    error = refusal(text.replace("MINUS", "FILTER NOT EXISTS"), dbpedia)
    assert "NOT EXISTS shares ?x, ?y with the rest of its group" in str(error)


@pytest.mark.parametrize(
    ("test", "parts"),
    [
        ("FILTER(?x != dbr:Fritz_Feld)", "-feld"),
        ("FILTER(dbr:Fritz_Feld = ?x)", "feld"),
        ("FILTER(?x IN (dbr:Fritz_Feld, dbr:Escape_Clause))", "either"),
        ("FILTER(?x NOT IN (dbr:Fritz_Feld, dbr:Escape_Clause))", "-feld -clause"),
        ("FILTER((?x != dbr:Fritz_Feld) && ?x != dbr:Escape_Clause)", "-feld -clause"),
        ("VALUES ?x { dbr:Fritz_Feld }", "feld"),
        ("VALUES (?x) { (dbr:Fritz_Feld) (dbr:Escape_Clause) }", "either"),
    ],
)
def test_a_variable_is_compared_with_entities(dbpedia: Graph, guest: Query, test: str, parts: str) -> None:
    feld, clause = entity(dbpedia, "Fritz_Feld"), entity(dbpedia, "Escape_Clause")
    words: dict[str, Query] = {"feld": feld, "-feld": Negate(feld), "-clause": Negate(clause)}
    words |= {"either": Union((feld, clause))}
    query = read(f"SELECT ?x {{ {CLAUSE} dbo:guest ?x {test} }}", dbpedia).query
    assert query == Intersect((guest, *map(words.__getitem__, parts.split())))


def test_values_stand_for_an_entity(dbpedia: Graph, guest: Query) -> None:
    assert read(f"SELECT ?x {{ ?y dbo:guest ?x }} VALUES ?y {{ {CLAUSE} }}", dbpedia).query == guest
    text = f"SELECT ?x {{ ?y dbo:guest ?x }} LIMIT 5 VALUES ?y {{ {CLAUSE} dbr:Fritz_Feld }}"
    both = Union((entity(dbpedia, "Escape_Clause"), entity(dbpedia, "Fritz_Feld")))
    assert read(text, dbpedia).query == Project(both, relation(dbpedia, "guest"))
    assert read(text, dbpedia).limit == 5


def test_of_several_variables_the_one_that_the_others_lead_to_is_asked_for(dbpedia: Graph, guest: Query) -> None:
    text = f"SELECT ?x ?y {{ {CLAUSE} dbo:guest ?x . ?x dbo:spouse ?y }}"
    reading = read(text, dbpedia)
    assert reading.target == "y"
    assert reading.variables["x"] == guest
    assert reading.query == Project(guest, relation(dbpedia, "spouse"))
    assert read(text.replace("?x ?y", "*"), dbpedia).query == reading.query


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        (f"SELECT ?x {{ FILTER(?x != {CLAUSE}) }}", "only negative"),
        (f"SELECT ?x {{ MINUS {{ {FELD} }} {CLAUSE} dbo:guest ?x }}", "negation"),
        (f"SELECT ?x {{ {CLAUSE} dbo:guest ?x FILTER(?z != {CLAUSE}) }}", "missing variable"),
        (f"SELECT ?x {{ {CLAUSE} dbo:guest ?x {{ FILTER(?x != {CLAUSE}) }} }}", "missing variable"),
        (
            f"SELECT ?x {{ {CLAUSE} dbo:guest ?x . {{ ?z dbo:guest {CLAUSE} }} UNION {{ {CLAUSE} dbo:guest ?z }} }}",
            "unconnected",
        ),
        (f"SELECT ?x {{ {FELD} {{ ?x dbo:guest {CLAUSE} }} UNION {{ {CLAUSE} dbo:guest ?z }} }}", "UNION"),
        (f"SELECT ?x ?y {{ {CLAUSE} dbo:guest ?x , ?y }}", "several variables"),
        (f"SELECT ?x {{ {FELD} FILTER(?x != 'Fritz' && EXISTS {{ {FELD} }}) }}", "EXISTS"),
        (f"SELECT ?x {{ {FELD} }} VALUES ?x {{ 5 }}", "literal"),
    ],
)
def test_what_cannot_be_built_is_refused(dbpedia: Graph, text: str, feature: str) -> None:
    error = refusal(text, dbpedia)
    assert isinstance(error, SparqlError)
    assert error.feature == feature


def test_an_entity_may_stand_alone(dbpedia: Graph) -> None:
    assert isinstance(read(f"SELECT ?x {{ VALUES ?x {{ {CLAUSE} }} }}", dbpedia).query, Anchor)
