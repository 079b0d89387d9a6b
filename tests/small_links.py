"""Link predictors and executors of small graphs, with weights that nobody fitted."""

import numpy as np
import torch

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.complex import ComplEx
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.base import Scores
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_executor import BEAM, LinkExecutor
from halfgraph.prediction.link_features import FEATURES, Ids, LinkFeatures
from halfgraph.prediction.link_predictor import SORTS, LinkPredictor, LinkWeights
from halfgraph.prediction.predictors import LinkModels, Predictors


def random_complex(graph: KnowledgeGraph, rank: int = 3, seed: int = 0) -> ComplEx:
    """ComplEx with weights as large as trained ones."""
    fresh = ComplEx.new(graph.entity_count, graph.relation_count, rank, torch.Generator().manual_seed(seed))
    return ComplEx(fresh.entities * 1e3, fresh.relations * 1e3)


def random_weights(graph: KnowledgeGraph, bias: float = 5.0, seed: int = 0) -> LinkWeights:
    """Weights of every feature, other ones for each sort of head, and an offset for each relation."""
    rng = np.random.default_rng(seed)
    by_sort = rng.uniform(0.05, 0.25, (SORTS, len(FEATURES)))
    offsets = rng.uniform(-0.5, 0.5, graph.relation_count // 2)
    return LinkWeights(tuple(map(tuple, by_sort.tolist())), bias, tuple(offsets.tolist()))


def known_only(graph: KnowledgeGraph) -> LinkWeights:
    """Weights by which no missing link is likely."""
    return random_weights(graph, bias=-1e9)


def link_models(graph: KnowledgeGraph, bias: float = 5.0, missing: int = 10) -> LinkModels:
    """Models of a run, as `calibrate` would fit them."""
    return LinkModels(random_complex(graph), random_weights(graph, bias), missing)


def links_of(graph: KnowledgeGraph, weights: LinkWeights | None = None, projection: str = "bilinear") -> LinkPredictor:
    """A link predictor with random models."""
    architecture = Architecture(dim=8, heads=2, projection=projection)
    encoder = Encoder(architecture, graph, torch.Generator().manual_seed(0))
    own = random_weights(graph) if weights is None else weights
    return LinkPredictor(EmbeddingIndex.of(encoder), random_complex(graph), graph, own)


def features_of(links: LinkFeatures, head: int, relation: int, tails: Ids) -> tuple[Scores, Scores]:
    """Features of the links from a head to some tails, and from these tails to it: (tails, features) each."""
    there = np.repeat(links.head_features(relation, np.array([head])), len(tails), axis=0)
    back = links.head_features(relation ^ 1, tails)
    for column, (forward, backward) in enumerate(links.pair_features(np.array([head]), relation, tails)):
        there[:, column] += forward[0].numpy()
        back[:, column] += backward[0].numpy()
    return there, back


def executor_of(
    graph: KnowledgeGraph, weights: LinkWeights | None = None, beam: int = BEAM, projection: str = "bilinear"
) -> LinkExecutor:
    """An executor with random models, by the types of the graph."""
    links = links_of(graph, weights, projection)
    return LinkExecutor(links, Predictors(links.index, graph).types, beam)
