"""Downloads from a SPARQL endpoint are complete, however badly the endpoint behaves."""

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    Quad,
    QueryResultsFormat,
    QueryTriples,
    RdfFormat,
    Store,
    Triple,
    parse,
    serialize,
)

from halfgraph import __version__
from halfgraph.errors import EndpointError, FolderError, InputError, SettingError
from halfgraph.graph import remote
from halfgraph.graph.endpoint import Endpoint, select
from halfgraph.graph.remote import download, neighbourhood
from halfgraph.graph.statements import LABEL, RDF, SUB_CLASS_OF, TYPE

HERE = "http://example.org/"
ONTOLOGY = HERE + "ontology/"


@dataclass(frozen=True)
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    promised: int = 0  # bytes said to come and never sent
    hang_up: bool = False


Behaviour = Callable[[int, str], Reply | None]  # the number of the request and its query; None: answer as one should


@dataclass
class Served:
    """A store behind a local endpoint, and what was asked of it."""

    store: Store
    address: str = ""
    cap: int | None = None
    syntax: RdfFormat = RdfFormat.N_TRIPLES
    behave: Behaviour = lambda _number, _query: None
    queries: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def endpoint(self, page_size: int = 10, tries: int = 3, timeout: float = 20.0) -> Endpoint:
        return Endpoint(self.address, page_size=page_size, pause=0, timeout=timeout, tries=tries)

    def offsets(self) -> list[int]:
        return [int(query.split("OFFSET ")[1].split()[0]) for query in self.queries]

    def reply(self, query: str) -> Reply:
        results = self.store.query(query)
        if isinstance(results, QueryTriples):
            body = serialize(islice(results, self.cap), format=self.syntax)
            return Reply(headers={"Content-Type": self.syntax.media_type}, body=body or b"")
        body = results.serialize(format=QueryResultsFormat.JSON)
        return Reply(headers={"Content-Type": "application/sparql-results+json"}, body=body or b"")


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            served.queries.append(form["query"][0])
            served.headers.append(dict(self.headers))
            reply = served.behave(len(served.queries) - 1, form["query"][0]) or served.reply(form["query"][0])
            if not reply.hang_up:
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body) + reply.promised), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Served]]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    servers = []

    def start(triples: Iterable[Triple], **switches: object) -> Served:
        store = Store()
        store.extend(Quad(*triple) for triple in triples)
        served = Served(store, **switches)  # type: ignore[arg-type]
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
        served.address = f"http://127.0.0.1:{server.server_port}/sparql"
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return served

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def node(name: str) -> NamedNode:
    return NamedNode(HERE + name)


def some_triples(count: int) -> set[Triple]:
    """Triples whose objects are of every type, each text awkward to write down."""
    objects: list[NamedNode | Literal | BlankNode] = [
        node("o"),
        Literal('a "quoted"\nline'),
        Literal("é", language="fr"),
        BlankNode("b0"),
    ]
    return {Triple(node(f"s{n // 3}"), node(f"p{n % 3}"), objects[n % 4]) for n in range(count)}


def a_world(seed: int, entities: int = 40, triples: int = 70) -> set[Triple]:
    """A random graph with relations inside and outside the ontology, literals, blank nodes, types and a hierarchy."""
    rng = random.Random(seed)
    names = [node(f"e{n}") for n in range(entities)]
    said = {
        Triple(rng.choice(names), NamedNode(rng.choice((ONTOLOGY, HERE)) + f"r{rng.randrange(3)}"), rng.choice(names))
        for _ in range(triples)
    }
    for name in names:
        said.add(Triple(name, NamedNode(TYPE), node(f"C{rng.randrange(4)}")))
        said.add(Triple(name, NamedNode(LABEL), Literal(name.value[-3:], language="en")))
        said.add(Triple(name, NamedNode(ONTOLOGY + "r0"), Literal("not an entity")))
        said.add(Triple(name, NamedNode(ONTOLOGY + "r1"), BlankNode()))
        said.add(Triple(BlankNode(), NamedNode(ONTOLOGY + "r2"), name))
    for n in range(6):
        said.add(Triple(node(f"C{n}"), NamedNode(SUB_CLASS_OF), node(f"C{n + 2}")))
        said.add(Triple(node(f"C{n}"), NamedNode(SUB_CLASS_OF), BlankNode()))
    said.add(Triple(node("C7"), NamedNode(SUB_CLASS_OF), node("C1")))  # a ring
    return said


