"""A small graph of people and cities, and an engine with fresh weights to ask about it."""

from dataclasses import replace
from pathlib import Path

import torch

from halfgraph.answering.engine import Engine
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.graph.splitting import Shares
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.embedding import EmbeddingIndex
from small_links import link_models

CITIES = [f"city{i}" for i in range(6)]
ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o }"
LIVES = "SELECT ?x { ?x <lives_in> <city0> }"


def people(folder: Path) -> Graph:
    """Thirty people who live in six cities, each knowing the next; a tenth of it held out for each of two."""
    rows = [f"person{i}\tlives_in\t{CITIES[i % 6]}" for i in range(30)]
    rows += [f"person{i}\tknows\tperson{(i + 1) % 30}" for i in range(30)]
    source, types = folder / "people.tsv", folder / "types.tsv"
    source.write_text("\n".join(rows))
    types.write_text("\n".join([*(f"person{i}\tPerson" for i in range(30)), *(f"{city}\tCity" for city in CITIES)]))
    return import_graph([source], folder / "graph", ImportOptions(types_file=types, split=Shares(80, 10, 10)))


def engine_of(graph: Graph, view: str = "whole", **settings: object) -> Engine:
    """An engine with fresh weights."""
    architecture = Architecture(**{"dim": 8, "heads": 2, **settings})  # type: ignore[arg-type]
    encoder = Encoder(architecture, graph.train, torch.Generator().manual_seed(0))
    return Engine(graph, EmbeddingIndex.of(encoder), view)


def with_links(engine: Engine) -> Engine:
    """The engine with link models that nobody trained, so that it has the mode links too."""
    return replace(engine, models=link_models(engine.graph.train))
