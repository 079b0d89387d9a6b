"""Names of a query to ids of the graph: entities, relations and types, with suggestions for unknown ones."""

from dataclasses import dataclass

from halfgraph.errors import SparqlError, UnknownName, nearest
from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.graph.vocabulary import Vocabulary, local_name
from halfgraph.query.tree import Anchor
from halfgraph.sparql.normalise import display
from halfgraph.sparql.parse import Request
from halfgraph.sparql.syntax_tree import Iri, Literal, Term, Variable
from halfgraph.sparql.unsupported import refused

_MOST_TYPES = 12  # listed where no name is similar


@dataclass(frozen=True)
class Names:
    """Looks up the names of a request in a graph."""

    graph: Graph
    request: Request

    def term(self, node: Term) -> Anchor | str:
        if isinstance(node, Variable):
            return node.name
        if isinstance(node, Literal):
            raise self.literal(node)
        assert isinstance(node, Iri)
        return self.anchor(node)

    def anchor(self, node: Iri) -> Anchor:
        entity = self.graph.find_entity(node.value)
        if entity is None:
            raise self.unknown(node, "entity", self.similar(self.graph.entities, node.value))
        return Anchor(entity)

    def relation(self, node: Iri) -> int:
        relation = self.graph.find_relation(node.value)
        if relation is None:
            raise self.unknown(node, "relation", self.similar(self.graph.relations, node.value))
        return relation

    def is_type_relation(self, object_: Term) -> bool:
        """Whether rdf:type is a relation of the graph like any other, and leads to this term."""
        if self.graph.find_relation(TYPE) is None:
            return False
        return self.graph.find_entity(object_.value) is not None if isinstance(object_, Iri) else True

    def type_id(self, node: Iri) -> int:
        names = self.graph.types.names
        for name in self.graph.namer.names(node.value):
            if name in names and self.graph.namer.iri(name) == node.value:
                return names.index(name)
        wanted, known = local_name(node.value).casefold(), [local_name(name).casefold() for name in names]
        near = [self.short(names[index]) for index in nearest(wanted, known)]
        largest = sorted(range(len(names)), key=lambda type_id: -self.graph.types.sizes[type_id])[:_MOST_TYPES]
        listed = [self.short(names[type_id]) for type_id in largest] + ["..."] * (len(names) > _MOST_TYPES)
        raise self.unknown(node, "type", near, f"Its types are {', '.join(listed)}.")

    def literal(self, node: Literal) -> SparqlError:
        """Return the error for a literal in the place of an entity, with an entity of that label."""
        near = self.similar(self.graph.entities, node.value) if node.datatype is None else []
        such = f", such as {near[0]}" if near else ""
        text = self.request.source.text_of(node)
        return refused("literal", self.request.source.place_of(node), text=text, such=such)

    def unknown(self, node: Iri, what: str, near: list[str], advice: str = "") -> UnknownName:
        """Return the error for a name that the graph does not have."""
        line, column = self.request.source.place(node.span[0])
        return UnknownName(self.shown(node), what=what, nearest=near, line=line, column=column, advice=advice)

    def similar(self, words: Vocabulary, text: str) -> list[str]:
        """Return similar names, shortened, with labels that add something; first the one with the same last part."""
        same = words.find(local_name(text))
        found = dict.fromkeys([*([] if same is None else [same]), *words.nearest(text)])
        return [self._labelled(words.name(number), words.label(number)) for number in found]

    def _labelled(self, name: str, label: str) -> str:
        plain = label in (local_name(name), local_name(name).replace("_", " "))
        return self.short(name) + ("" if plain else f" ({label})")

    def short(self, name: str) -> str:
        """Return a name of the graph as the query could write it."""
        return self.request.prefixes.short(self.graph.namer.iri(name))

    def shown(self, node: Term) -> str:
        """Return a term as the query writes it."""
        return display(node.name) if isinstance(node, Variable) else self.request.source.text_of(node)
