"""What only the store can tell of an answer: tests of literals, exact for known and predicted answers alike."""

import re

from halfgraph.graph.folder import Graph
from halfgraph.sparql.groups import Among, Test
from halfgraph.sparql.naming import Named, Naming
from halfgraph.sparql.parsing import Group, Iri, Item, OneOf, Said, Triple, Value, Variable, Without, variables_of
from halfgraph.sparql.tokens import Source


def split_tests(group: Group, target: str, graph: Graph, source: Source) -> tuple[Group, Group]:
    """The patterns to make a query of, and those that test the target by what only the store knows.

    Those are FILTERs of the target and of its values, patterns with a literal, and a negation without an entity.
    """
    naming = Naming(graph, source, Named())
    values = _values(group, target, naming)
    aside = [
        item
        for item in group
        if (isinstance(item, tuple) and _is_value(item, values, naming, target))
        or (isinstance(item, Test) and item.variables <= {target, *values})
        or (isinstance(item, Without) and _is_told_by_the_store(item, target))
    ]
    return tuple(item for item in group if item not in aside), tuple(aside)


def _values(group: Group, target: str, naming: Naming) -> set[str]:
    """The variables of the target's literals: tested, and only at the end of what is no relation between entities."""
    tested = {name for item in group if isinstance(item, Test) for name in item.variables}
    triples = [item for item in group if isinstance(item, tuple)]
    entities = {
        term.name
        for subject, predicate, object_ in triples
        for term in (subject, object_)
        if isinstance(term, Variable)
        and not (term is object_ and subject == Variable(target) and _is_literal_relation(predicate, naming))
    }
    return tested - entities


def _is_literal_relation(predicate: Said, naming: Naming) -> bool:
    """Whether something is no relation between entities of the graph."""
    return isinstance(predicate, Iri) and naming.relation_or_none(predicate.iri) is None


def _is_value(triple: Triple, values: set[str], naming: Naming, target: str) -> bool:
    """Whether a triple says a value of the target."""
    subject, predicate, object_ = triple
    if subject != Variable(target) or not _is_literal_relation(predicate, naming):
        return False
    return isinstance(object_, Value) or (isinstance(object_, Variable) and object_.name in values)


def _is_told_by_the_store(item: Without, target: str) -> bool:
    """Whether what is taken away from the target ties it to no entity, so that no path leads to it."""
    outside = item.within is None or target in variables_of(item.within)
    triples = [one for one in item.group if isinstance(one, tuple)]
    if not outside or target not in variables_of(item.group) or len(triples) < len(item.group):
        return False
    return not any(isinstance(term, Iri) for subject, _, object_ in triples for term in (subject, object_))


def spelled(group: Group) -> str:
    """Patterns as SPARQL, names in full."""
    return " ".join(map(_spelled, group))


def _spelled(item: Item) -> str:
    match item:
        case OneOf():
            return " UNION ".join(f"{{ {spelled(some)} }}" for some in item.groups)
        case Without():
            return f"FILTER NOT EXISTS {{ {spelled(item.group)} }}"
        case Among():
            listed = ", ".join(f"<{iri}>" for iri in item.iris)
            return f"FILTER (?{item.variable} {'NOT ' * item.negated}IN ({listed}))"
        case Test():
            return f"FILTER ({item.text})"
    return f"{' '.join(map(_term, item))} ."


def _term(node: Said) -> str:
    if isinstance(node, Iri):
        return f"<{node.iri}>"
    return node.text if isinstance(node, Value) else "?" + re.sub(r"\W", "_", node.name)
