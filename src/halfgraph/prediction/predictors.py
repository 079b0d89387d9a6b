"""The predictors of a run, one for each mode, and the weights that were fitted for them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.files import write_atomically
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.base import Predictor, QueryPredictor, Scores
from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.prediction.calibration import MAKE_AGAIN, Calibration
from halfgraph.prediction.embedding import EmbeddingIndex, EmbeddingPredictor
from halfgraph.prediction.ensemble import EnsemblePredictor, EnsembleWeights, EntityPriors, fit_ensemble, weights_for
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_fitting import LEAST_HELD_OUT, PAIRS, fit_link_weights
from halfgraph.prediction.link_predictor import CosineLinks, LinkPredictor, LinkWeights
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS, MODES
from halfgraph.prediction.witness import BoundWitness, find_witness
from halfgraph.query.tree import Query
from halfgraph.workload.sampling import Questions

FILE = "evidence.json"
FORMAT = 5
FULL_SIZE = 30_000  # entities up to which all of these questions are used; fewer for larger graphs
FEWEST = 30
QUESTIONS = 200  # validation questions of each structure that the ensemble is fitted on
# Keys of format 4, which is still read.
OLD_KEYS = {
    "edges": "links",
    "vector": "embedding",
    "low": "embedding_below",
    "ties": "log_degree",
    "edges_level": "links_level",
    "vector_level": "embedding_level",
    "chance": "probability",
    "both": "ensemble",
    "back": "inverse_cosine",
    "ends": "is_tail",
    "often": "log_tail_count",
    "breadth": "log_known_tails",
    "asked": "anchored_without_tail",
}


@dataclass(frozen=True)
class FittedWeights:
    """The weights of a run, fitted on held-out triples and questions."""

    links: LinkWeights
    ensemble: Mapping[str, EnsembleWeights]  # by the structure's short name

    def save(self, run: Path) -> None:
        write_atomically(run / FILE, json.dumps({"format": FORMAT, **asdict(self)}))

    @classmethod
    def load(cls, run: Path) -> "FittedWeights | None":
        """Read the weights of a run folder; None if it has none."""
        path = run / FILE
        if not path.exists():
            return None
        try:
            values: Any = json.loads(path.read_text(encoding="utf-8"))
            if values["format"] not in (4, FORMAT):
                raise ValueError(f"it has format {values['format']}, and this version reads 4 and {FORMAT}")
            values = _with_new_keys(values)
            ensemble = {name: EnsembleWeights.from_dict(weights) for name, weights in values["ensemble"].items()}
            links = values["links"]
            return cls(LinkWeights(**{**links, "offsets": tuple(links["offsets"])}), ensemble)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FolderError(path, f"cannot be read: {error}", advice=MAKE_AGAIN) from error


def _with_new_keys(values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    return {OLD_KEYS.get(key, key): _with_new_keys(value) for key, value in values.items()}


@dataclass(frozen=True)
class Predictors:
    """The predictors of a run; `known` are the triples that count as known."""

    index: EmbeddingIndex
    known: KnowledgeGraph
    fitted: FittedWeights | None = None

    @classmethod
    def load(cls, run: Path, encoder: Encoder, known: KnowledgeGraph) -> "Predictors":
        return cls(EmbeddingIndex.of(encoder), known, FittedWeights.load(run))

    @property
    def encoder(self) -> Encoder:
        return self.index.encoder

    @property
    def available(self) -> tuple[str, ...]:
        """The modes that this run supports, the best first."""
        return tuple(mode for mode in reversed(MODES) if PREDICTORS[mode].is_fitted(self.fitted))

    def choose(self, mode: str | None) -> str:
        """Return the given mode, or the best one if None; raise SettingError if this run does not support it."""
        if mode is None:
            return self.available[0]
        if mode not in MODES:
            raise SettingError("--mode", f'there is no mode "{mode}"', advice=f"Known: {', '.join(MODES)}.")
        if mode not in self.available:
            problem = f"{mode} needs weights that `train` fits on validation triples, and this run has none"
            raise SettingError("--mode", problem, advice="Fit them with: halfgraph calibrate RUN")
        return mode

    @cached_property
    def links(self) -> LinkPredictor:
        assert self.fitted is not None, "the mode is available"
        return LinkPredictor(self.index, self.known, self.fitted.links)

    @cached_property
    def priors(self) -> EntityPriors:
        return EntityPriors.of(self.known)

    @cached_property
    def triples(self) -> TriplesByRelation:
        return TriplesByRelation.of(self.known) if self.fitted is None else self.links.triples

    def link_executor(self) -> LinkExecutor:
        """Return an executor by link probabilities, for one thread."""
        return LinkExecutor(self.links.copy())

    def predictor(self, mode: str, name: str | None = None, *, likely: bool = False) -> Predictor:
        """Build the predictor of a mode; `likely`: its scores are probabilities, as those of `ask` are."""
        return PREDICTORS[mode].build(self, name or mode, likely)

    def query_scores(self, mode: str, query: Query, cosines: Scores) -> Scores:
        """Score every entity for one query whose cosines are known already: (entities,) -> (entities,)."""
        return PREDICTORS[mode].query_scores(self, query, cosines)

    def witness(self, mode: str, query: Query, entity: int, calibration: Calibration) -> BoundWitness:
        """Return the best witness of an entity as an answer, by the link probabilities of a mode.

        `calibration.link_confidence(mode, step.probability)` is the confidence of a missing link.
        """
        if mode == EMBEDDING:
            links = CosineLinks(self.index, self.triples, calibration.cosine_probability)
            return find_witness(LinkExecutor(links), query, entity)
        return find_witness(self.link_executor(), query, entity)


@dataclass(frozen=True)
class PredictorEntry:
    """How a mode predicts: whether a run has its weights, its predictor for batches, its scores for one query."""

    is_fitted: Callable[[FittedWeights | None], bool]
    build: Callable[[Predictors, str, bool], Predictor]
    query_scores: Callable[[Predictors, Query, Scores], Scores]


def _links(run: Predictors, name: str, likely: bool) -> Predictor:  # noqa: ARG001  always a probability
    run.links  # noqa: B018  computed once, before threads ask for it
    return QueryPredictor(name, lambda: run.link_executor().scores)


def _ensemble(run: Predictors, name: str, likely: bool) -> Predictor:
    assert run.fitted is not None, "the mode is available"
    links, embedding = _links(run, LINKS, likely), EmbeddingPredictor(run.index)
    return EnsemblePredictor(links, embedding, run.fitted.ensemble, run.priors, name, likely)


def _ensemble_scores(run: Predictors, query: Query, cosines: Scores) -> Scores:
    assert run.fitted is not None, "the mode is available"
    weights = weights_for(query, run.fitted.ensemble)
    links = run.link_executor().scores(query)
    return weights.combine(links[None], cosines[None], run.priors, likely=True)[0]


PREDICTORS: dict[str, PredictorEntry] = {
    EMBEDDING: PredictorEntry(
        is_fitted=lambda _: True,
        build=lambda run, name, _: EmbeddingPredictor(run.index, name),
        query_scores=lambda _, __, cosines: cosines,
    ),
    LINKS: PredictorEntry(
        is_fitted=lambda fitted: fitted is not None,
        build=_links,
        query_scores=lambda run, query, _: run.link_executor().scores(query),
    ),
    ENSEMBLE: PredictorEntry(
        is_fitted=lambda fitted: fitted is not None and bool(fitted.ensemble),
        build=_ensemble,
        query_scores=_ensemble_scores,
    ),
}


def fit_weights(
    encoder: Encoder,
    graph: Graph,
    questions: Sequence[Questions],
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> FittedWeights | None:
    """Fit link weights on validation triples and the ensemble on validation questions; None if there are too few."""
    if not graph.has_split or len(graph.valid.tails) < LEAST_HELD_OUT:
        return None
    index = EmbeddingIndex.of(encoder)
    unfitted = LinkPredictor(index, graph.train, LinkWeights())
    weights = fit_link_weights(unfitted, graph.valid, seed, pairs=affordable(PAIRS, graph))
    links = QueryPredictor(LINKS, lambda: LinkExecutor(unfitted.copy(weights)).scores)
    sample = [_sample(structure, affordable(QUESTIONS, graph), seed) for structure in questions]
    priors = EntityPriors.of(graph.train)
    return FittedWeights(weights, fit_ensemble(links, EmbeddingPredictor(index), sample, priors, seed, progress))


def affordable(count: int, graph: Graph) -> int:
    """Return `count`, or fewer for a large graph: the work for each question grows with the entities."""
    return max(FEWEST, min(count, count * FULL_SIZE // len(graph.entities)))


def _sample(questions: Questions, count: int, seed: int) -> Questions:
    """Draw questions, of those with negatives if there are any."""
    judged = np.arange(len(questions)) if questions.negatives is None else np.flatnonzero(questions.negatives.sizes())
    among = judged if len(judged) else np.arange(len(questions))
    rows: NDArray[np.int64] = np.random.default_rng(seed).permutation(among)[:count]
    return questions.take(np.sort(rows))
