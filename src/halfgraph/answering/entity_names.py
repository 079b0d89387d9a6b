"""Names of entities, relations and classes: IRIs, labels and types, and rows of the store with them."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.cells import Cell, NamedEntity
from halfgraph.answering.schema import KnownAnswer
from halfgraph.answering.store_rows import Rows
from halfgraph.errors import UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.types import UNTYPED
from halfgraph.graph.vocabulary import local_name
from halfgraph.query.rows import Domain, Value
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.results import Binding, Term

MOST_CACHED = 100_000  # names


class EntityNames:
    """IRIs, labels and types of entities and relations, with a cache."""

    def __init__(self, graph: Graph) -> None:
        cache = lru_cache(MOST_CACHED)
        self.graph = graph
        self.find = cache(partial(graph.find_entity, or_name=True))  # the id by IRI or name, or None
        self.described = cache(self._describe)
        self.known_iri = cache(self._known_iri)
        self._starts = graph.types.starts.tolist()
        self._types = [local_name(name) for name in graph.types.names]

    def iris_of(self, text: str) -> list[str]:
        """Return the IRIs that a text may stand for: an IRI, <IRI> or prefixed name."""
        prefix, colon, local = text.partition(":")
        namespaces = Prefixes.of(self.graph).namespaces
        return [*([namespaces[prefix] + local] if colon and prefix in namespaces else []), text.strip("<>")]

    def resolve(self, text: str) -> int:
        """Return the id of an entity by its IRI, <IRI>, prefixed name, name or label."""
        iris = [text, *self.iris_of(text)]
        entity = next((number for iri in iris if (number := self.find(iri)) is not None), None)
        if entity is None:
            near = self.graph.entities.nearest(text)
            if near and self.graph.entities.label(near[0]).casefold() == text.casefold():
                return near[0]
            raise UnknownName(text, what="entity", nearest=[self.entity(number).entity for number in near])
        return entity

    def _describe(self, number: int) -> tuple[str, str, str]:
        """The IRI and label of an entity and the short name of its type, marked if the import has guessed it."""
        name = self.graph.entities.name(number)
        iri = name if name.startswith("_:") else self.graph.namer.iri(name)
        type_name = self.type_name(bisect_right(self._starts, number) - 1)
        is_guess = type_name != UNTYPED and not self.graph.is_type_stated(number)
        return iri, self.graph.entities.label(number), f"{type_name} (guessed)" if is_guess else type_name

    def entity(self, number: int) -> NamedEntity:
        return NamedEntity(*self.described(number)[:2])

    def relation(self, number: int) -> NamedEntity:
        """Return a relation or its inverse with its IRI and label."""
        name = self.graph.relations.name(number // 2)
        return NamedEntity(self.graph.namer.iri(name), self.graph.relations.label(number // 2))

    def type_name(self, type_id: int) -> str:
        """Return the short name of a type: the last part of its name."""
        return self._types[type_id]

    def type_entity(self, type_id: int) -> NamedEntity:
        """Return a type with its IRI and short name."""
        return NamedEntity(self.graph.namer.iri(self.graph.types.names[type_id]), self.type_name(type_id))

    def of_type(self, type_id: int | None) -> slice:
        """Return the range of the entities of a type, or of all."""
        return slice(0, self._starts[-1]) if type_id is None else slice(*self._starts[type_id : type_id + 2])

    def _known_iri(self, variable: str, iri: str) -> tuple[KnownAnswer, int | None]:
        """The row of one IRI, and the number of its entity."""
        return self._known([variable], {variable: {"type": "uri", "value": iri}}), self.find(iri)

    def known(self, rows: Rows) -> list[KnownAnswer]:
        return [self._known(rows.variables, binding) for binding in rows.bindings]

    def values(self, answers: Iterable[KnownAnswer], variable: str) -> NDArray[np.int32]:
        """Return the entities that a variable stands for in some answers, each once."""
        cells = (answer.row.get(variable) for answer in answers)
        numbers = {self.find(cell.value) for cell in cells if cell is not None and cell.type != "literal"}
        return np.array(sorted(number for number in numbers if number is not None), dtype=np.int32)

    def _known(self, variables: Sequence[str], binding: Binding) -> KnownAnswer:
        row = self.row(variables, binding)
        return KnownAnswer(*self.head_of(row), row)

    def row(self, variables: Sequence[str], binding: Binding) -> dict[str, Cell]:
        """Return the cells of a row that are bound."""
        return {name: self.cell(binding[name]) for name in variables if name in binding}

    def head_of(self, row: Mapping[str, Cell]) -> tuple[str, str, str | None]:
        """Return value, label and type of the first cell of a row."""
        first = next(iter(row.values()), Cell("literal", "", ""))
        number = None if first.type == "literal" else self.find(first.value)
        return first.value, first.label, None if number is None else self.described(number)[2]

    def iri(self, value: Value, domain: Domain) -> str | None:
        """Return the IRI of an entity, relation or class, or the name _:b of a blank node; None for None."""
        match value:
            case int() if domain == "relation":
                return self.relation(value).entity
            case int():
                return self.described(value)[0]
        return value

    def cell(self, term: Term) -> Cell:
        """Return a term of SPARQL's JSON results with its label."""
        if term["type"] == "literal":
            return Cell("literal", term["value"], term["value"], term.get("datatype"), term.get("xml:lang"))
        if term["type"] == "triple":  # SPARQL 1.2: a quoted triple
            return Cell("literal", json.dumps(term["value"]), "a triple")
        value = f"_:{term['value']}" if term["type"] == "bnode" else term["value"]
        if (number := self.find(value)) is not None:
            return Cell(term["type"], value, self.described(number)[1])
        relation = self.graph.find_relation(value)
        return Cell(term["type"], value, local_name(value) if relation is None else self.relation(relation).label)
