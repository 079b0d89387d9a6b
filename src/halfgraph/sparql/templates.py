"""Templates: texts that differ only in their entities and relations are parsed and translated once."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.query.rewriting import map_node_ids
from halfgraph.query.tree import Column
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.read import Reading, read
from halfgraph.sparql.scanner import Scan, Token, scan
from halfgraph.sparql.syntax_tree import Iri, Variable
from halfgraph.sparql.unsupported import LONGEST

Key = tuple[str, ...]
_MOST = 4096  # cached templates


@dataclass(frozen=True)
class TextNames:
    """The entities and relations of a text, each once, in the order in which they first occur."""

    entities: Sequence[int]
    relations: Sequence[int]  # in the direction of the triples


@dataclass(frozen=True)
class Template:
    """The reading of one text and its names, which stand for those of any text of the same template."""

    reading: Reading
    names: TextNames

    def filled(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> Reading:
        """Return the reading for other names: (entities,), (relations,), or a batch: (n, entities), (n, relations)."""
        entity = {number: entities[..., index] for index, number in enumerate(self.names.entities)}
        relation = {number: relations[..., index] for index, number in enumerate(self.names.relations)}

        def new_relation(old: Column) -> Column:
            forward, direction = int(old) & ~1, int(old) & 1
            return _id(relation.get(forward, forward)) + direction

        def new_entity(old: Column) -> Column:
            return _id(entity.get(int(old), old))

        new = map_node_ids(self.reading.query, new_entity, new_relation)
        variables = {name: new[id(node)] for name, node in self.reading.variables.items()}
        witnesses = {name: variables[name] for name in self.reading.witnesses}
        return replace(
            self.reading,
            query=new[id(self.reading.query)],
            variables=MappingProxyType(variables),
            witnesses=MappingProxyType(witnesses),
        )


def _id(ids: Column) -> Column:
    return ids if isinstance(ids, np.ndarray) and ids.ndim else int(ids)


@dataclass(frozen=True)
class Templates:
    """Reads texts about one graph and caches their templates."""

    graph: Graph
    _cache: "OrderedDict[Key, Template]" = field(default_factory=OrderedDict, repr=False)
    _names: dict[str, tuple[str, int] | None] = field(default_factory=dict, repr=False)

    def read(self, text: str) -> Reading:
        """Return what a text asks; it is parsed only if its template is new."""
        template, names = self.template(text)
        if names == template.names:
            return template.reading
        return template.filled(np.array(names.entities, np.int32), np.array(names.relations, np.int32))

    def template(self, text: str) -> tuple[Template, TextNames]:
        """Return the template of a text and the names in it."""
        scanned = scan(text, Prefixes.of(self.graph)) if len(text) <= LONGEST else None
        if scanned is None or scanned.undeclared is not None:
            read(text, self.graph)  # raises
            raise AssertionError("a text that is too long or has undeclared prefixes was read")
        key, names = self._key(scanned)
        template = self._cache.get(key)
        if template is not None and template.reading.tests.elements:  # they have names of their own
            return Template(read(text, self.graph), names), names
        if template is None:
            template = self._cache[key] = Template(read(text, self.graph), names)
            while len(self._cache) > _MOST:
                self._cache.popitem(last=False)
        return template, names

    def _key(self, scanned: Scan) -> tuple[Key, TextNames]:
        """Return the tokens with slots for entities and relations, and those names."""
        words: list[str] = []
        slots: dict[str, dict[int, int]] = {"entity": {}, "relation": {}}
        for token in _after_declarations(scanned.tokens):
            value = token.value
            if isinstance(value, Iri):
                named = self._named(value.value)
                if named is None:
                    words.append(f"<{value.value}>")
                else:
                    what, number = named
                    words.append(f"{what} {slots[what].setdefault(number, len(slots[what]))}")
            else:
                words.append(f"?{value.name}" if isinstance(value, Variable) else token.text)
        return tuple(words), TextNames(tuple(slots["entity"]), tuple(slots["relation"]))

    def _named(self, iri: str) -> tuple[str, int] | None:
        """Return the entity or relation of an IRI; None where it is both, or may be a type."""
        if iri not in self._names:
            if len(self._names) > 16 * _MOST:
                self._names.clear()
            self._names[iri] = self._look_up(iri)
        return self._names[iri]

    def _look_up(self, iri: str) -> tuple[str, int] | None:
        if iri == TYPE or any(name in self.graph.types.names for name in self.graph.namer.names(iri)):
            return None
        entity, relation = self.graph.find_entity(iri), self.graph.find_relation(iri)
        if (entity is None) == (relation is None):
            return None
        return ("entity", entity) if entity is not None else ("relation", relation or 0)


def _after_declarations(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens after well-formed PREFIX and BASE declarations."""
    start = 0
    while start < len(tokens):
        for declaration in (["PREFIX", "PNAME_NS", "NAMESPACE"], ["BASE", "NAMESPACE"]):
            if [token.type for token in tokens[start : start + len(declaration)]] == declaration:
                start += len(declaration)
                break
        else:
            break
    yield from tokens[start:]
