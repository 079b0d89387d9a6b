"""Access to the server: host names, web pages of other sites (CORS), and tokens.

A web page that the user visits could send requests to a server on loopback. Its browser says so: by a foreign Origin,
by Sec-Fetch-Site, or by a foreign name in Host (DNS rebinding).
"""

import hmac
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halfgraph.errors import SettingError
from halfgraph.serving.middleware import send_reply
from halfgraph.serving.negotiation import wants_page
from halfgraph.serving.problems import Problem, Reply

CLIENT = "halfgraph.client"  # in the scope: who sends the request, for the fair queue
COOKIE, SIGN_IN = "halfgraph_token", "/sign-in"
ALIVE = "/api/health/live"
OPEN = frozenset({SIGN_IN, ALIVE})  # paths that need no token
LEAST_TOKEN = 16  # characters
METHODS = "GET, POST, HEAD, OPTIONS"
EXPOSED = "X-Halfgraph-Note, X-Halfgraph-Cut, Retry-After"
PREFLIGHT = {
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": "Accept, Authorization, Content-Type",
    "Access-Control-Max-Age": "86400",
}
FORM = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>halfgraph</title>
<h1>halfgraph</h1><form method="post" action="/sign-in"><label>Token of this server:
<input type="password" name="token" required autofocus></label> <button>Sign in</button></form></html>
"""
Headers = Mapping[bytes, bytes]


@dataclass(frozen=True)
class AccessRules:
    """Host names and origins that are allowed, and tokens of which a request needs one, if there are any."""

    hosts: frozenset[str] = frozenset({"localhost"})
    origins: frozenset[str] = frozenset()
    tokens: tuple[str, ...] = ()

    @classmethod
    def of(cls, hosts: Iterable[str], origins: Iterable[str], tokens: Sequence[str]) -> "AccessRules":
        """Check what the command line gives."""
        for origin in origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                raise SettingError("--cors", f"{origin} is no origin", advice="Write https://example.org, or *.")
        for token in tokens:
            if not re.fullmatch(rf"[\w.~+/=-]{{{LEAST_TOKEN},}}", token, re.ASCII):
                problem = f"a token has at least {LEAST_TOKEN} characters, of A-Z, a-z, 0-9 and -._~+/="
                raise SettingError("--token", problem, advice="Make one with: openssl rand -hex 32")
        return cls(frozenset(name.lower() for name in hosts) | cls.hosts, frozenset(origins), tuple(tokens))

    def allows_page(self, headers: Headers) -> bool:
        """Whether a request comes from the server's own page, from an allowed origin, or from no page at all."""
        origin = headers.get(b"origin")
        if "*" in self.origins:
            return True
        if origin is None:  # an image or a script of another site; a link to the page is no problem
            foreign = headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
            return not foreign or headers.get(b"sec-fetch-dest") == b"document"
        own = headers.get(b"host", b"")
        return origin.decode("latin-1") in self.origins or origin in (b"http://" + own, b"https://" + own)

    def token_of(self, headers: Headers) -> int | None:
        """Return the number of the token that a request has; None if it has no valid one."""
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            cookies = (part.strip().partition(b"=") for part in headers.get(b"cookie", b"").split(b";"))
            given = next((value for name, _, value in cookies if name == COOKIE.encode()), b"")
        return self.number(given.strip())

    def number(self, given: bytes) -> int | None:
        """Return the number of a token, in a time that does not depend on the text."""
        same = [hmac.compare_digest(token.encode(), given) for token in self.tokens]
        return same.index(True) if any(same) else None


def read_tokens(file: Path) -> list[str]:
    """Read the tokens of a file, one in each line."""
    try:
        tokens = file.read_text(encoding="ascii").split()
    except (OSError, ValueError) as error:
        raise SettingError("--token-file", f"cannot read {file}: {error}") from error
    if not tokens:
        raise SettingError("--token-file", f"{file} is empty", advice="Write a token into it.")
    return tokens


class AccessControl:
    """Refuse requests of foreign hosts and pages and those without a token; answer preflights."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if (foreign := self._foreign(headers)) is not None:
            await send_reply(foreign.reply(), send)
            return
        if self.rules.origins and b"origin" in headers:
            send = self._with_cors(headers[b"origin"], send)
        number = self.rules.token_of(headers) if self.rules.tokens else 0
        if scope["method"] == "OPTIONS":
            allowed = PREFLIGHT if self.rules.origins else {}
            await send_reply(Reply(b"", "text/plain", 200, {"Allow": METHODS, **allowed}), send)
        elif number is None and scope["path"] not in OPEN:
            await send_reply(_no_token(headers), send)
        else:
            scope[CLIENT] = f"{number} {_network((scope.get('client') or ('',))[0])}"
            await self.app(scope, receive, send)

    def _foreign(self, headers: Headers) -> Problem | None:
        """What is wrong with the host that a request is for, or the page that it comes from."""
        host = headers.get(b"host", b"")
        if not _is_allowed(host, self.rules.hosts):
            name = host.decode("latin-1")[:200]
            advice = "If this is a name of the server, start it with --allow-host."
            return Problem(403, f"requests to the host {name} are refused", advice=advice)
        if not self.rules.allows_page(headers):
            origin = headers.get(b"origin", b"another site").decode("latin-1")[:200]
            advice = "If it may read the graph, start the server with --cors and its origin."
            return Problem(403, f"requests from pages of {origin} are refused", advice=advice)
        return None

    def _with_cors(self, origin: bytes, send: Send) -> Send:
        """Add the headers that let a page of an allowed origin read the answer."""
        allowed = b"*" if "*" in self.rules.origins else origin
        added = [(b"access-control-allow-origin", allowed), (b"access-control-expose-headers", EXPOSED.encode())]
        added += [] if allowed == b"*" else [(b"vary", b"Origin")]

        async def send_with_cors(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        return send_with_cors


def _no_token(headers: Headers) -> Reply:
    """The reply to a request without a valid token: a form for a browser, else an error."""
    if wants_page(headers.get(b"accept", b"").decode("latin-1")):
        return Reply(FORM, "text/html; charset=utf-8", 401)
    advice = "Send the header Authorization: Bearer TOKEN."
    return Problem(401, "this server needs a token", advice=advice, headers={"WWW-Authenticate": "Bearer"}).reply()


async def sign_in(request: Request, rules: AccessRules) -> Response:
    """Keep the token of a form in a cookie, so that the page works with it."""
    token = parse_qs((await request.body()).decode("latin-1")).get("token", [""])[0].strip()
    if rules.number(token.encode()) is None:
        return Response(FORM, 401, media_type="text/html; charset=utf-8")
    response = RedirectResponse("/", 303)
    is_secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=is_secure)
    return response


@lru_cache(maxsize=256)
def _is_allowed(host: bytes, names: frozenset[str]) -> bool:
    """Whether a Host header names this server; an address does, since only a name can be rebound to it."""
    if not host:
        return True  # HTTP/1.0: no browser
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:\d*)?", host.decode("latin-1").lower())
    return match is not None and (match[1] in names or _network(match[1].strip("[]")) != "")


@lru_cache(maxsize=1024)
def _network(address: str) -> str:
    """Return the address of a client, or for IPv6 its network, within which it can choose; empty if it is a name."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))
