"""A workload of a real graph, recomputed by names from its TSV files with nothing but dictionaries and sets."""

import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.query.tree import Anchor, Intersect, Project, Query
from halfgraph.workload.folder import Counts, Plan, Workload, sample
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions

SOURCE = Path(__file__).parents[3] / "shared" / "data" / "codex-s"
pytestmark = pytest.mark.skipif(not SOURCE.is_dir(), reason=f"{SOURCE} is not there")

Tails = dict[tuple[str, str], set[str]]  # what a relation, or its inverse r^-1, leads to from a head
SOME = 40  # questions of each structure and split that are recomputed


def rows_of(name: str) -> list[list[str]]:
    """The rows of one of the files."""
    with gzip.open(SOURCE / f"{name}.tsv.gz", "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines if line.strip()]


def tails_of(*splits: str) -> Tails:
    """The edges of some files, both directions of each triple."""
    found: Tails = defaultdict(set)
    for split in splits:
        for head, relation, tail in rows_of(split):
            found[head, relation].add(tail)
            found[tail, f"{relation}^-1"].add(head)
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    return import_graph([SOURCE], tmp_path_factory.mktemp("codex") / "graph", ImportOptions())


@pytest.fixture(scope="module")
def workload(graph, tmp_path_factory) -> Workload:
    counts = Counts(two_edges=2_000, three_edges=2_000, valid=100, test=200, neighbourhoods=100)
    return sample(
        graph, tmp_path_factory.mktemp("codex") / "workload", Plan(counts, seed=1, negatives=NegativeCounts(50, 10))
    )


@pytest.fixture(scope="module")
def tails() -> dict[str, Tails]:
    return {
        "train": tails_of("train"),
        "valid": tails_of("train", "valid"),
        "test": tails_of("train", "valid", "test"),
    }


@pytest.fixture(scope="module")
def types() -> dict[str, str]:
    return {row[0]: row[1] for row in rows_of("types")}


def answers(graph: Graph, tails: Tails, query: Query, relaxed: bool = False) -> set[str]:
    """The names of all answers, set by set."""
    match query:
        case Anchor():
            return {graph.entities.name(query.entity)}
        case Project():
            relation = graph.relation_name(query.relation)
            sources = answers(graph, tails, query.source, relaxed)
            return set().union(*(tails.get((source, relation), ()) for source in sources))
        case Intersect():
            parts = [answers(graph, tails, part, relaxed) for part in query.parts]
            return set.union(*parts) if relaxed else set.intersection(*parts)
    raise TypeError(query)


def some_of(questions: Questions) -> list[int]:
    """The places of a random sample of questions, the first among them, which has many negatives."""
    return [0, *np.random.default_rng(2).permutation(np.arange(1, len(questions)))[:SOME].tolist()]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.name)
def test_a_random_sample_of_questions_is_right_by_the_files(
    graph, workload, tails, types, split: str, structure: Structure
):
    questions, name = workload.questions(split, structure), graph.entities.name
    for i in some_of(questions):
        query, answer = questions.query(i), name(questions.answers[i])
        right = answers(graph, tails[split], query)
        assert answer in right
        truth = tails["train" if split == "train" else "test"]  # held-out negatives are judged by the whole graph
        true = answers(graph, truth, query)
        negatives, hard_negatives = [questions.negative[i]], [questions.hard_negative[i]]
        if split != "train":
            easy = answers(graph, tails["train"], query)
            assert answer not in easy
            assert {name(entity) for entity in questions.easy[i]} == easy
            assert {name(entity) for entity in questions.hard[i]} == right - easy
            assert 1 <= questions.missing[i] <= structure.relation_count
            negatives += questions.negatives[i].tolist()
            hard_negatives += questions.hard_negatives[i].tolist()
        if split != "train" or structure.relation_count > 1:
            named = {name(entity) for entity in negatives}
            assert not named & true
            assert {types[entity] for entity in named} == {types[answer]}
        if structure.has_intersection:
            named = {name(entity) for entity in hard_negatives}
            assert named <= answers(graph, truth, query, relaxed=True) - true
            assert {types[entity] for entity in named} == {types[answer]}


def test_held_out_edges_are_the_lines_of_the_files(graph, workload):
    name = graph.entities.name
    for split in ("valid", "test"):
        lines = {tuple(row) for row in rows_of(split)} - {tuple(row) for row in rows_of("train")}
        questions = workload.questions(split, STRUCTURES[0])
        for anchor, relation, answer in zip(
            questions.anchors[:, 0], questions.relations[:, 0], questions.answers, strict=True
        ):
            ends = (name(answer), name(anchor)) if relation & 1 else (name(anchor), name(answer))
            assert (ends[0], graph.relations.name(relation // 2), ends[1]) in lines


def test_all_structures_are_filled_as_asked(workload):
    counts = workload.description["questions"]
    assert set(counts["valid"].values()) == {100}
    assert set(counts["test"].values()) == {200}
    assert {counts["train"][name] for name in ("3-chain", "3-inter", "3-inter_chain", "3-chain_inter")} == {500}
    assert {counts["train"][f"{size}-inter"] for size in (4, 5, 6, 7)} == {100}
