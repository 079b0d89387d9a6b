"""Triples of the parser: property lists, brackets, lists and reifiers, written out as plain triples."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.syntax_tree import RDF_FIRST, RDF_NIL, RDF_REIFIES, RDF_REST, Span, Triple


class Part(NamedTuple):
    """What a rule yields that is no node of the tree, with its span."""

    value: Any
    span: Span


class Linked(NamedTuple):
    """A term of a triple, with the triples that its brackets stand for, and its reifiers and notes as an object."""

    term: tree.Term
    triples: tuple[Triple, ...] = ()
    notes: tuple[Any, ...] = ()


def triples(_: Span, subject: Any, properties: Any = ()) -> Any:
    """The triples of one subject."""
    linked = subject if isinstance(subject, Linked) else Linked(subject)
    return (*linked.triples, *_triples(linked.term, properties))


def _triples(subject: tree.Term, properties: Any) -> Iterator[Triple]:
    for verb, *objects in properties:
        for linked in objects:
            triple = Triple(subject, verb, linked.term, span=(subject.span[0], linked.term.span[1]))
            yield triple
            yield from linked.triples
            yield from _notes(triple, linked.notes)


def _reifies(reifier: Any, subject: Any, verb: Any, object_: Any, span: Span) -> Triple:
    return Triple(
        reifier, tree.Iri(RDF_REIFIES, span=span), tree.TripleTerm(subject, verb, object_, span=span), span=span
    )


def _notes(triple: Triple, notes: tuple[Any, ...]) -> Iterator[Triple]:
    """Yield the triples of `~ reifier` and `{| ... |}` after an object; a note belongs to the reifier before it."""
    reifier: Any = None
    for note in notes:
        if reifier is None or isinstance(note, tree.SyntaxNode):
            reifier = note if isinstance(note, tree.SyntaxNode) else tree.BlankNode(note[0], span=triple.span)
            yield _reifies(reifier, triple.subject, triple.predicate, triple.object, triple.span)
        if not isinstance(note, tree.SyntaxNode):
            yield from _triples(reifier, note[1])
            reifier = None


def reified(children: list[Any]) -> Part:
    """Return the reifier of `<< ... >>` and its triples."""
    opening, first, verb, last, *more, closing = children
    span = (opening.start, closing.end)
    subject, object_ = (one.value if isinstance(one, Part) else Linked(_value(one)) for one in (first, last))
    reifier = more[0] if more else tree.BlankNode(opening.label, span=span)
    triple = _reifies(reifier, subject.term, _value(verb), object_.term, span)
    return Part(Linked(reifier, (triple, *subject.triples, *object_.triples)), span)


def reifier(children: list[Any]) -> Any:
    """Return the name after ~, or a blank node."""
    return _value(children[-1]) if len(children) > 1 else tree.BlankNode(children[0].label, span=children[0].span)


def _value(child: Any) -> Any:
    return child if isinstance(child, tree.SyntaxNode) else child.value


def blank_properties(children: list[Any]) -> Part:
    """Return the blank node of `[ ... ]` and its triples."""
    opening, inner, closing = children
    span = (opening.start, closing.end)
    blank = tree.BlankNode(opening.label, span=span)
    return Part(Linked(blank, tuple(_triples(blank, inner.value))), span)


def collection(children: list[Any]) -> Part:
    """Return the first blank node of the list `( ... )` and its triples."""
    opening, *items, closing = children
    span = (opening.start, closing.end)
    labels = [opening.label, *(f"{opening.label}.{number}" for number in range(1, len(items)))]
    nodes: list[tree.Term] = [*(tree.BlankNode(label, span=span) for label in labels), tree.Iri(RDF_NIL, span=span)]
    found: list[Triple] = []
    for number, item in enumerate(items):
        found.append(Triple(nodes[number], tree.Iri(RDF_FIRST, span=span), item.value.term, span=item.span))
        found += item.value.triples
        found.append(Triple(nodes[number], tree.Iri(RDF_REST, span=span), nodes[number + 1], span=item.span))
    return Part(Linked(nodes[0], tuple(found)), span)
