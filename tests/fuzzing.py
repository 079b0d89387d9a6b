"""Generated requests: queries by the grammar, mutated ones, and raw bytes, at all routes with all kinds of headers.

`make fuzz`, or `tests/fuzzing.py --seed 1 --minutes 10`, sends them to a server and exits with 1 if an answer is a 5xx
other than 503 and 504, takes too long, or shows a traceback or a path; it prints the requests that did. The same seed
gives the same requests. A thousandth may be refused with 503.
"""

import argparse
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from halfgraph.sparql.parse import _lalr
from halfgraph.sparql.terminals import AGGREGATES, FUNCTIONS, MARKS
from server_process import PROGRAM, Running, running

EX = "http://example.org/"
SECONDS = 30.0  # a request that takes longer hangs
SECRETS = re.compile(rb'Traceback|File "|\.py\b|site-packages|/home/|/root/|/tmp/|/work/|/usr/')
LARGEST = 400  # tokens of a query, after which the shortest derivation is taken
IRIS = ("livesIn", "knows", "age", "inCountry", "title", "person1", "person7", "city3", "country1", "Person", "nothing")
SPECIAL = (
    *("rdf:type", "rdfs:label", "xsd:integer", "xsd:date", "<>", "<a>", "<http://[>", "<javascript:alert(1)>"),
    *(":", ":a%2F", ":\\~", "<urn:\\u00e9>", "ex:x", f"<{EX}{'a' * 3000}>"),
)
STRINGS = (
    "'a'",
    '"Pérson 1 Müller"',
    "''",
    "'''a\nb'''",
    '"\\u00e9\\n\\""',
    "'20'",
    "'2020-13-45'",
    "'(['",
)
NUMBERS = ("0", "1", "7", "42", "1000000", "99999999999999999999999", "000", "2147483648", "9223372036854775807")
DECIMALS = ("1.5", ".5", "1e0", "1e999", "0.0", "1E-400", "3.14")
TERMINALS = {
    "VAR": ("?x", "?y", "$z", "?_source", "?_confidence", "?é", "?x1"),
    "STRING": STRINGS,
    "INTEGER": NUMBERS,
    "NUMBER": DECIMALS,
    "SIGNED": ("-1", "+1.5", "-1.5", "-1e3", "-0", "-99999999999999999999"),
    "BOOLEAN": ("true", "false", "TRUE"),
    "LANGTAG": ("@en", "@de-CH", "@x-y-z", "@en--ltr"),
    "BLANK": ("_:a", "_:b", "_:1"),
    "ANON": ("[]", "[ ]"),
    "NIL": ("()", "( )"),
    "NAMESPACE": (f"<{EX}>", "<>", "<#>", "<http://127.0.0.1:9/>"),
    "PNAME_NS": ("ex:", ":", "xsd:", "a.b:"),
    "A": ("a",),
    "FUNCTION": tuple(sorted(FUNCTIONS)),
    "AGGREGATE": tuple(sorted(AGGREGATES - {"GROUP_CONCAT"})),
}
QUERIED = ("query", "top", "mode", "min_confidence")
ROUTES = {  # the methods and the parameters of each
    "/sparql": (("GET", "POST"), ("query", "format", "output", "results", "default-graph-uri", "named-graph-uri")),
    "/sparql/predict": (("GET", "POST"), (*QUERIED, "format", "default-graph-uri")),
    "/api/ask": (("GET", "POST"), QUERIED),
    "/api/explain": (("POST",), ("query", "entity", "mode")),
    "/api/complete": (("GET",), ("text", "what", "limit")),
    "/api/entity": (("GET",), ("iri", "limit")),
    "/sign-in": (("POST",), ("token",)),
}
NO_PARAMETERS = (
    "/",
    "/api/info",
    "/api/examples",
    "/api/health",
    "/api/health/live",
    "/metrics",
    "/api/openapi.json",
    "/page.js",
)
NO_ROUTES = ("/api/", "/nothing", "//", "/.", "/sparql/", "*", "http://evil.example/", "/%2e%2e/%2e%2e/etc/passwd")
MEDIA = (
    *("application/sparql-query", "application/x-www-form-urlencoded", "application/json", "application/sparql-update"),
    *("text/plain", "", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "x/;;=,"),
)
HEADERS = {
    "Host": ("localhost", "127.0.0.1", "[::1]:80", "evil.example", "", "localhost:99999999", "[", "x y"),
    "Accept": ("*/*", "text/csv", "text/turtle;q=0.5, */*;q=nan", "text/html", "image/png", ",;q=,", "application/xml"),
    "Accept-Encoding": ("gzip", "identity;q=0", "br, gzip;q=-1", "*"),
    "Origin": ("null", "http://localhost", "https://evil.example", "", "\xff"),
    "Authorization": ("Bearer x", "Basic eDp5", "Bearer", "Bearer \xe9"),
    "Cookie": ("halfgraph_token=x", ";;=", "a" * 5000),
    "Range": ("bytes=0-10", "bytes=5-1", "bytes=-99999999999", "bytes=0-1,3-4", "items=x", "bytes=a-b"),
    "If-None-Match": ("*", '"x"'),
    "If-Modified-Since": ("Thu, 01 Jan 1970 00:00:00 GMT", "yesterday"),
    "X-Forwarded-For": ("1.2.3.4", "::1", "unknown, x", ","),
    "X-Forwarded-Proto": ("https", "ws", "x"),
    "Expect": ("100-continue", "200-ok"),
    "Upgrade": ("websocket", "h2c"),
    "Sec-Fetch-Site": ("cross-site", "none"),
    "Access-Control-Request-Method": ("POST", "BREW"),
    "Content-Encoding": ("gzip", "br"),
}
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW", "get")
VALUES = (
    None,
    True,
    [],
    {},
    "",
    "links",
    "embedding",
    -1,
    0,
    3,
    1e308,
    10**30,
    "\ud800",
    "x" * 20_000,
    ["a"],
    0.5,
    "3",
)
NAMES = (*sorted({name for _, names in ROUTES.values() for name in names}), "update", "unknown", "")


