"""The drawing of a row query: its terms as nodes and its links as edges towards the first selected variable."""

from collections.abc import Mapping, Sequence
from typing import Literal

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.explanation_schema import QueryEdge, QueryNode
from halfgraph.graph.vocabulary import local_name
from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Exclusion,
    LinkPattern,
    Path,
    PathChoice,
    PathRepeat,
    PathSequence,
    Relation,
    Term,
    TypePattern,
)

REPEATS = {(0, 1): "?", (0, None): "*", (1, None): "+"}


def draw(
    names: EntityNames, conjunction: Conjunction, selected: Sequence[str]
) -> tuple[list[QueryNode], list[QueryEdge]]:
    """Return the nodes and edges of a conjunction; edges lead towards the first selected variable that it has."""
    links = [(pattern, False) for pattern in conjunction if isinstance(pattern, LinkPattern)]
    for exclusion in (pattern for pattern in conjunction if isinstance(pattern, Exclusion)):
        inner = (pattern for part in exclusion.parts for pattern in part)
        links += [(pattern, True) for pattern in inner if isinstance(pattern, LinkPattern)]
    terms = list(dict.fromkeys(term for link, _ in links for term in (link.source, link.target)))
    if not terms:
        return [], []
    order = _order([link for link, _ in links], next((name for name in selected if name in terms), terms[0]))
    types = {pattern.term: pattern.iri for pattern in conjunction if isinstance(pattern, TypePattern) and pattern.iri}
    nodes = [_node(names, number, term, types) for term, number in order.items()]
    return nodes, [_edge(names, link, order, negated) for link, negated in links]


def _order(links: Sequence[LinkPattern], first: Term) -> dict[Term, int]:
    """Number the terms from the first one on, neighbours before others."""
    terms = list(dict.fromkeys([first, *(term for link in links for term in (link.source, link.target))]))
    order: dict[Term, int] = {}
    queue: list[Term] = []
    while len(order) < len(terms):
        queue = queue or [next(term for term in terms if term not in order)]
        term = queue.pop(0)
        if term not in order:
            order[term] = len(order)
            queue += [link.target for link in links if link.source == term]
            queue += [link.source for link in links if link.target == term]
    return order


def _node(names: EntityNames, number: int, term: Term, types: Mapping[Term, str]) -> QueryNode:
    if isinstance(term, int):
        iri, label, type_name = names.described(term)
        return QueryNode(number, "anchor", label, iri, type_name)
    role: Literal["target", "variable"] = "variable" if number else "target"
    return QueryNode(number, role, f"?{term}", None, local_name(types[term]) if term in types else None)


def _edge(names: EntityNames, link: LinkPattern, order: Mapping[Term, int], negated: bool) -> QueryEdge:
    """An edge from the later to the earlier term."""
    source, target = order[link.source], order[link.target]
    inverse, relation = source < target, ""
    if isinstance(link.path, Relation):
        relation, inverse = names.relation(link.path.id).entity, inverse ^ bool(link.path.id & 1)
    label = path_label(names, link.path)
    return QueryEdge(max(source, target), min(source, target), relation, label, inverse, negated=negated)


def path_label(names: EntityNames, path: Path) -> str:
    """Return a path by the labels of its relations."""
    match path:
        case Relation(number):
            return names.relation(number).label
        case AnyRelation(variable, excluded):
            others = ", ".join(names.relation(number).label for number in sorted(excluded))
            return f"?{variable}" if variable else f"any but {others}" if others else "any relation"
        case PathSequence(parts):
            return " / ".join(path_label(names, part) for part in parts)
        case PathChoice(parts):
            return " | ".join(path_label(names, part) for part in parts)
        case PathRepeat(inner, least, most):
            return f"({path_label(names, inner)}){REPEATS[least, most]}"
