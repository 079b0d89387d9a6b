"""Small random graphs, hierarchies and RDF for hypothesis."""

from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from oracles import RDF, RDFS, Named

HERE = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def iris(prefix: str, count: int) -> st.SearchStrategy[str]:
    """One of a few IRIs."""
    return st.sampled_from([f"{HERE}{prefix}{number}" for number in range(count)])


def named_triples(entities: int = 8, relations: int = 3, most: int = 40) -> st.SearchStrategy[list[Named]]:
    """A few triples by name, with duplicates and self-loops."""
    entity, relation = iris("e", entities), iris("r", relations)
    return st.lists(st.tuples(entity, relation, entity), min_size=1, max_size=most)


def types_of(entities: int = 8, types: int = 3) -> st.SearchStrategy[dict[str, set[str]]]:
    """Some types for some entities."""
    return st.dictionaries(iris("e", entities), st.sets(iris("K", types), min_size=1), max_size=entities)


def hierarchies(classes: str = "ABCDEF", most: int = 10) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Some pairs of class and super class; diamonds, cycles and self-loops among them."""
    return st.lists(st.tuples(st.sampled_from(classes), st.sampled_from(classes)), max_size=most)


# Any text that can stand in a cell of a TSV file.
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), min_size=1, max_size=12)

_nodes = st.one_of(iris("e", 5).map(NamedNode), st.sampled_from("xyz").map(BlankNode))
_literals = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6).map(Literal),
    st.builds(
        lambda text, spoken: Literal(text, language=spoken), st.sampled_from("ab"), st.sampled_from(["en", "de"])
    ),
    st.integers(0, 3).map(lambda number: Literal(str(number), datatype=NamedNode(XSD + "integer"))),
)
_graphs = st.one_of(st.just(DefaultGraph()), iris("g", 2).map(NamedNode), st.just(BlankNode("g")))
_predicates = st.one_of(
    iris("r", 3), st.sampled_from([RDF + "type", RDFS + "label", RDFS + "subClassOf", RDFS + "seeAlso"])
).map(NamedNode)


def statements(with_graphs: bool = False) -> st.SearchStrategy[list[Quad]]:
    """Some RDF statements of all types."""
    graphs = _graphs if with_graphs else st.just(DefaultGraph())
    return st.lists(st.builds(Quad, _nodes, _predicates, st.one_of(_nodes, _literals), graphs), min_size=1, max_size=25)
