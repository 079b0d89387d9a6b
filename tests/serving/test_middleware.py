"""Headers of every response, and 1,000 malformed requests: always a 4xx, never a hang, and the server goes on."""

import gzip
import json
import random
import socket
from collections import Counter
from urllib.parse import quote, urlsplit

import httpx
import pytest

from server_process import Running

ASK = "/sparql?query=ASK%7B%7D"
FORM, DIRECT = "application/x-www-form-urlencoded", "application/sparql-query"
ADDRESSES = ("/", ASK, "/sparql", "/sparql/predict", "/api/info", "/api/nothing", "/metrics", "/sparql?query=x")
SECONDS = 20.0  # a request that takes longer hangs


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_keeps_browsers_strict_and_lets_no_other_page_read(client, address):
    headers = client.get(address).headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_a_large_answer_is_compressed_if_wanted(client):
    everything = {"query": "SELECT * { ?s ?p ?o }"}
    plain = client.get("/sparql", params=everything, headers={"Accept-Encoding": "identity"})
    with client.stream("GET", "/sparql", params=everything, headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert "Accept" in packed.headers["vary"]
    assert len(raw) < len(plain.content) / 2


@pytest.mark.parametrize("address", ["/sparql", "/api/ask"])
def test_a_huge_body_is_refused_before_it_is_read(server, address):
    """The head alone is sent: a client that goes on sending may find that the server has hung up."""
    host = server.address.split("//")[1].rstrip("/")
    head = f"POST {address} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {DIRECT}\r\nContent-Length: 2000000\r\n\r\n"
    assert raw(server, head.encode()) == 413


def test_a_body_that_does_not_say_its_length_is_bounded_too(client):
    def endless():
        for _ in range(100):
            yield b"x" * 100_000

    try:
        status = client.post("/sparql", content=endless(), headers={"Content-Type": DIRECT}).status_code
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):  # the server has hung up before all was sent
        status = 413
    assert status == 413
    assert client.get(ASK).status_code == 200


def test_requests_are_logged_without_their_queries(server, client):
    client.get("/sparql", params={"query": "ASK { ?secret ?p ?o }"})
    log = server.logged()
    assert " 200 GET /sparql " in log
    assert "secret" not in log


def raw(server: Running, request: bytes) -> int:
    """The status of the answer to some bytes; 0 where the server hung up, -1 where it did neither."""
    place = urlsplit(server.address)
    with socket.create_connection((place.hostname, place.port), timeout=SECONDS) as link:
        try:
            link.sendall(request)
            answer = link.recv(65536)
        except ConnectionError:
            return 0
        except TimeoutError:
            return -1
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def malformed(rng: random.Random) -> bytes:
    """A request that is wrong in one way or another."""
    noise = rng.randbytes(rng.randrange(1, 300))
    text = "".join(
        rng.choice("SELECT{}?x<>.:'\"\\#()[]|^/*+-!@$%&~é\u2028 \n\t\0") for _ in range(rng.randrange(1, 200))
    )
    address = rng.choice(["/sparql", "/sparql/predict"]).encode()
    wrong = (
        lambda: noise + b"\r\n\r\n",
        lambda: b"GET " + address + b"?query=" + quote(noise).encode() + b"} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: (
            b"GET " + address + b"?query=" + quote("SELECT {" + text).encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ),
        lambda: b"GET /api/complete?limit=" + quote(noise).encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: b"GET /api/entity?iri=" + quote(text).encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: b"GET /" + quote(noise).encode() + b"/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: (
            rng.choice([b"PUT", b"DELETE", b"TRACE", b"BREW"])
            + b" "
            + address
            + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ),
        lambda: posted(address, noise, rng.choice([FORM, DIRECT, "text/plain", "application/json", "\x01/;;=,"])),
        lambda: posted(address, b"query=%FF%FE" + noise, FORM),
        lambda: posted(b"/api/ask", noise, "application/json"),
        lambda: posted(b"/api/explain", json.dumps({"query": text, "entity": text}).encode(), "application/json"),
        lambda: posted(b"/api/ask", json.dumps({"query": "\ud800" + text}).encode(), "application/json"),
        lambda: posted(b"/api/ask", b'{"query": ' + b"[" * rng.randrange(1, 2000), "application/json"),
        lambda: posted(b"/api/ask", b'{"query": "ASK{}", "top": 1e999}', "application/json"),
        lambda: (
            b"POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            + noise[:5].hex().encode()
            + b"\r\n\r\n"
            + noise
        ),
        lambda: b"GET " + ASK.encode() + b" HTTP/1.1\r\n\r\n",
        lambda: (
            b"GET "
            + ASK.encode()
            + b" HTTP/1.1\r\nHost: localhost\r\nAccept: image/"
            + noise.hex().encode()
            + b"\r\n\r\n"
        ),
    )
    return rng.choice(wrong)()


def posted(address: bytes, body: bytes, media: str) -> bytes:
    head = b"POST " + address + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + media.encode()
    return head + b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body


def test_a_thousand_malformed_requests_get_4xx_and_the_server_goes_on(server, client):
    rng = random.Random(0)
    seen: Counter[int] = Counter()
    odd: list[tuple[int, bytes]] = []
    before = server.workers()
    for _ in range(1000):
        request = malformed(rng)
        status = raw(server, request)
        seen[status] += 1
        if status != 0 and not 400 <= status < 500:
            odd.append((status, request))
    assert not odd
    assert sum(seen[status] for status in range(400, 500)) > 900, seen
    assert client.get(ASK).status_code == 200
    assert server.workers() == before
    assert "Traceback" not in server.logged()
