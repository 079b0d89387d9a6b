"""The relations and types of a graph as a query can name them, with counts; and how a text names one of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.store_rows import GraphStore, query_json
from halfgraph.errors import UnknownName, nearest
from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import LABEL, TYPE
from halfgraph.graph.types import UNTYPED
from halfgraph.graph.vocabulary import local_name
from halfgraph.sparql.prefixes import Prefixes

CLASSES = f"SELECT ?type (COUNT(DISTINCT ?x) AS ?count) {{ ?x <{TYPE}> ?type }} GROUP BY ?type"
CLASS_LABELS = f"SELECT ?type ?label {{ {{ SELECT DISTINCT ?type {{ ?x <{TYPE}> ?type }} }} ?type <{LABEL}> ?label }}"
LITERALS = "SELECT ?p (COUNT(*) AS ?count) { ?x ?p ?value FILTER(isLiteral(?value)) } GROUP BY ?p"
SUGGESTED = 3  # names for one that is not there


@dataclass(frozen=True)
class CataloguedName:
    """Something that a query can name: as it is typed there, its label and its IRI."""

    name: str
    label: str
    iri: str


@dataclass(frozen=True)
class TypeCount(CataloguedName):
    """A main type with the number of its entities at one end of a relation."""

    count: int


@dataclass(frozen=True)
class CataloguedRelation(CataloguedName):
    """A relation with its triples, its distinct heads and tails, and their main types, the most frequent first."""

    triples: int
    heads: int
    tails: int
    domains: Sequence[TypeCount] = field(default=())
    ranges: Sequence[TypeCount] = field(default=())


@dataclass(frozen=True)
class LiteralProperty(CataloguedName):
    """A property with literals, which a query can name but a model does not learn."""

    literals: int


@dataclass(frozen=True)
class CataloguedType(CataloguedName):
    """A type: how many entities the store gives it, and of how many it is the main type."""

    stated: int
    main: int


@dataclass(frozen=True)
class KnownPrefix:
    """A prefix that a query need not declare; `source` says where it comes from."""

    prefix: str
    namespace: str
    source: str


@dataclass(frozen=True)
class Catalogue:
    """The names of a graph; counts are those of a view."""

    graph: Graph
    view: str = "whole"

    @cached_property
    def store(self) -> GraphStore:
        return GraphStore(self.graph, self.view)

    @cached_property
    def names(self) -> EntityNames:
        return EntityNames(self.graph)

    @cached_property
    def _prefixes(self) -> Prefixes:
        return Prefixes.of(self.graph)

    def typed(self, iri: str) -> str:
        """Return an IRI as a query can name it; a blank node, which none can name, as it is."""
        return iri if iri.startswith("_:") else self._prefixes.short(iri)

    def prefixes(self) -> list[KnownPrefix]:
        """Return the prefixes that need no declaration: those of the graph first."""
        own = self.graph.description["prefixes"]
        sources = {prefix: "the graph" if prefix in own else "common" for prefix in self._prefixes.namespaces}
        if "" not in own:
            sources[""] = "the base of names"
        rows = [KnownPrefix(f"{name}:", self._prefixes.namespaces[name], source) for name, source in sources.items()]
        return sorted(rows, key=lambda row: (row.source == "common", row.prefix))

    def relations(self) -> list[CataloguedRelation]:
        """Return the relations, the most frequent first."""
        edges = self.graph.view(self.view)
        forward = (edges.relations & 1) == 0
        heads, numbers, tails = edges.heads()[forward], edges.relations[forward] // 2, edges.tails[forward]
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(len(self.graph.relations) + 1))
        ends = ((heads[own], tails[own]) for own in np.split(order, starts[1:-1]))
        rows = [self._relation(number, *own) for number, own in enumerate(ends)]
        return sorted(rows, key=lambda row: -row.triples)

    def _relation(self, number: int, heads: NDArray[np.int32], tails: NDArray[np.int32]) -> CataloguedRelation:
        iri, distinct = self.names.relation(2 * number).entity, (np.unique(heads), np.unique(tails))
        counts = len(heads), len(distinct[0]), len(distinct[1])
        label = self.graph.relations.label(number)
        return CataloguedRelation(self.typed(iri), label, iri, *counts, *map(self._type_counts, distinct))

    def _type_counts(self, entities: NDArray[np.int32]) -> list[TypeCount]:
        types, counts = np.unique(self.graph.types.of(entities), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [TypeCount(*self._main_type(int(types[row])), int(counts[row])) for row in order]

    def _main_type(self, type_id: int) -> tuple[str, str, str]:
        """The name, label and IRI of a main type; entities without a type have none that a query can name."""
        name = self.graph.types.names[type_id]
        if name == UNTYPED:
            return "", UNTYPED, ""
        own = self.class_named(self.graph.namer.iri(name))
        return own.name, own.label, own.iri

    def class_named(self, iri: str) -> CataloguedName:
        """Return a class with its name and label."""
        return CataloguedName(self.typed(iri), self._class_labels.get(iri, unquote(local_name(iri))), iri)

    def literal_properties(self) -> list[LiteralProperty]:
        """Return the properties with literals, the most frequent first."""
        rows = [(row["p"]["value"], int(row["count"]["value"])) for row in self._rows(LITERALS)]
        rows.sort(key=lambda row: (-row[1], row[0]))
        return [LiteralProperty(self.typed(iri), unquote(local_name(iri)), iri, count) for iri, count in rows]

    def types(self) -> list[CataloguedType]:
        """Return all types, those with most entities first."""
        main = {
            self.graph.namer.iri(name): int(size)
            for name, size in zip(self.graph.types.names, self.graph.types.sizes, strict=True)
            if name != UNTYPED
        }
        iris = dict.fromkeys([*main, *self._stated])
        rows = [(self._stated.get(iri, 0), main.get(iri, 0), iri) for iri in iris]
        rows.sort(key=lambda row: (-max(row[:2]), row[2]))
        named = [(self.class_named(iri), counts) for *counts, iri in rows]
        return [CataloguedType(own.name, own.label, own.iri, *counts) for own, counts in named]

    @cached_property
    def _stated(self) -> dict[str, int]:
        """The number of entities of each class, by the store."""
        rows = self._rows(CLASSES)
        return {row["type"]["value"]: int(row["count"]["value"]) for row in rows if row["type"]["type"] == "uri"}

    @cached_property
    def _class_labels(self) -> dict[str, str]:
        """The label of each class that has one, English or without a language before others."""
        labels: dict[str, tuple[int, str]] = {}
        for row in self._rows(CLASS_LABELS):
            language = row["label"].get("xml:lang", "en")
            labelled = (0 if language.startswith("en") else 1, row["label"]["value"])
            iri = row["type"]["value"]
            labels[iri] = min(labels.get(iri, labelled), labelled)
        return {iri: label for iri, (_, label) in labels.items()}

    def _rows(self, query: str) -> list[Mapping[str, Any]]:
        rows: list[Mapping[str, Any]] = json.loads(query_json(self.store.local, query))["results"]["bindings"]
        return rows

    # Names that a user types

    def relation_named(self, text: str) -> int:
        """Return the relation that a text names: by IRI, prefixed name, name or label."""
        numbers = (self.graph.find_relation(iri) for iri in self.names.iris_of(text))
        number = next((one for one in numbers if one is not None), None)
        if number is None and (plain := self.graph.relations.find(text)) is not None:
            number = 2 * plain
        if number is not None:
            return number
        labels = list(map(self.graph.relations.label, range(len(self.graph.relations))))
        iris = (self.names.relation(2 * own).entity for own in range(len(labels)))
        return 2 * self._by_label(text, labels, iris, "relation")

    def subjects_of_type(self, text: str) -> NDArray[np.int64]:
        """Return the entities of the type that a text names, by the store or as their main type."""
        iris = [*self.names.iris_of(text), self.graph.namer.iri(text)]
        types = self.types()
        position = next((row for row, own in enumerate(types) if own.iri in iris), None)
        if position is None:
            position = self._by_label(text, [own.label for own in types], (own.iri for own in types), "type")
        iri, names = types[position].iri, [self.graph.namer.iri(name) for name in self.graph.types.names]
        main = self.names.of_type(names.index(iri)) if iri in names else slice(0)
        return np.union1d(self.store.members_of(iri), np.arange(main.start or 0, main.stop)).astype(np.int64)

    def _by_label(self, text: str, labels: Sequence[str], iris: Iterable[str], what: str) -> int:
        """Return the position of the one label that a text is; raise UnknownName if there is none, or several."""
        same = [position for position, label in enumerate(labels) if label.casefold() == text.casefold()]
        if len(same) == 1:
            return same[0]
        known = list(iris)
        near = same or nearest(local_name(text).casefold(), [label.casefold() for label in labels], SUGGESTED)
        advice = f"`halfgraph {what}s FOLDER` lists them."
        raise UnknownName(text, what=what, nearest=[self.typed(known[own]) for own in near], advice=advice)
