"""The order of a query's variables, from the known entities to the target.

A pattern between two variables can be walked either way. The variables are put in an order that ends with the target
and in which every other variable has a neighbour before it (a known entity or a variable) and one after it; each
pattern is walked from the earlier to the later end. So the entities are the only sources, the target is the only sink
and there is no cycle, as the paper's Definition 1 requires. In a tree there is just one such order. Where there are
several, the first one by the names of the variables is taken (?a before ?b, ?v2 before ?v10), so that the order of the
patterns in the text does not matter; nameless variables come after named ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from halfgraph.errors import SparqlError
from halfgraph.query.patterns import by_name
from halfgraph.sparql.normalise import display

Link = tuple[int | str, int, int | str]  # a pattern: entity or variable, relation, entity or variable
Refuse = Callable[..., SparqlError]  # the error for a feature and the name of a variable


@dataclass(frozen=True)
class Net:
    """The variables of a query, which of them share a pattern, and which share one with a known entity."""

    neighbours: Mapping[str, frozenset[str]]
    anchored: frozenset[str]
    target: str

    @classmethod
    def of(cls, links: Sequence[Link], target: str, others: Iterable[str] = (), anchored: Iterable[str] = ()) -> "Net":
        """Return the net of some patterns, with other variables and those that are anchored in another way."""
        ends: dict[str, set[int | str]] = {name: set() for name in (*others, target)}
        for first, _, second in links:
            for name, end in ((first, second), (second, first)):
                if isinstance(name, str):
                    ends.setdefault(name, set()).add(end)
        neighbours = {name: frozenset(end for end in ends[name] if isinstance(end, str)) for name in ends}
        with_entity = {name for name in ends if ends[name] - neighbours[name]}
        return cls(neighbours, frozenset({*anchored, *with_entity}), target)

    @property
    def inner(self) -> list[str]:
        return sorted((name for name in self.neighbours if name != self.target), key=_rank)

    def reached(self, starts: Iterable[str], among: set[str]) -> set[str]:
        found: set[str] = set()
        todo = [name for name in starts if name in among]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo.extend((self.neighbours[name] & among) - found)
        return found

    def check(self, refuse: Refuse) -> None:
        """Raise the error for the first variable that is not on a way from an entity to the target.

        There is an order exactly if no variable is cut off by removing one other, or the target, or the entities: an
        st-ordering of a graph without cut vertices (Lempel, Even and Cederbaum, 1967).
        """
        inner, ends = set(self.inner), self.neighbours[self.target]
        if cut := inner - self.reached(ends, inner):
            raise refuse("unconnected", min(cut, key=_rank), target=self.target)
        if not self.anchored:
            raise refuse("untied", self.target, through="")
        for removed in (self.target, *self.inner):
            rest = inner - {removed}
            if cut := rest - self.reached(self.anchored if removed == self.target else self.anchored | ends, rest):
                raise refuse("untied", min(cut, key=_rank), through=f" other than through {display(removed)}")

    def order(self) -> list[str]:
        """Return the first order by name, the target last; there is one if `check` raises nothing."""
        order: list[str] = []
        later = self.inner
        while later:
            ready = (name for name in later if name in self.anchored or not self.neighbours[name].isdisjoint(order))
            order.append(next(name for name in ready if self._leaves_a_way(set(later) - {name})))
            later.remove(order[-1])
        return [*order, self.target]

    def _leaves_a_way(self, rest: set[str]) -> bool:
        """Whether the remaining variables can be ordered; as nothing was cut off before, they only need a way out."""
        return rest <= self.reached(self.neighbours[self.target], rest)


def _rank(name: str) -> tuple[bool, list[tuple[int, str]]]:
    return name[0] in "[/", by_name(name)


def directed(links: Sequence[Link], order: Sequence[str]) -> list[Link]:
    """Return each pattern from the entity or the earlier variable on; against the triples by the inverse relation."""
    index = {name: number for number, name in enumerate(order)}
    edges: list[Link] = []
    for first, relation, second in links:
        forwards = isinstance(second, str) and (isinstance(first, int) or index[first] < index[second])
        edges.append((first, relation, second) if forwards else (second, relation ^ 1, first))
    return edges
