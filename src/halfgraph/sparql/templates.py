"""Texts that differ only in their entities and relations are read once: the rest is their template."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.query.tree import Anchor, Column, Intersect, Negate, Project, Query, Union, nodes
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.reading import Reading, read
from halfgraph.sparql.refusals import LONGEST
from halfgraph.sparql.tokens import Source

Key = tuple[str, ...]
_MOST = 4096  # templates, and names, that are remembered


@dataclass(frozen=True)
class Names:
    """The entities and relations that a text names, each once, in the order in which they are first named."""

    entities: Sequence[int]
    relations: Sequence[int]  # in the direction of the triples


@dataclass(frozen=True)
class Template:
    """A reading of one text with the names that it has, which stand for those of any text of the same template."""

    reading: Reading
    names: Names

    def filled(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> Reading:
        """The reading of other names: (entities,), (relations,), or a batch: (n, entities), (n, relations)."""
        entity = {number: entities[..., place] for place, number in enumerate(self.names.entities)}
        relation = {number: relations[..., place] for place, number in enumerate(self.names.relations)}
        built: dict[int, Query] = {}
        for node in nodes(self.reading.query):
            built[id(node)] = _renamed(node, built, entity, relation)
        variables = {name: built[id(node)] for name, node in self.reading.variables.items()}
        witnesses = {name: built[id(node)] for name, node in self.reading.witnesses.items()}
        return replace(
            self.reading,
            query=built[id(self.reading.query)],
            variables=MappingProxyType(variables),
            witnesses=MappingProxyType(witnesses),
        )


def _renamed(
    node: Query, built: Mapping[int, Query], entity: Mapping[int, Column], relation: Mapping[int, Column]
) -> Query:
    """A node with other names, from the nodes built before it."""
    match node:
        case Anchor():
            return Anchor(_id(entity.get(int(node.entity), node.entity)))
        case Project():
            own = int(node.relation)
            named = _id(relation.get(own & ~1, own & ~1))
            return Project(built[id(node.source)], named + (own & 1), node.type_id)
        case Intersect() | Union():
            return type(node)(tuple(built[id(part)] for part in node.parts), node.type_id)
        case Negate():
            return Negate(built[id(node.part)])


def _id(ids: Column) -> Column:
    return ids if isinstance(ids, np.ndarray) and ids.ndim else int(ids)


@dataclass(frozen=True)
class Templates:
    """What reads texts of one graph and remembers their templates."""

    graph: Graph
    _seen: "OrderedDict[Key, Template]" = field(default_factory=OrderedDict, repr=False)
    _names: dict[str, tuple[str, int] | None] = field(default_factory=dict, repr=False)

    def read(self, text: str) -> Reading:
        """What a text asks; the parser is not asked again where it has seen the template."""
        template, names = self.template(text)
        if names == template.names:
            return template.reading
        columns = (np.array(numbers, dtype=np.int32) for numbers in (names.entities, names.relations))
        return template.filled(*columns)

    def template(self, text: str) -> tuple[Template, Names]:
        """The template of a text, and the names in it."""
        if len(text) > LONGEST:
            read(text, self.graph)  # which refuses it
        key, names = self._key(Source(text, Prefixes.of(self.graph)))
        template = self._seen.get(key)
        if template is not None and template.reading.restriction:  # it has names of its own
            return Template(read(text, self.graph), names), names
        if template is None:
            template = self._seen[key] = Template(read(text, self.graph), names)
            while len(self._seen) > _MOST:
                self._seen.popitem(last=False)
        return template, names

    def _key(self, source: Source) -> tuple[Key, Names]:
        """What the text says, with places for its entities and relations, and these."""
        said: list[str] = []
        places: dict[str, dict[int, int]] = {"entity": {}, "relation": {}}
        for token in source.tokens[source.prologue_end :]:
            meaning = source.meaning(token)
            named = self._named(meaning[1:-1]) if token.type_id in ("iri", "name") else None
            if named is None:
                said.append(meaning)
            else:
                what, number = named
                place = places[what].setdefault(number, len(places[what]))
                said.append(f"{what} {place}")
        return tuple(said), Names(tuple(places["entity"]), tuple(places["relation"]))

    def _named(self, iri: str) -> tuple[str, int] | None:
        """The entity or relation of an IRI; None where it is both, or might be a class."""
        if iri not in self._names:
            if len(self._names) > 16 * _MOST:
                self._names.clear()
            self._names[iri] = self._look_up(iri)
        return self._names[iri]

    def _look_up(self, iri: str) -> tuple[str, int] | None:
        names = self.graph.namer.names(iri)
        if iri == TYPE or any(name in self._types for name in names):
            return None
        entity, relation = (self._find(words, names, iri) for words in (self.graph.entities, self.graph.relations))
        if (entity is None) == (relation is None):
            return None
        return ("entity", entity) if entity is not None else ("relation", 2 * (relation or 0))

    def _find(self, words: Vocabulary, names: Sequence[str], iri: str) -> int | None:
        """The number of the name that an IRI stands for."""
        found = ((words.find(name), name) for name in names)
        return next((one for one, name in found if one is not None and self.graph.namer.iri(name) == iri), None)

    @property
    def _types(self) -> frozenset[str]:
        return frozenset(self.graph.types.names)
