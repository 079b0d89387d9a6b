"""Normalise a WHERE clause: paths become triples, blank nodes variables, filters single conditions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.scanner import SourceText
from halfgraph.sparql.syntax_tree import XSD, BlankNode, Iri, Literal, Triple, Variable, walk
from halfgraph.sparql.unsupported import CASTS, MOST_PATTERNS, refused

_INTEGERS = """
long int short byte unsignedLong unsignedInt unsignedShort unsignedByte nonNegativeInteger positiveInteger
negativeInteger nonPositiveInteger
"""
COMPARABLE = CASTS | {XSD + name for name in ("anyURI", *_INTEGERS.split())}


class OneOf(tree.SyntaxNode):
    """Alternatives of which one must match: a UNION, or | in a path."""

    groups: tuple["Items", ...]


class Without(tree.SyntaxNode):
    """Items that must not match; `within`: what MINUS removes from, None for the whole group (NOT EXISTS)."""

    group: "Items"
    keyword: str
    within: "Items | None" = None


class Among(tree.SyntaxNode):
    """That a variable is one of some IRIs, or none of them."""

    variable: str
    iris: tuple[Iri, ...]
    negated: bool = False


class Test(tree.SyntaxNode):
    """A condition that only the store can evaluate."""

    expression: tree.Expression
    variables: frozenset[str]


Item = Triple | OneOf | Without | Among | Test  # triples with one relation each, and without blank nodes
Items = tuple[Item, ...]


def is_internal(name: str) -> bool:
    """Whether a variable is not one of the text: a blank node _:b or [1], or the middle of a path /0.1."""
    return name[0] in "[/" or name.startswith("_:")


def display(name: str) -> str:
    """Return a variable as a message mentions it."""
    if name[0] == "[":
        return "a blank node [ ]"
    if name[0] == "/":
        return "the middle of a path"
    return name if name.startswith("_:") else f"?{name}"


def variables_of(items: Iterable[Item]) -> dict[str, None]:
    """Return the variables that items bind, in the order of the text."""
    found: dict[str, None] = {}
    for item in items:
        match item:
            case Triple():
                terms = (item.subject, item.predicate, item.object)
                found |= {term.name: None for term in terms if isinstance(term, Variable)}
            case OneOf():
                found |= {name: None for group in item.groups for name in variables_of(group)}
            case Among(negated=False):
                found[item.variable] = None
    return found


def scoped(group: Items, source: SourceText) -> Items:
    """Return the items of a group to be joined with others: its tests and negations see this group alone."""
    names = variables_of(group)
    for item in group:
        tested = {item.variable} if isinstance(item, Among) else item.variables if isinstance(item, Test) else set()
        if missing := sorted(name for name in tested if name not in names):
            raise refused("missing variable", source.place_of(item), name=missing[0])
    return tuple(
        replace(item, within=group) if isinstance(item, Without) and item.within is None else item for item in group
    )


def normalise(select: tree.Select, source: SourceText) -> tuple[Items, dict[str, tree.Span]]:
    """Return the items of a query's pattern and of the VALUES after it, and where each variable first occurs."""
    normaliser = _Normaliser(source)
    values = select.modifiers.values
    items = normaliser.group(replace(select.where, elements=(*select.where.elements, *([values] if values else ()))))
    if normaliser.count > MOST_PATTERNS:
        raise refused("size", None)
    return items, normaliser.spans


