from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import QuerySolutions

from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import SUB_CLASS_OF, TYPE
from halfgraph.graph.store import open_store
from halfgraph.graph.types import FEWEST_VOTERS, GUESSED, OWL_THING, UNTYPED, Hierarchy
from imported_graphs import made, nt, short_lived, types_by_name
from oracles import Named, above, below_the_root, common_super_classes, entities, votes
from strategies import hierarchies, named_triples, types_of

KNOWS = "<http://a.org/{}> <http://a.org/knows> <http://a.org/{}> .\n"
classes = st.sets(st.sampled_from("ABCDEF"), min_size=1, max_size=3)


def typed(types: dict[str, set[str]]) -> str:
    return nt((entity, TYPE, type_id) for entity, several in types.items() for type_id in sorted(several))


def ways(graph: Graph) -> dict[str, int]:
    return dict(graph.description["types"]["ways"])


@given(hierarchies(), st.sampled_from("ABCDEF"))
def test_ancestors_are_those_that_steps_upwards_lead_to(pairs: list[tuple[str, str]], name: str) -> None:
    assert Hierarchy.of(pairs).ancestors(name) == above(pairs, name)


@given(hierarchies(), classes)
def test_the_nearest_common_super_class_is_common_and_none_is_nearer(
    pairs: list[tuple[str, str]], types: set[str]
) -> None:
    hierarchy = Hierarchy.of(pairs)
    narrow, found = hierarchy.narrowest(types), hierarchy.nearest_common(types)
    common = common_super_classes(pairs, narrow)
    assert (found in common) if common else found is None
    if found is not None:
        furthest = {name: max(above(pairs, lower)[name] for lower in narrow) for name in common}
        assert furthest[found] == min(furthest.values())


@given(hierarchies(), classes)
def test_the_narrowest_classes_stand_below_all_that_are_left_out(pairs: list[tuple[str, str]], types: set[str]) -> None:
    narrow = Hierarchy.of(pairs).narrowest(types)
    assert narrow
    assert all(any(name in above(pairs, lower) for lower in narrow) for name in types)


@given(hierarchies(), classes)
def test_level_1_classes_are_those_just_below_the_root(pairs: list[tuple[str, str]], types: set[str]) -> None:
    rooted = [*pairs, ("A", OWL_THING)]
    assert set(Hierarchy.of(rooted).first_level(types)) == below_the_root(rooted, types, OWL_THING)


DIAMOND = [("Student", "Person"), ("Worker", "Person"), ("Tutor", "Student"), ("Tutor", "Worker"), ("Person", "Agent")]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({"Student"}, "Student"),
        ({"Student", "Worker"}, "Person"),
        ({"Student", "Person"}, "Student"),
        ({"Student", "Worker", "Tutor"}, "Tutor"),
        ({"Student", "Rock"}, None),
    ],
)
def test_the_nearest_common_super_class_of_a_diamond(types: set[str], expected: str | None) -> None:
    assert Hierarchy.of(DIAMOND).nearest_common(types) == expected


def test_a_cycle_of_classes_ends() -> None:
    circle = Hierarchy.of([("A", "B"), ("B", "C"), ("C", "A"), ("C", "D")])
    assert circle.ancestors("A") == {"A": 0, "B": 1, "C": 2, "D": 3}
    assert circle.narrowest(["A", "B", "C"]) == ["A"]
    assert circle.nearest_common(["A", "B"]) == "A"
    assert circle.first_level(["A"]) == []  # D is the root, and nothing stands just below it alone


def test_the_root_is_owl_thing_or_the_one_class_above_all() -> None:
    assert Hierarchy.of([("A", "R"), ("B", "R")]).first_level(["A", "B", "R"]) == ["A", "B"]
    assert Hierarchy.of([("A", "R"), ("B", "S")]).first_level(["A", "B"]) == ["R", "S"]
    assert Hierarchy.of([("A", "B"), ("B", OWL_THING)]).first_level(["A"]) == ["B"]
    assert Hierarchy.of([]).first_level(["A"]) == ["A"]


@given(named_triples(), types_of())
def test_every_entity_gets_exactly_one_type_and_the_ways_add_up(
    triples: list[Named], types: dict[str, set[str]]
) -> None:
    with short_lived(nt(triples) + typed(types), "nt") as graph:
        assert set(types_by_name(graph)) == entities(triples)
        assert sum(ways(graph).values()) == len(entities(triples))
        assert graph.types.starts[-1] == len(graph.entities)
        assert graph.types.sizes.min() > 0


