"""Triples read from a SPARQL 1.1 endpoint, page by page, into N-Triples files that an interrupted run goes on from.

Endpoints often cap the rows of an answer without saying so, so a short page need not be the last:

* OFFSET advances by the rows received, never by the page size: a cap then costs requests and loses nothing.
* `download` ends only at an empty page: one request more, and even an irregular cap does no harm.
* `neighbourhood` asks thousands of small questions, where that request would double the work. A question ends at an
  empty page, or at one shorter than the longest this endpoint has given: no cap can have shortened it.

Blank nodes keep the labels that an N-Triples answer gives them, as the usual stores label a node alike in every
answer; in other syntaxes a label holds for one answer only, so there it is made unique to the page. Terms that are
not valid RDF (an IRI with a space) are kept as they come, for the reader of the files to refuse or to skip.
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
from halfgraph.graph.endpoint import (
    VIRTUOSO_SORTS_NO_MORE,
    Answer,
    Endpoint,
    ask,
    is_web_page,
    select,
    wrong_content_type,
)
from halfgraph.graph.files import write_atomically
from halfgraph.graph.statements import LABEL, OWL, RDF, RDFS, SUB_CLASS_OF, TYPE

__all__ = ["Endpoint", "download", "neighbourhood", "select"]

BATCH = 50  # entities in one VALUES
MAKE_ROOM = "Make room, then run again."

Progress = Callable[[int], None]


def download(
    endpoint: Endpoint, folder: Path, *, graph: str | None = None, progress: Progress | None = None
) -> list[Path]:
    """The files, one for each page, that together hold every triple of the endpoint."""
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
    """The files that hold the triples between entities within `hops` steps of the seeds, and what the entities are.

    Steps go in either direction, along the predicates of `namespace`, or along all but those of RDF, RDFS and OWL.
    What the entities are: their types and labels, and the hierarchy of the classes met, upwards.
    """
    start = frozenset(_iri(seed) for seed in seeds)
    if not start:
        raise InputError("there are no seed entities to walk from", advice="Give at least one.")
    digest = hashlib.sha256(" ".join(sorted(start)).encode()).hexdigest()[:12]
    recipe = {"seeds": f"{len(start)}, digest {digest}", "hops": hops, "namespace": namespace, "batch": BATCH}
    pages = _open(endpoint, folder, recipe, progress)
    if not pages.done:
        entities = _walk(pages, start, hops, _between_entities(namespace))
        _climb(pages, _described(pages, entities, TYPE, LABEL))
        _save(pages, done=True)
    return pages.files()


def _walk(pages: "_Pages", start: frozenset[str], hops: int, pattern: str) -> frozenset[str]:
    """Every entity within `hops` steps of the start, in either direction."""
    met = frontier = start
    for _ in range(hops):
        ahead = {str(triple.object) for triple in _batches(pages, "?s", frontier, pattern)}
        behind = {str(triple.subject) for triple in _batches(pages, "?o", frontier, pattern)}
        frontier = frozenset(ahead | behind) - met
        met |= frontier
    return met


def _climb(pages: "_Pages", classes: frozenset[str]) -> None:
    """Nothing; the classes above these are asked for, level by level, until there are no new ones."""
    met = classes
    while classes:
        classes = _described(pages, classes, SUB_CLASS_OF) - met
        met |= classes


def _described(pages: "_Pages", names: frozenset[str], *predicates: str) -> frozenset[str]:
    """The classes that these names are said to be of, or under."""
    listed = ", ".join(f"<{predicate}>" for predicate in predicates)
    pattern = f"?s ?p ?o FILTER(?p IN ({listed})) FILTER(!isBlank(?o))"
    found = _batches(pages, "?s", names, pattern)
    return frozenset(str(triple.object) for triple in found if isinstance(triple.object, NamedNode))


def _between_entities(namespace: str | None) -> str:
    """The pattern of a triple between two entities."""
    beginnings = (RDF, RDFS, OWL) if namespace is None else (namespace,)
    begins = " || ".join(f"STRSTARTS(STR(?p), {Literal(beginning)})" for beginning in beginnings)
    return f"?s ?p ?o FILTER(isIRI(?s) && isIRI(?o)) FILTER({'!' if namespace is None else ''}({begins}))"


def _batches(pages: "_Pages", variable: str, names: Iterable[str], pattern: str) -> Iterator[Triple]:
    """The triples that match a pattern with the variable bound to each of the names."""
    # Sorted, so that a resumed walk asks the same questions in the same order.
    askable = sorted(name for name in names if _is_valid(name[1:-1]))
    for first in range(0, len(askable), BATCH):
        values = " ".join(askable[first : first + BATCH])
        for file in _ask_pages(pages, f"VALUES {variable} {{ {values} }} {pattern}", until_empty=False):
            yield from (quad.triple for quad in rdf.parse(path=file, format=RdfFormat.N_TRIPLES, lenient=True))


def _is_valid(iri: str) -> bool:
    """Whether a text is an absolute IRI, which makes it safe inside a query."""
    try:
        return bool(NamedNode(iri))
    except ValueError:
        return False


def _iri(name: str) -> str:
    """A name as SPARQL writes an IRI."""
    if not _is_valid(name):
        advice = "Write it in full, as in http://dbpedia.org/resource/California"
        raise InputError(f'"{name}" is not an IRI', advice=advice)
    return f"<{name}>"


@dataclass
class _Pages:
    """The pages of a folder: a run goes through those already there, then asks for the rest."""

    endpoint: Endpoint
    folder: Path
    recipe: Mapping[str, object]  # what the pages answer
    progress: Progress | None
    rows: list[int]  # of each page, in the order asked; an empty page has no file
    done: bool
    turn: int = 0  # the page that comes next in this run
    longest: int = 0  # rows, of the pages this run went through
    latest: bytes = b""  # the page last received

    def file(self, page: int) -> Path:
        return self._numbered(sum(map(bool, self.rows[:page])))

    def _numbered(self, number: int) -> Path:
        return self.folder / "pages" / f"{number:06d}.nt"

    def files(self) -> list[Path]:
        return [self._numbered(number) for number in range(sum(map(bool, self.rows)))]


def _open(endpoint: Endpoint, folder: Path, recipe: Mapping[str, object], progress: Progress | None) -> _Pages:
    """The pages of a folder as an earlier run left them, up to the first whose file is gone."""
    recipe = {"address": endpoint.address, "page_size": endpoint.page_size, **recipe}
    state = _state(folder) or {**recipe, "rows": [], "done": False}
    rows, done = state.pop("rows", []), state.pop("done", False)
    for key in sorted(recipe.keys() | state.keys()):
        if recipe.get(key) != state.get(key):
            problem = f"holds pages for {key} {state.get(key)}, and {recipe.get(key)} is asked for"
            raise FolderError(folder, problem, advice="Give another folder, or delete this one to begin again.")
    pages = _Pages(endpoint, folder, recipe, progress, rows, done)
    filled = [page for page, count in enumerate(rows) if count]
    gone = [page for page, file in zip(filled, pages.files(), strict=True) if not file.exists()]
    pages.rows = rows[: gone[0]] if gone else rows
    _save(pages, done=done and not gone)
    return pages


def _state(folder: Path) -> dict[str, Any]:
    """What an earlier run noted in the folder; nothing if there was none."""
    try:
        (folder / "pages").mkdir(parents=True, exist_ok=True)
        return dict(json.loads((folder / "state.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, TypeError, ValueError) as error:
        raise FolderError(folder, f"cannot be used: {error}", advice="Give another folder.") from error


def _save(pages: _Pages, *, done: bool = False) -> None:
    """Nothing; what is complete is noted in the folder."""
    pages.done = done
    state = {**pages.recipe, "rows": pages.rows, "done": done}
    write_atomically(pages.folder / "state.json", json.dumps(state), advice=MAKE_ROOM)


def _ask_pages(pages: _Pages, pattern: str, *, until_empty: bool) -> list[Path]:
    """The files of the pages that answer one question."""
    files, offset = [], 0
    while rows := _next_page(pages, pattern, offset):
        files.append(pages.file(pages.turn - 1))
        offset += rows
        if rows < pages.longest and not until_empty:
            break
        pages.longest = max(pages.longest, rows)
    return files


def _next_page(pages: _Pages, pattern: str, offset: int) -> int:
    """The number of rows of the next page, which by then has its file."""
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
    """The number of rows of a page and its N-Triples, asked of the endpoint."""
    answer = _ask_sorted(pages.endpoint, pattern, offset)
    rows, content = _n_triples(pages.endpoint, answer, pages.file(pages.turn).stem)
    if rows > pages.endpoint.page_size or (offset and rows and content == pages.latest):
        problem = "does not keep to LIMIT and OFFSET, so its pages would have no end"
        raise EndpointError(address=pages.endpoint.address, problem=problem, advice="Check that it speaks SPARQL 1.1.")
    pages.latest = content
    return rows, content


def _ask_sorted(endpoint: Endpoint, pattern: str, offset: int) -> Answer:
    """The answer with the rows of a pattern from an offset on."""
    accept = "application/n-triples, text/turtle;q=0.8"
    construct = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {{ %s LIMIT {endpoint.page_size} OFFSET {offset} }} }}"
    # One row is one triple: DISTINCT, because a store that merges its graphs may give a triple twice.
    ordered = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }} ORDER BY ?s ?p ?o"
    try:
        return ask(endpoint, construct.replace("%s", ordered), accept)
    except EndpointError as refusal:
        if VIRTUOSO_SORTS_NO_MORE not in refusal.problem:
            raise
    # Virtuoso's own way around: sort inside, cut outside. Not for all, as SPARQL does not promise the order outside.
    return ask(endpoint, construct.replace("%s", f"SELECT ?s ?p ?o WHERE {{ {{ {ordered} }} }}"), accept)


def _n_triples(endpoint: Endpoint, answer: Answer, page: str) -> tuple[int, bytes]:
    """The number of triples of an answer, and the answer as N-Triples."""
    syntax = RdfFormat.from_media_type(answer.media_type or "application/n-triples")
    if syntax is None or is_web_page(answer):
        raise wrong_content_type(endpoint, answer, "RDF")
    try:
        quads = rdf.parse(answer.body, syntax, rename_blank_nodes=True, lenient=True)
        triples = [quad.triple for quad in quads]
    except SyntaxError as error:
        what = f"broken {syntax.name}" if answer.body.endswith(b"\n") else f"{syntax.name} that breaks off"
        problem = f"page {page}, line {error.lineno}: {what}: {error.msg}"
        advice = "Run it again: the pages before are kept. If it stays so, use another page size."
        raise EndpointError(address=endpoint.address, problem=problem, advice=advice) from error
    if syntax == RdfFormat.N_TRIPLES:
        return len(triples), answer.body
    return len(triples), rdf.serialize(triples, format=RdfFormat.N_TRIPLES) or b""
