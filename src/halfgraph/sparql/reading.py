"""SPARQL to a query: read(text, graph), and why not."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.query.tree import Query
from halfgraph.sparql.building import Building
from halfgraph.sparql.groups import Among, Test
from halfgraph.sparql.parsing import Group, Parsed, Without, parse, variables_of
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.refusals import refuse_size, refuse_update, refuse_words, refused
from halfgraph.sparql.restricting import spelled, split_tests
from halfgraph.sparql.syntax import check
from halfgraph.sparql.tokens import Source


@dataclass(frozen=True)
class Reading:
    """What a SPARQL text asks."""

    query: Query
    target: str  # the name of the variable that is asked for
    distinct: bool
    limit: int | None
    offset: int
    variables: Mapping[str, Query]  # the node of each variable; blank nodes are _:b, [1], middles of paths /1.1
    witnesses: Mapping[str, Query]  # the nodes of the other variables that are asked for
    restriction: str = ""  # patterns on ?target that only the store can test; see restricting.allowed


_SEEN: "OrderedDict[tuple[object, ...], Reading]" = OrderedDict()
_MOST_SEEN = 256


def read(text: str, graph: Graph) -> Reading:
    """What a text asks of a graph; one that was read before is remembered."""
    # The same triples can go by other IRIs and prefixes, which the fingerprint does not tell.
    known = graph.description
    key = (text, known["fingerprint"], known["base"], tuple(known["prefixes"].items()))
    reading = _SEEN.get(key)
    if reading is None:
        reading = _SEEN[key] = read_anew(text, graph)
        while len(_SEEN) > _MOST_SEEN:
            _SEEN.popitem(last=False)
    return reading


def read_anew(text: str, graph: Graph) -> Reading:
    """What a text asks of a graph: checked, parsed, named, and walked from the entities to the target."""
    source = Source(text, Prefixes.of(graph))
    refuse_size(source)
    refuse_update(source)
    check(source)
    refuse_words(source)
    parsed = parse(source)
    selected = _selected(parsed, source)
    nodes, target, restriction = _nodes(parsed, selected, graph, source)
    witnesses = {name: nodes[name] for name in selected if name != target}
    return Reading(
        nodes[target],
        target,
        parsed.distinct,
        parsed.limit,
        parsed.offset,
        MappingProxyType(nodes),
        MappingProxyType(witnesses),
        restriction,
    )


def _nodes(parsed: Parsed, selected: list[str], graph: Graph, source: Source) -> tuple[dict[str, Query], str, str]:
    """The node of each variable, the variable that is the target, and what the store must test of it.

    Of several variables that are asked for the first is taken that all others can lead to.
    """
    first: SparqlError | None = None
    for target in selected:
        try:
            group, tests = split_tests(parsed.group, target, graph, source)
            nodes = Building(graph, source).nodes(group, target)
            if set(selected) <= set(nodes):
                return nodes, target, spelled(tests)
        except SparqlError as error:
            if len(selected) == 1:
                raise
            first = first or error
    tokens = [token for token in source.tokens[source.prologue_end :] if token.type_id == "variable" or token.says("*")]
    place = source.place(tokens[0 if parsed.selected is None else 1])
    names = ", ".join(f"?{name}" for name in selected)
    raise refused("several variables", place, count=len(selected), names=names) from first


def _selected(parsed: Parsed, source: Source) -> list[str]:
    """The variables that are asked for."""
    names = [name for name in variables_of(parsed.group) if name[0] not in "_[/"]
    tested = {name for item in parsed.group if isinstance(item, Test) for name in item.variables}
    selected = (
        list(dict.fromkeys([name for name in names if name not in tested] or names))
        if parsed.selected is None
        else list(dict.fromkeys(parsed.selected))
    )
    tokens = [token for token in source.tokens[source.prologue_end :] if token.type_id == "variable" or token.says("*")]
    if not selected:
        raise refused("no variable", source.place(tokens[0] if tokens else None))
    for name in selected:
        if name not in names and not _is_negated(name, parsed.group):
            raise refused("missing variable", source.place(tokens[0]), name=name)
    return selected


def _is_negated(name: str, group: Group) -> bool:
    """Whether a variable stands in what is taken away, so that it is known what is meant, if not how to find it."""
    return any(
        (isinstance(item, Without) and name in variables_of(item.group))
        or (isinstance(item, Among) and item.variable == name)
        for item in group
    )
