"""Download triples from a SPARQL 1.1 endpoint, page by page, into N-Triples files; resumable.

Endpoints often limit the rows of a response silently, so a short page is not always the last one:

* OFFSET advances by the rows received, never by the page size, so such a limit loses no rows.
* `download` stops only at an empty page.
* `neighbourhood` sends thousands of small queries, for which an extra request would double the work. A query ends at an
  empty page, or at a page shorter than the longest one so far, which no limit can have shortened.

Blank nodes keep their labels in N-Triples, because the usual stores label a node alike in every response; in other
syntaxes a label is valid in one response only, so it is made unique to the page. Terms that are not valid RDF (an IRI
with a space) are kept; the importer refuses or skips them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyoxigraph as rdf
from pyoxigraph import Literal, NamedNode, RdfFormat, Triple

from halfgraph.errors import EndpointError, FolderError, InputError
from halfgraph.graph.endpoint import VIRTUOSO_SORTS_NO_MORE, Answer, Endpoint, ask, check_content
from halfgraph.graph.files import write_atomically
from halfgraph.graph.names import is_iri
from halfgraph.graph.statements import LABEL, OWL, RDF, RDFS, SUB_CLASS_OF, TYPE

BATCH = 50  # entities in one VALUES
MAKE_ROOM = "Make room, then run again."

Progress = Callable[[int], None]


def download(
    endpoint: Endpoint, folder: Path, *, graph: str | None = None, progress: Progress | None = None
) -> list[Path]:
    """Download every triple of an endpoint; return the files, one per page."""
    pattern = "?s ?p ?o" if graph is None else f"GRAPH {_iri(graph)} {{ ?s ?p ?o }}"
    pages = _open(endpoint, folder, {"graph": graph}, progress)
    if not pages.done:
        _ask_pages(pages, pattern, until_empty=True)
        _save(pages, done=True)
    return pages.files()


def neighbourhood(
    endpoint: Endpoint,
    seeds: Sequence[str],
    folder: Path,
    *,
    hops: int = 2,
    namespace: str | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Download the triples within `hops` steps of the seeds, with types, labels and superclasses; return the files.

    Steps go in either direction, along the predicates of `namespace`, or along all but those of RDF, RDFS and OWL.
    """
    start = frozenset(_iri(seed) for seed in seeds)
    if not start:
        raise InputError("there are no seed entities", advice="Pass at least one.")
    digest = hashlib.sha256(" ".join(sorted(start)).encode()).hexdigest()[:12]
    recipe = {"seeds": f"{len(start)}, digest {digest}", "hops": hops, "namespace": namespace, "batch": BATCH}
    pages = _open(endpoint, folder, recipe, progress)
    if not pages.done:
        entities = _walk(pages, start, hops, _between_entities(namespace))
        _climb(pages, _described(pages, entities, TYPE, LABEL))
        _save(pages, done=True)
    return pages.files()


def _walk(pages: "_Pages", start: frozenset[str], hops: int, pattern: str) -> frozenset[str]:
    """Return every entity within `hops` steps of the start, in either direction."""
    met = frontier = start
    for _ in range(hops):
        ahead = {str(triple.object) for triple in _batches(pages, "?s", frontier, pattern)}
        behind = {str(triple.subject) for triple in _batches(pages, "?o", frontier, pattern)}
        frontier = frozenset(ahead | behind) - met
        met |= frontier
    return met


def _climb(pages: "_Pages", classes: frozenset[str]) -> None:
    met = classes
    while classes:
        classes = _described(pages, classes, SUB_CLASS_OF) - met
        met |= classes


def _described(pages: "_Pages", names: frozenset[str], *predicates: str) -> frozenset[str]:
    """Download these predicates of the names; return the IRIs that are objects of them."""
    listed = ", ".join(f"<{predicate}>" for predicate in predicates)
    pattern = f"?s ?p ?o FILTER(?p IN ({listed})) FILTER(!isBlank(?o))"
    triples = _batches(pages, "?s", names, pattern)
    return frozenset(str(triple.object) for triple in triples if isinstance(triple.object, NamedNode))


def _between_entities(namespace: str | None) -> str:
    """Return the SPARQL pattern of a triple between two entities."""
    beginnings = (RDF, RDFS, OWL) if namespace is None else (namespace,)
    begins = " || ".join(f"STRSTARTS(STR(?p), {Literal(beginning)})" for beginning in beginnings)
    return f"?s ?p ?o FILTER(isIRI(?s) && isIRI(?o)) FILTER({'!' if namespace is None else ''}({begins}))"


def _batches(pages: "_Pages", variable: str, names: Iterable[str], pattern: str) -> Iterator[Triple]:
    """Yield the triples that match a pattern with the variable bound to each of the names."""
    # Sorted, so that a resumed walk asks the same questions in the same order.
    askable = sorted(name for name in names if is_iri(name[1:-1]))
    for first in range(0, len(askable), BATCH):
        values = " ".join(askable[first : first + BATCH])
        for file in _ask_pages(pages, f"VALUES {variable} {{ {values} }} {pattern}", until_empty=False):
            yield from (quad.triple for quad in rdf.parse(path=file, format=RdfFormat.N_TRIPLES, lenient=True))


def _iri(name: str) -> str:
    if not is_iri(name):
        advice = "Write it in full, for example http://dbpedia.org/resource/California"
        raise InputError(f'"{name}" is not an IRI', advice=advice)
    return f"<{name}>"