@cache
def grammar() -> tuple[dict[str, list[list[str]]], dict[str, int]]:
    """The productions of SPARQL by rule, and the fewest tokens that each rule derives."""
    rules: dict[str, list[list[str]]] = {}
    for rule in _lalr().rules:
        rules.setdefault(rule.origin.name, []).append([symbol.name for symbol in rule.expansion])
    least = dict.fromkeys(rules, 10**6)
    for _ in rules:
        for name, options in rules.items():
            least[name] = min(1 + sum(least.get(symbol, 1) for symbol in option) for option in options)
    return rules, least


def derived(rng: random.Random, start: str) -> str:
    """A text by the grammar."""
    rules, least = grammar()
    tokens: list[str] = []
    stack, most = [start], rng.choice((10, 40, 100, LARGEST))
    while stack:
        symbol = stack.pop()
        if symbol not in rules:
            tokens.append(terminal(rng, symbol))
            continue
        options = rules[symbol]
        if len(tokens) + len(stack) > most:
            options = [min(options, key=lambda option: sum(least.get(part, 1) for part in option))]
        stack.extend(reversed(rng.choice(options)))
    space = rng.choice((" ", " ", " ", "\n", "\t", " # c\n", ""))
    return space.join(tokens)


def terminal(rng: random.Random, name: str) -> str:
    """A token of a kind."""
    if name == "IRI":
        return rng.choice(SPECIAL) if rng.random() < 0.2 else f"<{EX}{rng.choice(IRIS)}>"
    if name == "SERVICE" and rng.random() < 0.9:
        return "OPTIONAL"
    marks = [mark for mark, mark_name in MARKS.items() if mark_name == name]
    return rng.choice(TERMINALS.get(name, marks) or [name, name.lower()])


def plain_query(rng: random.Random) -> str:
    """A query that can be answered, and mostly predicted."""
    person, city = (f"<{EX}{kind}{rng.randrange(15)}>" for kind in ("person", "city"))
    patterns = [f"?x <{EX}livesIn> {city}", f"?x <{EX}knows> {person}", f"{person} <{EX}knows> ?x", f"?x <{EX}age> ?a"]
    patterns += [f"?x <{EX}livesIn> ?c . ?c <{EX}inCountry> <{EX}country1>", f"?x a <{EX}Person>", "FILTER(?x != ?y)"]
    patterns += [f"MINUS {{ ?x <{EX}knows> {person} }}", f"{{ ?x <{EX}knows> {person} }} UNION {{ ?x a <{EX}City> }}"]
    body = " . ".join(rng.sample(patterns, rng.randrange(1, 4)))
    form = rng.choice(("SELECT ?x", "SELECT *", "SELECT DISTINCT ?x", "ASK", "SELECT (COUNT(?x) AS ?n)", "DESCRIBE ?x"))
    return f"{form} {{ {body} }} {rng.choice(('', 'LIMIT 5', 'OFFSET 1', 'ORDER BY ?x'))}"


