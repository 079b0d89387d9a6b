"""What the parser builds: for each rule of grammar.lark a function from the values of its parts to a syntax node."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.syntax_tree import RDF_NIL, Expression, Iri, Span, SyntaxNode
from halfgraph.sparql.triples import Linked, Part, blank_properties, collection, reified, reifier, triples

Action = Callable[[list[Any]], Any]


def action(build: Callable[..., Any]) -> Action:
    """Return lark's callback for a function of the span and the values of a rule's parts."""

    def run(children: list[Any]) -> Any:
        start, end = -1, 0
        values = []
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


def node(node_type: type[SyntaxNode]) -> Action:
    """Return a callback that makes a node of the parts in their order."""
    return action(lambda span, *parts: node_type(*parts, span=span))


def modifier(name: str) -> Action:
    """Return a callback that gives the parts a name among the modifiers."""
    return action(lambda span, *parts: (name, parts, span[0]))


# Requests


def query(span: Span, form: Any, values: tree.Values | None = None) -> Any:
    """Add the VALUES at the end of a query to its modifiers."""
    return replace(form, modifiers=replace(form.modifiers, values=values), span=span) if values else form


def form(span: Span, node_type: Callable[..., Any], first: tuple[Any, ...], parts: Sequence[Any], **more: Any) -> Any:
    """A form of its own parts, then FROM clauses, the pattern, modifiers and perhaps VALUES."""
    values = parts[-1] if isinstance(parts[-1], tree.Values) else None
    *clauses, modifiers = parts[:-1] if values else parts
    where = (clauses.pop(),) if clauses and isinstance(clauses[-1], tree.Group) else ()
    graphs = {f"{name}_graphs": tuple(iri for which, iri in clauses if which == name) for name in ("default", "named")}
    return query(span, node_type(*first, *where, modifiers=modifiers, **graphs, **more, span=span), values)


def select(span: Span, *parts: Any) -> tree.Select:
    """SELECT or a SELECT in braces."""
    duplicates = parts[0] if isinstance(parts[0], str) else ""
    projection, *rest = parts[bool(duplicates) :]
    return form(span, tree.Select, (projection,), rest, duplicates=duplicates)  # type: ignore[no-any-return]


def construct_where(span: Span, *parts: Any) -> tree.Construct:
    """CONSTRUCT WHERE."""
    *dataset, template, modifiers = parts
    return form(span, tree.Construct, (None,), [*dataset, tree.Group(template, span=span), modifiers])  # type: ignore[no-any-return]


def modifiers(span: Span, *parts: tuple[str, Any, int]) -> tree.Modifiers:
    """Modifiers, from names, parts and offsets."""
    found = {name: some for name, some, _ in parts}
    for name in ("limit", "offset"):
        if name in found:
            found[name] = int(found[name][0].value)
    keys = found.get("order_by", ())
    found["order_by"] = tuple((key, False) if isinstance(key, SyntaxNode) else key for key in keys)
    return tree.Modifiers(**found, clauses=tuple((name, start) for name, _, start in parts), span=span)


# Graph patterns


def group(span: Span, *parts: Any) -> tree.Group:
    """A group, the triples of its blocks among the other elements."""
    elements: Any = (element for part in parts for element in ((part,) if isinstance(part, SyntaxNode) else part))
    return tree.Group(tuple(elements), span=span)


def union(span: Span, *groups: Any) -> SyntaxNode:
    """UNION, or one group by itself."""
    return tree.UnionPattern(groups, span=span) if len(groups) > 1 else groups[0]


def row(_: Span, *cells: Any) -> Any:
    """Cells of VALUES, None for UNDEF."""
    return tuple(None if cell == "UNDEF" else cell for cell in cells)


def linked(_: Span, term: Any, *notes: Any) -> Linked:
    """An object with its triples and notes."""
    return Linked(*term[:2], notes) if isinstance(term, Linked) else Linked(term, (), notes)


# Expressions


def joined(operator: str) -> Action:
    """Return a callback that joins operands by || or &&."""
    return action(lambda span, first, *rest: tree.Operation(first, tuple((operator, one) for one in rest), span=span))


def arithmetic(span: Span, first: Expression, *rest: Any) -> tree.Operation:
    """Operands of + and -, or of * and /; a signed number is a summand of its own, as in `?x -1`."""
    terms, parts = list[tuple[str, Expression]](), iter(rest)
    for part in parts:
        terms.append((part, next(parts)) if isinstance(part, str) else part)
    return tree.Operation(first, tuple(terms), span=span)


def signed(span: Span, first: tree.Literal, *rest: Any) -> Any:
    """A summand that begins with its sign."""
    return "+", arithmetic(span, first, *rest) if rest else first


def call(span: Span, name: str | Iri, *parts: Any) -> tree.Call:
    """A function with its arguments, an aggregate, or a sign before an operand."""
    arguments = parts[0] if isinstance(parts[0], tuple) else parts
    distinct = arguments[:1] == ("DISTINCT",)
    separator = arguments[-1].value if "=" in arguments else None
    values = tuple(one for one in arguments[distinct : -2 if separator is not None else None] if one != "*")
    return tree.Call(name, values, distinct, separator, span=span)


def negation(span: Span, operand: Expression) -> Expression:
    """! before an operand; three of them are as good as one, so that they never nest deeply."""
    match operand:
        case tree.Call(function="!", arguments=(tree.Call(function="!") as inner,)):
            return inner
    return tree.Call("!", (operand,), span=span)


def bracketed(children: list[Any]) -> Part:
    """Return what is between brackets, with the span of the brackets."""
    opening, inner, closing = children
    return Part(inner if isinstance(inner, SyntaxNode) else inner.value, (opening.start, closing.end))


def clause(keyword: str) -> Action:
    """Return a callback for a keyword with a group."""
    return action(lambda span, part: tree.Clause(keyword, part, span=span))


_KEEP = action(lambda _, *parts: parts)
_NOTHING = action(lambda *_: None)
_SUBJECTS = action(lambda _, *parts: () if parts == ("*",) else parts)
_NODES = {
    "named": tree.Named, "graph": tree.GraphPattern, "filter": tree.Filter, "bind": tree.Bind, "contained": tree.In,
    "exists": tree.Exists, "triple_term": tree.TripleTerm,
}  # fmt: skip
_FUNCTIONS: list[Any] = [query, select, construct_where, modifiers, group, union, row, triples, signed, negation]
ACTIONS: dict[str, Action] = {
    **{function.__name__: action(function) for function in _FUNCTIONS},
    **{rule: node(node_type) for rule, node_type in _NODES.items()},
    **{name: modifier(name) for name in ("group_by", "having", "order_by", "limit", "offset")},
    **{keyword.lower(): clause(keyword) for keyword in ("OPTIONAL", "MINUS", "LATERAL")},
    **dict.fromkeys(["variables", "properties", "property", "expressions", "arguments"], _KEEP),
    **dict.fromkeys(["path_in_brackets", "bracketed"], bracketed),
    "values_clause": action(lambda _, values: values),
    **dict.fromkeys(["update", "operation", "quads", "quads_of_graph"], _NOTHING),
    **dict.fromkeys(["projection", "subjects"], _SUBJECTS),
    **dict.fromkeys(["call", "function_call", "aggregate", "signed_operand"], action(call)),
    **dict.fromkeys(["additive", "multiplicative", "comparison"], action(arithmetic)),
    "subselect": action(select),
    "group_of_subselect": action(lambda span, select: tree.Group((select,), span=span)),
    "blank_properties": blank_properties,
    "reified": reified,
    "reifier": reifier,
    "note": lambda children: Part((children[0].label, children[1].value), (children[0].start, children[-1].end)),
    "collection": collection,
    "template": action(lambda _, *blocks: tuple(triple for block in blocks for triple in block)),
    "dataset": action(lambda span, *parts: ("named" if len(parts) > 1 else "default", replace(parts[-1], span=span))),
    "ask": action(lambda span, *parts: form(span, tree.Ask, (), parts)),
    "construct": action(lambda span, template, *parts: form(span, tree.Construct, (template,), parts)),
    "describe": action(lambda span, subjects, *parts: form(span, tree.Describe, (subjects,), parts)),
    "inverse": action(lambda span, path: tree.PathStep("^", path, span=span)),
    "negated_inverse": action(lambda span, path: tree.PathStep("^", path, span=span)),
    "repeat": action(lambda span, path, operator: tree.PathStep(operator, path, span=span)),
    "path": action(lambda span, *parts: tree.PathList("|", parts, span=span)),
    "negated_set": action(lambda span, *parts: tree.PathList("!", parts, span=span)),
    "order": action(lambda _, direction, key: (key, direction == "DESC")),
    "service": action(lambda span, *parts: tree.Service(parts[-2], parts[-1], parts[0] == "SILENT", span=span)),
    "values": action(lambda span, variables, *rows: tree.Values(variables, rows, span=span)),
    "values_of_one": action(
        lambda span, variable, *cells: tree.Values((variable,), tuple(row(span, cell) for cell in cells), span=span)
    ),
    "object": action(linked),
    "nil": action(lambda span: Iri(RDF_NIL, span=span)),
    "sequence": action(lambda span, *parts: tree.PathList("/", parts[::2], span=span)),
    "expression": joined("||"),
    "conjunction": joined("&&"),
    "not_contained": action(lambda span, item, options: tree.In(item, options, negated=True, span=span)),
    "not_exists": action(lambda span, part: tree.Exists(part, negated=True, span=span)),
    "language_string": action(lambda span, string, tag: tree.Literal(string.value, None, tag[1:], span=span)),
    "typed_string": action(lambda span, string, datatype: tree.Literal(string.value, datatype.value, span=span)),
}
