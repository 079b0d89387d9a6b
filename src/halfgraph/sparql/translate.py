"""Translate normalised patterns to the query tree: names become ids, alternatives unions, exclusions negations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from halfgraph.errors import SparqlError, UnknownName, nearest
from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.graph.vocabulary import Vocabulary, local_name
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union
from halfgraph.sparql.normalise import Among, Item, Items, OneOf, Test, Without, display, scoped, variables_of
from halfgraph.sparql.ordering import Link, Net, directed
from halfgraph.sparql.parse import Request
from halfgraph.sparql.scanner import Place
from halfgraph.sparql.syntax_tree import Iri, Literal, Span, Term, Triple, Variable
from halfgraph.sparql.unsupported import MOST_CHOICES, refused

_MOST_TYPES = 12  # listed where no name is similar


@dataclass(frozen=True)
class Names:
    """Looks up the names of a request in a graph."""

    graph: Graph
    request: Request

    def term(self, node: Term) -> int | str:
        """Return an entity, or the name of a variable."""
        if isinstance(node, Variable):
            return node.name
        if isinstance(node, Literal):
            raise self.literal(node)
        assert isinstance(node, Iri)
        return self.entity(node)

    def entity(self, node: Iri) -> int:
        entity = self.graph.find_entity(node.value)
        if entity is None:
            raise self.unknown(node, "entity", self.similar(self.graph.entities, node.value))
        return entity

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
        name, iri = self.shown(node), node.value
        return UnknownName(name, what=what, nearest=near, line=line, column=column, advice=advice, iri=iri)

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


@dataclass
class Patterns:
    """The patterns of one group by ids: links, types of variables, and queries that lead to a variable or must not."""

    links: dict[Link, None] = field(default_factory=dict)  # in their order, each once
    types: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[Query]] = field(default_factory=dict)


def _simplest(parts: Sequence[Query], type_id: int | None) -> Query:
    """Return the node of a variable in its simplest form."""
    match parts:
        case [Project() as only]:
            return Project(only.source, only.relation, type_id)
        case [Union(type_id=None) as only]:
            return Union(only.parts, type_id)
        case [Anchor() as only] if type_id is None:
            return only
    return Intersect(tuple(parts), type_id)


@dataclass(frozen=True)
class Translator(Names):
    """Translates the items of a request, whose names it looks up."""

    spans: Mapping[str, Span]  # where each variable first occurs

    def error(self, feature: str, name: str, **fields: object) -> SparqlError:
        """Return the error for a variable, with the place where it first occurs."""
        return refused(feature, self.place(name), name=display(name), **fields)

    def place(self, name: str) -> Place | None:
        return self.request.source.place(self.spans[name][0]) if name in self.spans else None

    def nodes(self, items: Items, target: str) -> dict[str, Query]:
        """Return the node of each variable, or of the target alone where alternatives have to be expanded.

        Alternatives that share one variable with the rest become a union that leads to this variable. Any others are
        expanded: the whole group once for each of them.
        """
        ways = [self._nodes(way, target) for way in self.ways(items, target)]
        return ways[0] if len(ways) == 1 else {target: Union(tuple(nodes[target] for nodes in ways))}

    def ways(self, items: Items, target: str) -> list[Items]:
        """Return the groups without wide alternatives whose answers together are those of the items."""
        wide = next((one for one in items if isinstance(one, OneOf) and self.joint(one, items, target) is None), None)
        if wide is None:
            return [items]
        rest = tuple(item for item in items if item is not wide)
        found: list[Items] = []
        for part in wide.groups:
            if target not in {**variables_of(rest), **variables_of(part)}:
                raise refused("UNION", self.place(target), name=target)
            found += self.ways((*rest, *scoped(part, self.request.source)), target)
            if len(found) > MOST_CHOICES:
                raise refused("choices", None)
        return found

    def joint(self, choice: OneOf, items: Items, target: str) -> str | None:
        """Return the one variable that alternatives share with the rest of their group, or None if several."""
        rest = {target: None, **variables_of(item for item in items if item is not choice)}
        shared = [name for name in variables_of([choice]) if name in rest]
        if not shared:
            raise self.error("unconnected", next(iter(variables_of([choice])), target), target=target)
        if len(shared) > 1:
            return None
        if any(shared[0] not in variables_of(part) for part in choice.groups):
            raise refused("UNION", self.place(shared[0]), name=shared[0])
        return shared[0]

    def _nodes(self, items: Items, target: str) -> dict[str, Query]:
        """Return the node of each variable, the target's last, where all alternatives share one with the rest."""
        patterns = Patterns()
        for test in (item for item in items if isinstance(item, Test)):
            names = ", ".join(f"?{name}" for name in sorted(test.variables)) or "no variable"
            raise refused("FILTER", self.request.source.place_of(test), names=names, target=target)
        for triple in (item for item in items if isinstance(item, Triple)):
            self.add(triple, patterns)
        for item in (item for item in items if not isinstance(item, Triple)):
            name, parts = self.parts(item, items, target)
            patterns.parts.setdefault(name, []).extend(parts)
        order = self.order(patterns, target)
        edges = directed(list(patterns.links), order)
        found: dict[str, Query] = {}
        for variable in order:
            sources = ((source, relation) for source, relation, end in edges if end == variable)
            projections = [Project(found[s] if isinstance(s, str) else Anchor(s), relation) for s, relation in sources]
            parts = patterns.parts.get(variable, [])
            once = list(dict.fromkeys(parts)) if len(parts) > 1 else parts  # hashing a query is slow
            node = _simplest([*projections, *once], patterns.types.get(variable))
            found[variable] = replace(node, name=variable, span=self.spans.get(variable))
        return found

    def order(self, patterns: Patterns, target: str) -> list[str]:
        """Return the order of the variables, or raise the error for one that no order has room for."""
        positive = {name for name, parts in patterns.parts.items() if any(not isinstance(one, Negate) for one in parts)}
        net = Net.of(list(patterns.links), target, {*patterns.types, *patterns.parts}, positive)
        for name in patterns.parts:
            if name not in net.anchored and not net.neighbours[name]:
                raise self.error("only negative", name)
        net.check(self.error)
        return net.order()

    def add(self, triple: Triple, patterns: Patterns) -> None:
        """Add a triple as a link or as the type of a variable."""
        subject, predicate, object_ = triple.subject, triple.predicate, triple.object
        source = self.request.source
        if isinstance(predicate, Variable):
            raise refused("variable relation", source.place_of(predicate), name=f"?{predicate.name}")
        assert isinstance(predicate, Iri)
        if isinstance(subject, Iri) and isinstance(object_, Iri):
            pattern = " ".join(map(self.shown, (subject, predicate, object_)))
            raise refused("no variable in a pattern", source.place_of(triple), pattern=pattern)
        if subject == object_:
            raise refused("loop", source.place_of(triple), name=self.shown(subject))
        if predicate.value != TYPE or self.is_type_relation(object_):
            link = self.term(subject), self.relation(predicate), self.term(object_)
            patterns.links[link] = None
        elif isinstance(object_, Variable):
            raise refused("variable class", source.place_of(object_), name=display(object_.name))
        else:
            self.add_type(subject, object_, patterns)  # type: ignore[arg-type]

    def add_type(self, subject: Variable, object_: Iri, patterns: Patterns) -> None:
        if not isinstance(object_, Iri) or not isinstance(subject, Variable):
            raise self.literal(object_)
        type_id, before = self.type_id(object_), patterns.types.get(subject.name)
        if before not in (None, type_id):
            first = self.short(self.graph.types.names[before or 0])
            fields = {"name": display(subject.name), "first": first, "second": self.shown(object_)}
            raise refused("two classes", self.request.source.place_of(object_), **fields)
        patterns.types[subject.name] = type_id

    def parts(self, item: Item, items: Items, target: str) -> tuple[str, list[Query]]:
        """Return a variable, and the parts that an item adds to it."""
        match item:
            case OneOf():
                name = self.joint(item, items, target)
                assert name is not None, "such alternatives were expanded before"
                return name, [Union(tuple(self.nodes(part, name)[name] for part in item.groups))]
            case Without():
                name = self.shared(item, items, target)
                return name, [Negate(self.nodes(item.group, name)[name])]
            case Among():
                if item.variable not in {**variables_of(items), target: None}:
                    raise refused("missing variable", self.request.source.place_of(item), name=item.variable)
                anchors: list[Query] = [Anchor(self.entity(iri)) for iri in item.iris]
                if item.negated:
                    return item.variable, [Negate(anchor) for anchor in anchors]
                return item.variable, anchors if len(anchors) == 1 else [Union(tuple(anchors))]
        raise AssertionError("triples and tests are handled before")

    def shared(self, item: Without, items: Items, target: str) -> str:
        """Return the one variable that a negation shares with what it removes from."""
        outside = {**variables_of(items), target: None} if item.within is None else variables_of(item.within)
        shared = [name for name in variables_of(item.group) if name in outside]
        if len(shared) == 1:
            return shared[0]
        names = ", ".join(map(display, shared)) or "no variable"
        raise refused("negation", self.request.source.place_of(item), word=item.keyword, shared=names)