def mutated(rng: random.Random, text: str) -> str:
    """A text with some places changed."""
    for _ in range(rng.randrange(1, 6)):
        at, length = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 5))
        new = rng.choice(
            ("", "", "{", "}", "(", ")", "<", ">", '"', "'", "\\", "#", ".", ";", "\0", "\u202e", "é", "\U0001f600")
        )
        new = new or rng.choice(
            (text[at : at + rng.randrange(20)], *STRINGS, *NUMBERS, *SPECIAL, "SERVICE", "SELECT", "?x")
        )
        text = text[:at] + new * rng.choice((1, 1, 1, 30)) + text[at + length :]
    return text


def query(rng: random.Random) -> str:
    """A query, right or wrong."""
    kind = rng.random()
    if kind < 0.1:
        return "".join(
            rng.choice("SELECT{}?x<>.:'\"\\#()[]|^/*+-!@$%&~é\u2028 \n\t\0") for _ in range(rng.randrange(200))
        )
    text = plain_query(rng) if kind < 0.4 else derived(rng, "update" if kind > 0.95 else "query")
    return mutated(rng, text) if rng.random() < 0.4 else text


def value(rng: random.Random, name: str) -> str:
    """A value of a parameter, mostly one that it may have."""
    if rng.random() < 0.2:
        return str(rng.choice(VALUES))
    choices = {
        "query": lambda: query(rng),
        "mode": lambda: rng.choice(("links", "embedding")),
        "min_confidence": lambda: str(rng.random()),
        "what": lambda: rng.choice(("entity", "relation", "any")),
        "text": lambda: rng.choice(("per", "person 1", "lives", "<http://exa", "ex:", "müller", "\u202e", "%")),
        "format": lambda: rng.choice(("csv", "tsv", "json", "xml", "ttl", "nt", "text/turtle", "exe")),
    }
    choices |= dict.fromkeys(("top", "limit"), lambda: str(rng.randrange(1, 120)))
    choices |= dict.fromkeys(("output", "results"), choices["format"])
    return choices.get(name, lambda: EX + rng.choice(IRIS))()


def parameters(rng: random.Random, route: str) -> list[tuple[str, str]]:
    """Parameters of a route: the first one, mostly, and some others."""
    names = ROUTES[route][1] if route in ROUTES else ("",)
    chosen = [*(names[:1] if rng.random() < 0.95 else ()), *(name for name in names[1:] if rng.random() < 0.3)]
    chosen += [rng.choice(NAMES)] if rng.random() < 0.05 else []
    return [(name, value(rng, name)) for name in chosen if name]


def encoded(rng: random.Random, pairs: list[tuple[str, str]]) -> str:
    if rng.random() < 0.05:
        return quote(rng.randbytes(rng.randrange(50)), safe="&=%+;")
    return urlencode(pairs, errors="surrogatepass")


