"""Small random graphs with types, and random queries on them, for hypothesis."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph
from hypothesis import strategies as st

from halfgraph.graph.folder import Graph
from halfgraph.graph.store import quads
from halfgraph.query.canonical import canonical_key
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union
from imported_graphs import made, tsv
from oracles import Named
from small_graphs import made_anew

ENTITIES, RELATIONS, TYPE_COUNT = 6, 3, 2
# Names of every sort: IRIs, names that need escapes, paths, and what is no local name of SPARQL.
NAMES = ("http://example.org/e0", "/m/0e1", "Side Effect::2", "e3.", "http://dbpedia.org/resource/e,_4", "e5?#%41")


@contextlib.contextmanager
def typed_graph(triples: list[Named], types: dict[str, str]) -> Iterator[Graph]:
    """The graph of some triples whose entities have types by a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "types.tsv"
        path.write_text("".join(f"{entity}\t{type_id}\n" for entity, type_id in types.items()), encoding="utf-8")
        yield made(Path(folder), tsv(triples), types_file=path)


def whole_graph() -> contextlib.AbstractContextManager[Graph]:
    """A graph that has every name: any query of the strategies below can be asked on it."""
    triples = [(head, f"r{number % RELATIONS}", tail) for number, head in enumerate(NAMES) for tail in NAMES]
    return typed_graph(triples, {name: f"type {number % TYPE_COUNT}" for number, name in enumerate(NAMES)})


@st.composite
def graph_data(draw: st.DrawFn) -> tuple[list[Named], dict[str, str]]:
    """Random triples that name every entity and relation, and a type for each entity."""
    relations = [f"r{number}" for number in range(RELATIONS)]
    entity, relation = st.sampled_from(NAMES), st.sampled_from(relations)
    some = draw(st.lists(st.tuples(entity, relation, entity), min_size=4, max_size=40))
    # Every name is there, each relation once in a corner of its own.
    every = [(name, relations[place % RELATIONS], NAMES[(place + 1) % ENTITIES]) for place, name in enumerate(NAMES)]
    types = {name: f"type {draw(st.integers(0, TYPE_COUNT - 1))}" for name in NAMES}
    types |= {NAMES[place]: f"type {place}" for place in range(TYPE_COUNT)}
    return some + every, types


anchors = st.integers(0, ENTITIES - 1).map(Anchor)
relations = st.integers(0, 2 * RELATIONS - 1)
types = st.none() | st.integers(0, TYPE_COUNT - 1)


@st.composite
def dags(draw: st.DrawFn, most: int = 5) -> Query:
    """A query in its plainest form: each variable has edges from anchors or earlier variables, and leads to a later."""
    count = draw(st.integers(1, most))
    sources: list[list[tuple[int | Anchor, int]]] = []
    for variable in range(count):
        earlier = st.integers(0, variable - 1) if variable else st.nothing()
        sources.append(draw(st.lists(st.tuples(earlier | anchors, relations), min_size=1, max_size=3)))
    for variable in range(count - 1):
        later = range(variable + 1, count)
        if not any(source is variable or source == variable for place in later for source, _ in sources[place]):
            sources[draw(st.sampled_from(later))].append((variable, draw(relations)))
    found: list[Query] = []
    for some in sources:
        found.append(_variable(some, found, draw(types)))
    return found[-1]


def _variable(sources: list[tuple[int | Anchor, int]], found: list[Query], type_id: int | None) -> Query:
    """The node of a variable with these edges, each once."""
    once = {(source if isinstance(source, int) else f"entity {source.entity}", way): source for source, way in sources}
    parts = [
        (found[source] if isinstance(source, int) else Anchor(source.entity), way) for (_, way), source in once.items()
    ]
    if len(parts) == 1:
        return Project(*parts[0], type_id)
    return Intersect(tuple(Project(source, way) for source, way in parts), type_id)


def trees() -> st.SearchStrategy[Query]:
    """A tree in its plainest form: paths from anchors that meet."""

    def further(inner: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
        paths = st.lists(st.tuples(inner | anchors, relations), min_size=1, max_size=3, unique_by=_told)
        return st.builds(
            lambda some, type_id: _variable([*enumerate_ways(some)], [s for s, _ in some], type_id), paths, types
        )

    first = st.builds(Project, anchors, relations, types)
    return st.recursive(first, further, max_leaves=5)


def _told(path: tuple[Query, int]) -> object:
    """Key of a path among those that meet: the same edge from an anchor counts once."""
    source, relation = path
    return (source.entity, relation) if isinstance(source, Anchor) else (id(source), relation)


def enumerate_ways(paths: list[tuple[Query, int]]) -> Iterator[tuple[int, int]]:
    """The places of the sources with their relations."""
    return ((place, relation) for place, (_, relation) in enumerate(paths))


@st.composite
def any_queries(draw: st.DrawFn, unions: bool = True) -> Query:
    """Any query at all: nodes of all types over earlier ones, shared or not, doubled parts too."""
    found: list[Query] = [draw(anchors)]
    for _ in range(draw(st.integers(0, 6))):
        node = st.sampled_from(found) | anchors
        parts = st.lists(node, min_size=1, max_size=3).map(tuple)
        choices = [st.builds(Project, node, relations, types), st.builds(Intersect, parts, types)]
        if unions:
            choices.append(st.builds(Union, parts, types))
            negated = st.lists(node.map(lambda one: Negate(made_anew(one))), min_size=1, max_size=2).map(tuple)
            choices.append(st.builds(lambda some, no, type_id: Intersect((*some, *no), type_id), parts, negated, types))
        found.append(draw(st.one_of(choices)))
    return found[-1]


def _plainest(parts: list[Query], type_id: int | None) -> Query:
    """The node of a variable with these parts, in its plainest form."""
    match parts:
        case [Project() as only]:
            return Project(only.source, only.relation, type_id)
        case [Union() as only]:
            return Union(only.parts, type_id)
    return Intersect(tuple(parts), type_id)


@st.composite
def full_trees(draw: st.DrawFn, depth: int = 2) -> Query:
    """A tree in its plainest form with unions, negations and entities among the parts of its variables."""
    inner = full_trees(depth=depth - 1) if depth else st.nothing()
    choices = st.lists(inner | anchors, min_size=2, max_size=3, unique_by=canonical_key) if depth else st.nothing()
    positive = st.builds(Project, inner | anchors, relations) | st.builds(lambda some: Union(tuple(some)), choices)
    negative = st.builds(Negate, inner | anchors)
    parts = draw(st.lists(positive, min_size=1, max_size=2, unique_by=canonical_key))
    others = draw(st.lists(anchors | negative if depth else negative, max_size=2, unique_by=canonical_key))
    return _plainest([*parts, *others], draw(types))


def store_of(graph: Graph) -> pyoxigraph.Store:
    """The training triples of a graph with its types, in memory."""
    store = pyoxigraph.Store()
    store.bulk_extend(quads(graph, "train"))
    return store


def answers(store: pyoxigraph.Store, text: str, graph: Graph, target: str = "answer") -> list[int]:
    """The entities that pyoxigraph answers, sorted."""
    solutions = store.query(text)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    number = {graph.namer.term(name): place for place, name in enumerate(graph.entities.names)}
    return sorted({number[solution[target]] for solution in solutions})  # type: ignore[index]
