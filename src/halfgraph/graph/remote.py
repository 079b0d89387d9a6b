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
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, IncompleteRead, InvalidURL
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urljoin, urlsplit

import pyoxigraph as rdf
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple

from halfgraph import __version__
from halfgraph.errors import EndpointError, FolderError, InputError, SettingError
from halfgraph.graph.statements import LABEL, OWL, RDF, RDFS, SUB_CLASS_OF, TYPE

BATCH = 50  # entities in one VALUES
LONGEST_WAIT = 300.0  # seconds; an endpoint that asks for more is better asked another day
VIRTUOSO_SORTS_NO_MORE = "SR353"  # Virtuoso refuses ORDER BY where OFFSET + LIMIT is above 10,000
VIRTUOSO_RAN_OUT_OF_TIME = "S1TAT"  # Virtuoso's mark on an answer that is only a part

REDIRECTIONS = 5
SAID = 300  # bytes of a refusal that are shown
CHECK = "Check that the address is the SPARQL endpoint itself and not a page about it; it often ends in /sparql."
LATER = "Try again later: the pages already here are kept."
SMALLER = "Ask for smaller pages."
ADVICE = {
    400: "The endpoint does not understand the query: it may not speak SPARQL 1.1.",
    401: "The endpoint wants a password, which halfgraph cannot give.",
    403: "The endpoint does not let you ask: see its terms of use.",
    405: "The endpoint takes no queries by POST, which SPARQL 1.1 asks for.",
}

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Endpoint:
    """A SPARQL endpoint and how gently to ask it."""

    address: str
    page_size: int = 10_000
    pause: float = 0.5  # seconds between two requests; doubled after each failed try
    timeout: float = 60.0  # seconds without a byte from the endpoint
    tries: int = 5  # for each request

    def __post_init__(self) -> None:
        if not _is_http(self.address):
            advice = "Give one that begins with http:// or https://"
            raise EndpointError(address=self.address, problem="is not the address of an endpoint", advice=advice)
        for setting in ("page_size", "tries"):
            if getattr(self, setting) < 1:
                raise SettingError(setting, f"must be at least 1, found {getattr(self, setting)}")


def select(endpoint: Endpoint, query: str) -> list[dict[str, NamedNode | BlankNode | Literal]]:
    """The rows of a SELECT query, each without the variables it leaves unbound."""
    answer = _ask(endpoint, query, "application/sparql-results+json")
    if "json" not in answer.media_type or _is_web_page(answer):
        raise _wrong_kind(endpoint, answer, "JSON results")
    try:
        results = rdf.parse_query_results(answer.body, rdf.QueryResultsFormat.JSON)
        if isinstance(results, rdf.QueryBoolean):
            raise EndpointError(address=endpoint.address, problem="answered yes or no", advice="Ask with SELECT.")
        names = [variable.value for variable in results.variables]
        return [{name: row[name] for name in names if row[name] is not None} for row in results]
    except SyntaxError as error:
        problem = f"answered with results that are broken or break off: {error.msg}"
        raise EndpointError(address=endpoint.address, problem=problem, advice="Ask again.") from error


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
    _write(pages.folder / "state.json", json.dumps(state).encode())


def _write(path: Path, content: bytes) -> None:
    """Nothing; the file appears whole or not at all."""
    part = path.with_suffix(".part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise FolderError(path, f"cannot be written: {error.strerror}", advice="Make room, then run again.") from error


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
            _write(pages.file(pages.turn), content)
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


def _ask_sorted(endpoint: Endpoint, pattern: str, offset: int) -> "_Answer":
    """The answer with the rows of a pattern from an offset on."""
    accept = "application/n-triples, text/turtle;q=0.8"
    construct = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {{ %s LIMIT {endpoint.page_size} OFFSET {offset} }} }}"
    # One row is one triple: DISTINCT, because a store that merges its graphs may give a triple twice.
    ordered = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }} ORDER BY ?s ?p ?o"
    try:
        return _ask(endpoint, construct.replace("%s", ordered), accept)
    except EndpointError as refusal:
        if VIRTUOSO_SORTS_NO_MORE not in refusal.problem:
            raise
    # Virtuoso's own way around: sort inside, cut outside. Not for all, as SPARQL does not promise the order outside.
    return _ask(endpoint, construct.replace("%s", f"SELECT ?s ?p ?o WHERE {{ {{ {ordered} }} }}"), accept)


def _n_triples(endpoint: Endpoint, answer: "_Answer", page: str) -> tuple[int, bytes]:
    """The number of triples of an answer, and the answer as N-Triples."""
    syntax = RdfFormat.from_media_type(answer.media_type or "application/n-triples")
    if syntax is None or _is_web_page(answer):
        raise _wrong_kind(endpoint, answer, "RDF")
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


