"""Held-out questions with all their answers and many negatives, and fresh negatives for training."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import contiguous, edges_of
from halfgraph.query.canonical import row_keys
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.structures import Structure
from halfgraph.workload._negative_kernels import draw_negatives
from halfgraph.workload.sampling import COLUMNS, Drawn, Questions, Sampler, every_edge

Entities = NDArray[np.int32]
_NONE: Entities = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class NegativeCounts:
    """How many negatives a held-out question gets at most, and one question in how many gets them."""

    most: int = 1_000
    one_in: int = 10


def add_answers(questions: Questions, sampler: Sampler, threads: int | None = None) -> Questions:
    """Add the easy and hard answers of held-out questions."""
    batch = questions.batch()
    everything = Exact(sampler.graph).answer_sets(batch, threads)
    easy = Exact(sampler.known or sampler.graph).answer_sets(batch, threads)
    rows = range(len(questions))
    hard = Ragged.of([np.setdiff1d(everything[i], easy[i], assume_unique=True) for i in rows])
    if questions.structure.has_negation:  # wrong answers that a missing triple fails to exclude
        easy = Ragged.of([np.intersect1d(everything[i], easy[i], assume_unique=True) for i in rows])
    return replace(questions, easy=easy, hard=hard)


def add_negatives(
    questions: Questions, truth: KnowledgeGraph, seed: int, counts: NegativeCounts, threads: int | None = None
) -> Questions:
    """Add many negatives and hard negatives of the answer's type to one question in ten."""
    chosen = np.flatnonzero(np.arange(len(questions)) % counts.one_in == 0)
    batch = questions.take(chosen).batch()
    answers = Exact(truth).answer_sets(batch, threads)
    some_path = Exact(truth).answer_sets(batch, threads, relaxed=True)
    generator = np.random.default_rng([seed, len(questions)])
    negatives, hard_negatives = [_NONE] * len(questions), [_NONE] * len(questions)
    for position, row in enumerate(chosen.tolist()):
        answer = int(questions.answers[row])
        negatives[row] = _draw(non_answers(truth, answer, answers[position]), counts.most, generator)
        if questions.structure.has_intersection:
            candidates = np.setdiff1d(some_path[position], answers[position], assume_unique=True)
            same_type = truth.types.of(candidates) == truth.types.of(answer)
            hard_negatives[row] = _draw(candidates[same_type], counts.most, generator)
    return replace(questions, negatives=Ragged.of(negatives), hard_negatives=Ragged.of(hard_negatives))


def non_answers(graph: KnowledgeGraph, answer: int, answers: Entities) -> Entities:
    """Return the entities of the answer's type that are not answers."""
    type_id = int(graph.types.of(answer))
    first, last = int(graph.types.starts[type_id]), int(graph.types.starts[type_id + 1])
    is_negative = np.ones(last - first, dtype=bool)
    is_negative[answers[np.searchsorted(answers, first) : np.searchsorted(answers, last)] - first] = False
    return (np.flatnonzero(is_negative) + first).astype(np.int32)


def _draw(entities: Entities, most: int, generator: np.random.Generator) -> Entities:
    """Draw at most this many of the entities, sorted."""
    if len(entities) <= most:
        return entities
    return np.sort(generator.choice(entities, most, replace=False, shuffle=False))


def fresh_negatives(
    graph: KnowledgeGraph, questions: Questions, count: int, seed: int, *, hard: bool, certain: bool = True
) -> Entities:
    """Draw new negatives (n, count) for each question; -1 where there is none.

    Without `certain` only a few quick draws are made: -1 also where negatives are rare among the candidates.
    """
    batch = questions.batch()
    columns = tuple(map(contiguous, (batch.anchors, batch.relations, questions.answers)))
    drawn: Entities = draw_negatives(
        edges_of(graph), batch.program.arrays, *columns, count, hard, certain, np.uint64(seed)
    )
    return drawn


def held_out_edges(held_out: KnowledgeGraph, sampler: Sampler, structure: Structure, count: int, seed: int) -> Drawn:
    """Return held-out triples as one-edge questions, both directions, each once, in random order."""
    questions = every_edge(held_out, structure)
    known = Exact(sampler.held_from or sampler.graph)  # a published split may contain a triple twice
    questions = questions.take(np.flatnonzero(~known.have_answers(questions.batch(), questions.answers)))
    questions = questions.take(np.random.default_rng(seed).permutation(len(questions)))
    negative = fresh_negatives(sampler.truth or sampler.graph, questions, 1, seed, hard=False)[:, 0]
    questions = replace(questions, negative=negative, missing=np.ones(len(questions), np.int32))
    kept = np.flatnonzero(negative >= 0)[:count]
    tally = Counter({"kept": len(kept), "no negative of the answer's type": int((negative < 0).sum())})
    return Drawn(questions.take(kept), +tally)


def draw_distinct(sampler: Sampler, structure: Structure, count: int, seed: int) -> Drawn:
    """Draw different questions, again and again until there are enough or nearly all are repeats."""
    rows = np.empty((0, structure.anchor_count + structure.relation_count + 1), dtype=np.int32)
    kept: list[Questions] = []
    tally: Counter[str] = Counter()
    for stream in range(64):
        wanted = count - len(rows)
        drawn = sampler.draw(structure, min(count, wanted + wanted // 8 + 64), seed, stream=stream)
        new = drawn.questions
        keys = row_keys(structure.query, new.anchors, new.relations)  # equal for another order of the parts
        everything = np.concatenate([rows, np.column_stack([keys, new.answers])])
        _, firsts = np.unique(everything, axis=0, return_index=True)
        fresh = np.sort(firsts[firsts >= len(rows)])
        tally.update(drawn.tally)
        tally["drawn before"] += len(new) - len(fresh)
        fresh = fresh[:wanted]
        kept.append(new.take(fresh - len(rows)))
        rows = everything[np.concatenate([np.arange(len(rows)), fresh])]
        if len(rows) == count or len(fresh) * 20 < len(new) or not len(new):
            break
    tally["kept"] = len(rows)
    columns: Any = {name: np.concatenate([getattr(part, name) for part in kept]) for name in COLUMNS}
    return Drawn(Questions(structure, **columns), +tally)
