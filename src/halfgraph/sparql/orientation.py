"""Which way each pattern is walked: from the known entities to the target, in an order of the variables.

A pattern between two variables can be walked either way. The variables are put in an order that ends with the target
and in which every other variable has a neighbour before it (a known entity or a variable) and one after it; each
pattern is walked from the earlier to the later end. So the entities are the only sources, the target is the only sink
and nothing goes round in a circle, as the paper's Definition 1 asks. In a tree there is just one way. Where there
are several orders, the first one by the names of the variables is taken (?a before ?b, ?v2 before ?v10), so that the
order of the patterns in the text does not matter; nameless variables come after named ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from halfgraph.query.patterns import Edge, Term, by_name
from halfgraph.query.tree import Anchor, Negate
from halfgraph.sparql.naming import Named, place_of
from halfgraph.sparql.parsing import Variable
from halfgraph.sparql.refusals import refused
from halfgraph.sparql.tokens import Source

Link = tuple[Term, int, Term]


@dataclass(frozen=True)
class Net:
    """The variables of a query, which of them share a pattern, and which share one with a known entity."""

    neighbours: Mapping[str, frozenset[str]]
    tied: frozenset[str]
    target: str

    @classmethod
    def of(cls, named: Named, target: str) -> "Net":
        """The net of some patterns."""
        ways = [way for first, _, second in named.links for way in ((first, second), (second, first))]
        names = {one for one, _ in ways if isinstance(one, str)} | {*named.types, *named.parts, target}
        between = [(one, other) for one, other in ways if isinstance(one, str) and isinstance(other, str)]
        neighbours = {name: frozenset(other for one, other in between if one == name) for name in names}
        tied = {one for one, other in ways if isinstance(one, str) and isinstance(other, Anchor)}
        led_to = {name for name, parts in named.parts.items() if any(not isinstance(part, Negate) for part in parts)}
        return cls(neighbours, frozenset(tied | led_to), target)

    @property
    def inner(self) -> list[str]:
        """The variables but the target, in the order of their names."""
        return sorted((name for name in self.neighbours if name != self.target), key=_rank)

    def reached(self, starts: Iterable[str], among: set[str]) -> set[str]:
        """The variables of a set that can be come to from some of them."""
        found: set[str] = set()
        todo = [name for name in starts if name in among]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo.extend((self.neighbours[name] & among) - found)
        return found

    def hanging(self) -> tuple[str, str] | None:
        """A variable that no order has room for, and the one that it hangs on.

        There is an order just if no variable is cut off by taking out one other, or the target, or the entities: an
        st-ordering of a graph without cut vertices (Lempel, Even and Cederbaum, 1967).
        """
        inner = set(self.inner)
        if away := inner - self.reached(self.tied, inner):
            return min(away, key=_rank), self.target
        for name in self.inner:
            rest = inner - {name}
            if away := rest - self.reached(self.tied | self.neighbours[self.target], rest):
                return min(away, key=_rank), name
        return None


def _rank(name: str) -> tuple[bool, list[tuple[int, str]]]:
    return name[0] in "[/", by_name(name)


def orient(named: Named, target: str, source: Source) -> tuple[list[str], list[Edge]]:
    """The variables in order, the target last, and the edges from earlier to later; or an error without an order."""
    net = Net.of(named, target)
    for name, parts in named.parts.items():
        if all(isinstance(part, Negate) for part in parts) and name not in net.tied and not net.neighbours[name]:
            raise refused("only negative", place_of(source, Variable(name)), name=Variable(name).shown())
    refuse_unorderable(net, source)
    order = [*find_order(net), target]
    place = {name: number for number, name in enumerate(order)}
    return order, [_edge(link, place) for link in named.links]


def refuse_unorderable(net: Net, source: Source) -> None:
    """Nothing, or an error for the first variable that cannot be on a way from an entity to the target."""
    inner = set(net.inner)
    if away := inner - net.reached(net.neighbours[net.target], inner):
        first = Variable(min(away, key=_rank))
        raise refused("unconnected", place_of(source, first), name=first.shown(), target=net.target)
    if not net.tied:
        first = Variable(net.target)
        raise refused("untied", place_of(source, first), name=first.shown(), through="")
    if found := net.hanging():
        first, through = Variable(found[0]), Variable(found[1])
        said = f" other than through {through.shown()}"
        raise refused("untied", place_of(source, first), name=first.shown(), through=said)


def find_order(net: Net) -> list[str]:
    """The first order by name, without the target; there is one."""
    order: list[str] = []
    later = net.inner
    while later:
        ready = (name for name in later if name in net.tied or not net.neighbours[name].isdisjoint(order))
        order.append(next(name for name in ready if _leaves_a_way(net, set(later) - {name})))
        later.remove(order[-1])
    return order


def _leaves_a_way(net: Net, rest: set[str]) -> bool:
    """Whether the variables that are left can be ordered; as nothing was cut off before, they need only a way out."""
    return rest <= net.reached(net.neighbours[net.target], rest)


def _edge(link: Link, place: Mapping[str, int]) -> Edge:
    """A pattern, walked from the entity or the earlier variable; against the triples it has the inverse relation."""
    first, relation, second = link
    if isinstance(second, str) and (isinstance(first, Anchor) or place[first] < place[second]):
        return Edge(first, relation, second)
    assert isinstance(first, str)
    return Edge(second, relation ^ 1, first)