def body_of(rng: random.Random, route: str, media: str) -> bytes:
    """The body of a POST."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(300))
    if "json" not in media:
        return (encoded(rng, parameters(rng, route)) if "form" in media else query(rng)).encode(errors="replace")
    values: dict[str, object] = dict(parameters(rng, route))
    values |= {
        name: float(str(given)) for name, given in values.items() if re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(given))
    }
    values |= {"top": rng.randrange(1, 20)} if rng.random() < 0.5 else {}
    values |= {rng.choice(NAMES): rng.choice(VALUES)} if rng.random() < 0.1 else {}
    text = json.dumps(values, ensure_ascii=rng.random() < 0.9)
    text = mutated(rng, text) if rng.random() < 0.1 else text
    return (rng.choice(("[" * 5000, "")) if rng.random() < 0.02 else text).encode(errors="replace")


def request(rng: random.Random) -> bytes:
    """A request; the connection ends after its answer."""
    if rng.random() < 0.03:
        return rng.randbytes(rng.randrange(1, 300)) + rng.choice((b"", b"\r\n\r\n"))
    route = rng.choice((*ROUTES, *ROUTES, *ROUTES, "/sparql", *NO_PARAMETERS))
    method = rng.choice(ROUTES.get(route, [["GET"]])[0]) if rng.random() < 0.95 else rng.choice(METHODS)
    media = rng.choice(MEDIA[2:3] * 20 + MEDIA if route.startswith("/api") else MEDIA[:2] * 20 + MEDIA)
    posts = method == "POST" or rng.random() < 0.02
    address = route if posts and rng.random() < 0.95 else f"{route}?{encoded(rng, parameters(rng, route))}"
    if rng.random() < 0.04:
        address = rng.choice((*NO_ROUTES, *(route + end for end in ("/", "%00", "/..%2f..", "?", "%ff", "/x"))))
    headers = {"Host": "localhost", "Connection": "close"}
    for name in rng.sample(sorted(HEADERS), rng.choice((0, 0, 0, 1, 2))):
        headers[name] = rng.choice(HEADERS[name])
    body = body_of(rng, route, media) if posts else b""
    if posts:
        headers |= {"Content-Type": media, "Content-Length": str(len(body))}
    if posts and rng.random() < 0.01:
        headers["Content-Length"] = rng.choice(("-1", "x", "99999999999999999999", str(len(body) + 5), "1, 2"))
    lines = [f"{method} {address} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    message = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
    if rng.random() < 0.03:
        at = rng.randrange(len(message))
        message = message[:at] + rng.randbytes(rng.randrange(1, 4)) + message[at + rng.randrange(3) :]
    return message


@dataclass
class Outcome:
    """Answers by status, and what must not be: the request with the fault."""

    codes: Counter[int] = field(default_factory=Counter)
    faults: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, sent: bytes, answer: bytes | None) -> None:
        """Judge an answer; None is a hang, and no bytes a connection that the server ended."""
        heads = re.findall(rb"HTTP/1\.1 ([2-9]\d\d) ", (answer or b"")[:10_000])
        status = int(heads[0]) if heads else 0
        self.codes[status] += 1
        if answer is None:
            self.faults.append(("hangs", sent))
        elif status >= 500 and status not in (503, 504):
            self.faults.append((f"status {status}", sent))
        elif (secret := SECRETS.search(answer)) and secret.group() not in sent:
            self.faults.append((f"shows {secret.group().decode()}", sent))


def send(address: str, message: bytes) -> bytes | None:
    """The answer to some bytes; None if there is none in time."""
    place = urlsplit(address)
    answer = b""
    try:
        with socket.create_connection((place.hostname, place.port), timeout=SECONDS) as link:
            link.sendall(message)
            if not re.search(rb"(?i)^connection: close\r$", message, re.MULTILINE) or b"\r\n\r\n" not in message:
                link.shutdown(socket.SHUT_WR)  # the server would wait for more
            while part := link.recv(1_000_000):
                answer += part
    except TimeoutError:
        return None
    except ConnectionError:
        return answer
    return answer


def fuzz(server: Running, seed: int, count: int, seconds: float = float("inf"), clients: int = 4) -> Outcome:
    """Send so many requests, or as many as there is time for; the last fault may be in the server's log."""
    outcome, end = Outcome(), time.monotonic() + seconds

    def client(number: int) -> None:
        for turn in range(number, count, clients):
            if time.monotonic() > end or server.process.poll() is not None:
                return
            message = request(random.Random(f"{seed} {turn}"))
            outcome.add(message, send(server.address, message))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if server.process.poll() is not None:
        outcome.faults.append((f"the server has ended with code {server.process.returncode}", b""))
    if "Traceback" in server.logged():
        outcome.faults.append((server.logged()[server.logged().index("Traceback") :][:5000], b""))
    if outcome.codes[503] > max(2, sum(outcome.codes.values()) / 1000):
        outcome.faults.append((f"{outcome.codes[503]} answers are 503", b""))
    return outcome


def main() -> None:
    """Make a small run, serve it, and send requests."""
    from serving.conftest import FEW, statements

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source.nq").write_text("\n".join(statements()), encoding="utf-8")
        few = [word for pair in FEW for word in ("--set", pair)]
        for command in (
            ["import", f"{name}/source.nq", "--split", "80/5/15", "--out", f"{name}/graph"],
            ["train", f"{name}/graph", "--steps", "20", "--threads", "1", "--quiet", "--out", f"{name}/run", *few],
        ):
            subprocess.run([PROGRAM, *command], check=True, capture_output=True)
        with running(folder / "run", "--view", "train", "--time-limit", "5", "--log", "none") as server:
            outcome = fuzz(server, chosen.seed, chosen.count, 60 * chosen.minutes)
    sys.stdout.write(f"seed {chosen.seed}: {sum(outcome.codes.values()):,} requests, {dict(outcome.codes)}\n")
    for fault, message in outcome.faults[:50]:
        sys.stdout.write(f"{fault}: {message!r}\n")
    sys.exit(bool(outcome.faults))


if __name__ == "__main__":
    main()