def plain_walk(triples: set[Triple], seeds: Sequence[str], hops: int, follows: Callable[[str], bool]) -> set[Triple]:
    """Expected result of `neighbourhood`, computed slowly."""
    between = [
        triple
        for triple in triples
        if isinstance(triple.subject, NamedNode)
        and isinstance(triple.object, NamedNode)
        and follows(triple.predicate.value)
    ]
    met: set[object] = {NamedNode(seed) for seed in seeds}
    found: set[Triple] = set()
    for _ in range(hops):
        found |= {triple for triple in between if triple.subject in met or triple.object in met}
        met = met | {triple.subject for triple in found} | {triple.object for triple in found}
    found |= {triple for triple in triples if triple.subject in met and triple.predicate.value in (TYPE, LABEL)}
    classes: set[object] = {triple.object for triple in found if triple.predicate.value == TYPE}
    for _ in range(10):
        above = {
            triple
            for triple in triples
            if triple.subject in classes
            and triple.predicate.value == SUB_CLASS_OF
            and isinstance(triple.object, NamedNode)
        }
        found, classes = found | above, classes | {triple.object for triple in above}
    return found


def held(files: Sequence[Path]) -> set[Triple]:
    return {quad.triple for file in files for quad in parse(path=file, format=RdfFormat.N_TRIPLES)}


def always(reply: Reply) -> Behaviour:
    return lambda _number, _query: reply


def dies_after(answers: int) -> Behaviour:
    return lambda number, _query: Reply(hang_up=True) if number >= answers else None


