"""What a step learns from: fresh questions of every structure with fresh negatives, a function of seed and step."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import EmptyGraph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import answers_among, edges_of, steps_of
from halfgraph.query.program import compile_structure
from halfgraph.query.structures import NEIGHBOURHOODS, STRUCTURES, Structure
from halfgraph.training.links import Links, LinkSource
from halfgraph.training.recipe import Recipe
from halfgraph.workload.folder import Workload
from halfgraph.workload.negatives import fresh_negatives
from halfgraph.workload.sampling import Questions, Sampler

Ids = NDArray[np.int32]
TRIAL = 2**31  # a stream that no step draws from


class Source(Protocol):
    """Where questions come from."""

    def questions(self, structure: Structure, count: int, seed: int, step: int) -> Questions:
        """The questions of a structure for a step."""


@dataclass(frozen=True)
class OnTheFly:
    """Questions drawn anew for every step."""

    sampler: Sampler
    _found: dict[str, bool] = field(default_factory=dict, repr=False)

    def questions(self, structure: Structure, count: int, seed: int, step: int) -> Questions:
        """So many questions that no step had before; none of a structure that the graph does not have."""
        if structure.name not in self._found:  # tried once: to look in vain at every step would take most of its time
            tried = self.sampler.draw(structure, 1, 0, negatives=False, hard_negatives=False, stream=TRIAL)
            self._found[structure.name] = len(tried.questions) > 0
        if not self._found[structure.name]:
            return _none(structure)
        return self.sampler.draw(structure, count, seed, negatives=False, hard_negatives=False, stream=step).questions


@dataclass(frozen=True)
class FromWorkload:
    """The questions of a workload, in an order that is shuffled for each pass over them."""

    workload: Workload
    _orders: dict[tuple[str, int, int], Ids] = field(default_factory=dict, repr=False)

    def questions(self, structure: Structure, count: int, seed: int, step: int) -> Questions:
        """The next questions of the pass; a structure that the workload lacks has none."""
        if structure not in self.workload.structures("train"):
            return _none(structure)
        everything = self.workload.questions("train", structure)
        places = step * count + np.arange(count)
        passes, rows = np.divmod(places, len(everything))
        chosen = [
            self._order(structure, seed, int(a_pass), len(everything))[rows[passes == a_pass]]
            for a_pass in np.unique(passes)
        ]
        return everything.take(np.concatenate(chosen))

    def _order(self, structure: Structure, seed: int, a_pass: int, size: int) -> Ids:
        """The order of a pass."""
        key = (structure.name, seed, a_pass)
        if key not in self._orders:
            self._orders.pop((structure.name, seed, a_pass - 2), None)
            generator = np.random.default_rng([seed, a_pass, zlib.crc32(structure.name.encode())])
            self._orders[key] = generator.permutation(size).astype(np.int32)
        return self._orders[key]


def _none(structure: Structure) -> Questions:
    """No questions of a structure."""
    column = np.empty(0, np.int32)
    anchors, relations = (np.empty((0, n), np.int32) for n in (structure.anchor_count, structure.relation_count))
    return Questions(structure, anchors, relations, column, column, column)


@dataclass(frozen=True)
class Batch:
    """The questions of a step, all structures one after another; negatives as the loss wants them."""

    questions: Sequence[Questions]
    answers: Ids  # (n,)
    weights: NDArray[np.float32]  # (n,)
    candidates: Sequence[Ids]  # softmax: the shared negatives of each type that an answer is of
    others: Ids  # softmax: the shared negatives of any type
    groups: NDArray[np.int64]  # softmax: which of the candidates are a question's (n,)
    known: NDArray[np.bool_]  # softmax: which candidates, then others, are answers after all (n, most)
    negatives: Ids  # hinge: (n, negatives), -1 where there is none
    hard_negatives: Ids  # (n, hard negatives), -1 where there is none
    links: Links | None = None

    def __len__(self) -> int:
        return len(self.answers)


@dataclass(frozen=True)
class Batches:
    """The batches of a training run: batch `step` depends on the seed and the step alone."""

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

    def shapes(self, burning_in: bool) -> list[tuple[Structure, int, float]]:
        """The structures of a step with their counts and weights."""
        recipe = self.recipe
        shapes = [
            (structure, recipe.one_edge, recipe.one_edge_weight)
            for structure in self.structures
            if structure.relation_count == 1
        ]
        if burning_in:
            return shapes
        for structure in self.structures:
            if structure.relation_count > 1:
                weight = recipe.longer_weight * (recipe.intersection_weight if structure.has_intersection else 1.0)
                shapes.append((structure, recipe.longer, weight))
        shapes += [(structure, recipe.neighbourhoods, recipe.neighbourhood_weight) for structure in NEIGHBOURHOODS]
        return shapes

    def batch(self, step: int, *, burning_in: bool = False) -> Batch:
        """The batch of a step."""
        generator = np.random.default_rng([self.seed, step])
        drawn = [
            (self.source.questions(structure, count, self.seed, step), weight)
            for structure, count, weight in self.shapes(burning_in)
            if count
        ]
        drawn = [(questions, weight) for questions, weight in drawn if len(questions)]
        if not drawn:
            raise EmptyGraph("there is no question of any structure that the recipe asks for")
        questions = [questions for questions, _ in drawn]
        answers = np.concatenate([some.answers for some in questions])
        # Departs from the paper, which sums over all questions: each structure's loss is a mean, times its weight, so
        # that the structures weigh as the recipe says however many questions of each a graph gives.
        weights = np.concatenate([np.full(len(some), weight / len(some), np.float32) for some, weight in drawn])
        batch = Batch(questions, answers, weights, *_nothing(len(answers)))
        batch = (
            self._with_candidates(batch, generator)
            if self.recipe.loss == "softmax"
            else self._with_negatives(batch, step)
        )
        if self.recipe.loss == "softmax" and self.recipe.links:
            batch = replace(batch, links=self._links(generator))
        return self._with_hard_negatives(batch, step) if self.recipe.hard_negatives else batch

    def _links(self, generator: np.random.Generator) -> Links:
        """The links of a step."""
        return self._link_source.draw(self.recipe.links, self.recipe.link_candidates, generator)

    def _with_candidates(self, batch: Batch, generator: np.random.Generator) -> Batch:
        """The batch with shared negatives: some of each answer's type and some of any, answers among them marked."""
        types = self.graph.types
        of_answer = types.of(batch.answers)
        present, groups = np.unique(of_answer, return_inverse=True)
        others = generator.integers(0, self.graph.entity_count, self.recipe.other_negatives, dtype=np.int32)
        candidates = [
            _some(types.starts[k], types.starts[k + 1], self.recipe.type_negatives, generator) for k in present
        ]
        counts = np.array([len(some) + len(others) for some in candidates])
        firsts = np.cumsum(counts) - counts
        flat = np.concatenate([part for some in candidates for part in (some, others)])
        known, begin = [], 0
        for some in batch.questions:
            own = groups[begin : begin + len(some)]
            begin += len(some)
            steps = steps_of(compile_structure(some.structure))
            queries = (np.ascontiguousarray(some.anchors), np.ascontiguousarray(some.relations))
            known.append(answers_among(self._edges, steps, *queries, flat, firsts[own], counts[own], counts.max()))
        return replace(batch, candidates=candidates, others=others, groups=groups, known=np.concatenate(known))

    def _with_negatives(self, batch: Batch, step: int) -> Batch:
        """The batch with negatives of its own for each question."""
        drawn = [
            fresh_negatives(
                self.graph, some, self.recipe.type_negatives, self._seed(step, place), hard=False, certain=False
            )
            for place, some in enumerate(batch.questions)
        ]
        return replace(batch, negatives=np.concatenate(drawn))

    def _with_hard_negatives(self, batch: Batch, step: int) -> Batch:
        """The batch with hard negatives where paths meet."""
        count = self.recipe.hard_negatives
        drawn = [
            fresh_negatives(self.graph, some, count, self._seed(step, 100 + place), hard=True, certain=False)
            if some.structure.has_intersection
            else np.full((len(some), count), -1, np.int32)
            for place, some in enumerate(batch.questions)
        ]
        return replace(batch, hard_negatives=np.concatenate(drawn))

    def _seed(self, step: int, place: int) -> int:
        return int(np.random.SeedSequence([self.seed, step, place]).generate_state(1, np.uint64)[0])


def _some(first: int, last: int, count: int, generator: np.random.Generator) -> Ids:
    """So many random ids of a range, or all of them where it has no more."""
    if last - first <= count:
        return np.arange(first, last, dtype=np.int32)
    return generator.integers(first, last, count, dtype=np.int32)


def _nothing(count: int) -> tuple[list[Ids], Ids, NDArray[np.int64], NDArray[np.bool_], Ids, Ids]:
    """No negatives of any sort."""
    empty = np.empty((count, 0), np.int32)
    return [], np.empty(0, np.int32), np.zeros(count, np.int64), np.empty((count, 0), bool), empty, empty
