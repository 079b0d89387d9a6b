"""Random SPARQL texts of all forms over a few names, and stores to ask them of, for hypothesis."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox
from hypothesis import strategies as st

from halfgraph.graph.folder import Graph
from imported_graphs import made, tsv

BASE = "http://halfgraph.local/"
ENTITIES = [f"e{number}" for number in range(3)]
RELATIONS = ["r0", "r1"]
CLASSES = ["C0", "C1"]
RDF_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUBCLASS = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")


@contextmanager
def names_graph() -> Iterator[Graph]:
    """A graph that has every entity and relation of the texts; labels and classes are not among them."""
    triples = [(head, relation, tail) for head in ENTITIES for relation in RELATIONS for tail in ENTITIES]
    with TemporaryDirectory() as folder:
        yield made(Path(folder), tsv(triples))


def _iri(name: str) -> ox.NamedNode:
    return ox.NamedNode(BASE + name)


@st.composite
def stores(draw: st.DrawFn) -> ox.Store:
    """A few links, types and literals."""
    entity, store = st.sampled_from(ENTITIES), ox.Store()
    links = draw(st.lists(st.tuples(entity, st.sampled_from(RELATIONS), entity), max_size=12))
    store.extend(ox.Quad(*map(_iri, link)) for link in links)
    types = draw(st.lists(st.tuples(entity, st.sampled_from(CLASSES)), min_size=2, max_size=4))
    store.extend(ox.Quad(_iri(name), RDF_TYPE, _iri(class_)) for name, class_ in types)
    if draw(st.booleans()):
        store.add(ox.Quad(_iri("C0"), SUBCLASS, _iri("C1")))
    labels = draw(
        st.lists(st.tuples(entity, st.sampled_from(["label", "size"]), st.integers(0, 2)), min_size=2, max_size=6)
    )
    store.extend(ox.Quad(_iri(name), _iri(what), ox.Literal(value)) for name, what, value in labels)
    return store


entities = st.sampled_from([f":{name}" for name in ENTITIES])
variables = st.sampled_from(["?a", "?b"])
literal_variables = st.sampled_from(["?l", "?n"])
any_variable = variables | literal_variables | st.just("?p")
terms = st.one_of(variables, variables, variables, entities)


def _paths(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=2, max_size=2)
    return st.one_of(
        several.map(lambda parts: f"({'/'.join(parts)})"),
        several.map(lambda parts: f"({'|'.join(parts)})"),
        st.builds("({}){}".format, inner, st.sampled_from("*+?")),
        inner.map("^{}".format).map("({})".format),
    )


relations = st.sampled_from([":r0", ":r1"])
paths = st.recursive(
    st.sampled_from([":r0", ":r1", ":r0", ":r1", ":label", "a", "!:r0", "!(:r0|^:r1)", "!^:r0"]), _paths, max_leaves=3
)
type_paths = st.sampled_from(["a", "a/rdfs:subClassOf*", ":r0/a"])
triples = st.one_of(
    st.builds("{} {} {} .".format, variables, relations, variables),
    st.builds("{} {} {} .".format, terms, relations | st.just("?p"), terms),
    st.builds("{} {} {} .".format, terms, paths, terms),
    st.builds("{} {} {} .".format, terms, type_paths, st.sampled_from([":C0", ":C1", "?t"])),
    st.builds("{} {} {} .".format, terms, st.sampled_from([":label", ":size"]), literal_variables | st.just("1")),
    st.builds("{} {} [ {} {} ] .".format, terms, relations, relations | st.just(":label"), terms | literal_variables),
)
expressions = st.one_of(
    st.builds(
        "{} {} {}".format, any_variable, st.sampled_from(["=", "!=", "<"]), any_variable | entities | st.just("1")
    ),
    st.builds("BOUND({})".format, any_variable),
    st.builds("!BOUND({})".format, any_variable),
    st.builds("{} IN ({}, {})".format, any_variable, entities, entities),
    st.builds("{0} = {1} || {0} = {2}".format, any_variable, entities, entities),
    st.builds("isIRI({}) && {} != {}".format, any_variable, any_variable, entities),
)
cells = entities | st.sampled_from(["UNDEF", "1", ":nobody", ":r0"])
values = st.one_of(
    st.builds("VALUES {} {{ {} }}".format, any_variable, st.lists(cells, max_size=3).map(" ".join)),
    st.lists(st.builds("({} {})".format, cells, cells), max_size=2).map(
        lambda rows: f"VALUES (?a ?l) {{ {' '.join(rows)} }}"
    ),
)
binds = st.builds(
    "BIND({} AS ?{})".format, expressions | entities | any_variable, st.sampled_from(["x", "y", "a", "n"])
)


KINDS = """
triple triple triple triple triple triple group optional optional minus exists absent union subquery filter values bind
"""


@st.composite
def groups(draw: st.DrawFn, depth: int = 2) -> str:
    """Elements between braces."""
    kinds = KINDS.split() if depth else ["triple", "triple", "triple", "filter", "bind"]
    count = draw(st.integers(1, 3))
    return f"{{ {' '.join(draw(_element(draw(st.sampled_from(kinds)), depth - 1)) for _ in range(count))} }}"


def _element(kind: str, depth: int) -> st.SearchStrategy[str]:
    inner = groups(depth=max(depth, 0))
    match kind:
        case "triple":
            return triples
        case "group":
            return inner
        case "optional":
            return inner.map("OPTIONAL {}".format)
        case "minus":
            return inner.map("MINUS {}".format)
        case "exists":
            return inner.map("FILTER EXISTS {}".format) | st.builds(
                "FILTER({} || EXISTS {})".format, expressions, inner
            )
        case "absent":
            return inner.map("FILTER NOT EXISTS {}".format)
        case "union":
            return st.builds("{} UNION {}".format, inner, inner)
        case "subquery":
            return _subqueries(inner)
        case "filter":
            return expressions.map("FILTER({})".format)
        case "values":
            return values
    return binds


def _subqueries(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    selected = st.lists(any_variable, min_size=1, max_size=2, unique=True).map(" ".join) | st.just("*")
    return st.one_of(
        st.builds("{{ SELECT {} {} ORDER BY ?a }}".format, selected, inner),
        st.builds("{{ SELECT DISTINCT {} {} }}".format, selected, inner),
        st.builds("{{ SELECT (COUNT(*) AS ?n) ?a {} GROUP BY ?a }}".format, inner),
        st.builds("{{ SELECT ?a ({} AS ?x) {} }}".format, expressions, inner),
    )


heads = st.one_of(
    st.just("SELECT *"),
    st.just("SELECT *"),
    st.lists(any_variable, min_size=1, max_size=3, unique=True).map(lambda names: f"SELECT {' '.join(names)}"),
    st.builds("SELECT ?a ({} AS ?out)".format, expressions),
    st.just("ASK"),
)
tails = st.sampled_from(["", "", "", "ORDER BY ?b", "VALUES ?a { :e0 :e1 UNDEF }", "VALUES ?b { :e0 }"])
texts = st.builds("{} {} {}".format, heads, groups(), tails)