WEB_PAGE = Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=b"<!DOCTYPE html><title>Query form</title>")


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 37])
def test_every_triple_comes_back(serve: Callable[..., Served], tmp_path: Path, count: int) -> None:
    served = serve(some_triples(count))
    files = download(served.endpoint(), tmp_path)
    assert held(files) == some_triples(count)
    assert [file.name for file in files] == [f"{n:06d}.nt" for n in range((count + 9) // 10)]


def test_progress_receives_the_number_of_triples_so_far(serve: Callable[..., Served], tmp_path: Path) -> None:
    counts: list[int] = []
    download(serve(some_triples(25)).endpoint(), tmp_path, progress=counts.append)
    assert counts == [10, 20, 25]


def test_one_named_graph_can_be_asked_for(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(some_triples(5))
    served.store.add(Quad(node("in"), node("the"), node("graph"), node("g")))
    assert held(download(served.endpoint(), tmp_path, graph=HERE + "g")) == {
        Triple(node("in"), node("the"), node("graph"))
    }


@pytest.mark.parametrize("answers", [0, 1, 2, 4])
def test_a_resumed_download_asks_only_for_the_missing_pages(
    serve: Callable[..., Served], tmp_path: Path, answers: int
) -> None:
    served = serve(some_triples(37), behave=dies_after(answers))
    with pytest.raises(EndpointError, match="the connection broke"):
        download(served.endpoint(tries=1), tmp_path)
    served.queries, served.behave = [], dies_after(99)
    assert held(download(served.endpoint(), tmp_path)) == some_triples(37)
    assert served.offsets() == [0, 10, 20, 30, 37][answers:]


def test_a_finished_download_asks_nothing_more(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(some_triples(25))
    files = download(served.endpoint(), tmp_path)
    served.queries = []
    assert download(served.endpoint(), tmp_path) == files
    assert served.queries == []
    assert json.loads((tmp_path / "state.json").read_text())["done"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"of": "another program"}'])
def test_a_folder_of_another_program_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(FolderError, match="another folder"):
        download(Endpoint("http://127.0.0.1:9/sparql"), tmp_path)


def test_a_page_that_was_deleted_is_asked_for_again(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(some_triples(25))
    download(served.endpoint(), tmp_path)[1].unlink()
    served.queries = []
    assert held(download(served.endpoint(), tmp_path)) == some_triples(25)
    assert served.offsets() == [10, 20, 25]


@pytest.mark.parametrize("cap", [1, 3, 9, 10, 11])
def test_a_row_cap_below_the_page_size_loses_nothing(serve: Callable[..., Served], tmp_path: Path, cap: int) -> None:
    assert held(download(serve(some_triples(30), cap=cap).endpoint(), tmp_path)) == some_triples(30)


def test_blank_nodes_do_not_break_paging(serve: Callable[..., Served], tmp_path: Path) -> None:
    chain = {Triple(BlankNode(f"n{n}"), node("next"), BlankNode(f"n{n + 1}")) for n in range(25)}
    assert held(download(serve(chain).endpoint(page_size=4), tmp_path)) == chain


def test_a_blank_node_of_one_turtle_page_is_never_taken_for_one_of_another(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    pages = [b'_:b0 <a:p> "first" .', b'_:b0 <a:p> "second" .', b""]
    headers = {"Content-Type": "text/turtle"}
    served = serve([], behave=lambda number, _query: Reply(headers=headers, body=pages[number]))
    assert len({triple.subject for triple in held(download(served.endpoint(), tmp_path))}) == 2


def test_turtle_is_turned_into_n_triples(serve: Callable[..., Served], tmp_path: Path) -> None:
    triples = {triple for triple in some_triples(25) if not isinstance(triple.object, BlankNode)}
    assert held(download(serve(triples, syntax=RdfFormat.TURTLE).endpoint(), tmp_path)) == triples


@pytest.mark.parametrize(
    ("path", "page_size", "problem"),
    [("/other", 10, "holds pages for address http.*, not http.*/other"), ("", 11, "page_size 10, not 11")],
)
def test_a_folder_of_another_endpoint_or_page_size_is_refused(
    serve: Callable[..., Served], tmp_path: Path, path: str, page_size: int, problem: str
) -> None:
    served = serve(some_triples(5))
    download(served.endpoint(), tmp_path)
    with pytest.raises(FolderError, match=problem):
        download(Endpoint(served.address + path, page_size=page_size, pause=0), tmp_path)


def test_a_folder_of_another_graph_or_another_walk_is_refused(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(some_triples(5))
    download(served.endpoint(), tmp_path)
    with pytest.raises(FolderError, match=f"graph None, not {HERE}g"):
        download(served.endpoint(), tmp_path, graph=HERE + "g")
    with pytest.raises(FolderError, match="another folder"):
        neighbourhood(served.endpoint(), [HERE + "s0"], tmp_path)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cap", [None, 3])
def test_a_neighbourhood_is_what_a_plain_walk_finds(
    serve: Callable[..., Served], tmp_path: Path, seed: int, cap: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BATCH", 4)
    world, seeds, hops = a_world(seed), [HERE + "e0", HERE + "e1"], seed % 3 + 1
    files = neighbourhood(serve(world, cap=cap).endpoint(), seeds, tmp_path, hops=hops, namespace=ONTOLOGY)
    assert held(files) == plain_walk(world, seeds, hops, lambda predicate: predicate.startswith(ONTOLOGY))


def test_a_neighbourhood_is_asked_for_in_order_and_with_few_requests(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BATCH", 4)
    served = serve(a_world(2, entities=200, triples=600))
    neighbourhood(served.endpoint(page_size=100), [HERE + "e0", HERE + "e1"], tmp_path, hops=3)
    batches = [query.split("VALUES ")[1].split("}")[0].split()[2:] for query in served.queries]
    assert all(batch == sorted(batch) for batch in batches)  # the same in every run, whatever the order of a set
    assert sum(offset > 0 for offset in served.offsets()) < len(batches) / 3


def test_without_a_namespace_the_walk_does_not_go_through_classes(serve: Callable[..., Served], tmp_path: Path) -> None:
    world, seeds = a_world(0), [HERE + "e0"]
    files = neighbourhood(serve(world).endpoint(), seeds, tmp_path)
    assert held(files) == plain_walk(world, seeds, 2, lambda predicate: predicate.startswith(HERE))


@pytest.mark.parametrize("answers", [0, 3, 11, 17])
def test_a_resumed_neighbourhood_asks_only_what_is_missing(
    serve: Callable[..., Served], tmp_path: Path, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BATCH", 4)
    served, seeds = serve(a_world(1)), [HERE + "e0", HERE + "e1"]
    whole = held(neighbourhood(served.endpoint(), seeds, tmp_path / "whole", namespace=ONTOLOGY))
    asked, served.queries, served.behave = served.queries, [], dies_after(answers)
    with pytest.raises(EndpointError):
        neighbourhood(served.endpoint(tries=1), seeds, tmp_path / "parts", namespace=ONTOLOGY)
    served.queries, served.behave = [], dies_after(9999)
    assert held(neighbourhood(served.endpoint(), seeds, tmp_path / "parts", namespace=ONTOLOGY)) == whole
    assert served.queries == asked[answers:]


def test_an_entity_with_an_invalid_name_is_kept_but_not_asked_about(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    odd = b"<http://example.org/a> <http://example.org/p> <http://example.org/a b> .\n"
    served = serve([], behave=lambda number, _query: Reply(body=odd) if number == 0 else None)
    (file,) = neighbourhood(served.endpoint(), [HERE + "a"], tmp_path)
    assert file.read_bytes() == odd
    assert not any("a b>" in query for query in served.queries)


def test_a_busy_endpoint_is_asked_again_after_the_time_it_names(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    busy = [Reply(503, {"Retry-After": "7"}), Reply(429, {"Retry-After": soon}), Reply(502), Reply(hang_up=True)]
    served = serve(some_triples(5), behave=lambda number, _query: busy[number] if number < len(busy) else None)
    assert held(download(Endpoint(served.address, pause=0.5), tmp_path)) == some_triples(5)
    assert slept == [7.0, pytest.approx(60, abs=5), 4.0, 8.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (WEB_PAGE, r"returned a web page \(text/html\) instead of RDF.*/sparql"),
        (Reply(headers={"Content-Type": "text/plain"}, body=b" <html><body>"), "a web page"),
        (Reply(headers={"Content-Type": "image/png"}), "returned image/png instead of RDF"),
        (Reply(503), r"HTTP status 503 \(tried 3 times\)"),
        (Reply(503, {"Retry-After": "9000"}), r"HTTP status 503; it asks to wait 9,000 seconds"),
        (Reply(400, body=b"no such function\nstack trace"), "HTTP status 400: no such function. The endpoint"),
        (Reply(404, {"Content-Type": "text/html"}, b"<html>Not here"), "HTTP status 404. Check"),
        (Reply(302, {"Location": "file:///etc/hostname"}), "HTTP status 302"),
        (Reply(301, {"Location": "/sparql"}), "HTTP status 301"),
        (Reply(hang_up=True), r"the connection broke: .* \(tried 3 times\)"),
        (Reply(body=b"<a:b> <a:b> <a:b> .\n", promised=9), r"closed the connection after 20 bytes \(tried 3 times\)"),
        (Reply(206, body=b"<a:b> <a:b> <a:b> .\n"), "only a part of the answer"),
        (Reply(headers={"X-SQL-State": "S1TAT"}), "only a part of the answer"),
        (Reply(body=b"<a:b> <a:b> <a:b> .\n<a:b> oops .\n"), "page 000000, line 2: malformed N-Triples"),
        (Reply(body=b"<a:b> <a:b> <a:b> .\n<a:b> <a:"), "page 000000, line 2: incomplete N-Triples"),
        (Reply(body=b"<a:b> <a:b> <a:b> .\n"), "ignores LIMIT and OFFSET"),
        (Reply(body=b"".join(b"<a:b> <a:b> <a:%d> .\n" % n for n in range(11))), "ignores LIMIT and OFFSET"),
    ],
)
def test_an_endpoint_error_is_reported_in_one_line(
    serve: Callable[..., Served], tmp_path: Path, reply: Reply, problem: str
) -> None:
    served = serve([], behave=always(reply))
    with pytest.raises(EndpointError, match=problem) as caught:
        download(served.endpoint(), tmp_path)
    assert str(caught.value).startswith(served.address)
    assert "\n" not in str(caught.value)


def test_an_endpoint_that_never_answers_is_given_up(serve: Callable[..., Served], tmp_path: Path) -> None:
    let_go = threading.Event()
    served = serve([], behave=lambda _number, _query: Reply(hang_up=let_go.wait(20)))
    with pytest.raises(EndpointError, match=r"no answer within 0.1 seconds \(tried 2 times\)"):
        download(served.endpoint(tries=2, timeout=0.1), tmp_path)
    let_go.set()


def test_an_unreachable_endpoint_is_an_error(serve: Callable[..., Served], tmp_path: Path) -> None:
    serve([])
    with pytest.raises(EndpointError, match=r"127.0.0.1:9/sparql: cannot connect: .*refused"):
        download(Endpoint("http://127.0.0.1:9/sparql", pause=0, tries=2), tmp_path)


@pytest.mark.parametrize("address", ["", "dbpedia.org/sparql", "ftp://a.org/x", "file:///etc/hostname", "http://[a"])
def test_only_http_addresses_are_taken(address: str) -> None:
    with pytest.raises(EndpointError, match="is not the URL of an endpoint"):
        Endpoint(address)


def test_a_page_holds_at_least_one_row() -> None:
    with pytest.raises(SettingError, match="page_size"):
        Endpoint("http://a.org/sparql", page_size=0)


def test_a_redirected_query_is_sent_again_whole(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve(some_triples(15))
    moved = serve([], behave=always(Reply(301, {"Location": served.address})))
    assert held(download(moved.endpoint(), tmp_path)) == some_triples(15)


def test_an_endpoint_that_will_not_sort_deep_pages_is_asked_another_way(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    def like_virtuoso(number: int, query: str) -> Reply | None:
        deep = int(query.split("OFFSET ")[1].split()[0]) + 10 > 20
        plain = query.count("SELECT") == 1
        return Reply(500, body=b"Virtuoso 22023 Error SR353: Sorted TOP clause ...") if deep and plain else None

    served = serve(some_triples(37), behave=like_virtuoso)
    assert held(download(served.endpoint(), tmp_path)) == some_triples(37)
    assert served.offsets() == [0, 10, 20, 20, 30, 30, 37, 37]


def test_rows_leave_out_what_is_unbound(serve: Callable[..., Served]) -> None:
    served = serve([Triple(node("a"), node("p"), Literal("x")), Triple(node("b"), node("q"), node("a"))])
    query = f"SELECT ?s ?o WHERE {{ ?s ?any ?thing OPTIONAL {{ ?s <{HERE}p> ?o }} }} ORDER BY ?s"
    assert select(served.endpoint(), query) == [{"s": node("a"), "o": Literal("x")}, {"s": node("b")}]
    assert served.headers[0]["User-Agent"] == f"halfgraph/{__version__}"
    assert served.headers[0]["Accept"] == "application/sparql-results+json"
    assert served.headers[0]["Content-Type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (WEB_PAGE, r"returned a web page \(text/html\) instead of JSON results"),
        (
            Reply(headers={"Content-Type": "application/json"}, body=b'{"head": {}, "boolean": true}'),
            "Use a SELECT query",
        ),
        (Reply(headers={"Content-Type": "application/json"}, body=b'{"head": {"vars"'), "incomplete"),
    ],
)
def test_rows_that_are_none_are_an_error(serve: Callable[..., Served], reply: Reply, problem: str) -> None:
    with pytest.raises(EndpointError, match=problem):
        select(serve([], behave=always(reply)).endpoint(), "SELECT * WHERE { ?s ?p ?o }")


@pytest.mark.parametrize("seeds", [[], ["California"], ["http://a.org/x> } #"]])
def test_seeds_are_full_names(tmp_path: Path, seeds: list[str]) -> None:
    with pytest.raises(InputError, match=r"seed entities|is not an IRI"):
        neighbourhood(Endpoint("http://127.0.0.1:9/sparql"), seeds, tmp_path)


def test_a_type_given_by_the_namespace_of_rdf_is_still_found(serve: Callable[..., Served], tmp_path: Path) -> None:
    typed = {Triple(node("a"), NamedNode(RDF + "type"), node("C0"))}
    assert held(neighbourhood(serve(typed).endpoint(), [HERE + "a"], tmp_path)) == typed
