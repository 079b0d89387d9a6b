"""What a held-out question is judged by: all its answers, and many entities that are none."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import contiguous, edges_of, steps_of
from halfgraph.query.canonical import row_keys
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.structures import Structure
from halfgraph.workload._sampling_kernels import draw_negatives
from halfgraph.workload.sampling import Drawn, Questions, Sampler, every_edge

Entities = NDArray[np.int32]


@dataclass(frozen=True)
class NegativeCounts:
    """How many negatives a question gets, and how many questions get so many."""

    most: int = 1_000
    one_in: int = 10


def judged(
    questions: Questions,
    sampler: Sampler,
    seed: int,
    judging: NegativeCounts,
    threads: int | None = None,
) -> Questions:
    """The questions with their easy and hard answers, and for one in ten many negatives of the answer's type."""
    whole, truth = sampler.graph, sampler.truth or sampler.graph
    batch = questions.batch()
    everything = Exact(whole).answer_sets(batch, threads)
    easy = Exact(sampler.known or whole).answer_sets(batch, threads)
    hard = Ragged.of([np.setdiff1d(everything[i], easy[i], assume_unique=True) for i in range(len(questions))])
    if questions.structure.has_negation:  # what only a missing triple keeps from being ruled out is no answer
        rows = range(len(questions))
        easy = Ragged.of([np.intersect1d(everything[i], easy[i], assume_unique=True) for i in rows])
    chosen = np.flatnonzero(np.arange(len(questions)) % judging.one_in == 0)
    some = questions.take(chosen).batch()
    true = Exact(truth).answer_sets(some, threads)
    on_some_path = Exact(truth, relaxed=True).answer_sets(some, threads)
    generator = np.random.default_rng([seed, len(questions)])
    negatives, hard_negatives = [_NONE] * len(questions), [_NONE] * len(questions)
    for place, i in enumerate(chosen.tolist()):
        answer = int(questions.answers[i])
        negatives[i] = _some(others(truth, answer, true[place]), judging.most, generator)
        if questions.structure.has_intersection:
            candidates = np.setdiff1d(on_some_path[place], true[place], assume_unique=True)
            same = truth.types.of(candidates) == truth.types.of(answer)
            hard_negatives[i] = _some(candidates[same], judging.most, generator)
    return replace(
        questions, easy=easy, hard=hard, negatives=Ragged.of(negatives), hard_negatives=Ragged.of(hard_negatives)
    )


_NONE: Entities = np.empty(0, dtype=np.int32)


def others(graph: KnowledgeGraph, answer: int, answers: Entities) -> Entities:
    """The entities of an answer's type that are no answer."""
    type_id = int(graph.types.of(answer))
    first, last = int(graph.types.starts[type_id]), int(graph.types.starts[type_id + 1])
    free = np.ones(last - first, dtype=bool)
    free[answers[np.searchsorted(answers, first) : np.searchsorted(answers, last)] - first] = False
    return (np.flatnonzero(free) + first).astype(np.int32)


def _some(entities: Entities, most: int, generator: np.random.Generator) -> Entities:
    """At most so many of the entities, sorted."""
    if len(entities) <= most:
        return entities
    return np.sort(generator.choice(entities, most, replace=False, shuffle=False))


def fresh_negatives(
    graph: KnowledgeGraph, questions: Questions, count: int, seed: int, *, hard: bool, certain: bool = True
) -> Entities:
    """So many negatives (n, count) for each question, drawn anew; -1 where there is none.

    Without `certain` a few quick draws must do: -1 also where negatives are rare among the candidates.
    """
    batch = questions.batch()
    columns = tuple(map(contiguous, (batch.anchors, batch.relations, questions.answers)))
    drawn: Entities = draw_negatives(
        edges_of(graph), steps_of(batch.program), *columns, count, hard, certain, np.uint64(seed)
    )
    return drawn


def held_out_edges(held_out: KnowledgeGraph, sampler: Sampler, structure: Structure, count: int, seed: int) -> Drawn:
    """The held-out triples as one-edge questions, both directions, each once; so many of them in random order."""
    questions = every_edge(held_out, structure)
    known = Exact(sampler.held_from or sampler.graph)  # a published split may state a triple twice
    questions = questions.take(np.flatnonzero(~known.have_answers(questions.batch(), questions.answers)))
    questions = questions.take(np.random.default_rng(seed).permutation(len(questions)))
    negative = fresh_negatives(sampler.truth or sampler.graph, questions, 1, seed, hard=False)[:, 0]
    questions = replace(questions, negative=negative, missing=np.ones(len(questions), np.int32))
    kept = np.flatnonzero(negative >= 0)[:count]
    tally = {"kept": len(kept), "no negative of the answer's type": int((negative < 0).sum())}
    return Drawn(questions.take(kept), {reason: n for reason, n in tally.items() if n})


def draw_distinct(sampler: Sampler, structure: Structure, count: int, seed: int) -> Drawn:
    """So many different questions, or as many as can be found; drawn anew until repeats are all that comes."""
    rows = np.empty((0, structure.anchor_count + structure.relation_count + 1), dtype=np.int32)
    kept: list[Questions] = []
    tally: Counter[str] = Counter()
    for stream in range(64):
        wanted = count - len(rows)
        drawn = sampler.draw(structure, min(count, wanted + wanted // 8 + 64), seed, stream=stream)
        new = drawn.questions
        # The order of parts makes no other question.
        keys = row_keys(structure.query, new.anchors, new.relations)
        together = np.concatenate([rows, np.column_stack([keys, new.answers])])
        _, firsts = np.unique(together, axis=0, return_index=True)
        fresh = np.sort(firsts[firsts >= len(rows)])
        tally.update(drawn.tally)
        tally["drawn before"] += len(new) - len(fresh)
        fresh = fresh[:wanted]
        kept.append(new.take(fresh - len(rows)))
        rows = together[np.concatenate([np.arange(len(rows)), fresh])]
        if len(rows) == count or len(fresh) * 20 < len(new) or not len(new):
            break
    tally["kept"] = len(rows)
    return Drawn(joined(kept), {reason: n for reason, n in tally.items() if n})


def joined(parts: list[Questions]) -> Questions:
    """Questions of one structure from several draws as one; for columns that every question has."""
    names = ("anchors", "relations", "answers", "negative", "hard_negative", "missing")
    columns: Any = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Questions(parts[0].structure, **columns)