@dataclass
class _Pages:
    """The downloaded pages of a folder, and the position of this run among them."""

    endpoint: Endpoint
    folder: Path
    recipe: Mapping[str, object]  # what is downloaded
    progress: Progress | None
    rows: list[int]  # in each page, in order; an empty page has no file
    done: bool
    turn: int = 0  # the next page of this run
    longest: int = 0  # rows, of the pages of this run so far
    latest: bytes = b""  # content of the last page received

    def file(self, page: int) -> Path:
        return self._numbered(sum(map(bool, self.rows[:page])))

    def _numbered(self, number: int) -> Path:
        return self.folder / "pages" / f"{number:06d}.nt"

    def files(self) -> list[Path]:
        return [self._numbered(number) for number in range(sum(map(bool, self.rows)))]


def _open(endpoint: Endpoint, folder: Path, recipe: Mapping[str, object], progress: Progress | None) -> _Pages:
    """Open the pages that an earlier run left in a folder, up to the first missing file."""
    recipe = {"address": endpoint.address, "page_size": endpoint.page_size, **recipe}
    state = _state(folder) or {**recipe, "rows": [], "done": False}
    rows, done = state.pop("rows", []), state.pop("done", False)
    for key in sorted(recipe.keys() | state.keys()):
        if recipe.get(key) != state.get(key):
            problem = f"holds pages for {key} {state.get(key)}, not {recipe.get(key)}"
            raise FolderError(folder, problem, advice="Use another folder, or delete this one to start over.")
    pages = _Pages(endpoint, folder, recipe, progress, rows, done)
    filled = [page for page, count in enumerate(rows) if count]
    gone = [page for page, file in zip(filled, pages.files(), strict=True) if not file.exists()]
    pages.rows = rows[: gone[0]] if gone else rows
    _save(pages, done=done and not gone)
    return pages


def _state(folder: Path) -> dict[str, Any]:
    """Return the state that an earlier run saved in the folder; empty if there was none."""
    try:
        (folder / "pages").mkdir(parents=True, exist_ok=True)
        return dict(json.loads((folder / "state.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, TypeError, ValueError) as error:
        raise FolderError(folder, f"cannot be used: {error}", advice="Use another folder.") from error


def _save(pages: _Pages, *, done: bool = False) -> None:
    pages.done = done
    state = {**pages.recipe, "rows": pages.rows, "done": done}
    write_atomically(pages.folder / "state.json", json.dumps(state), advice=MAKE_ROOM)


def _ask_pages(pages: _Pages, pattern: str, *, until_empty: bool) -> list[Path]:
    """Download all pages of one query; return their files."""
    files, offset = [], 0
    while rows := _next_page(pages, pattern, offset):
        files.append(pages.file(pages.turn - 1))
        offset += rows
        if rows < pages.longest and not until_empty:
            break
        pages.longest = max(pages.longest, rows)
    return files


def _next_page(pages: _Pages, pattern: str, offset: int) -> int:
    """Download the next page unless it is there; return its number of rows."""
    if pages.turn == len(pages.rows):
        rows, content = _fetch(pages, pattern, offset)
        if rows:
            write_atomically(pages.file(pages.turn), content, advice=MAKE_ROOM)
        pages.rows.append(rows)
        _save(pages)
    pages.turn += 1
    if pages.progress and pages.rows[pages.turn - 1]:
        pages.progress(sum(pages.rows[: pages.turn]))
    return pages.rows[pages.turn - 1]


def _fetch(pages: _Pages, pattern: str, offset: int) -> tuple[int, bytes]:
    """Download a page; return its number of rows and its N-Triples."""
    answer = _ask_sorted(pages.endpoint, pattern, offset)
    rows, content = _n_triples(pages.endpoint, answer, pages.file(pages.turn).stem)
    if rows > pages.endpoint.page_size or (offset and rows and content == pages.latest):
        problem = "ignores LIMIT and OFFSET, so the download would never end"
        raise EndpointError(address=pages.endpoint.address, problem=problem, advice="It must support SPARQL 1.1.")
    pages.latest = content
    return rows, content


def _ask_sorted(endpoint: Endpoint, pattern: str, offset: int) -> Answer:
    """Ask for one page of a pattern's triples, from an offset on."""
    accept = "application/n-triples, text/turtle;q=0.8"
    construct = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {{ %s LIMIT {endpoint.page_size} OFFSET {offset} }} }}"
    # One row is one triple: DISTINCT, because a store that merges its graphs may give a triple twice.
    ordered = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }} ORDER BY ?s ?p ?o"
    try:
        return ask(endpoint, construct.replace("%s", ordered), accept)
    except EndpointError as refusal:
        if VIRTUOSO_SORTS_NO_MORE not in refusal.problem:
            raise
    # For Virtuoso: sort inside, cut outside. Not for all, because SPARQL does not guarantee the order outside.
    return ask(endpoint, construct.replace("%s", f"SELECT ?s ?p ?o WHERE {{ {{ {ordered} }} }}"), accept)


def _n_triples(endpoint: Endpoint, answer: Answer, page: str) -> tuple[int, bytes]:
    """Return the number of triples of a response, and the response as N-Triples."""
    syntax = RdfFormat.from_media_type(answer.media_type or "application/n-triples")
    check_content(endpoint, answer, syntax is not None, "RDF")
    assert syntax is not None
    try:
        quads = rdf.parse(answer.body, syntax, rename_blank_nodes=True, lenient=True)
        triples = [quad.triple for quad in quads]
    except SyntaxError as error:
        what = f"malformed {syntax.name}" if answer.body.endswith(b"\n") else f"incomplete {syntax.name}"
        problem = f"page {page}, line {error.lineno}: {what}: {error.msg}"
        advice = "Run it again: earlier pages are kept. If it fails again, use another page size."
        raise EndpointError(address=endpoint.address, problem=problem, advice=advice) from error
    if syntax == RdfFormat.N_TRIPLES:
        return len(triples), answer.body
    return len(triples), rdf.serialize(triples, format=RdfFormat.N_TRIPLES) or b""
