"""SPARQL to a query: read(text, graph), and why not."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from halfgraph.graph.folder import Graph
from halfgraph.query.patterns import build
from halfgraph.query.prefixes import Prefixes
from halfgraph.query.tree import Query
from halfgraph.sparql.naming import name_patterns, refuse_literal
from halfgraph.sparql.orientation import orient
from halfgraph.sparql.parsing import Parsed, Variable, parse
from halfgraph.sparql.refusals import refuse_size, refuse_update, refuse_words, refused
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
    refuse_literal(graph, source)
    parsed = parse(source)
    target = _target(parsed, source)
    named = name_patterns(parsed.triples, graph, source)
    order, edges = orient(named, target, source)
    nodes = build(edges, named.kinds, order)
    return Reading(nodes[target], target, parsed.distinct, parsed.limit, parsed.offset, MappingProxyType(nodes))


def _target(parsed: Parsed, source: Source) -> str:
    """The one variable that is asked for."""
    terms = dict.fromkeys(term for triple in parsed.triples for term in triple if isinstance(term, Variable))
    names = [term.name for term in terms if term.name[0] not in "_[/"]
    selected = list(dict.fromkeys(names if parsed.selected is None else parsed.selected))
    tokens = [token for token in source.tokens[source.prologue_end :] if token.kind == "variable" or token.says("*")]
    if not selected:
        raise refused("no variable", source.place(tokens[0] if tokens else None))
    if len(selected) > 1:
        place = source.place(tokens[0 if parsed.selected is None else 1])
        raise refused("several variables", place, count=len(selected), names=", ".join(f"?{name}" for name in selected))
    if selected[0] not in names:
        raise refused("missing variable", source.place(tokens[0]), name=selected[0])
    return selected[0]
