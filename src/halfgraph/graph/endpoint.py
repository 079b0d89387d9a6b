"""A SPARQL 1.1 endpoint asked over HTTP: politely, again after troubles that may pass, with errors that say which."""

import socket
import ssl
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, IncompleteRead, InvalidURL
from urllib.error import URLError
from urllib.parse import urlencode, urljoin, urlsplit

import pyoxigraph as rdf
from pyoxigraph import BlankNode, Literal, NamedNode

from halfgraph import __version__
from halfgraph.errors import EndpointError, SettingError

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
    answer = ask(endpoint, query, "application/sparql-results+json")
    if "json" not in answer.media_type or is_web_page(answer):
        raise wrong_content_type(endpoint, answer, "JSON results")
    try:
        results = rdf.parse_query_results(answer.body, rdf.QueryResultsFormat.JSON)
        if isinstance(results, rdf.QueryBoolean):
            raise EndpointError(address=endpoint.address, problem="answered yes or no", advice="Ask with SELECT.")
        names = [variable.value for variable in results.variables]
        return [{name: row[name] for name in names if row[name] is not None} for row in results]
    except SyntaxError as error:
        problem = f"answered with results that are broken or break off: {error.msg}"
        raise EndpointError(address=endpoint.address, problem=problem, advice="Ask again.") from error


@dataclass(frozen=True)
class Answer:
    """What came back over HTTP."""

    status: int
    headers: Message
    body: bytes

    @property
    def media_type(self) -> str:
        """What it says it is, in small letters."""
        return str(self.headers.get("Content-Type", "")).lower()


@dataclass(frozen=True)
class _Trouble:
    """What went wrong with a request, what to do, and whether it may pass by itself."""

    problem: str
    advice: str
    passing: bool = True
    wait: float = 0.0  # seconds, if the endpoint asked for it


def ask(endpoint: Endpoint, query: str, accept: str) -> Answer:
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


def _try(endpoint: Endpoint, query: str, accept: str) -> Answer | _Trouble:
    """A whole answer to one request, or what went wrong."""
    try:
        answer = _post(endpoint, query, accept)
    except (OSError, HTTPException) as error:
        return _broken(endpoint, error)
    if answer.status == 206 or answer.headers.get("X-SQL-State") == VIRTUOSO_RAN_OUT_OF_TIME:
        return _Trouble("gave only a part of the answer, for want of time", SMALLER)
    return answer if answer.status == 200 else _refused(answer)


def _post(endpoint: Endpoint, query: str, accept: str) -> Answer:
    """What comes back for one request, after a few redirections at most."""
    address = endpoint.address
    for _ in range(REDIRECTIONS + 1):
        headers = {"Accept": accept, "User-Agent": f"halfgraph/{__version__}"}
        request = urllib.request.Request(address, urlencode({"query": query}).encode(), headers)
        with _opener().open(request, timeout=endpoint.timeout) as response:
            answer = Answer(response.status, response.headers, response.read())
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


def _refused(answer: Answer) -> _Trouble:
    """What a status other than 200 says."""
    said = "" if is_web_page(answer) else answer.body[:SAID].decode(errors="replace").strip().partition("\n")[0]
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


def is_web_page(answer: Answer) -> bool:
    """Whether an answer is meant for a person's browser, whatever it says it is."""
    return "html" in answer.media_type or answer.body.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html"))


def wrong_content_type(endpoint: Endpoint, answer: Answer, expected: str) -> EndpointError:
    """The error for an answer in another syntax than was asked for."""
    media_type = answer.media_type.partition(";")[0] or "no media type"
    what = f"a web page ({media_type})" if is_web_page(answer) else media_type
    return EndpointError(address=endpoint.address, problem=f"answered with {what} instead of {expected}", advice=CHECK)
