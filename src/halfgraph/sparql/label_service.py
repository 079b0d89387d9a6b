"""Wikidata's label service, rewritten to patterns on the labels of the graph itself.

`SERVICE wikibase:label { bd:serviceParam wikibase:language "de,en" }` binds ?xLabel, ?xAltLabel and ?xDescription for
each ?x of its group wherever the query uses them; `?x rdfs:label ?name` in its braces binds ?name instead. Each becomes

    OPTIONAL { ?x rdfs:label ?xLabel_de FILTER (LANG(?xLabel_de) = "de") FILTER NOT EXISTS { an earlier one } }
    OPTIONAL { the same in the next language, and without one } ...
    BIND (COALESCE(?xLabel_de, ?xLabel_en, ?xLabel_, the local name of ?x) AS ?xLabel)

at the end of its group, or before the first element that uses it. So the store finds the labels by its index, and no
row is multiplied.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from halfgraph.graph.statements import LABEL
from halfgraph.sparql.scope import always_bound, in_scope
from halfgraph.sparql.syntax_tree import (
    Bind,
    Call,
    Clause,
    Element,
    Exists,
    Expression,
    Filter,
    Form,
    Group,
    Iri,
    Literal,
    Named,
    Operation,
    Select,
    Span,
    SyntaxNode,
    Term,
    Triple,
    Values,
    Variable,
    walk,
)

SERVICE = Iri("http://wikiba.se/ontology#label")
_PARAMETER, _LANGUAGE = Iri("http://www.bigdata.com/rdf#serviceParam"), Iri("http://wikiba.se/ontology#language")
_ALTERNATIVE, _DESCRIPTION = "http://www.w3.org/2004/02/skos/core#altLabel", "http://schema.org/description"
_PREDICATES = {"AltLabel": _ALTERNATIVE, "Label": LABEL, "Description": _DESCRIPTION}  # by the end of a variable
_LANGUAGES = {"[auto_language]": ("en",), "mul": ("mul", "en")}  # what other words of a language list stand for
_NOTHING = Iri("urn:halfgraph:unbound")  # has no label
_LOCAL_NAME = (Literal("^.*[/#]([^/#]+)[/#]*$"), Literal("$1"))
Node = TypeVar("Node")


@dataclass(frozen=True)
class Label:
    """A variable that the service binds: its subject, and the predicate that leads to its value."""

    variable: str
    subject: Term
    predicate: str


@dataclass(frozen=True)
class LabelScope:
    """The SELECT, or other form, that a label service belongs to."""

    used: frozenset[str]  # variables in it
    bound: frozenset[str]  # variables that its own patterns bind
    given: frozenset[str]  # variables of the request
    names: set[str]  # these, and the ones that were added


def with_labels(tree: Node) -> Node:
    """Return a request with its label services rewritten; a request without one stays as it is."""
    if not any(map(is_label_service, walk(tree))):
        return tree
    names = {node.name for node in walk(tree) if isinstance(node, Variable)}
    rewritten: Node = _rewritten(tree, LabelScope(frozenset(), frozenset(), frozenset(names), names))
    return rewritten


def is_label_service(node: SyntaxNode) -> bool:
    """Return whether a node is a label service that has only languages and label patterns in its braces."""
    return isinstance(node, Clause) and node.keyword == "SERVICE" and node.name == SERVICE and _is_plain(node.group)


def _is_plain(group: Group) -> bool:
    return all(isinstance(one, Triple) and (_languages(one) or _label(one)) for one in group.elements)


def _languages(triple: Triple) -> list[str]:
    """Return the languages of a parameter of the service, the first one preferred."""
    match triple:
        case Triple(subject=subject, predicate=predicate, object=Literal(value=value)) if (
            subject == _PARAMETER and predicate == _LANGUAGE
        ):
            words = [word.strip().lower() for word in value.split(",")]
            return [language for word in words for language in _LANGUAGES.get(word, (word,)) if language]
    return []


def _label(triple: Triple) -> Label | None:
    match triple:
        case Triple(subject=Variable() | Iri() as subject, predicate=Iri(value=predicate), object=Variable(name=name)):
            return Label(name, subject, predicate) if predicate in _PREDICATES.values() else None
    return None


def _rewritten(node: Any, scope: LabelScope) -> Any:
    """Return a node, or a tuple of nodes, with the label services in it rewritten, the innermost first."""
    if isinstance(node, tuple):
        return tuple(_rewritten(part, scope) for part in node)
    if not isinstance(node, SyntaxNode):
        return node
    if isinstance(node, Form):
        scope = _scope(node, scope)
    changed = {field.name: _rewritten(getattr(node, field.name), scope) for field in fields(node)}
    inner: SyntaxNode = replace(node, **changed)
    if isinstance(inner, Group):
        return _with_labels(inner, scope)
    return _hidden(inner, scope) if isinstance(inner, Select) else inner


def _scope(form: Form, outer: LabelScope) -> LabelScope:
    """Return the scope of a form; what surrounds a SELECT * may use all that is bound in it."""
    used = {part.name for part in _own(form) if isinstance(part, Variable)}
    if isinstance(form, Select) and not form.projection:
        used |= outer.used
    bound = _bound(_own((getattr(form, "where", None), form.modifiers.values), excluding=True))
    return replace(outer, used=frozenset(used), bound=frozenset(bound))


def _own(node: Any, *, excluding: bool = False) -> Iterator[SyntaxNode]:
    """Yield the nodes below a node that are not inside a SELECT, a label service or, if excluded, EXISTS or MINUS."""
    for part in node if isinstance(node, tuple) else (getattr(node, field.name) for field in fields(node)):
        if isinstance(part, SyntaxNode):
            yield part
        is_excluded = excluding and (isinstance(part, Exists) or (isinstance(part, Clause) and part.keyword == "MINUS"))
        is_closed = isinstance(part, Select) or (isinstance(part, Clause) and is_label_service(part))
        if isinstance(part, SyntaxNode | tuple) and not is_excluded and not is_closed:
            yield from _own(part, excluding=excluding)


def _bound(parts: Iterable[SyntaxNode]) -> set[str]:
    """Return the variables that patterns, BIND, VALUES and subqueries bind."""
    return in_scope(part for part in parts if isinstance(part, Triple | Select | Bind | Values))


def _with_labels(group: Group, scope: LabelScope) -> Group:
    """Return a group without its label services, and with the patterns that stand for them."""
    services = [element for element in group.elements if isinstance(element, Clause) and is_label_service(element)]
    elements = [element for element in group.elements if element not in services]
    for service in services:
        triples = [triple for triple in service.group.elements if isinstance(triple, Triple)]
        languages = [language for triple in triples for language in _languages(triple)] or ["en"]
        given = [label for triple in triples if (label := _label(triple))]
        for label in given or _automatic(elements, scope):
            if label.variable not in scope.bound | in_scope(elements):
                _insert(elements, label, list(dict.fromkeys([*languages, ""])), scope.names, service.span)
    return replace(group, elements=tuple(elements))


def _automatic(elements: "list[Element | Select]", scope: LabelScope) -> Iterator[Label]:
    """Yield the labels that the names of used variables ask for, each of a variable of the group."""
    subjects = in_scope(elements)
    for name in sorted(scope.used):
        end = next((end for end in _PREDICATES if name.endswith(end)), "")
        subject = name.removesuffix(end)
        if end and subject in subjects:
            yield Label(name, Variable(subject), _PREDICATES[end])


def _insert(
    elements: "list[Element | Select]", label: Label, languages: list[str], names: set[str], span: Span
) -> None:
    """Insert the patterns of a label before the first element that uses it, or at the end."""
    users = (number for number, element in enumerate(elements) if _uses(element, label.variable))
    place = next(users, len(elements))
    if isinstance(label.subject, Variable) and label.subject.name not in in_scope(elements[:place]):
        place = len(elements)
    added = list(_patterns(label, languages, elements[:place], names, span))
    others = {label.variable: _fresh(label.variable, names, span)}
    before, after = ([_apart(element, others) for element in part] for part in (elements[:place], elements[place:]))
    elements[:] = [*before, *added, *after]


def _uses(element: "Element | Select", variable: str) -> bool:
    """Return whether a variable is in an element, other than FILTER, which tests the whole group, and MINUS."""
    is_apart = isinstance(element, Filter) or (isinstance(element, Clause) and element.keyword == "MINUS")
    return not is_apart and Variable(variable) in walk(element)


def _apart(element: Any, others: Mapping[str, Variable]) -> Any:
    """Return an element; an EXISTS that binds a label by its own patterns has another variable for it."""
    match element:
        case Filter(constraint=Exists() as exists) if others.keys() & in_scope(exists.group.elements):
            return _renamed(element, others)
    return element


def _patterns(
    label: Label, languages: list[str], before: "list[Element | Select]", names: set[str], span: Span
) -> Iterator[Element]:
    subject, variable = label.subject, Variable(label.variable, span=span)
    if isinstance(subject, Variable) and subject.name not in always_bound(before):
        subject = _fresh(f"{subject.name}_", names, span)  # an unbound subject would match every label
        yield Bind(Call("COALESCE", (label.subject, _NOTHING)), subject, span=span)  # type: ignore[arg-type]
    values: list[Expression] = []
    for language in languages:
        value = _fresh(f"{label.variable}_{language.replace('-', '_')}", names, span)
        values.append(value)
        yield _optional(subject, Iri(label.predicate), value, language, names)
    if label.predicate == LABEL:
        values.append(_name(label.subject))
    yield Bind(Call("COALESCE", tuple(values)), variable, span=span)


def _optional(subject: Term, predicate: Iri, value: Variable, language: str, names: set[str]) -> Clause:
    """Return the pattern of the alphabetically first value in a language."""
    other, span = _fresh(f"{value.name}_other", names, value.span), value.span
    is_before = Operation(Call("STR", (other,)), (("<", Call("STR", (value,))),))
    earlier = Operation(_has(other, language), (("&&", is_before),))
    without = Exists(Group((Triple(subject, predicate, other), Filter(earlier, span=span))), negated=True, span=span)
    pattern = Triple(subject, predicate, value, span=span)
    tests = Filter(_has(value, language), span=span), Filter(without, span=span)
    return Clause("OPTIONAL", Group((pattern, *tests)), span=span)


def _has(value: Variable, language: str) -> Operation:
    return Operation(Call("LANG", (value,)), (("=", Literal(language)),))


def _name(subject: Term) -> Expression:
    """Return the local name of an IRI, or the text of a literal, as an expression."""
    assert isinstance(subject, Variable | Iri)
    text = Call("STR", (subject,))
    return Call("IF", (Call("ISIRI", (subject,)), Call("REPLACE", (text, *_LOCAL_NAME)), text))


def _fresh(name: str, names: set[str], span: Span) -> Variable:
    """Return a variable that the request does not have."""
    while name in names:
        name += "_"
    names.add(name)
    return Variable(name, span=span)


def _hidden(query: Select, scope: LabelScope) -> Select:
    """Return a rewritten SELECT, where * does not select added variables, and AS does not name a label again."""
    if query.projection:
        return _without_clashes(query, scope.names)
    visible = in_scope(query.where.elements) & scope.given
    found = sorted((part.span, part.name) for part in walk(query.where) if isinstance(part, Variable) and part.span[1])
    return replace(query, projection=tuple(map(Variable, dict.fromkeys(name for _, name in found if name in visible))))


def _without_clashes(query: Select, names: set[str]) -> Select:
    """Return a SELECT where a label has another name if `(SAMPLE(?xLabel) AS ?xLabel)` uses it twice."""
    targets = {part.variable.name for part in query.projection if isinstance(part, Named)}
    others = {name: _fresh(name, names, (0, 0)) for name in sorted(targets & in_scope(query.where.elements))}
    if not others:
        return query
    projection = tuple(
        replace(part, expression=_renamed(part.expression, others)) if isinstance(part, Named) else part
        for part in query.projection
    )
    keys = replace(query.modifiers, group_by=_renamed(query.modifiers.group_by, others))
    return replace(query, projection=projection, where=_renamed(query.where, others), modifiers=keys)


def _renamed(node: Any, others: Mapping[str, Variable]) -> Any:
    """Return a node, or a tuple of nodes, with other variables in the place of some."""
    if isinstance(node, tuple):
        return tuple(_renamed(part, others) for part in node)
    if isinstance(node, Variable):
        return others.get(node.name, node)
    if not isinstance(node, SyntaxNode):
        return node
    return replace(node, **{field.name: _renamed(getattr(node, field.name), others) for field in fields(node)})