@dataclass(frozen=True)
class _Answer:
    """What came back over HTTP."""

    status: int
    headers: Message
    body: bytes

    @property
    def media_type(self) -> str:
        return str(self.headers.get("Content-Type", "")).lower()


@dataclass(frozen=True)
class _Trouble:
    """What went wrong with a request, what to do, and whether it may pass by itself."""

    problem: str
    advice: str
    passing: bool = True
    wait: float = 0.0  # seconds, if the endpoint asked for it


def _ask(endpoint: Endpoint, query: str, accept: str) -> _Answer:
    """The answer to a query, asked for again after troubles that may pass."""
    attempt = 1
    while isinstance(outcome := _try(endpoint, query, accept), _Trouble):
        if attempt == endpoint.tries or not outcome.passing:
            problem = outcome.problem + (f" (tried {attempt} times)" if attempt > 1 else "")
            raise EndpointError(address=endpoint.address, problem=problem, advice=outcome.advice)
        time.sleep(max(outcome.wait, endpoint.pause * 2**attempt))
        attempt += 1
    time.sleep(endpoint.pause)
    return outcome


def _try(endpoint: Endpoint, query: str, accept: str) -> _Answer | _Trouble:
    """A whole answer to one request, or what went wrong."""
    try:
        answer = _post(endpoint, query, accept)
    except (OSError, HTTPException) as error:
        return _broken(endpoint, error)
    if answer.status == 206 or answer.headers.get("X-SQL-State") == VIRTUOSO_RAN_OUT_OF_TIME:
        return _Trouble("gave only a part of the answer, for want of time", SMALLER)
    return answer if answer.status == 200 else _refused(answer)


def _post(endpoint: Endpoint, query: str, accept: str) -> _Answer:
    """What comes back for one request, after a few redirections at most."""
    address = endpoint.address
    for _ in range(REDIRECTIONS + 1):
        headers = {"Accept": accept, "User-Agent": f"halfgraph/{__version__}"}
        request = urllib.request.Request(address, urlencode({"query": query}).encode(), headers)
        with _opener().open(request, timeout=endpoint.timeout) as response:
            answer = _Answer(response.status, response.headers, response.read())
        address = urljoin(address, answer.headers.get("Location", ""))
        # By hand, because urllib turns a redirected POST into a GET without the query, and would follow ftp.
        if answer.status not in (301, 302, 307, 308) or not _is_http(address):
            break
    return answer


def _opener() -> urllib.request.OpenerDirector:
    """An opener that knows http and https only, and leaves every status to its caller."""
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
        opener.add_handler(handler())
    return opener


def _is_http(address: str) -> bool:
    """Whether an address can be asked over HTTP."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and address.isascii()
    except ValueError:
        return False


def _broken(endpoint: Endpoint, error: OSError | HTTPException) -> _Trouble:
    """What is wrong with the connection."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return _Trouble(f"gave no answer within {endpoint.timeout:g} seconds", f"{SMALLER} Or wait longer.")
    if isinstance(reason, IncompleteRead):
        return _Trouble(f"broke off its answer after {len(reason.partial):,} bytes", f"{LATER} {SMALLER}")
    unknown = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
    lasting = unknown or isinstance(reason, ssl.SSLCertVerificationError | InvalidURL)
    what = "cannot connect" if isinstance(error, URLError | InvalidURL) else "the connection broke"
    return _Trouble(f"{what}: {reason}", "Check the address and the network.", passing=not lasting)


def _refused(answer: _Answer) -> _Trouble:
    """What a status other than 200 says."""
    said = "" if _is_web_page(answer) else answer.body[:SAID].decode(errors="replace").strip().partition("\n")[0]
    problem = f"HTTP status {answer.status}" + (f": {said}" if said else "")
    if VIRTUOSO_SORTS_NO_MORE in said or not (answer.status >= 500 or answer.status in (408, 429)):
        return _Trouble(problem, ADVICE.get(answer.status, CHECK), passing=False)
    wait = _seconds(answer.headers.get("Retry-After", ""))
    if wait > LONGEST_WAIT:
        return _Trouble(f"{problem}; it asks to wait {wait:,.0f} seconds", LATER, passing=False)
    return _Trouble(problem, LATER, wait=wait)


def _seconds(retry_after: str) -> float:
    """The seconds that a Retry-After header asks for, given as a number or as a date; 0 if it cannot be read."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def _is_web_page(answer: _Answer) -> bool:
    """Whether an answer is meant for a person's browser, whatever it says it is."""
    return "html" in answer.media_type or answer.body.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html"))


def _wrong_kind(endpoint: Endpoint, answer: _Answer, expected: str) -> EndpointError:
    """The error for an answer in another syntax than was asked for."""
    kind = answer.media_type.partition(";")[0] or "no media type"
    what = f"a web page ({kind})" if _is_web_page(answer) else kind
    return EndpointError(address=endpoint.address, problem=f"answered with {what} instead of {expected}", advice=CHECK)
