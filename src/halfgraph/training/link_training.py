"""Training of ComplEx on a graph's links: softmax over sampled tails, and over the relations of two entities.

A batch has pairs of head and relation with their tails. Candidates are the batch's tails and uniform entities; the log
of the probability of being sampled is subtracted from a candidate's score, so that the sampled softmax estimates the
one over all entities.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.graph.manifest import has_file
from halfgraph.model.complex import ComplEx, conjugate, product
from halfgraph.training.run_folder import load_tensors, save_tensors

STATE = "links-state.safetensors"  # the last checkpoint, in the run folder
RANK, LEAST_RANK, TABLE = 200, 25, 1 << 25  # of the vectors; less where the entities' table would be larger than this
EPOCHS, FEWEST_EPOCHS = 20, 3
PAIRS, TAILS = 500, 16  # pairs in a batch, and tails of a pair at most
UNIFORM = 1_000  # candidates beside the batch's tails
RATE, LAST_RATE = 0.1, 0.005  # of Adagrad, falling linearly
CUBES = 0.05 / 3  # weight of the N3 regulariser
CHECKPOINT_SECONDS = 60.0
TABLES = ("entities", "relations", "entity_squares", "relation_squares")  # of a checkpoint
Ids = NDArray[np.int64]
Progress = Callable[[int, int], None]  # batches in all, and done since the last call


@dataclass(frozen=True)
class LinkPairs:
    """Distinct pairs of head and relation; the tails of pair i are edges starts[i] to starts[i + 1] of the graph."""

    graph: KnowledgeGraph
    heads: Ids
    relations: Ids
    starts: Ids

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "LinkPairs":
        heads, relations = graph.heads(), np.asarray(graph.relations)
        is_first = np.ones(len(heads), dtype=bool)
        is_first[1:] = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
        first = np.flatnonzero(is_first)
        ends = (heads[first].astype(np.int64), relations[first].astype(np.int64))
        return cls(graph, *ends, np.append(first, len(heads)))

    def edges(self, chosen: Ids, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return the row among the chosen pairs and the tail of each of their edges, TAILS of a pair at most."""
        sizes = self.starts[chosen + 1] - self.starts[chosen]
        rows = np.repeat(np.arange(len(chosen)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        edges = np.repeat(self.starts[chosen], sizes) + within
        if sizes.max() > TAILS:  # a random part of the tails of a hub
            shuffled = np.lexsort((rng.random(len(rows)), rows))
            kept = np.sort(shuffled[within < TAILS])
            rows, edges = rows[kept], edges[kept]
        return rows, np.asarray(self.graph.tails)[edges].astype(np.int64)


@dataclass(frozen=True)
class LinkBatch:
    """Pairs, their edges (row of the pair, position of the tail among the candidates), and the candidates."""

    heads: Tensor
    relations: Tensor
    rows: Tensor
    targets: Tensor
    candidates: Tensor
    log_sampled: Tensor  # log of the probability that each candidate is one

    @classmethod
    def draw(cls, pairs: LinkPairs, chosen: Ids, shares: NDArray[np.float64], rng: np.random.Generator) -> "LinkBatch":
        rows, tails = pairs.edges(chosen, rng)
        uniform = rng.integers(len(shares), size=min(UNIFORM, len(shares)))
        candidates, positions = np.unique(np.concatenate([tails, uniform]), return_inverse=True)
        sampled = np.minimum(len(tails) * shares[candidates] + len(uniform) / len(shares), 1.0)
        log_sampled = torch.from_numpy(np.log(sampled)).float()
        ids = (pairs.heads[chosen], pairs.relations[chosen], rows, positions[: len(tails)], candidates)
        heads, relations, rows_, targets, candidates_ = map(torch.from_numpy, ids)
        return cls(heads, relations, rows_, targets, candidates_, log_sampled)


@dataclass
class LinkTraining:
    """ComplEx while it is trained: the weights, Adagrad's sums of squared gradients, and the batches done."""

    model: ComplEx
    squares: ComplEx
    done: int = 0
    total: int = 0  # batches; 0 until a time limit has been turned into batches
    saved: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, graph: KnowledgeGraph, seed: int, state: Path | None) -> "LinkTraining":
        """Begin a training, or go on from its last checkpoint."""
        rank = max(LEAST_RANK, min(RANK, TABLE // (2 * graph.entity_count)))
        model = ComplEx.new(graph.entity_count, graph.relation_count, rank, torch.Generator().manual_seed(seed))
        if state is not None and has_file(state, "Remove it, and calibrate again."):
            tensors, about = load_tensors(state)
            tables = [tensors.get(name, torch.empty(0)) for name in TABLES]
            shapes = [model.entities.shape, model.relations.shape] * 2
            counts = [about.get(name, "") for name in ("done", "total")]
            fits = [table.shape for table in tables] == shapes and all(count.isdecimal() for count in counts)
            if about.get("seed") == str(seed) and fits:
                return cls(ComplEx(*tables[:2]), ComplEx(*tables[2:]), *map(int, counts))
        return cls(model, ComplEx(torch.zeros_like(model.entities), torch.zeros_like(model.relations)))

    def save(self, state: Path, seed: int) -> None:
        tensors = {"entities": self.model.entities, "relations": self.model.relations}
        tensors |= {"entity_squares": self.squares.entities, "relation_squares": self.squares.relations}
        save_tensors(state, tensors, {"seed": str(seed), "done": str(self.done), "total": str(self.total)})
        self.saved = time.monotonic()

    def step(self, batch: LinkBatch) -> None:
        """Take a step of Adagrad on the rows that a batch uses."""
        used, places = torch.unique(torch.cat([batch.heads, batch.candidates]), return_inverse=True)
        entities, relations = self.model.entities[used].requires_grad_(), self.model.relations.clone().requires_grad_()
        heads, candidates = (entities[own] for own in places.split([len(batch.heads), len(batch.candidates)]))
        _loss(batch, heads, relations, candidates).backward()
        done = self.done / self.total if self.total else 0.0
        rate = RATE + done * (LAST_RATE - RATE)
        _update(self.model.entities, self.squares.entities, used, entities.grad, rate)
        _update(self.model.relations, self.squares.relations, slice(None), relations.grad, rate)
        self.done += 1


def _loss(batch: LinkBatch, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
    """Cross-entropy of the tails and of the relations, and the N3 regulariser."""
    own = relations[batch.relations]
    logits = product(heads, own) @ candidates.t() - batch.log_sampled
    tails = candidates[batch.targets]
    loss = (torch.logsumexp(logits, dim=1)[batch.rows] - logits[batch.rows, batch.targets]).mean()
    first = torch.searchsorted(batch.rows, torch.arange(len(heads)))  # one tail of each pair
    ends = product(heads, conjugate(tails[first]))
    loss = loss + F.cross_entropy(conjugate(ends) @ relations.t(), batch.relations)
    cubes = _cubes(heads)[batch.rows] + _cubes(own)[batch.rows] + _cubes(tails)
    return loss + CUBES * cubes.mean()


def _cubes(vectors: Tensor) -> Tensor:
    """Sum of the cubed absolute values of complex vectors: (n,)."""
    real, imaginary = vectors.chunk(2, -1)
    return (real.square() + imaginary.square() + 1e-12).pow(1.5).sum(-1)


@torch.no_grad()
def _update(weights: Tensor, squares: Tensor, rows: Tensor | slice, gradient: Tensor | None, rate: float) -> None:
    """Move some rows of the weights against their gradient, by Adagrad."""
    assert gradient is not None
    sums = squares[rows] + gradient.square()
    squares[rows] = sums
    weights[rows] -= rate * gradient / (sums.sqrt() + 1e-10)


def train_links(
    graph: KnowledgeGraph,
    seed: int,
    *,
    seconds: float | None = None,
    state: Path | None = None,
    progress: Progress = lambda *_: None,
) -> ComplEx:
    """Train ComplEx on the links of a graph, in both directions, for EPOCHS or as many as fit into some seconds."""
    pairs = LinkPairs.of(graph)
    training = LinkTraining.start(graph, seed, state)
    shares = np.bincount(graph.tails, minlength=graph.entity_count) / max(len(graph.tails), 1)
    per_epoch = -(-len(pairs.heads) // PAIRS)
    if seconds is None and not training.total:
        training.total = EPOCHS * per_epoch
    began, resumed, first = time.monotonic(), training.done, training.done
    for batch in _batches(pairs, shares, seed, training.done):
        if training.total and training.done >= training.total:
            break
        training.step(batch)
        measured = training.done - resumed  # the clock knows nothing of the batches before a checkpoint
        if not training.total and measured >= min(per_epoch, 50):
            assert seconds is not None
            fitting = int(measured * seconds / (time.monotonic() - began))
            training.total = min(max(fitting, FEWEST_EPOCHS * per_epoch), EPOCHS * per_epoch)
        progress(training.total, training.done - first)
        first = training.done
        if state is not None and time.monotonic() - training.saved > CHECKPOINT_SECONDS:
            training.save(state, seed)
    return training.model


def _batches(pairs: LinkPairs, shares: NDArray[np.float64], seed: int, done: int) -> Iterator[LinkBatch]:
    """Yield batches without end from a number on; the same ones whatever was done before."""
    per_epoch = -(-len(pairs.heads) // PAIRS)
    while len(pairs.heads):
        epoch, batch = divmod(done, per_epoch)
        order = np.random.default_rng([seed, epoch]).permutation(len(pairs.heads))
        for first in range(batch * PAIRS, len(order), PAIRS):
            rng = np.random.default_rng([seed, epoch, first])
            yield LinkBatch.draw(pairs, order[first : first + PAIRS], shares, rng)
            done += 1