@dataclass
class _Normaliser:
    source: SourceText
    count: int = 0  # triples so far
    scopes: int = 0
    blank: dict[str, str] = field(default_factory=dict)
    paths: dict[tuple[object, ...], int] = field(default_factory=dict)
    spans: dict[str, tree.Span] = field(default_factory=dict)

    def group(self, group: tree.Group) -> Items:
        """Return the items of a group, each once; in another group the same path has variables of its own."""
        self.scopes += 1
        items: list[Item] = []
        self.add(items, self.scopes, group)
        return tuple(dict.fromkeys(items))

    def add(self, items: list[Item], scope: int, group: tree.Group) -> None:
        for element in _flattened(group):
            match element:
                case Triple():
                    start, end = self.term(element.subject), self.term(element.object)
                    number = self.paths.setdefault((scope, start, element.predicate, end), len(self.paths))
                    items += self.path(start, element.predicate, end, f"/{number}", element)
                case tree.Group():
                    items += scoped(self.group(element), self.source)
                case tree.UnionPattern():
                    items.append(OneOf(tuple(map(self.group, element.groups)), span=element.span))
                case tree.Clause():
                    within = tuple(items)  # MINUS does not see what comes later
                    items.append(Without(self.group(element.group), element.keyword, within, span=element.span))
                case tree.Filter(constraint=tree.Exists(negated=True) as none):
                    items.append(Without(self.group(none.group), "NOT EXISTS", span=element.span))
                case tree.Filter(constraint=tree.Exists() as some):
                    self.add(items, scope, some.group)
                case tree.Filter():
                    items += (self.condition(part, element.span) for part in conjuncts(element.constraint))
                case tree.Values():
                    items.append(self.values(element))

    def condition(self, expression: tree.Expression, span: tree.Span) -> Among | Test:
        """Return a condition: a comparison with entities where it is one, else a test for the store."""
        match expression:
            case tree.Operation(Variable(name), (("=" | "!=" as sign, Iri() as iri),)) | tree.Operation(
                Iri() as iri, (("=" | "!=" as sign, Variable(name)),)
            ):
                return Among(name, (iri,), sign == "!=", span=span)
            case tree.Call("IN" | "NOT IN" as word, (Variable(name), *options)):
                iris = tuple(option for option in options if isinstance(option, Iri))
                if iris and len(iris) == len(options):
                    return Among(name, iris, word == "NOT IN", span=span)
        nodes = list(walk(expression))
        for node in nodes:
            if isinstance(node, tree.Exists):
                raise refused("EXISTS", self.source.place_of(node))
            if isinstance(node, Literal) and node.datatype is not None and node.datatype not in COMPARABLE:
                name = self.source.text_of(node).rpartition("^^")[2]
                raise refused("literal type", self.source.place_of(node), name=name)
        return Test(expression, frozenset(node.name for node in nodes if isinstance(node, Variable)), span=span)

    def values(self, values: tree.Values) -> Among:
        """Return the entities that VALUES lists for one variable."""
        cells = [cell for row in values.rows for cell in row]
        if len(values.variables) != 1 or None in cells or not cells:
            raise refused("VALUES", self.source.place_of(values))
        for cell in cells:
            if not isinstance(cell, Iri):
                raise refused("literal", self.source.place_of(cell), text=self.source.text_of(cell), such="")  # type: ignore[arg-type]
        return Among(values.variables[0].name, tuple(cells), span=values.span)  # type: ignore[arg-type]

    def path(
        self, start: tree.Term, path: Variable | tree.Path, end: tree.Term, name: str, pattern: Triple
    ) -> Iterator[Item]:
        """Yield the steps of a path between two terms; `name` begins the names of the variables between them."""
        match path:
            case tree.PathOperation("^", (inner,)):
                yield from self.path(end, inner, start, name, pattern)
            case tree.PathOperation("|", parts):
                ways = (self.path(start, part, end, f"{name}.{way}", pattern) for way, part in enumerate(parts))
                yield OneOf(tuple(map(tuple, ways)), span=pattern.span)
            case tree.PathOperation("/", parts):
                middles = [Variable(f"{name}.{step}", span=pattern.predicate.span) for step in range(1, len(parts))]
                self.spans |= {middle.name: middle.span for middle in middles}
                ends = pairwise([start, *middles, end])
                for step, (part, (first, last)) in enumerate(zip(parts, ends, strict=True)):
                    yield from self.path(first, part, last, f"{name}.{step}", pattern)
            case _:
                self.count += 1
                yield Triple(start, path, end, span=pattern.span)

    def term(self, term: tree.Term) -> tree.Term:
        """Return a term, with a variable in place of a blank node."""
        text = self.source.text_of(term)
        if text[:1] == "(":
            raise refused("list", self.source.place_of(term))
        if isinstance(term, BlankNode):
            is_labelled = text.startswith("_:")
            name = f"_:{term.label}" if is_labelled else self.blank.setdefault(term.label, f"[{len(self.blank) + 1}]")
            term = Variable(name, span=term.span)
        if isinstance(term, Variable):
            self.spans.setdefault(term.name, term.span)
        return term


def _flattened(group: tree.Group) -> list[tree.Element]:
    """Return the elements of a group; a group in it that has only triples is part of it."""
    elements: list[Any] = []
    for element in group.elements:
        inner = _flattened(element) if isinstance(element, tree.Group) else [element]
        elements += inner if all(isinstance(part, Triple) for part in inner) else [element]
    return elements


def conjuncts(expression: tree.Expression) -> Iterator[tree.Expression]:
    """Yield the conditions that && joins."""
    if isinstance(expression, tree.Operation) and expression.rest[0][0] == "&&":
        for part in (expression.first, *(operand for _, operand in expression.rest)):
            yield from conjuncts(part)
    else:
        yield expression
