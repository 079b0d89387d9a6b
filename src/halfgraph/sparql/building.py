"""Groups of patterns to the query that they ask: choices become unions, what is taken away negations."""

from collections.abc import Iterable
from dataclasses import dataclass

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.query.patterns import build
from halfgraph.query.tree import Anchor, Negate, Query, Union
from halfgraph.sparql.groups import Among, Test
from halfgraph.sparql.naming import Named, Naming, name_patterns, place_of
from halfgraph.sparql.orientation import orient
from halfgraph.sparql.parsing import Group, Iri, Item, OneOf, Variable, Without, scoped, variables_of
from halfgraph.sparql.refusals import MOST_CHOICES, refused
from halfgraph.sparql.tokens import Source


@dataclass(frozen=True)
class Building:
    """What makes queries of the groups of a text."""

    graph: Graph
    source: Source

    def nodes(self, group: Group, target: str) -> dict[str, Query]:
        """The node of each variable of a group, the target's among them; one part at a time where it has to be.

        A choice that shares one variable with the rest stands where it is, as a union that leads to this variable.
        Any other is drawn to the front: the whole group once for each of its parts.
        """
        ways = [self._nodes(way, target) for way in self.ways(group, target)]
        if len(ways) == 1:
            return ways[0]
        return {target: Union(tuple(nodes[target] for nodes in ways))}

    def ways(self, group: Group, target: str) -> list[Group]:
        """The groups without choices between several variables that have the answers of a group together."""
        wide = next(
            (item for item in group if isinstance(item, OneOf) and self.joint(item, group, target) is None), None
        )
        if wide is None:
            return [group]
        rest = tuple(item for item in group if item is not wide)
        found: list[Group] = []
        for part in wide.groups:
            if target not in {**variables_of(rest), **variables_of(part)}:
                raise refused("UNION", place_of(self.source, Variable(target)), name=target)
            found += self.ways((*rest, *scoped(part, self.source)), target)
            if len(found) > MOST_CHOICES:
                raise refused("choices", None)
        return found

    def joint(self, choice: OneOf, group: Group, target: str) -> str | None:
        """The one variable that a choice shares with the rest of its group, or None if there are several."""
        rest = {target: None, **variables_of(tuple(item for item in group if item is not choice))}
        shared = [name for name in variables_of((choice,)) if name in rest]
        if not shared:
            first = Variable(next(iter(variables_of((choice,))), target))
            raise refused("unconnected", place_of(self.source, first), name=first.shown(), target=target)
        if len(shared) > 1:
            return None
        if any(shared[0] not in variables_of(part) for part in choice.groups):
            raise refused("UNION", place_of(self.source, Variable(shared[0])), name=shared[0])
        return shared[0]

    def _nodes(self, group: Group, target: str) -> dict[str, Query]:
        """The node of each variable of a group whose choices share one variable with the rest each."""
        for test in (item for item in group if isinstance(item, Test)):
            raise self.untestable(test, target)
        triples = [item for item in group if isinstance(item, tuple)]
        named = name_patterns(triples, self.graph, self.source)
        for item in group:
            if not isinstance(item, tuple):
                name, parts = self.parts(item, group, target)
                named.parts.setdefault(name, []).extend(parts)
        named.parts = {name: _once(parts) for name, parts in named.parts.items()}
        order, edges = orient(named, target, self.source)
        return build(edges, named.types, order, named.parts)

    def parts(self, item: Item, group: Group, target: str) -> tuple[str, list[Query]]:
        """A variable of a group, and the parts that an item adds to it."""
        match item:
            case OneOf():
                name = self.joint(item, group, target)
                assert name is not None, "such choices are drawn to the front"
                return name, [Union(tuple(self.nodes(part, name)[name] for part in item.groups))]
            case Without():
                name = self.shared(item, group, target)
                return name, [Negate(self.nodes(item.group, name)[name])]
            case Among():
                self.refuse_elsewhere({item.variable}, item, group, target)
                anchors = [self.anchor(iri) for iri in item.iris]
                if item.negated:
                    return item.variable, [Negate(anchor) for anchor in anchors]
                return item.variable, anchors if len(anchors) == 1 else [Union(tuple(anchors))]
        raise AssertionError("triples are named, and tests refused, before")

    def untestable(self, test: Test, target: str) -> SparqlError:
        """The error for a test of what is not asked for."""
        names = ", ".join(f"?{name}" for name in sorted(test.variables)) or "nothing"
        return refused("FILTER", self.source.place(test.token), names=names, target=target)

    def anchor(self, iri: str) -> Query:
        """An entity."""
        term = Naming(self.graph, self.source, Named()).term(Iri(iri))
        assert isinstance(term, Anchor)
        return term

    def shared(self, item: Without, group: Group, target: str) -> str:
        """The one variable that a negation shares with what it takes away from."""
        outside = {**variables_of(group), target: None} if item.within is None else variables_of(item.within)
        shared = [name for name in variables_of(item.group) if name in outside]
        if len(shared) == 1:
            return shared[0]
        told = ", ".join(Variable(name).shown() for name in shared) or "no variable"
        word = "MINUS" if item.token.says("MINUS") else "NOT EXISTS"
        raise refused("negation", self.source.place(item.token), word=word, shared=told)

    def refuse_elsewhere(self, names: Iterable[str], item: Among, group: Group, target: str) -> None:
        """Nothing, or an error for a test of what its group says nothing of."""
        lost = [name for name in names if name not in {**variables_of(group), target: None}]
        if lost:
            raise refused("missing variable", self.source.place(item.token), name=lost[0])


def _once(parts: list[Query]) -> list[Query]:
    """The parts without those that are there already."""
    return list(dict.fromkeys(parts))
