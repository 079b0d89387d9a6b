"""Templates: texts that differ only in their entities and relations are parsed and translated once."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.query.rewriting import map_node_ids
from halfgraph.query.tree import Column
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.read import Reading, read, request_of
from halfgraph.sparql.scanner import Scan, scan
from halfgraph.sparql.syntax_tree import Iri, Select, Variable
from halfgraph.sparql.unsupported import LONGEST, refused
from halfgraph.sparql.writer import full, write

_MOST = 4096  # cached templates
_CUT = "\0"  # stands in no IRI and no variable
_DECLARATIONS = re.compile(r"(PREFIX PNAME_NS NAMESPACE |BASE NAMESPACE )*")  # by the types of their tokens


class TextNames(NamedTuple):
    """The entities and relations of a text, each once, in the order in which they first occur."""

    entities: tuple[int, ...]
    relations: tuple[int, ...]  # in the direction of the triples
    iris: tuple[str, ...] = ()  # of both, as the text has them


@dataclass(frozen=True)
class Template:
    """The reading of one text and its names, which stand for those of any text of the same template."""

    reading: Reading
    names: TextNames
    select: Select

    @cached_property
    def _pieces(self) -> list[str]:
        """The query as text, cut before and after the names; in their places are their numbers."""
        slots = {iri: f"{_CUT}{number}{_CUT}" for number, iri in enumerate(self.names.iris)}
        return write(self.select, lambda iri: slots.get(iri) or full(iri)).split(_CUT)

    def store_text(self, names: TextNames) -> str:
        """Return the text for the store of a query with these names, for a template without conditions."""
        pieces = self._pieces.copy()
        pieces[1::2] = [full(names.iris[int(number)]) for number in pieces[1::2]]
        return "".join(pieces)

    def filled(self, entities: Iterable[Column], relations: Iterable[Column]) -> Reading:
        """Return the reading with other names: those of one text, or for each name a column of those of many."""
        entity = dict(zip(self.names.entities, entities, strict=True))
        relation = dict(zip(self.names.relations, relations, strict=True))

        def new_relation(old: Column) -> Column:
            forward, direction = int(old) & ~1, int(old) & 1
            return relation.get(forward, forward) + direction

        new = map_node_ids(self.reading.query, lambda old: entity.get(int(old), old), new_relation)
        variables = {name: new[id(node)] for name, node in self.reading.variables.items()}
        return replace(
            self.reading,
            query=new[id(self.reading.query)],
            variables=MappingProxyType(variables),
        )


@dataclass(frozen=True)
class Templates:
    """Reads texts about one graph and caches their templates."""

    graph: Graph
    _cache: dict[tuple[str, ...], Template] = field(default_factory=dict, repr=False)

    def read(self, text: str) -> Reading:
        """Return what a text asks; it is parsed only if its template is new."""
        template, names = self.template(text)
        return template.reading if names == template.names else template.filled(names.entities, names.relations)

    def template(self, text: str) -> tuple[Template, TextNames]:
        """Return the template of a text and the names in it."""
        if len(text) > LONGEST:
            raise refused("length", None)
        scanned = scan(text, Prefixes.of(self.graph))
        key, names = self._key(scanned)
        template = self._cache.get(key)
        # Undeclared prefixes are refused, and conditions for the store have names of their own.
        if template is None or scanned.undeclared is not None or template.reading.conditions.elements:
            if len(self._cache) >= _MOST:
                self._cache.clear()
            reading, tree = read(text, self.graph), request_of(text, self.graph).tree
            assert isinstance(tree, Select), "other forms are refused"
            template = self._cache[key] = Template(reading, names, tree)
        return template, names

    def _key(self, scanned: Scan) -> tuple[tuple[str, ...], TextNames]:
        """Return the tokens after the declarations with slots for entities and relations, and those names."""
        words: list[str] = []
        slots: dict[str, dict[int, str]] = {"entity": {}, "relation": {}}
        declared = _DECLARATIONS.match("".join(f"{token.type} " for token in scanned.tokens))
        for token in scanned.tokens[declared[0].count(" ") if declared else 0 :]:
            match token.value:
                case Iri(iri) if (named := self._named(iri)) is not None:
                    what, number = named
                    first = slots[what].setdefault(number, iri)
                    word = f"{what} {list(slots[what]).index(number)}"
                    words.append(word if iri == first else f"{word} <{iri}>")  # two IRIs may name one entity
                case Iri(iri):
                    words.append(f"<{iri}>")
                case Variable(name):
                    words.append(f"?{name}")
                case _:
                    words.append(token.text)
        entities, relations = slots["entity"], slots["relation"]
        iris = (*entities.values(), *relations.values())
        return tuple(words), TextNames(tuple(entities), tuple(relations), iris)

    @cached_property
    def _named(self) -> Callable[[str], tuple[str, int] | None]:
        return lru_cache(maxsize=16 * _MOST)(self._look_up)

    def _look_up(self, iri: str) -> tuple[str, int] | None:
        """Return the entity or relation of an IRI; None where it is both, or may be a type."""
        if iri == TYPE or any(name in self.graph.types.names for name in self.graph.namer.names(iri)):
            return None
        entity, relation = self.graph.find_entity(iri), self.graph.find_relation(iri)
        if (entity is None) == (relation is None):
            return None
        return ("entity", entity) if entity is not None else ("relation", relation or 0)