@given(named_triples(), types_of())
def test_an_entity_of_one_type_is_of_that_type(triples: list[Named], types: dict[str, set[str]]) -> None:
    with short_lived(nt(triples) + typed(types), "nt") as graph:
        decided = types_by_name(graph)
        assert all(decided[name] == min(found) for name, found in types.items() if len(found) == 1 and name in decided)


@given(named_triples(entities=16), types_of(entities=16, types=2))
def test_untyped_entities_get_the_type_with_more_than_half_of_the_votes(
    triples: list[Named], types: dict[str, set[str]]
) -> None:
    single = {entity: min(several) for entity, several in types.items()}
    with short_lived(nt(triples) + typed({entity: {type_id} for entity, type_id in single.items()}), "nt") as graph:
        found = types_by_name(graph)
        stated = {name for number, name in enumerate(graph.entities.names) if graph.is_type_stated(number)}
        guessed = ways(graph).get(GUESSED, 0)
    single = {entity: type_id for entity, type_id in single.items() if entity in found}
    tallies = votes(triples, single, FEWEST_VOTERS)
    assert set(tallies) == set(found) - set(single)
    assert stated == set(single)
    assert guessed == sum(found[entity] != UNTYPED for entity in tallies)
    for entity, tally in tallies.items():
        winners = [type_id for type_id, count in tally.items() if 2 * count > sum(tally.values())]
        assert [found[entity]] == (winners or [UNTYPED])


@pytest.mark.parametrize(("voters", "expected"), [(2, UNTYPED), (4, UNTYPED), (5, "http://a.org/A")])
def test_a_guess_needs_several_typed_entities(tmp_path: Path, voters: int, expected: str) -> None:
    names = [f"p{number}" for number in range(voters)]
    types = typed({f"http://a.org/{name}": {"http://a.org/A"} for name in names})
    graph = made(tmp_path, types + "".join(KNOWS.format(name, "x") for name in [*names, "unit"]), "nt")
    assert types_by_name(graph)["http://a.org/unit"] == expected


def test_a_guess_is_never_a_statement_of_the_graph(tmp_path: Path) -> None:
    types = typed({f"http://a.org/z{number}": {"http://a.org/A"} for number in range(5)})
    names = [f"z{number}" for number in range(5)]
    text = types + "".join(KNOWS.format(name, "x") for name in [*names, "guess", "m"])
    graph = made(tmp_path, text, "nt")
    known = {graph.entities.label(number): graph.is_type_stated(number) for number in range(len(graph.entities))}
    assert known == {**dict.fromkeys(names, True), "guess": False, "m": False, "x": False}
    assert graph.description["counts"]["guessed_types"] == ways(graph)[GUESSED] == 2
    for query in ("SELECT ?x { ?x a <http://a.org/A> }", "SELECT ?x { ?x a ?type }"):
        rows = open_store(graph).query(query)
        assert isinstance(rows, QuerySolutions)
        assert {row["x"].value for row in rows} == {f"http://a.org/{name}" for name in names}


def test_a_type_given_in_place_of_a_small_one_is_not_stated(tmp_path: Path) -> None:
    types = {
        "http://a.org/a": {"http://a.org/A"},
        "http://a.org/b": {"http://a.org/B"},
        "http://a.org/c": {"http://a.org/B"},
    }
    graph = made(tmp_path, KNOWS.format("a", "b") + KNOWS.format("b", "c") + typed(types), "nt", smallest_type=2)
    stated = [graph.entities.label(number) for number in range(3) if graph.is_type_stated(number)]
    assert stated == ["b", "c"]


def test_the_vote_does_not_count_a_triple_twice(tmp_path: Path) -> None:
    types = {f"http://a.org/{name}{n}": {f"http://a.org/{name.upper()}"} for name in "ab" for n in range(3)}
    names = [*(f"{name}{n}" for name in "ab" for n in range(3)), "u"]
    triples = typed(types) + "".join(KNOWS.format(name, "x") for name in names)
    once, twice = (made(tmp_path, triples + KNOWS.format("b0", "x") * count, "nt") for count in (0, 9))
    assert types_by_name(once) == types_by_name(twice)
    assert types_by_name(once)["http://a.org/u"] == UNTYPED
    assert once.fingerprint == twice.fingerprint


