"""Triples by IRI to patterns by number: which entities, relations and types a query names, and what it gets wrong."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rapidfuzz import fuzz, process

from halfgraph.errors import HalfgraphError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.graph.vocabulary import Vocabulary, local_name
from halfgraph.query.patterns import Term
from halfgraph.query.tree import Anchor, Query
from halfgraph.sparql.parsing import Iri, Node, Said, Triple, Value, Variable
from halfgraph.sparql.refusals import refused
from halfgraph.sparql.tokens import Place, Source

_MOST_KINDS = 12  # types listed where none is near


@dataclass
class Named:
    """The patterns of a query: links (term, relation as the triples have it, term), and the types of variables.

    `parts` are queries that lead to a variable by themselves, or that must not.
    """

    links: list[tuple[Term, int, Term]] = field(default_factory=list)
    types: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[Query]] = field(default_factory=dict)


def name_patterns(triples: Iterable[Triple], graph: Graph, source: Source) -> Named:
    """The patterns of the triples, each once; names that the graph does not know are refused."""
    naming = Naming(graph, source)
    for triple in triples:
        naming.add(*triple)
    naming.named.links = list(dict.fromkeys(naming.named.links))
    return naming.named


@dataclass(frozen=True)
class Naming:
    """What finds the numbers of names."""

    graph: Graph
    source: Source
    named: Named = field(default_factory=Named)

    def add(self, subject: Said, predicate: Said, object_: Said) -> None:
        """Nothing; one more triple becomes a link or a type."""
        if isinstance(subject, Value) or isinstance(predicate, Value) or isinstance(object_, Value):
            raise self.literal()
        if isinstance(predicate, Variable):
            raise refused("variable relation", self.place(predicate), name=predicate.shown())
        if isinstance(subject, Iri) and isinstance(object_, Iri):
            pattern = " ".join(map(self.shown, (subject, predicate, object_)))
            place = self.place(subject, predicate, object_)
            raise refused("no variable in a pattern", place, pattern=pattern)
        if subject == object_:
            raise refused("loop", self.place(subject, predicate, object_), name=self.shown(subject))
        if predicate.iri == TYPE and not self.is_entity_type(object_):
            self.add_type(subject, object_)
        else:
            self.named.links.append((self.term(subject), self.relation(predicate), self.term(object_)))

    def literal(self) -> HalfgraphError:
        """The error for a literal in the place of an entity, with the entities of that label."""
        token = next(
            one for one in self.source.body if one.type_id in ("string", "number") or one.says("TRUE", "FALSE")
        )
        near = self.nearest(self.graph.entities, token.text.strip("'\"")) if token.type_id == "string" else []
        such = f", such as {near[0]}" if near else ""
        return refused("literal", self.source.place(token), text=token.text, such=such)

    def is_entity_type(self, object_: Node) -> bool:
        """Whether rdf:type is a relation of the graph like any other, and leads to this."""
        if self.relation_or_none(TYPE) is None:
            return False
        return isinstance(object_, Variable) or self.find(self.graph.entities, object_.iri) is not None

    def add_type(self, subject: Node, object_: Node) -> None:
        """Nothing; the type of a variable is noted."""
        if isinstance(object_, Variable):
            raise refused("variable class", self.place(object_), name=object_.shown())
        assert isinstance(subject, Variable)
        type_id, before = self.type_id(object_), self.named.types.get(subject.name)
        if before not in (None, type_id):
            raise refused(
                "two classes",
                self.place(object_),
                name=subject.shown(),
                first=self.short(self.graph.types.names[before or 0]),
                second=self.shown(object_),
            )
        self.named.types[subject.name] = type_id

    def term(self, node: Node) -> Term:
        """The name of a variable, or a known entity."""
        if isinstance(node, Variable):
            return node.name
        entity = self.find(self.graph.entities, node.iri)
        if entity is None:
            raise self.unknown(node, "entity", self.nearest(self.graph.entities, node.iri))
        return Anchor(entity)

    def relation(self, node: Iri) -> int:
        """The number of a relation in the direction of the triples."""
        relation = self.relation_or_none(node.iri)
        if relation is None:
            raise self.unknown(node, "relation", self.nearest(self.graph.relations, node.iri))
        return relation

    def relation_or_none(self, iri: str) -> int | None:
        """The number of a relation, or None."""
        found = self.find(self.graph.relations, iri)
        return None if found is None else 2 * found

    def type_id(self, node: Iri) -> int:
        """The number of a type."""
        names = self.graph.types.names
        for name in self.graph.namer.names(node.iri):
            if name in names and self.graph.namer.iri(name) == node.iri:
                return names.index(name)
        wanted, shown = local_name(node.iri).casefold(), [local_name(name).casefold() for name in names]
        near = process.extract(wanted, shown, scorer=fuzz.ratio, limit=3, score_cutoff=60)
        largest = sorted(range(len(names)), key=lambda type_id: -self.graph.types.sizes[type_id])[:_MOST_KINDS]
        listed = ", ".join(self.short(names[type_id]) for type_id in largest) + (
            ", ..." if len(names) > _MOST_KINDS else ""
        )
        advice = f"Its types are {listed}."
        raise self.unknown(node, "type", [self.short(names[place]) for _, _, place in near], advice)

    def find(self, words: Vocabulary, iri: str) -> int | None:
        """The number of the name that an IRI stands for."""
        for name in self.graph.namer.names(iri):
            number = words.find(name)
            if number is not None and self.graph.namer.iri(name) == iri:
                return number
        return None

    def unknown(self, node: Iri, what: str, nearest: list[str], advice: str = "") -> HalfgraphError:
        """The error for a name that the graph does not know."""
        line, column = self.place(node) or (None, None)
        return UnknownName(self.shown(node), what=what, nearest=nearest, line=line, column=column, advice=advice)

    def nearest(self, words: Vocabulary, text: str) -> list[str]:
        """The nearest names, shortened, each with its label where that says more; first the one with this last part."""
        same, found = words.find(local_name(text)), []
        for number in dict.fromkeys([*([] if same is None else [same]), *words.nearest(text)]):
            name, label = words.name(number), words.label(number)
            plain = label == local_name(name) or label == local_name(name).replace("_", " ")
            found.append(self.short(name) + ("" if plain else f" ({label})"))
        return found

    def short(self, name: str) -> str:
        """A name of the graph as the query could write it."""
        return self.source.prefixes.short(self.graph.namer.iri(name))

    def shown(self, node: Node) -> str:
        """A term as the query writes it."""
        if isinstance(node, Variable):
            return node.shown()
        token = self.source.of_iri(node.iri)
        return token.text if token else "a" if node.iri == TYPE else self.source.prefixes.short(node.iri)

    def place(self, *nodes: Node) -> Place | None:
        """Where terms stand in the query one after another, or else the first of them."""
        return place_of(self.source, *nodes)


def place_of(source: Source, *nodes: Node) -> Place | None:
    """Where terms first stand in a query one after another, or else the first of them."""
    wanted = [_said(node) for node in nodes]
    meant = [source.meaning(token) for token in source.body]
    for words in (wanted, wanted[:1]):
        for start in range(len(meant) - len(words) + 1):
            if meant[start : start + len(words)] == words:
                return source.place(source.body[start])
    return None


def _said(node: Node) -> str:
    """What a token says that stands for a term; a nameless one is told by the first [ or / of the query."""
    if isinstance(node, Iri):
        return f"<{node.iri}>"
    if node.name[0] in "[/":
        return node.name[0]
    return node.name if node.name.startswith("_:") else f"?{node.name}"
