"""Build a data set as in the paper: seeds, two hops, a degree threshold, types, and a 90/1/9 split."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions

from halfgraph.errors import EmptyGraph, InputError, UnknownName
from halfgraph.graph.files import ReadOptions, excerpt, lines_of, open_input
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, make_graph
from halfgraph.graph.rdf import Sorter
from halfgraph.graph.statements import LABELS, SCHEMA, TYPE, Statements
from halfgraph.graph.store import open_store, statements_aside, store_errors, store_path

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class SelectionRecipe:
    """Options of the recipe; the defaults keep the whole graph."""

    seeds: Sequence[str] | None = None  # names; None: every entity
    hops: int = 2
    namespace: str | None = None
    degree: int = 1


def build(graph: Graph, out: Path, recipe: SelectionRecipe, choices: ImportOptions, source: str | None = None) -> Graph:
    """Make a new graph by the recipe; `source` is the name of the old one, by default its path."""
    triples = select(graph, recipe)
    if not len(triples):
        problem = f"none of {graph.whole.triple_count:,} triples is left"
        advice = "Lower --degree, raise --hops, or check --seeds and --namespace."
        raise EmptyGraph(problem, path=source or graph.path, advice=advice)
    provenance = {
        "sources": [source or str(graph.path)],
        "base": graph.namer.base,
        "built_from": graph.fingerprint,
        "recipe": {**vars(recipe), "seeds": None if recipe.seeds is None else len(recipe.seeds)},
    }
    if "attribution" in graph.description["provenance"]:
        provenance["attribution"] = graph.description["provenance"]["attribution"]
    choices = replace(choices, default_graph="union")  # what is set aside keeps its graph, the chosen triples do not
    return make_graph(partial(_gather, graph, triples), out, choices, provenance)


def select(graph: Graph, recipe: SelectionRecipe) -> Triples:
    """Return the triples near the seeds, in the namespace, between entities of the minimum degree."""
    triples = graph.whole.triples()
    if recipe.namespace is not None:
        inside = [graph.namer.iri(name).startswith(recipe.namespace) for name in graph.relations.names]
        triples = triples[np.array(inside)[triples[:, 1] // 2]]
    if recipe.seeds is not None:
        seeds = np.array([_find(graph, name) for name in recipe.seeds], dtype=np.int64)
        triples = within(triples, seeds, recipe.hops, len(graph.entities))
    return prune(triples, recipe.degree, len(graph.entities))


def within(triples: Triples, seeds: NDArray[np.int64], hops: int, entity_count: int) -> Triples:
    """Return the triples with an entity less than `hops` steps from a seed, in either direction."""
    reached = np.zeros(entity_count, dtype=bool)
    reached[seeds] = True
    for _ in range(hops - 1):
        touching = triples[reached[triples[:, 0]] | reached[triples[:, 2]]]
        reached[touching[:, [0, 2]].ravel()] = True
    return triples[reached[triples[:, 0]] | reached[triples[:, 2]]]


def prune(triples: Triples, degree: int, entity_count: int) -> Triples:
    """Remove entities of lower degree until every entity has the minimum degree; return the triples left."""
    while len(triples):
        degrees = np.bincount(triples[:, [0, 2]].ravel(), minlength=entity_count)
        enough = degrees >= degree
        kept = enough[triples[:, 0]] & enough[triples[:, 2]]
        if kept.all():
            break
        triples = triples[kept]
    return triples


def read_seeds(path: Path) -> list[str]:
    """Read the seed entities of a file, one IRI or name per line."""
    with open_input(path) as stream:
        lines = [line.strip() for _, line in lines_of(stream, path, Counter(), skip_bad=False)]
    names = [line.removeprefix("<").removesuffix(">") for line in lines if line]
    if not names:
        raise InputError("has no seed entity", path=path, advice="Write one entity per line.")
    return names


def query_seeds(graph: Graph, query: str) -> list[str]:
    """Return the entities that a query, as `halfgraph.sparql.writer` writes it, gives for its first variable."""
    where, rows = "--seeds-query", None
    try:
        with store_errors(store_path(graph, "whole")):
            rows = open_store(graph).query(query)
            if not isinstance(rows, QuerySolutions):
                raise InputError("is not a SELECT query", path=where, advice="Write SELECT ?seed { ... }.")
            names = sorted({row[0].value for row in rows if isinstance(row[0], NamedNode)})
    except (RuntimeError, SyntaxError, ValueError) as error:
        raise InputError(f"cannot be answered: {excerpt(str(error), 300)}", path=where) from error
    finally:
        rows = None  # the frame of an error must not keep it: it may only be dropped in this thread
    if not names:
        raise EmptyGraph("has no answer that is an entity", path=where, advice="Check the query.")
    return names


def _find(graph: Graph, name: str) -> int:
    entity = graph.find_entity(name, or_name=True)
    if entity is None:
        nearest = [graph.entities.name(i) for i in graph.entities.nearest(name, 1)]
        raise UnknownName(name, what="entity", nearest=nearest, where="--seeds")
    return entity


def _gather(graph: Graph, triples: Triples, statements: Statements) -> None:
    """Add the chosen triples, and the statements about their entities, to an import."""
    relations, name = list(graph.relations.names), graph.entities.name
    for head, relation, tail in triples.tolist():
        statements.add("train", name(head), relations[relation // 2], name(tail))
    statements.counts["read"] = len(triples)
    statements.prefixes.update(graph.description["prefixes"])
    for words, used in ((graph.entities, statements.names), (graph.relations, statements.relations)):
        for word, label in zip(words.names, words.labels, strict=True):
            if label and word in used:
                statements.add_label(word, label, rank=-1)  # better than any label set aside
    names = [*statements.names, *statements.relations]
    known = {graph.namer.iri(name): name for name in (*names, *graph.types.names)}
    described = {str(graph.namer.term(name)) for name in names}
    sorter = Sorter(statements, "train", ReadOptions(), blank="_:{}".format, known=known)
    sorter.sort_all(_descriptions(graph, described))


def _descriptions(graph: Graph, names: Container[str]) -> Iterator[Quad]:
    """Yield the statements set aside that describe one of the names, or the vocabulary."""
    for quad in statements_aside(graph):
        predicate = quad.predicate.value
        describes = isinstance(quad.object, Literal) or predicate == TYPE or predicate in LABELS
        if predicate in SCHEMA or (describes and str(quad.subject) in names):
            yield quad
