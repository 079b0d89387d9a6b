"""Read a SPARQL text: parsed, checked, and translated to the query that it asks of a graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.query.tree import Query
from halfgraph.sparql.filters import as_group, conditions, split_tests
from halfgraph.sparql.label_service import with_labels
from halfgraph.sparql.normalise import Among, Items, Test, Without, is_internal, normalise, variables_of
from halfgraph.sparql.parse import Request, parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import (
    RDF_TYPE,
    Clause,
    Exists,
    Filter,
    Group,
    Iri,
    Select,
    SyntaxNode,
    Triple,
    UnionPattern,
    Values,
    Variable,
    walk,
)
from halfgraph.sparql.translate import Translator
from halfgraph.sparql.unsupported import refuse_forbidden, refuse_unsupported, refused
from halfgraph.sparql.writer import write

_IS_A = Iri(RDF_TYPE)


@dataclass(frozen=True)
class Reading:
    """What a SPARQL text asks of a graph."""

    query: Query
    target: str  # the variable that is predicted
    limit: int | None
    offset: int
    variables: Mapping[str, Query]  # the node of each variable; blank nodes are _:b or [1], middles of paths /0.1
    tests: Group = field(default_factory=lambda: Group(()))  # patterns on the target that only the store can test
    conditions: Group = field(default_factory=lambda: Group(()))  # all that the store can decide about the target
    is_single: bool = True  # whether no other variable is selected


def request_of(text: str, graph: Graph) -> Request:
    """Return the parsed text, which may be asked of the store: it is no update and calls no other server."""
    prefixes = Prefixes.of(graph)
    return _request(text, tuple(prefixes.namespaces.items()), prefixes.base)


@lru_cache(maxsize=256)
def _request(text: str, namespaces: tuple[tuple[str, str], ...], base: str) -> Request:
    parsed = parse(text, Prefixes(dict(namespaces), base))
    request = replace(parsed, tree=with_labels(parsed.tree))
    refuse_forbidden(request.tree, request.source)
    return request


def read(text: str, graph: Graph) -> Reading:
    """Return what a text asks of a graph."""
    return translate(request_of(text, graph), graph)


def translate(request: Request, graph: Graph) -> Reading:
    """Return what a request asks of a graph.

    The target is the first of the selected variables that all others can lead to.
    """
    refuse_unsupported(request.tree, request.source)
    select = request.tree
    assert isinstance(select, Select), "other forms are refused"
    items, spans = normalise(select, request.source)
    selected = _selected(select, items, request)
    translator = Translator(graph, request, spans)
    first: SparqlError | None = None
    for target in selected:
        try:
            patterns, tests = split_tests(items, target, graph)
            nodes = translator.nodes(patterns, target)
            if set(selected) <= set(nodes):
                reading = _reading(select, nodes, target, tests, conditions(patterns, tests, target))
                return replace(reading, is_single=len(selected) == 1)
        except SparqlError as error:
            if len(selected) == 1:
                raise
            first = first or error
    names = ", ".join(f"?{name}" for name in selected)
    place = request.source.place_of(select.projection[1] if select.projection else select)
    raise refused("several variables", place, count=len(selected), names=names) from first


def undrawn(request: Request, reading: Reading) -> list[str]:
    """Return the conditions that a drawing leaves out: FILTER and VALUES as the text writes them, literals, types."""
    places = [node for node in walk(request.tree) if isinstance(node, UnionPattern | Clause | Exists)]
    types = [node for place in places for node in walk(place) if isinstance(node, Triple) and node.predicate == _IS_A]
    others = [node for node in reading.tests.elements if not _is_filter(node)]
    filters = sorted(filter(_is_filter, walk(request.tree)), key=lambda node: node.span)
    texts = map(request.source.text_of, filters)
    lines = [" ".join(map(str.strip, text.splitlines())) for text in texts]
    return list(dict.fromkeys([*(write(node, request.prefixes.short) for node in (*others, *types)), *lines]))


def _is_filter(node: SyntaxNode) -> bool:
    return isinstance(node, Values) or (isinstance(node, Filter) and not isinstance(node.constraint, Exists))


def _reading(select: Select, nodes: dict[str, Query], target: str, tests: Items, decided: Items) -> Reading:
    return Reading(
        nodes[target],
        target,
        select.modifiers.limit,
        select.modifiers.offset or 0,
        MappingProxyType(nodes),
        as_group(tests),
        as_group(decided),
    )


def _selected(select: Select, items: Items, request: Request) -> list[str]:
    names = [name for name in variables_of(items) if not is_internal(name)]
    tested = {name for item in items if isinstance(item, Test) for name in item.variables}
    chosen = [one.name for one in select.projection if isinstance(one, Variable)]
    selected = list(dict.fromkeys(chosen or [name for name in names if name not in tested] or names))
    if not selected:
        raise refused("no variable", request.source.place_of(select))
    for one in select.projection:
        if isinstance(one, Variable) and one.name not in names and not _is_negated(one.name, items):
            raise refused("missing variable", request.source.place_of(one), name=one.name)
    return selected


def _is_negated(name: str, items: Items) -> bool:
    """Whether a variable is only excluded, so that a clearer error comes later."""
    return any(
        (isinstance(item, Without) and name in variables_of(item.group))
        or (isinstance(item, Among) and item.variable == name)
        for item in items
    )
