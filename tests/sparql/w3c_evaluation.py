"""W3C's query evaluation tests: the data sets, and whether a result is the expected one."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Store,
    parse,
    parse_query_results,
)

from sparql.w3c import unpacked

_TESTS = """
PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
SELECT DISTINCT ?test ?query ?result {
  ?test a mf:QueryEvaluationTest ; mf:action [ qt:query ?query ] ; mf:result ?result
  FILTER NOT EXISTS { ?test mf:action/qt:serviceData ?service }
}
"""
_DATA = """
PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
SELECT ?file ?named { <%s> mf:action ?action { ?action qt:data ?file BIND(false AS ?named) } UNION
  { ?action qt:graphData ?file BIND(true AS ?named) } FILTER(isIRI(?file)) }
"""
_LABELLED = """
PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?file ?name { <%s> mf:action/qt:graphData [ qt:graph ?file ; rdfs:label ?name ] }
"""
_OTHERS = ("entailment", "service")  # folders of tests that need another engine
RS = "PREFIX rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#>"
_SOLUTIONS = """SELECT ?solution ?name ?value {
  [] rs:solution ?solution OPTIONAL { ?solution rs:binding [ rs:variable ?name ; rs:value ?value ] } }"""
RESULTS = {
    ".srx": QueryResultsFormat.XML,
    ".srj": QueryResultsFormat.JSON,
    ".tsv": QueryResultsFormat.TSV,
}
Row = frozenset[tuple[Any, Any]]  # the value of each bound variable


class Evaluation(NamedTuple):
    """A test: its name, query, data as quads, and the file of the expected result."""

    name: str
    base: str
    text: str
    data: tuple[Quad, ...]
    result: Path


@cache
def evaluations() -> list[Evaluation]:
    """Every query evaluation test that needs neither entailment nor other servers."""
    root = unpacked()
    manifests = [path for path in sorted(root.rglob("manifest.ttl")) if path.parent.name not in _OTHERS]
    return sorted({one.name: one for one in chain.from_iterable(_of(path, root) for path in manifests)}.values())


def _of(manifest: Path, root: Path) -> Iterator[Evaluation]:
    store = Store()
    store.load(path=str(manifest), format=RdfFormat.TURTLE, base_iri=manifest.as_uri())
    for row in store.query(_TESTS):  # type: ignore[union-attr]
        query = _path(row["query"])
        name = f"{manifest.parent.relative_to(root)}/{row['test'].value.rpartition('#')[2]}"
        data = tuple(chain(_data(store, row["test"].value), _from(query)))
        yield Evaluation(name, query.as_uri(), query.read_bytes().decode(), data, _path(row["result"]))


def _path(iri: NamedNode) -> Path:
    return Path(iri.value.removeprefix("file://"))


def _data(store: Store, test: str) -> Iterator[Quad]:
    for row in store.query(_DATA % test):  # type: ignore[union-attr]
        yield from _read(_path(row["file"]), row["file"] if row["named"].value == "true" else DefaultGraph())
    for row in store.query(_LABELLED % test):  # type: ignore[union-attr]
        base = row["file"].value.rpartition("/")[0]
        yield from _read(_path(row["file"]), NamedNode(f"{base}/{row['name'].value}"))


def _from(query: Path) -> Iterator[Quad]:
    """The files that a query names after FROM, as named graphs; a blank node of two of them is not the same one."""
    words = query.read_bytes().decode().replace("<", " <").split()
    names = [word[1:-1] for word in words if word.startswith("<") and word.endswith(".ttl>")]
    for path in (query.parent / name for name in dict.fromkeys(names)):
        if "FROM" in words and path.is_file():
            yield from _read(path, NamedNode(path.as_uri()))


def _read(path: Path, graph: NamedNode | DefaultGraph) -> Iterator[Quad]:
    syntax = RdfFormat.from_extension(path.suffix[1:])
    for quad in parse(path=str(path), format=syntax, base_iri=path.as_uri(), rename_blank_nodes=True):
        yield Quad(quad.subject, quad.predicate, quad.object, graph)


def is_expected(found: Any, case: Evaluation) -> bool:
    """Return whether the store's result is the expected one, up to the names of blank nodes."""
    if isinstance(found, QueryBoolean):
        return bool(found) == _expected_truth(case.result)
    if isinstance(found, QuerySolutions) and case.result.suffix == ".csv":  # has no types, so text is compared
        written = found.serialize(format=QueryResultsFormat.CSV) or b""
        return sorted(written.split()) == sorted(case.result.read_bytes().split())
    if isinstance(found, QuerySolutions):
        names = [variable.value for variable in found.variables]
        return _same(_expected_rows(case.result), [_row(zip(names, row, strict=True)) for row in found])
    expected = {_row(enumerate(quad.triple)) for quad in _read(case.result, DefaultGraph())}
    return _same(list(expected), list({_row(enumerate(triple)) for triple in found}))


def _expected_truth(path: Path) -> bool:
    if path.suffix in RESULTS:
        return bool(parse_query_results(path=str(path), format=RESULTS[path.suffix]))
    return bool(_store(path).query(f"{RS} ASK {{ [] rs:boolean true }}"))


def _expected_rows(path: Path) -> list[Row]:
    if path.suffix in RESULTS:
        result = parse_query_results(path=str(path), format=RESULTS[path.suffix])
        assert isinstance(result, QuerySolutions)
        names = [variable.value for variable in result.variables]
        return [_row(zip(names, row, strict=True)) for row in result]
    solutions: dict[Any, list[tuple[str, Any]]] = {}
    for solution, name, value in _store(path).query(f"{RS} {_SOLUTIONS}"):  # type: ignore[union-attr,misc]
        solutions.setdefault(solution, []).extend([(name.value, value)] if name else [])
    return [_row(pairs) for pairs in solutions.values()]


def _store(path: Path) -> Store:
    store = Store()
    store.extend(_read(path, DefaultGraph()))
    return store


def _row(pairs: Iterable[tuple[Any, Any]]) -> Row:
    return frozenset((name, _normal(term)) for name, term in pairs if term is not None)


def _normal(term: Any) -> Any:
    """A literal as the store writes it, whatever its first spelling."""
    if not isinstance(term, Literal):
        return term
    store, name = Store(), NamedNode("urn:x")
    store.add(Quad(name, name, term))
    return next(iter(store)).object


def _same(expected: Sequence[Row], found: Sequence[Row]) -> bool:
    """Return whether two bags of rows are equal for some renaming of blank nodes."""
    return len(expected) == len(found) and _matches(list(expected), list(found), {})


def _matches(expected: list[Row], found: list[Row], names: dict[Any, Any]) -> bool:
    if not expected:
        return True
    first, *rest = sorted(expected, key=lambda row: sum(isinstance(term, BlankNode) for _, term in row))
    for number, row in enumerate(found):
        renamed = _renamed(first, row, names)
        if renamed is not None and _matches(rest, found[:number] + found[number + 1 :], renamed):
            return True
        if renamed == names:  # any other equal row would do as well
            return False
    return False


def _renamed(expected: Row, found: Row, names: dict[Any, Any]) -> dict[Any, Any] | None:
    """Return the renaming of blank nodes by which two rows are equal, if it extends `names`."""
    ours, renamed = dict(found), dict(names)
    if ours.keys() != dict(expected).keys():
        return None
    for name, term in expected:
        if not isinstance(term, BlankNode):
            if term != ours[name]:
                return None
        elif not isinstance(ours[name], BlankNode) or renamed.setdefault(term, ours[name]) != ours[name]:
            return None
    return renamed if len(set(renamed.values())) == len(renamed) else None
