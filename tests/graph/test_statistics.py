import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.graph.splitting import Shares
from halfgraph.graph.statistics import degree_figures, frequent_relations, leakage, plot_graph, statistics
from imported_graphs import made, short_lived, triples_by_name, tsv
from oracles import Named
from strategies import named_triples


@given(named_triples())
def test_the_counts_are_those_of_the_triples(triples: list[Named]) -> None:
    with short_lived(tsv(triples), split=Shares(70, 10, 20)) as graph:
        figures = statistics(graph)
        assert figures["entities"] == len({end for head, _, tail in triples for end in (head, tail)})
        assert figures["relations"] == len({relation for _, relation, _ in triples})
        assert sum(figures["triples"].values()) == len(set(triples))
        assert sum(figures["type_sizes"].values()) == figures["entities"]
        relations = [relation for _, relation, _ in set(triples)]
        assert figures["frequent_relations"] == {name: relations.count(name) for name in set(relations)}
        assert figures["degrees"]["mean"] == pytest.approx(2 * len(set(triples)) / figures["entities"], abs=0.006)
        json.dumps(figures)


def share(pairs: list[tuple[str, str]], known: set[tuple[str, str]]) -> float:
    return sum(pair in known for pair in pairs) / len(pairs)


@given(named_triples())
def test_leakage_is_the_share_of_test_pairs_that_train_has(triples: list[Named]) -> None:
    with short_lived(tsv(triples), split=Shares(50, 0, 50)) as graph:
        found = leakage(graph.train, graph.test)
        known = {(head, tail) for head, _, tail in triples_by_name(graph, graph.train)}
        pairs = [(head, tail) for head, _, tail in triples_by_name(graph, graph.test)]
    if not pairs:
        assert found == {}
        return
    assert found["another_relation"] == pytest.approx(share(pairs, known), abs=1e-4)
    assert found["reversed"] == pytest.approx(share([(tail, head) for head, tail in pairs], known), abs=1e-4)
    assert found["entities_not_in_train"] == 0


def test_degrees_are_described_by_four_figures() -> None:
    assert degree_figures(np.array([1, 2, 3, 4, 10])) == {"median": 3, "mean": 4, "95th": 8.8, "maximum": 10}


def test_the_commonest_relations_come_first(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\ts\tb\na\tr\tb\nb\tr\ta\na\tr\ta\na\tt\tb\n")
    assert list(frequent_relations(graph, count=2).items()) == [("r", 3), ("s", 1)]


@pytest.fixture
def odd(tmp_path: Path) -> Graph:
    (tmp_path / "types.tsv").write_text("a\tprice in $\nb\t$x^\n")
    return made(tmp_path, "a\tr\tb\n", types_file=tmp_path / "types.tsv")


def test_a_picture_is_written_whatever_the_types_are_called(tmp_path: Path, odd: Graph) -> None:
    for ending in ("png", "svg", "pdf"):
        plot_graph(odd, tmp_path / f"picture.{ending}")
        assert (tmp_path / f"picture.{ending}").stat().st_size > 1000


@pytest.mark.parametrize("name", ["picture.nonsense", "no/such/folder.png"])
def test_a_picture_that_cannot_be_written_is_one_clear_error(tmp_path: Path, odd: Graph, name: str) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        plot_graph(odd, tmp_path / name)
