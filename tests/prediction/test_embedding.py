"""The nearest entities: the same as by comparing all of them one by one."""

import numpy as np
import torch

from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.query.tree import Anchor, Project


def test_the_nearest_of_a_range_without_some_are_those_of_a_plain_search():
    triples = np.array([[i, 0, (i + 1) % 20] for i in range(20)], dtype=np.int32)
    graph = KnowledgeGraph.of(triples, EntityTypes(("a", "b"), np.array([0, 12, 20])), 2)
    encoder = Encoder(Architecture(dim=8), graph, torch.Generator().manual_seed(1))
    ways = [Project(Anchor(3), 0), Project(Anchor(5), 1)]
    without = np.array([13, 14, 2], dtype=np.int32)
    with torch.no_grad():
        encoded = torch.cat(encoder.encode(ways))
        vectors = torch.nn.functional.normalize(encoded, dim=-1)
        scores = (encoder.entities.embeddings() @ vectors.t()).max(dim=1).values
    found = EmbeddingIndex.of(encoder).nearest(encoded, 4, among=slice(12, 20), without=without)
    plain = sorted((i for i in range(12, 20) if i not in (13, 14)), key=lambda i: -scores[i])[:4]
    assert [entity for entity, _ in found] == plain
    assert np.allclose([score for _, score in found], scores[plain].tolist())
