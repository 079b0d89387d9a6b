"""Training batches: questions of every structure with fresh negatives, a function of seed and step."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import EmptyGraph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import edges_of
from halfgraph.query.structures import NEIGHBOURHOODS, STRUCTURES, Structure
from halfgraph.training.links import Links, LinkSource
from halfgraph.training.recipe import Recipe
from halfgraph.workload._negative_kernels import answers_among
from halfgraph.workload.folder import Workload
from halfgraph.workload.negatives import fresh_negatives
from halfgraph.workload.sampling import Questions, Sampler

Ids = NDArray[np.int32]
TRIAL = 2**31  # a random stream that no step uses


class Source(Protocol):
    """Supplies the questions of each step."""

    def questions(self, structure: Structure, count: int, seed: int, step: int) -> Questions:
        """Return the questions of a structure for a step."""


@dataclass(frozen=True)
class OnTheFly:
    """Questions sampled for every step."""

    sampler: Sampler
    _exists: dict[str, bool] = field(default_factory=dict, repr=False)  # structure name -> whether the graph has it

    def questions(self, structure: Structure, count: int, seed: int, step: int) -> Questions:
        """Sample new questions; none if the graph has no question of this structure."""
        if structure.name not in self._exists:  # tried once: a failing search at every step would be slow
            trial = self.sampler.draw(structure, 1, 0, negatives=False, hard_negatives=False, stream=TRIAL)
            self._exists[structure.name] = len(trial.questions) > 0
        if not self._exists[structure.name]:
            return _no_questions(structure)
        return self.sampler.draw(structure, count, seed, negatives=False, hard_negatives=False, stream=step).questions


@dataclass(frozen=True)
class FromWorkload:
    """Questions of a workload, shuffled again for each pass over them."""

    workload: Workload
    _orders: dict[tuple[str, int, int], Ids] = field(default_factory=dict, repr=False)

    def questions(self, structure: Structure, count: int, seed: int, step: int) -> Questions:
        """Return the next questions of the pass; none if the workload lacks this structure."""
        if structure not in self.workload.structures("train"):
            return _no_questions(structure)
        questions = self.workload.questions("train", structure)
        passes, rows = np.divmod(step * count + np.arange(count), len(questions))
        chosen = [
            self._order(structure, seed, int(number), len(questions))[rows[passes == number]]
            for number in np.unique(passes)
        ]
        return questions.take(np.concatenate(chosen))

    def _order(self, structure: Structure, seed: int, number: int, size: int) -> Ids:
        """Return the order of the questions in a pass."""
        key = (structure.name, seed, number)
        if key not in self._orders:
            self._orders.pop((structure.name, seed, number - 2), None)
            generator = np.random.default_rng([seed, number, zlib.crc32(structure.name.encode())])
            self._orders[key] = generator.permutation(size).astype(np.int32)
        return self._orders[key]


def _no_questions(structure: Structure) -> Questions:
    column = np.empty(0, np.int32)
    anchors, relations = (np.empty((0, n), np.int32) for n in (structure.anchor_count, structure.relation_count))
    return Questions(structure, anchors, relations, column, column, column)


@dataclass(frozen=True)
class SharedNegatives:
    """Negatives that the questions of a step share (softmax)."""

    of_type: Sequence[Ids]  # for each type that an answer has
    of_any: Ids  # of any type
    groups: NDArray[np.int64]  # index into `of_type` for each question (n,)
    known: NDArray[np.bool_]  # which of a question's negatives, `of_type` then `of_any`, are answers (n, at most)


@dataclass(frozen=True)
class Batch:
    """The questions of a step, one structure after another, with the negatives that the loss needs."""

    questions: Sequence[Questions]
    answers: Ids  # (n,)
    weights: NDArray[np.float32]  # (n,)
    negatives: Ids  # of the hinge (n, negatives), -1: none
    hard_negatives: Ids  # (n, hard negatives), -1: none
    shared: SharedNegatives | None = None  # of the softmax
    links: Links | None = None

    def __len__(self) -> int:
        return len(self.answers)


@dataclass(frozen=True)
class Batches:
    """The batches of a training run; a batch depends on the seed and the step only."""

    graph: KnowledgeGraph
    source: Source
    recipe: Recipe
    seed: int
    structures: tuple[Structure, ...] = STRUCTURES

    @cached_property
    def _link_source(self) -> LinkSource:
        return LinkSource(self.graph)

    @cached_property
    def _edges(self) -> tuple[object, ...]:
        return edges_of(self.graph)

    def batch(self, step: int, *, burning_in: bool = False) -> Batch:
        """Make the batch of a step."""
        recipe, generator = self.recipe, np.random.default_rng([self.seed, step])
        drawn = [
            (self.source.questions(structure, count, self.seed, step), weight)
            for structure, count, weight in self.mixture(burning_in)
            if count
        ]
        drawn = [(questions, weight) for questions, weight in drawn if len(questions)]
        if not drawn:
            raise EmptyGraph("the graph has no question of any structure in the recipe")
        sets = [questions for questions, _ in drawn]
        answers = np.concatenate([questions.answers for questions in sets])
        # Departs from the paper, which sums over all questions: each structure's loss is a mean times its weight, so
        # that the weights of the recipe hold however many questions of a structure a graph gives.
        weights = np.concatenate([np.full(len(q), weight / len(q), np.float32) for q, weight in drawn])
        softmax = recipe.loss == "softmax"
        negatives = self._negatives(sets, 0 if softmax else recipe.type_negatives, step, hard=False)
        hard_negatives = self._negatives(sets, recipe.hard_negatives, step, hard=True)
        shared = self._shared_negatives(sets, answers, generator) if softmax else None
        links = None
        if softmax and recipe.links:
            links = self._link_source.draw(recipe.links, recipe.link_candidates, generator)
        return Batch(sets, answers, weights, negatives, hard_negatives, shared, links)

    def mixture(self, burning_in: bool) -> list[tuple[Structure, int, float]]:
        """Return the structures of a step with their counts and weights."""
        recipe, counts = self.recipe, list[tuple[Structure, int, float]]()
        for structure in self.structures:
            if structure.relation_count == 1:
                counts.append((structure, recipe.one_edge, recipe.one_edge_weight))
            elif not burning_in:
                weight = recipe.longer_weight * (recipe.intersection_weight if structure.has_intersection else 1.0)
                counts.append((structure, recipe.longer, weight))
        if burning_in:
            return counts
        return counts + [(size, recipe.neighbourhoods, recipe.neighbourhood_weight) for size in NEIGHBOURHOODS]

    def _negatives(self, sets: Sequence[Questions], count: int, step: int, *, hard: bool) -> Ids:
        """Draw negatives, or hard negatives where paths intersect, for each question: (n, count)."""
        drawn = [
            fresh_negatives(
                self.graph, questions, count, self._seed(step, 100 * hard + index), hard=hard, certain=False
            )
            if count and (questions.structure.has_intersection or not hard)
            else np.full((len(questions), count), -1, np.int32)
            for index, questions in enumerate(sets)
        ]
        return np.concatenate(drawn)

    def _seed(self, step: int, index: int) -> int:
        return int(np.random.SeedSequence([self.seed, step, index]).generate_state(1, np.uint64)[0])

    def _shared_negatives(
        self, sets: Sequence[Questions], answers: Ids, generator: np.random.Generator
    ) -> SharedNegatives:
        """Draw entities of each answer's type and of any type, and mark the answers among them."""
        starts = self.graph.types.starts
        present, groups = np.unique(self.graph.types.of(answers), return_inverse=True)
        of_any = generator.integers(0, self.graph.entity_count, self.recipe.other_negatives, dtype=np.int32)
        of_type = [_draw_ids(starts[k], starts[k + 1], self.recipe.type_negatives, generator) for k in present]
        counts = np.array([len(ids) + len(of_any) for ids in of_type])
        firsts = np.cumsum(counts) - counts
        flat = np.concatenate([part for ids in of_type for part in (ids, of_any)])
        ends = np.cumsum([len(questions) for questions in sets])
        known = [
            answers_among(
                self._edges,
                questions.structure.program.arrays,
                np.ascontiguousarray(questions.anchors),
                np.ascontiguousarray(questions.relations),
                flat,
                firsts[group],
                counts[group],
                counts.max(),
            )
            for questions, group in zip(sets, np.split(groups, ends[:-1]), strict=True)
        ]
        return SharedNegatives(of_type, of_any, groups, np.concatenate(known))


def _draw_ids(first: int, last: int, count: int, generator: np.random.Generator) -> Ids:
    """Draw ids from a range, or return all of them if it has no more than `count`."""
    if last - first <= count:
        return np.arange(first, last, dtype=np.int32)
    return generator.integers(first, last, count, dtype=np.int32)
