"""The paper's recipe for a data set: seeds, two hops, a degree threshold, kinds, and a 90/1/9 split."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from halfgraph.errors import EmptyGraph, InputError, UnknownName
from halfgraph.graph.files import Reading, lines_of, open_input
from halfgraph.graph.folder import ASIDE, Graph
from halfgraph.graph.importing import Choices, make_graph
from halfgraph.graph.rdf import Sorter
from halfgraph.graph.statements import LABELS, SCHEMA, TYPE, Statements
from halfgraph.graph.store import open_store

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Recipe:
    """The choices of the recipe; the defaults keep the whole graph."""

    seeds: Sequence[str] | None = None  # names; None: every entity
    hops: int = 2
    namespace: str | None = None
    degree: int = 1


def build(graph: Graph, out: Path, recipe: Recipe, choices: Choices) -> Graph:
    """The graph that the recipe makes of another."""
    triples = select(graph, recipe)
    if not len(triples):
        raise EmptyGraph(
            f"no triple is left of {graph.whole.triple_count:,}",
            path=graph.path,
            advice="Lower --degree, add --hops, or check --seeds and --namespace.",
        )
    provenance = {
        "sources": [str(graph.path)],
        "base": graph.namer.base,
        "built_from": graph.fingerprint,
        "recipe": {**vars(recipe), "seeds": None if recipe.seeds is None else len(recipe.seeds)},
    }
    if "attribution" in graph.description["provenance"]:
        provenance["attribution"] = graph.description["provenance"]["attribution"]
    return make_graph(_gatherer(graph, triples), out, choices, provenance)


def select(graph: Graph, recipe: Recipe) -> Triples:
    """The triples within some hops of the seeds, in the namespace, between entities of enough degree."""
    triples = graph.whole.triples()
    if recipe.namespace is not None:
        inside = [graph.namer.iri(name).startswith(recipe.namespace) for name in graph.relations.names]
        triples = triples[np.array(inside)[triples[:, 1] // 2]]
    if recipe.seeds is not None:
        seeds = np.array([_find(graph, name) for name in recipe.seeds], dtype=np.int64)
        triples = within(triples, seeds, recipe.hops, len(graph.entities))
    return prune(triples, recipe.degree, len(graph.entities))


def within(triples: Triples, seeds: NDArray[np.int64], hops: int, entity_count: int) -> Triples:
    """The triples that touch an entity less than `hops` steps from a seed, in either direction."""
    reached = np.zeros(entity_count, dtype=bool)
    reached[seeds] = True
    for _ in range(hops - 1):
        touching = triples[reached[triples[:, 0]] | reached[triples[:, 2]]]
        reached[touching[:, [0, 2]].ravel()] = True
    return triples[reached[triples[:, 0]] | reached[triples[:, 2]]]


def prune(triples: Triples, degree: int, entity_count: int) -> Triples:
    """The triples that are left when entities of less degree are removed, again and again until all have enough."""
    while len(triples):
        degrees = np.bincount(triples[:, [0, 2]].ravel(), minlength=entity_count)
        enough = degrees >= degree
        kept = enough[triples[:, 0]] & enough[triples[:, 2]]
        if kept.all():
            break
        triples = triples[kept]
    return triples


def read_seeds(path: Path) -> list[str]:
    """The names in a file, one a line; the seeds may be given as IRIs or names."""
    with open_input(path) as stream:
        names = [line.strip().strip("<>") for _, line in lines_of(stream, path, Counter(), skip_bad=False)]
    if not names:
        raise InputError("names no seed entity", path=path, advice="Write one entity on each line.")
    return names


def query_seeds(graph: Graph, query: str) -> list[str]:
    """The entities that a SELECT query over the graph gives for its first variable."""
    try:
        rows = open_store(graph).query(query, base_iri=graph.namer.base, prefixes=graph.description["prefixes"])
        names = sorted({row[0].value for row in rows if isinstance(row[0], NamedNode)})
    except SyntaxError as error:
        raise InputError(f"{error.msg}", path="--seeds-query", line=error.lineno, column=error.offset) from error
    if not names:
        raise EmptyGraph(
            "the seeds query has no answer", path="--seeds-query", advice="Try it without its last pattern."
        )
    return names


def _find(graph: Graph, name: str) -> int:
    """The id of an entity given by name or IRI."""
    for candidate in (name, *graph.namer.names(name)):
        if (found := graph.entities.find(candidate)) is not None:
            return found
    nearest = [graph.entities.name(i) for i in graph.entities.nearest(name, 1)]
    raise UnknownName(name, what="entity", nearest=nearest)


def _gatherer(graph: Graph, triples: Triples) -> Callable[[Statements], None]:
    """What adds the chosen triples, and all that the graph says of their entities, to an import."""

    def gather(statements: Statements) -> None:
        relations = list(graph.relations.names)
        name = graph.entities.name
        for head, relation, tail in triples.tolist():
            statements.add("train", name(head), relations[relation // 2], name(tail))
        statements.counts["read"] = len(triples)
        entities = np.unique(triples[:, [0, 2]])
        if "kinds" in graph.description["beside"]:
            for entity, kind in zip(entities.tolist(), graph.kinds.of(entities).tolist(), strict=True):
                statements.add_type(name(entity), graph.kinds.names[kind])
        for words, ids in ((graph.entities, entities.tolist()), (graph.relations, range(len(graph.relations)))):
            for i in ids:
                if label := words.labels[i]:
                    statements.add_label(words.name(i), label)
        sorter = Sorter(statements, "train", Reading(), blank="_:{}".format)
        sorter.all(_said_of(graph, set(statements.names) | set(relations)))

    return gather


def _said_of(graph: Graph, names: set[str]) -> Iterator[Quad]:
    """The statements set aside that describe one of the names, or the vocabulary."""
    aside = graph.path / ASIDE
    if not aside.stat().st_size:
        return
    for quad in parse(path=str(aside), format=RdfFormat.N_QUADS):
        predicate = quad.predicate.value
        described = isinstance(quad.object, Literal) or predicate == TYPE or predicate in LABELS
        subject = quad.subject
        if predicate in SCHEMA or (described and getattr(subject, "value", None) in names):
            yield quad
