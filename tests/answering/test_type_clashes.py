"""Types that clash with a relation: only rare ones, of relations with a usual type, that are stated."""

import pytest

from halfgraph.answering.type_clashes import type_clashes
from small_runs import typed


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    triples = [(f"person{number}", "bornIn", f"city{number % 20}") for number in range(150)]
    triples += [
        (f"person{number}", "likes", f"{'city' if number % 2 else 'person'}{number % 20}") for number in range(150)
    ]
    triples += [("person3", "bornIn", "person4"), ("person5", "rare", "person6")]
    types = {name: name.rstrip("0123456789") for head, _, tail in triples for name in (head, tail)}
    return typed(tmp_path_factory.mktemp("typed"), triples, types, None)


def test_only_the_triple_with_an_unusual_object_clashes(graph):
    (clash,) = type_clashes(graph)
    names = [
        graph.entities.name(clash.head),
        graph.relations.name(clash.relation // 2),
        graph.entities.name(clash.tail),
    ]
    assert names == ["person3", "bornIn", "person4"]
    assert (clash.end, graph.types.names[clash.type_id], graph.types.names[clash.usual]) == (1, "person", "city")
    assert (clash.count, clash.total) == (1, 151)


def test_a_guessed_type_never_clashes(tmp_path):
    triples = [(f"person{number}", "bornIn", f"city{number % 20}") for number in range(150)]
    triples += [("person3", "bornIn", "person4"), *((f"city{i}", "likes", f"person{i + 20}") for i in range(20))]
    types = {name: name.rstrip("0123456789") for head, _, tail in triples for name in (head, tail) if name != "person4"}
    assert not type_clashes(typed(tmp_path, triples, types, None))
