"""The ways of predicting: by the query's vector, by its edges, or by both; and what was fitted for them in a run."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.answerers import Answerer, MeaningAnswerer, VectorAnswerer
from halfgraph.prediction.ensemble import Backdrop, FusedAnswerer, Fusion, as_dict, fit_fusions, fusion_for, of_dict
from halfgraph.prediction.fitting import LEAST_HELD_OUT, PAIRS, fit
from halfgraph.prediction.link_executor import BEAM, Scored
from halfgraph.prediction.link_predictor import Edges, Scale, Scores
from halfgraph.training.run_folder import write_atomically
from halfgraph.workload.sampling import Questions

VECTOR, SCORED, BOTH = MODES = ("vector", "scored", "both")
FILE = "evidence.json"
FORMAT = 4
AFFORDED = 30_000  # entities up to which all of these are used
LEAST = 30
EACH = 200  # validation questions of each structure that weigh the two ways against each other


@dataclass(frozen=True)
class Weighing:
    """What was fitted for a run on held-out triples and questions."""

    scale: Scale
    fusions: Mapping[str, Fusion]

    def save(self, run: Path) -> None:
        """Nothing; kept in the run's folder."""
        kept = {"format": FORMAT, "edges": self.scale.to_dict(), "both": as_dict(self.fusions)}
        write_atomically(run / FILE, json.dumps(kept))

    @classmethod
    def load(cls, run: Path) -> "Weighing | None":
        """What a run's folder has, or None."""
        path = run / FILE
        if not path.exists():
            return None
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            if found["format"] != FORMAT:
                raise ValueError(f"it has format {found['format']}, and this version reads {FORMAT}")
            return cls(Scale.from_dict(found["edges"]), of_dict(found["both"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"cannot be read: {error}"
            raise FolderError(path, problem, advice="Make it again: halfgraph calibrate RUN") from error


@dataclass(frozen=True)
class Modes:
    """A model of a graph, and the ways that it can answer; `known` are the triples that count as known."""

    encoder: Encoder
    known: KnowledgeGraph
    weighing: Weighing | None = None
    beam: int = BEAM
    vectors: VectorAnswerer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", VectorAnswerer(self.encoder, VECTOR))

    @property
    def names(self) -> tuple[str, ...]:
        """The ways that there are, the best first."""
        if self.weighing is None:
            return (VECTOR,)
        return (BOTH, SCORED, VECTOR) if self.weighing.fusions else (SCORED, VECTOR)

    def named(self, mode: str | None) -> str:
        """The mode of a name, or the best where none is given; an error where there is none of that name."""
        if mode is None:
            return self.names[0]
        if mode not in MODES:
            raise SettingError("--mode", f'there is none named "{mode}"', advice=f"Known: {', '.join(MODES)}.")
        if mode not in self.names:
            problem = f"{mode} needs what `train` fits on validation triples, and this run has none"
            raise SettingError("--mode", problem, advice="Fit it with: halfgraph calibrate RUN")
        return mode

    @cached_property
    def edges(self) -> Edges:
        """The edges of the known graph."""
        assert self.weighing is not None, "the mode is available"
        return Edges.of(self.encoder, self.known, self.weighing.scale)

    @cached_property
    def backdrop(self) -> Backdrop:
        """What is known of the entities, whichever the query is."""
        return Backdrop.of(self.known)

    def scored(self) -> Scored:
        """The meaning by edges, for one thread."""
        return Scored(self.edges.another(), self.beam)

    def answerer(self, mode: str, name: str | None = None, likely: bool = False) -> Answerer:
        """A way as what can be measured; `likely`: its scores say how likely answers are, as those of `ask` do."""
        if mode == VECTOR:
            return VectorAnswerer(self.encoder, name or VECTOR)
        self.edges  # noqa: B018  made once, before threads ask for it
        by_edges = MeaningAnswerer(name or SCORED, self.scored)
        if mode == SCORED:
            return by_edges
        assert self.weighing is not None, "the mode is available"
        return FusedAnswerer(by_edges, self.vectors, self.weighing.fusions, self.backdrop, name or BOTH, likely)


def weigh(
    encoder: Encoder,
    graph: Graph,
    questions: Sequence[Questions],
    seed: int,
    told: Callable[[int], None] = lambda _: None,
) -> Weighing | None:
    """What the validation triples and questions of a graph say each way weighs; None where there are too few."""
    if not graph.has_split or len(graph.valid.tails) < LEAST_HELD_OUT:
        return None
    bare = Edges.of(encoder, graph.train, Scale())
    scale = fit(bare, graph.valid, seed, pairs=affordable(PAIRS, graph))
    by_edges = MeaningAnswerer(SCORED, lambda: Scored(bare.another(scale)))
    some = [_some(one, affordable(EACH, graph), seed) for one in questions]
    backdrop = Backdrop.of(graph.train)
    return Weighing(scale, fit_fusions(by_edges, VectorAnswerer(encoder), some, backdrop, seed, told))


def affordable(count: int, graph: Graph) -> int:
    """So many, or fewer where the graph is large: what is done for each grows with the entities."""
    return max(LEAST, min(count, count * AFFORDED // len(graph.entities)))


def _some(questions: Questions, count: int, seed: int) -> Questions:
    """A few of the questions at random, of those that have negatives where there are such."""
    judged = np.arange(len(questions)) if questions.negatives is None else np.flatnonzero(questions.negatives.sizes())
    among = judged if len(judged) else np.arange(len(questions))
    rows: NDArray[np.int64] = np.random.default_rng(seed).permutation(among)[:count]
    return questions.take(np.sort(rows))


def fused_scores(modes: Modes, mode: str, scored: Scored, query: Any, cosines: Scores) -> Scores:
    """The scores of every entity for one query by a mode, its cosines being known already: (entities,)."""
    if mode == VECTOR:
        return cosines
    by_edges = scored.scores(query)
    if mode == SCORED:
        return by_edges
    assert modes.weighing is not None, "the mode is available"
    fusion = fusion_for(query, modes.weighing.fusions)
    return fusion.fuse(by_edges[None], cosines[None], modes.backdrop, likely=True)[0]
