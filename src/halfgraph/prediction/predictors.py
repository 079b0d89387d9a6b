"""The predictors of a run, one for each mode, and the link models that were fitted for them."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.graph.manifest import has_file
from halfgraph.model.complex import ComplEx
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.base import Predictor, QueryPredictor
from halfgraph.prediction.embedding import EmbeddingIndex, EmbeddingPredictor
from halfgraph.prediction.ensemble import EnsemblePredictor
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_fitting import PAIRS, fit_link_weights
from halfgraph.prediction.link_predictor import SORTS, LinkPredictor, LinkWeights, Prepared
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS, MODES
from halfgraph.prediction.neighbours import Neighbours
from halfgraph.prediction.type_predictor import TypePredictor
from halfgraph.prediction.witness import BoundWitness, find_witness
from halfgraph.query._kernels import contiguous
from halfgraph.query.tree import Query
from halfgraph.training.run_folder import load_tensors, save_tensors

FILE = "links.safetensors"
FORMAT = "2"
PREPARED = ("neighbours", "nearness", "head_scores")  # tensors in the file
MOST_PREPARED = 1 << 25  # numbers: 128 MB
FULL_SIZE, FEWEST = 30_000, 100  # entities up to which all pairs are fitted on; the least number for larger graphs
MAKE_AGAIN = "Make it again: halfgraph calibrate RUN"
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class LinkModels:
    """The link models of a run: ComplEx, the fitted weights, and how many missing triples these were fitted for.

    `prepared` is for the whole graph, and belongs to a view with as many triples; a run written before has none.
    """

    complex: ComplEx
    weights: LinkWeights
    missing: int
    prepared: Prepared | None = field(default=None, repr=False)
    prepared_triples: int = 0

    def save(self, run: Path) -> None:
        """Write all of it to one file, so that its parts always belong together."""
        tensors = {"entities": self.complex.entities, "relations": self.complex.relations}
        about = {"format": FORMAT, "weights": json.dumps(asdict(self.weights)), "missing": str(self.missing)}
        if self.prepared is not None:
            near = self.prepared.neighbours
            arrays = near.ids, near.nearness, self.prepared.head_scores
            tensors |= {name: torch.tensor(array) for name, array in zip(PREPARED, arrays, strict=True)}
            about["prepared_triples"] = str(self.prepared_triples)
        save_tensors(run / FILE, tensors, about)

    @classmethod
    def load(cls, run: Path, graph: Graph | None = None) -> "LinkModels | None":
        """Read the models of a run folder; None if it has none. With a graph, check that they fit it."""
        path = run / FILE
        if not has_file(path, MAKE_AGAIN):
            return None
        tensors, about = load_tensors(path)
        try:
            if about["format"] != FORMAT:
                raise ValueError(f"it has format {about['format']}, and this version reads {FORMAT}")
            weights: Any = json.loads(about["weights"])
            by_sort = tuple(map(tuple, weights["by_sort"]))
            fitted = LinkWeights(by_sort, float(weights["bias"]), tuple(weights["offsets"]))
            model, prepared = ComplEx(tensors["entities"], tensors["relations"]), None
            if "prepared_triples" in about:
                ids, nearness, head_scores = (tensors[name].numpy() for name in PREPARED)
                prepared = Prepared(Neighbours(contiguous(ids), contiguous(nearness)), head_scores)
            models = cls(model, fitted, int(about["missing"]), prepared, int(about.get("prepared_triples", 0)))
            models.check(graph)
            return models
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FolderError(path, f"cannot be read: {error}", advice=MAKE_AGAIN) from error

    def check(self, graph: Graph | None) -> None:
        """Raise ValueError unless the models have finite weights of one shape, and rows for all ids of the graph."""
        entities, relations, weights = self.complex.entities, self.complex.relations, self.weights
        numbers = [*map(float, (value for row in weights.by_sort for value in row)), *map(float, weights.offsets)]
        if not np.isfinite([*numbers, weights.bias]).all() or self.missing < 1:
            raise ValueError("its weights are not finite numbers")
        if {len(row) for row in weights.by_sort} != {len(FEATURES)} or len(weights.by_sort) != SORTS:
            raise ValueError("its weights are those of other features")
        if not all(table.dim() == 2 and table.dtype == torch.float32 for table in (entities, relations)):
            raise ValueError("its tables are not tables of float32")
        counts = (len(graph.entities), 2 * len(graph.relations)) if graph else (len(entities), len(relations))
        is_right = (len(entities), len(relations)) == counts and entities.shape[1] == relations.shape[1]
        is_right = is_right and len(weights.offsets) in (0, len(relations) // 2)
        if not is_right or entities.shape[1] % 2:
            raise ValueError("its tables do not fit the graph")
        if not (torch.isfinite(entities).all() and torch.isfinite(relations).all()):
            raise ValueError("its tables have numbers that are not finite")
        if self.prepared is not None:
            self.prepared.check(len(entities), len(relations))


def missing_share(graph: Graph, view: str) -> float:
    """Return the share of all true triples that a view is taken to lack.

    A view without held-out triples lacks just these. The whole graph is taken to lack the same share as was held out.
    """
    whole = graph.whole.triple_count
    missing = whole - graph.view(view).triple_count
    return (missing or whole - graph.train.triple_count) / max(whole, 1)


def unfitted(index: EmbeddingIndex, graph: KnowledgeGraph) -> LinkPredictor:
    """Return a link predictor for a run without link models: links are likely by their cosines alone."""
    weights = tuple(float(name == "cosine") for name in FEATURES)
    complex_ = ComplEx(torch.zeros(graph.entity_count, 2), torch.zeros(graph.relation_count, 2))
    return LinkPredictor(index, complex_, graph, LinkWeights((weights,) * SORTS))


@dataclass(frozen=True)
class Predictors:
    """The predictors of a run; `known` are the triples that count as known."""

    index: EmbeddingIndex
    known: KnowledgeGraph
    models: LinkModels | None = None
    missing: float = 0.05  # share of all triples that are taken to be missing from the known ones
    members: Callable[[int], Ids] | None = None  # entities of a type, by its id; default: by the type of each entity
    untyped: Ids = field(default_factory=lambda: np.empty(0, np.int64), repr=False)  # entities without a type statement

    @classmethod
    def load(cls, run: Path, encoder: Encoder, graph: Graph, view: str = "train") -> "Predictors":
        """Load the predictors of a run, with the triples of a view as known."""
        return cls(
            EmbeddingIndex.of(encoder), graph.view(view), LinkModels.load(run, graph), missing_share(graph, view)
        )

    @property
    def encoder(self) -> Encoder:
        return self.index.encoder

    @property
    def available(self) -> tuple[str, ...]:
        """The modes that this run supports, the default first."""
        return (EMBEDDING,) if self.models is None else (LINKS, EMBEDDING, ENSEMBLE)

    def choose(self, mode: str | None) -> str:
        """Return the given mode, or the best one if None; raise SettingError if this run does not support it."""
        if mode is None:
            return self.available[0]
        if mode not in MODES:
            raise SettingError("--mode", f'there is no mode "{mode}"', advice=f"Known: {', '.join(MODES)}.")
        if mode not in self.available:
            problem = f"{mode} needs models that `train` fits on held-out triples, and this run has none"
            raise SettingError("--mode", problem, advice="Fit them with: halfgraph calibrate RUN")
        return mode

    @cached_property
    def links(self) -> LinkPredictor:
        missing = self.known.triple_count * self.missing / (1 - self.missing)
        if self.models is None:  # for witnesses only
            return unfitted(self.index, self.known)
        models, ratio = self.models, max(missing, 1) / self.models.missing
        prepared = models.prepared if models.prepared_triples == self.known.triple_count else None
        return LinkPredictor(self.index, models.complex, self.known, models.weights, ratio, prepared)

    @cached_property
    def types(self) -> TypePredictor:
        starts = self.known.types.starts
        by_range = self.members or (lambda type_id: np.arange(*starts[type_id : type_id + 2]))
        return TypePredictor(self.links.neighbours, by_range, self.untyped)

    @cached_property
    def executor(self) -> LinkExecutor:
        """The executor by link probabilities, which threads may share."""
        return LinkExecutor(self.links, self.types)

    def predictor(self, mode: str, name: str | None = None) -> Predictor:
        """Build the predictor of a mode."""
        embedding = EmbeddingPredictor(self.index, name or mode)
        if mode == EMBEDDING:
            return embedding
        executor = self.executor  # made once, before threads ask for it
        links = QueryPredictor(name or mode, lambda: executor.scores)
        return links if mode == LINKS else EnsemblePredictor(links, embedding, self.known.degrees(), name or mode)

    def witness(self, query: Query, entity: int) -> BoundWitness:
        """Return the best witness of an entity as an answer, by link probabilities."""
        return find_witness(self.executor, query, entity)


def fit_models(
    complex_: ComplEx, encoder: Encoder, graph: Graph, seed: int, progress: Callable[[str, int, int], None]
) -> LinkModels:
    """Fit the link weights on the validation triples, and prepare answers from the whole graph unless it is large."""
    index = EmbeddingIndex.of(encoder)
    links = LinkPredictor(index, complex_, graph.train, LinkWeights())
    pairs = max(FEWEST, min(PAIRS, PAIRS * FULL_SIZE // len(graph.entities)))
    show = partial(progress, "Fitting weights", 3 * pairs)
    held_out = graph.valid.triple_count + graph.test.triple_count
    missing = held_out if graph.test.triple_count else 2 * held_out  # the graph itself is taken to lack as many
    weights = fit_link_weights(links, graph.valid, seed, missing=missing, pairs=pairs, progress=show)
    models, size = LinkModels(complex_, weights, missing), len(graph.entities) * graph.whole.relation_count
    if size > MOST_PREPARED:
        return models
    show = partial(progress, "Preparing answers", graph.whole.relation_count)
    prepared = LinkPredictor(index, complex_, graph.whole, weights).prepare(show)
    return replace(models, prepared=prepared, prepared_triples=graph.whole.triple_count)