def test_untyped_entities_stay_so_when_asked(tmp_path: Path) -> None:
    text = KNOWS.format("a", "b") + f"<http://a.org/a> <{TYPE}> <http://a.org/A> .\n"
    graph = made(tmp_path, text, "nt", untyped="leave")
    assert types_by_name(graph) == {"http://a.org/a": "http://a.org/A", "http://a.org/b": UNTYPED}
    assert ways(graph) == {"only stated type": 1, "Untyped: no type": 1}


def test_one_type_for_all(tmp_path: Path) -> None:
    graph = made(
        tmp_path, KNOWS.format("a", "b") + f"<http://a.org/a> <{TYPE}> <http://a.org/A> .\n", "nt", types="one"
    )
    assert set(types_by_name(graph).values()) == {"Entity"}
    assert ways(graph) == {"one type for all": 2}


def test_types_with_few_entities_become_untyped(tmp_path: Path) -> None:
    text = KNOWS.format("a", "b") + KNOWS.format("b", "c")
    types = {f"http://a.org/{name}": {f"http://a.org/{type_id}"} for name, type_id in ("aA", "bB", "cB")}
    graph = made(tmp_path, text + typed(types), "nt", smallest_type=2)
    assert Counter(types_by_name(graph).values()) == {"http://a.org/B": 2, UNTYPED: 1}
    assert ways(graph)["Untyped: their type has too few entities"] == 1


PEOPLE = f"""
<http://a.org/Tutor> <{SUB_CLASS_OF}> <http://a.org/Person> .
<http://a.org/Worker> <{SUB_CLASS_OF}> <http://a.org/Person> .
<http://a.org/Person> <{SUB_CLASS_OF}> <http://a.org/Agent> .
<http://a.org/Agent> <{SUB_CLASS_OF}> <{OWL_THING}> .
<http://a.org/Place> <{SUB_CLASS_OF}> <{OWL_THING}> .
<http://a.org/a> <{TYPE}> <http://a.org/Tutor> .
<http://a.org/a> <{TYPE}> <http://a.org/Worker> .
<http://a.org/a> <{TYPE}> <{OWL_THING}> .
<http://a.org/b> <{TYPE}> <http://a.org/Place> .
<http://a.org/c> <{TYPE}> <http://a.org/Place> .
<http://a.org/c> <{TYPE}> <http://a.org/Tutor> .
<http://a.org/d> <{TYPE}> <http://a.org/Person> .
"""


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            "nearest",
            {"a": "http://a.org/Person", "b": "http://a.org/Place", "c": OWL_THING, "d": "http://a.org/Person"},
        ),
        (
            "top",
            {
                "a": "http://a.org/Agent",
                "b": "http://a.org/Place",
                "c": "http://a.org/Agent",  # as common as Place, and before it in the alphabet
                "d": "http://a.org/Agent",
            },
        ),
    ],
)
def test_several_types_are_reduced_as_the_paper_does(tmp_path: Path, how: str, expected: dict[str, str]) -> None:
    graph = made(tmp_path, PEOPLE + KNOWS.format("a", "b") + KNOWS.format("c", "d"), "nt", types=how)
    assert {name.removeprefix("http://a.org/"): type_id for name, type_id in types_by_name(graph).items()} == expected


def test_the_most_general_type_yields_to_any_other(tmp_path: Path) -> None:
    owl = OWL_THING.removesuffix("Thing")
    types = {
        "http://a.org/a": {owl + "NamedIndividual", "http://a.org/Person"},
        "http://a.org/b": {owl + "NamedIndividual", OWL_THING, "http://a.org/Place"},
        "http://a.org/c": {owl + "NamedIndividual"},
    }
    for how in ("nearest", "top"):
        graph = made(tmp_path, KNOWS.format("a", "b") + KNOWS.format("b", "c") + typed(types), "nt", types=how)
        assert sorted(types_by_name(graph).values()) == [
            "http://a.org/Person",
            "http://a.org/Place",
            owl + "NamedIndividual",
        ]


def test_unrelated_types_are_reduced_to_the_commonest(tmp_path: Path) -> None:
    types = {"http://a.org/a": {"http://a.org/A", "http://a.org/B"}, "http://a.org/b": {"http://a.org/B"}}
    graph = made(tmp_path, KNOWS.format("a", "b") + typed(types), "nt")
    assert set(types_by_name(graph).values()) == {"http://a.org/B"}
    assert ways(graph) == {"only stated type": 1, "most frequent of unrelated stated types": 1}
