"""Client of a SPARQL 1.1 endpoint: pauses between requests, retries after temporary failures, clear errors."""

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

LONGEST_WAIT = 300.0  # seconds; an import that must wait longer stops
VIRTUOSO_SORTS_NO_MORE = "SR353"  # Virtuoso refuses ORDER BY where OFFSET + LIMIT is above 10,000
VIRTUOSO_RAN_OUT_OF_TIME = "S1TAT"  # Virtuoso marks an incomplete answer with it

REDIRECTIONS = 5
MAX_SHOWN = 300  # bytes of an error response
CHECK = "Check that the address is the SPARQL endpoint itself and not a page about it; it often ends in /sparql."
LATER = "Try again later: the pages already here are kept."
SMALLER = "Ask for smaller pages."
ADVICE = {
    400: "The endpoint does not understand the query; it may not support SPARQL 1.1.",
    401: "The endpoint requires a password, which halfgraph does not support.",
    403: "The endpoint denies access; see its terms of use.",
    405: "The endpoint does not accept queries by POST, which SPARQL 1.1 requires.",
}


@dataclass(frozen=True)
class Endpoint:
    """A SPARQL endpoint, with page size, pauses and retries."""

    address: str
    page_size: int = 10_000
    pause: float = 0.5  # seconds between two requests; doubled after each failed try
    timeout: float = 60.0  # seconds without a byte from the endpoint
    tries: int = 5  # for each request

    def __post_init__(self) -> None:
        if not _is_http(self.address):
            advice = "Pass a URL that begins with http:// or https://"
            raise EndpointError(address=self.address, problem="is not the URL of an endpoint", advice=advice)
        for setting in ("page_size", "tries"):
            if getattr(self, setting) < 1:
                raise SettingError(setting, f"must be at least 1, found {getattr(self, setting)}")


def select(endpoint: Endpoint, query: str) -> list[dict[str, NamedNode | BlankNode | Literal]]:
    """Return the rows of a SELECT query, each without its unbound variables."""
    answer = ask(endpoint, query, "application/sparql-results+json")
    check_content(endpoint, answer, "json" in answer.media_type, "JSON results")
    try:
        results = rdf.parse_query_results(answer.body, rdf.QueryResultsFormat.JSON)
        if isinstance(results, rdf.QueryBoolean):
            raise EndpointError(address=endpoint.address, problem="answered yes or no", advice="Use a SELECT query.")
        names = [variable.value for variable in results.variables]
        return [{name: row[name] for name in names if row[name] is not None} for row in results]
    except SyntaxError as error:
        problem = f"returned malformed or incomplete results: {error.msg}"
        raise EndpointError(address=endpoint.address, problem=problem, advice="Try again.") from error


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: Message
    body: bytes

    @property
    def media_type(self) -> str:
        return str(self.headers.get("Content-Type", "")).lower()

    @property
    def is_web_page(self) -> bool:
        beginning = self.body.lstrip()[:14].lower()
        return "html" in self.media_type or beginning.startswith((b"<!doctype html", b"<html"))


@dataclass(frozen=True)
class _Failure:
    """A failed request: the problem, what to do, and whether a retry may help."""

    problem: str
    advice: str
    temporary: bool = True
    wait: float = 0.0  # seconds, if the endpoint asked for it


def ask(endpoint: Endpoint, query: str, accept: str) -> Answer:
    """Send a query and return the response; retry after temporary failures."""
    attempt = 1
    while isinstance(outcome := _try(endpoint, query, accept), _Failure):
        if attempt == endpoint.tries or not outcome.temporary:
            problem = outcome.problem + (f" (tried {attempt} times)" if attempt > 1 else "")
            raise EndpointError(address=endpoint.address, problem=problem, advice=outcome.advice)
        time.sleep(max(outcome.wait, endpoint.pause * 2**attempt))
        attempt += 1
    time.sleep(endpoint.pause)
    return outcome


def _try(endpoint: Endpoint, query: str, accept: str) -> Answer | _Failure:
    """Send one request; return a complete response or the failure."""
    try:
        answer = _post(endpoint, query, accept)
    except (OSError, HTTPException) as error:
        return _broken(endpoint, error)
    if answer.status == 206 or answer.headers.get("X-SQL-State") == VIRTUOSO_RAN_OUT_OF_TIME:
        return _Failure("ran out of time and returned only a part of the answer", SMALLER)
    return answer if answer.status == 200 else _refused(answer)


def _post(endpoint: Endpoint, query: str, accept: str) -> Answer:
    """Send one request and return the response, following a few redirections."""
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
    """Return an opener for http and https only, which raises for no status."""
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
        opener.add_handler(handler())
    return opener


def _is_http(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and address.isascii()
    except ValueError:
        return False


def _broken(endpoint: Endpoint, error: OSError | HTTPException) -> _Failure:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return _Failure(f"gave no answer within {endpoint.timeout:g} seconds", SMALLER)
    if isinstance(reason, IncompleteRead):
        return _Failure(f"closed the connection after {len(reason.partial):,} bytes", f"{LATER} {SMALLER}")
    unknown = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
    permanent = unknown or isinstance(reason, ssl.SSLCertVerificationError | InvalidURL)
    what = "cannot connect" if isinstance(error, URLError | InvalidURL) else "the connection broke"
    return _Failure(f"{what}: {reason}", "Check the address and the network.", temporary=not permanent)


def _refused(answer: Answer) -> _Failure:
    """Describe a response with a status other than 200."""
    message = "" if answer.is_web_page else answer.body[:MAX_SHOWN].decode(errors="replace").strip().partition("\n")[0]
    problem = f"HTTP status {answer.status}" + (f": {message}" if message else "")
    if VIRTUOSO_SORTS_NO_MORE in message or not (answer.status >= 500 or answer.status in (408, 429)):
        return _Failure(problem, ADVICE.get(answer.status, CHECK), temporary=False)
    wait = _seconds(answer.headers.get("Retry-After", ""))
    if wait > LONGEST_WAIT:
        return _Failure(f"{problem}; it asks to wait {wait:,.0f} seconds", LATER, temporary=False)
    return _Failure(problem, LATER, wait=wait)


def _seconds(retry_after: str) -> float:
    """Return the seconds of a Retry-After header, a number or a date; 0 if it is neither."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def check_content(endpoint: Endpoint, answer: Answer, is_right: bool, expected: str) -> None:
    """Raise EndpointError for a response of a wrong media type, and for a web page whatever its type."""
    media_type = answer.media_type.partition(";")[0] or "no media type"
    what = f"a web page ({media_type})" if answer.is_web_page else media_type
    if answer.is_web_page or not is_right:
        raise EndpointError(address=endpoint.address, problem=f"returned {what} instead of {expected}", advice=CHECK)
