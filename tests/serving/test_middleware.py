"""Headers of every response, limits of requests, and 2,000 generated requests (see tests/fuzzing.py)."""

import gzip
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from fuzzing import fuzz
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


def test_two_thousand_generated_requests_get_no_500_and_the_server_goes_on(server, client):
    outcome = fuzz(server, seed=0, count=2000)
    assert not outcome.faults
    assert outcome.codes[200] > 400
    assert sum(outcome.codes[status] for status in range(400, 500)) > 800
    assert client.get(ASK).status_code == 200
