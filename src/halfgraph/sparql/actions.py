"""What the parser builds: for each rule of grammar.lark a function from the values of its parts to a syntax node."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.syntax_tree import RDF_FIRST, RDF_NIL, RDF_REIFIES, RDF_REST, BlankNode, Iri, Span, SyntaxNode

Action = Callable[[list[Any]], Any]


class Part(NamedTuple):
    """What a rule yields that is no node of the tree, with its span."""

    value: Any
    span: Span


class Linked(NamedTuple):
    """A term of a triple, with the triples that its brackets stand for, and its reifiers and notes as an object."""

    term: tree.Term
    triples: tuple[tree.Triple, ...] = ()
    notes: tuple[Any, ...] = ()


def _action(build: Callable[..., Any], *, labelled: bool = False) -> Action:
    """Return lark's callback for a function of the span and the values of a rule's parts.

    If it is labelled, the first value is the label of the blank node that the first token stands for.
    """

    def run(children: list[Any]) -> Any:
        start, end = -1, 0
        values = [children[0].label] if labelled else []
        for child in children:
            first, last = child.span
            if last:
                start, end = first if start < 0 else start, last
            value = child if isinstance(child, SyntaxNode) else child.value
            if value is not None:
                values.append(value)
        span = (max(start, 0), end)
        built = build(span, *values)
        return built if isinstance(built, SyntaxNode) else Part(built, span)

    return run


def _node(node_type: type[SyntaxNode]) -> Action:
    return _action(lambda span, *parts: node_type(*parts, span=span))


def _modifier(name: str, value: Callable[[Any], Any] = lambda parts: parts) -> Action:
    return _action(lambda span, *parts: (name, value(parts), span[0]))


def _path(operator: str) -> Action:
    return _action(lambda span, *parts: tree.PathOperation(operator, parts, span=span))


def _form(node_type: Callable[..., Any]) -> Action:
    """Return a callback for a form of its own parts, FROM clauses, a pattern and modifiers."""

    def build(span: Span, *parts: Any) -> Any:
        *own, graphs, where, modifiers = parts
        return node_type(*own, where or None, graphs=graphs, modifiers=modifiers, span=span)

    return _action(build)


def _select(span: Span, duplicates: str, projection: Any, graphs: Any, where: Any, modifiers: Any) -> tree.Select:
    return tree.Select(projection, where, duplicates, graphs=graphs, modifiers=modifiers, span=span)


def _construct_where(span: Span, graphs: Any, template: Any, modifiers: Any) -> tree.Construct:
    return tree.Construct(None, tree.Group(template, span=span), graphs=graphs, modifiers=modifiers, span=span)


def _modifiers(span: Span, *clauses: tuple[str, Any, int]) -> tree.Modifiers:
    starts = tuple((name, start) for name, _, start in clauses)
    return tree.Modifiers(**{name: value for name, value, _ in clauses}, clauses=starts, span=span)


def _elements(parts: tuple[Any, ...]) -> Any:
    """Return the elements of a group, with the triples of its blocks among them."""
    return tuple(element for part in parts for element in ((part,) if isinstance(part, SyntaxNode) else part))


def _operation(span: Span, first: tree.Expression, *rest: Any) -> tree.Operation:
    """Join operands by operators; a signed number is a summand of its own, as in `?x -1`."""
    terms, parts = list[tuple[str, tree.Expression]](), iter(rest)
    for part in parts:
        terms.append((part, next(parts)) if isinstance(part, str) else part)
    return tree.Operation(first, tuple(terms), span=span)


def _call(span: Span, name: str | Iri, *parts: Any) -> tree.Call:
    """A function with its arguments, an aggregate, or a sign before an operand."""
    arguments = parts[0] if isinstance(parts[0], tuple) else parts
    distinct = arguments[:1] == ("DISTINCT",)
    separator = arguments[-1].value if "=" in arguments else None
    values = tuple(value for value in arguments[distinct : -2 if separator is not None else None] if value != "*")
    return tree.Call(name, values, distinct, separator, span=span)


def _negation(span: Span, operand: tree.Expression) -> tree.Expression:
    """! before an operand; three of them are as good as one, so that they never nest deeply."""
    match operand:
        case tree.Call(function="!", arguments=(tree.Call(function="!") as inner,)):
            return inner
    return tree.Call("!", (operand,), span=span)


def _bracketed(children: list[Any]) -> Part:
    """Return what is between brackets, with the span of the brackets."""
    opening, inner, closing = children
    return Part(inner if isinstance(inner, SyntaxNode) else inner.value, (opening.start, closing.end))


# Triples: property lists, brackets, lists and reifiers are written out.


def _linked(term: Any, *notes: Any) -> Linked:
    return Linked(*term[:2], notes) if isinstance(term, Linked) else Linked(term, (), notes)


def _subject_triples(_: Span, subject: Any, properties: Any = ()) -> Any:
    linked = _linked(subject)
    return (*linked.triples, *_triples(linked.term, properties))


def _triples(subject: tree.Term, properties: Any) -> Iterator[tree.Triple]:
    for verb, *objects in properties:
        for linked in objects:
            triple = tree.Triple(subject, verb, linked.term, span=(subject.span[0], linked.term.span[1]))
            yield triple
            yield from linked.triples
            yield from _notes(triple, linked.notes)


def _notes(triple: tree.Triple, notes: tuple[Any, ...]) -> Iterator[tree.Triple]:
    """Yield the triples of `~ reifier` and `{| ... |}` after an object; a note belongs to the reifier before it."""
    reifier: Any = None
    for note in notes:
        if reifier is None or isinstance(note, SyntaxNode):
            reifier = note if isinstance(note, SyntaxNode) else BlankNode(note[0], span=triple.span)
            yield _reifies(triple.span, reifier, triple.subject, triple.predicate, triple.object)
        if not isinstance(note, SyntaxNode):
            yield from _triples(reifier, note[1])
            reifier = None


def _reifies(span: Span, reifier: Any, *triple: Any) -> tree.Triple:
    return tree.Triple(reifier, Iri(RDF_REIFIES, span=span), tree.TripleTerm(*triple, span=span), span=span)


def _reified(span: Span, label: str, first: Any, verb: Any, last: Any, reifier: Any = None) -> Linked:
    """The reifier of `<< ... >>` and its triples."""
    subject, object_, reifier = _linked(first), _linked(last), reifier or BlankNode(label, span=span)
    triple = _reifies(span, reifier, subject.term, verb, object_.term)
    return Linked(reifier, (triple, *subject.triples, *object_.triples))


def _blank_properties(span: Span, label: str, properties: Any) -> Linked:
    blank = BlankNode(label, span=span)
    return Linked(blank, tuple(_triples(blank, properties)))


def _collection(span: Span, label: str, *items: Linked) -> Linked:
    """The first blank node of the list `( ... )` and its triples."""
    labels = [label, *(f"{label}.{number}" for number in range(1, len(items)))]
    nodes: list[tree.Term] = [*(BlankNode(label, span=span) for label in labels), Iri(RDF_NIL, span=span)]
    triples: list[tree.Triple] = []
    for node, following, item in zip(nodes, nodes[1:], items, strict=False):
        triples.append(tree.Triple(node, Iri(RDF_FIRST, span=span), item.term, span=item.term.span))
        triples += item.triples
        triples.append(tree.Triple(node, Iri(RDF_REST, span=span), following, span=item.term.span))
    return Linked(nodes[0], tuple(triples))


_KEEP = _action(lambda _, *parts: parts)
_UNLESS_STAR = _action(lambda _, *parts: () if parts == ("*",) else parts)
ACTIONS: dict[str, Action] = {
    "query": _action(lambda _, form: form),
    "select": _action(_select),
    "ask": _form(tree.Ask),
    "construct": _form(tree.Construct),
    "construct_where": _action(_construct_where),
    "describe": _form(tree.Describe),
    "optional_where": _action(lambda _, group=(): group),
    "duplicates": _action(lambda _, word="": word),
    "projection": _UNLESS_STAR,
    "subjects": _UNLESS_STAR,
    "dataset": _action(lambda span, *parts: (" ".join(["FROM", *parts[:-1]]), replace(parts[-1], span=span))),
    "modifiers": _action(_modifiers),
    **{name: _modifier(name) for name in ("group_by", "having", "order_by")},
    **{name: _modifier(name, lambda parts: int(parts[0].value)) for name in ("limit", "offset")},
    "values_clause": _modifier("values", lambda parts: parts[0]),
    "order": _action(lambda _, *parts: (parts[-1], parts[0] == "DESC")),
    "template": _action(lambda _, *blocks: _elements(blocks)),
    "group": _action(lambda span, *parts: tree.Group(_elements(parts), span=span)),
    "union": _action(lambda span, *groups: tree.UnionPattern(groups, span=span) if len(groups) > 1 else groups[0]),
    "clause": _action(lambda span, keyword, group: tree.Clause(keyword, group, span=span)),
    "named_clause": _action(
        lambda span, keyword, *parts: tree.Clause(keyword, parts[-1], parts[-2], "SILENT" in parts, span=span)
    ),
    "filter": _node(tree.Filter),
    "bind": _node(tree.Bind),
    "named": _node(tree.Named),
    "values": _action(lambda span, variables, *rows: tree.Values(variables, rows, span=span)),
    "row": _action(lambda _, *cells: tuple(None if cell == "UNDEF" else cell for cell in cells)),
    **dict.fromkeys(["datasets", "variables", "properties", "property", "expressions", "arguments"], _KEEP),
    "triples": _action(_subject_triples),
    "object": _action(lambda _, term, *notes: _linked(term, *notes)),
    "blank_properties": _action(_blank_properties, labelled=True),
    "collection": _action(_collection, labelled=True),
    "reified": _action(_reified, labelled=True),
    "reifier": _action(lambda span, label, name=None: name or BlankNode(label, span=span), labelled=True),
    "note": _action(lambda _, label, properties: (label, properties), labelled=True),
    "nil": _action(lambda span: Iri(RDF_NIL, span=span)),
    "triple_term": _node(tree.TripleTerm),
    "path": _path("|"),
    "sequence": _action(lambda span, *parts: tree.PathOperation("/", parts[::2], span=span)),
    "inverse": _path("^"),
    "repeat": _action(lambda span, path, operator: tree.PathOperation(operator, (path,), span=span)),
    "negated_set": _path("!"),
    "bracketed": _bracketed,
    "operation": _action(_operation),
    "signed": _action(lambda span, first, *rest: ("+", _operation(span, first, *rest) if rest else first)),
    "negation": _action(_negation),
    "contained": _action(lambda span, item, *rest: tree.Call(" ".join(rest[:-1]), (item, *rest[-1]), span=span)),
    "call": _action(_call),
    "exists": _action(lambda span, *parts: tree.Exists(parts[-1], len(parts) > 1, span=span)),
    "language_string": _action(lambda span, string, tag: tree.Literal(string.value, None, tag[1:], span=span)),
    "typed_string": _action(lambda span, string, datatype: tree.Literal(string.value, datatype.value, span=span)),
}
