"""Small models in double precision, with the same weights as a plain oracle has them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.query.structures import NEIGHBOURHOODS, STRUCTURES, Structure
from halfgraph.workload.sampling import Questions, Sampler
from model_oracles import Model
from query_oracles import Plain, graph_of, type_list

TYPE_SIZES = (7, 5, 6)
RELATIONS = 6  # both directions
# Every operator in every reading.
ARCHITECTURES = (
    *(Architecture(projection, "simple", "mean") for projection in ("bilinear", "diagonal", "translation")),
    Architecture("bilinear", "simple", "min"),
    Architecture("bilinear", "gqe", "mean"),
    Architecture("translation", "gqe", "min"),
    Architecture("bilinear", "counted", "mean"),
    Architecture("bilinear", "attention", "min", heads=1),
    Architecture("bilinear", "attention", "mean", heads=3, initial="xavier"),
    Architecture("diagonal", "attention", "min", heads=2, norm_by_type=True),
    Architecture("bilinear", "attention", "min", heads=4, activation="none"),
)


def name_of(architecture: Architecture) -> str:
    """A short name for a test."""
    names = (architecture.projection, architecture.intersection, architecture.centre, architecture.activation)
    return "-".join((*names, "types")) if architecture.norm_by_type else "-".join(names)


@dataclass(frozen=True)
class SmallModel:
    """A model of a small graph, and the same plain."""

    encoder: Encoder
    graph: KnowledgeGraph
    oracle: Model

    @property
    def plain(self) -> Plain:
        """The graph, plain."""
        return self.oracle.plain


def small_triples(seed: int = 0, count: int = 120) -> list[tuple[int, int, int]]:
    """Random triples over the small graph's entities and relations."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, sum(TYPE_SIZES), (count, 2))
    relations = 2 * generator.integers(0, RELATIONS // 2, count)
    return [(int(head), int(relation), int(tail)) for (head, tail), relation in zip(ends, relations, strict=True)]


def small_model(architecture: Architecture, dim: int = 5, seed: int = 0) -> SmallModel:
    """A model in double precision; every weight is random, those too that training begins at zero or one."""
    architecture = replace(architecture, dim=dim)
    triples = small_triples()
    graph = graph_of(triples, TYPE_SIZES, RELATIONS)
    generator = torch.Generator().manual_seed(seed)
    encoder = Encoder(architecture, graph, generator).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2)
    plain = Plain.of(triples, type_list(TYPE_SIZES))
    names = (architecture.projection, architecture.intersection, architecture.centre, architecture.activation)
    return SmallModel(encoder, graph, Model(weights_of(encoder), *names, plain, len(TYPE_SIZES)))


def weights_of(encoder: Encoder) -> dict[str, Any]:
    """The weights of a model as plain arrays."""
    return {name: parameter.detach().numpy().copy() for name, parameter in encoder.named_parameters()}


def some_questions(graph: KnowledgeGraph, structure: Structure, count: int, seed: int = 0) -> Questions:
    """Questions of a structure."""
    return Sampler(graph, threads=1).draw(structure, count, seed).questions


def all_shapes() -> tuple[Structure, ...]:
    """The structures and the sizes of neighbourhood."""
    return (*STRUCTURES, *NEIGHBOURHOODS)
