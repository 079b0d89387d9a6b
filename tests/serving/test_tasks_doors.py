"""Texts at every door, of the command line and of the server: what one of them reads or refuses, all do."""

import contextlib
import io
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from command_line import FEW, command
from imported_graphs import made
from server_process import running

DBR, DBO = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
UCLA = "University_of_California,_Los_Angeles"
PEOPLE = [f"{DBR}person{number}" for number in range(0, 40, 4)]
DOORS = (
    *("query", "ask", "ask --batch", "build", "/sparql", "/sparql by form", "/sparql by POST", "/sparql/predict"),
    *("/api/ask", "/api/ask by GET", "/api/explain"),
)
CALLS = (  # patterns that call another server, written so that a check by words may miss it
    "SERVICE{call}",
    "{pattern} SERVICE{call}",
    "{pattern} . SERVICE SILENT{call}",
    "{pattern}\t\tservice\tsilent\t{call}",
    "SERVICE SERVICE:x{{ ?x dbo:spouse ?y }}",
    "?x dbo:spouse 5SERVICE{call}",
    "?x dbo:spouse 'a'SERVICE{call}",
    "?x dbo:spouse <a>SERVICE{call}",
    "?x dbo:spouse ()SERVICE{call}",
    "?x dbo:spouse [] SERVICE{call}",
    "{pattern};.SERVICE{call}",
    "{pattern} FILTER(true)SERVICE{call}",
    "{pattern} FILTER EXISTS{{SERVICE{call}}}",
    "{pattern} FILTER NOT EXISTS{{SERVICE{call}}}",
    "{pattern} FILTER(1=1&&EXISTS{{SERVICE{call}}})",
    "{pattern} FILTER(IF(EXISTS{{SERVICE{call}}},true,false))",
    "{pattern} FILTER(?x IN (1,EXISTS{{SERVICE{call}}}))",
    "{pattern} BIND(EXISTS{{SERVICE{call}}} AS ?b)",
    "{pattern} {{ SELECT * {{SERVICE{call}}} }}",
    "{pattern} {{ SELECT (COUNT(*) AS ?n) {{SERVICE{call}}} HAVING(EXISTS{{SERVICE{call}}}) }}",
    "{pattern} #\rSERVICE{call}",
    "{pattern} #{{\nSERVICE{call}",
    "{pattern} # <\nSERVICE{call}",
    r"{pattern} \u0053ERVICE{call}",
    r"{pattern} \U00000053ERVICE{call}",
    r"{pattern} SERVIC\U00000045 ?y {{ ?x dbo:spouse ?y }} VALUES ?y {{ <http://127.0.0.1:9/> }}",
    r"{pattern} SERVICE \u003C{here}\u003E{{ ?x dbo:spouse ?y }}",
    "{pattern} GRAPH ?g{{SERVICE{call}}}",
    "{pattern} MINUS{{OPTIONAL{{SERVICE{call}}}}}",
    "{{{pattern}}}UNION{{SERVICE{call}}}",
    "{{{{{{{{SERVICE{call}}}}}}}}}",
    "{pattern} LATERAL{{SERVICE{call}}}",
    "{pattern} OPTIONAL{{service silent ?s {{ ?x dbo:spouse ?y }} }} VALUES ?s {{<{here}>}}",
    "BIND(IRI('{here}') AS ?s) SERVICE ?s {{ ?x dbo:spouse ?y }}",
    "VALUES ?s {{<{here}>}} sErViCe?s{{ ?x dbo:spouse ?y }}",
)
WRONG = (  # no SPARQL, whatever a store may make of it
    "{pattern}.SERVICE SILENT{call}",
    "SERVICE:x{{ ?x dbo:spouse ?y }}",
    "SERVICESILENT{call}",
    "?x dbo:spouse trueSERVICE{call}",
    "{pattern} FILTER(1<2)SERVICE#>\n{call}",
    "{pattern}\tSERVICE\x0b{call}",
    "?x dbo:spouse 'a'@enSERVICE{call}",
    "?x dbo:spouse ?ySERVICE{call}",
    "?x dbo:spouse _:bSERVICE{call}",
    "{pattern} \u00a0SERVICE{call}",
    "{pattern} \ufeffSERVICE{call}",
    "{pattern} SERVICE{call}}} SERVICE{call} {{",
    "{pattern} FILTER(<{here}>('a'))",
    "{pattern} BIND(<{here}>(?x) AS ?f)",
)
UPDATES = (
    "LOAD <{here}>",
    "LOAD SILENT <{here}> INTO GRAPH <urn:g>",
    "LOAD <{here}> INTO GRAPH <urn:g>",
    "load<{here}>",
    "CLEAR SILENT GRAPH <{here}>",
    "INSERT {{ ?x dbo:spouse ?y }} WHERE {{ SERVICE{call} }}",
    "CLEAR ALL; LOAD <{here}>",
    "PREFIX a: <{here}> LOAD a:",
)
NAMED_GRAPHS = (  # their names are addresses, which nobody opens
    "SELECT ?x FROM <{here}> {{ {pattern} }}",
    "SELECT ?x FROM NAMED <{here}> {{ GRAPH <{here}> {{ {pattern} }} }}",
    "SELECT ?x {{ GRAPH <{here}> {{ {pattern} }} }}",
)
Door = Callable[[str], tuple[int, str]]  # the status of a text, 200 if it is taken, and what the door says


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    schools = [UCLA, "school1", "school2", "school3"]
    rows = [f"{DBR}person{n}\t{DBO}almaMater\t{DBR}{schools[n % 4]}" for n in range(40)]
    rows += [f"{DBR}person{n}\t{DBO}spouse\t{DBR}person{(n + 1) % 40}" for n in range(40)]
    graph = made(folder, "\n".join(rows))
    status, said = program("train", str(graph.path), "--steps", "5", "--quiet", "--out", str(folder / "run"), *FEW)
    assert status == 200, said
    (folder / "run-graph").symlink_to(graph.path)
    return folder


@pytest.fixture(scope="module")
def doors(folder: Path) -> Iterator[dict[str, Door]]:
    graph, run = str(folder / "run-graph"), str(folder / "run")

    def answer(reply: httpx.Response) -> tuple[int, str]:
        assert reply.status_code in (200, 400, 403, 404), reply.text
        return reply.status_code, reply.text

    def batch(text: str) -> tuple[int, str]:
        (folder / "batch.rq").write_text(text, encoding="utf-8")
        return program("ask", run, "--batch", str(folder / "batch.rq"), "--json")

    direct = {"Content-Type": "application/sparql-query"}
    with running(Path(run)) as server, httpx.Client(base_url=server.address, timeout=60) as client:
        yield {
            "query": lambda text: program("query", graph, text, "--json"),
            "ask": lambda text: program("ask", run, text, "--json"),
            "ask --batch": batch,
            "build": lambda text: program("build", graph, "--seeds-query", text, "--out", str(folder / "built")),
            "/sparql": lambda text: answer(client.get("/sparql", params={"query": text})),
            "/sparql by form": lambda text: answer(client.post("/sparql", data={"query": text})),
            "/sparql by POST": lambda text: answer(client.post("/sparql", content=text.encode(), headers=direct)),
            "/sparql/predict": lambda text: answer(client.get("/sparql/predict", params={"query": text})),
            "/sparql/predict by form": lambda text: answer(client.post("/sparql/predict", data={"query": text})),
            "/api/ask": lambda text: answer(client.post("/api/ask", json={"query": text})),
            "/api/ask by GET": lambda text: answer(client.get("/api/ask", params={"query": text})),
            "/api/explain": lambda text: answer(client.post("/api/explain", json={"query": text, "entity": PEOPLE[0]})),
        }


def program(*words: str) -> tuple[int, str]:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(list(words))
    return 400 if code else 200, out.getvalue() or err.getvalue()


def answers(reply: str) -> set[str]:
    """Return the people in a JSON reply."""
    return {word for word in json.dumps(json.loads(reply)).split('"') if word.startswith(f"{DBR}person")}


@pytest.mark.parametrize("door", ["query", "ask", "/sparql", "/sparql/predict", "/api/ask"])
def test_a_known_name_may_have_a_bare_comma_at_every_door(doors: dict[str, Door], door: str) -> None:
    bare, escaped = (f"SELECT ?x {{ ?x dbo:almaMater dbr:{UCLA.replace(',', comma)} }}" for comma in (",", "\\,"))
    status, reply = doors[door](bare)
    assert status == 200, reply
    assert set(PEOPLE) <= answers(reply)
    assert answers(doors[door](escaped)[1]) == answers(reply)


@pytest.mark.parametrize("door", ["query", "ask", "/sparql by POST", "/sparql/predict by form", "/api/ask"])
def test_underscores_many_values_and_deep_brackets_are_answered_at_every_door(
    doors: dict[str, Door], door: str
) -> None:
    pattern, values = f"?_x dbo:almaMater dbr:{UCLA}", " ".join(f"dbr:person{number}" for number in range(6_000))
    for text in (pattern, f"VALUES ?_x {{ {values} }} {pattern}", f"{'{' * 25} {pattern} {'}' * 25}"):
        status, reply = doors[door](f"SELECT ?_x {{ {text} }}")
        assert status == 200, reply
        assert set(PEOPLE) <= answers(reply)


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """A server that would notice a call."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture(scope="module")
def hostile(listener: socket.socket) -> dict[str, list[str]]:
    """Texts that name the address of the listener."""
    here = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    words = {"here": here, "call": f"<{here}>{{ ?x dbo:spouse ?y }}", "pattern": "?x dbo:spouse dbr:person1"}
    select = f"PREFIX SERVICE: <{here}> SELECT ?x {{ %s }}"
    return {
        "calls": [select % text.format(**words) for text in CALLS],
        "wrong": [select % text.format(**words) for text in WRONG],
        "updates": [text.format(**words) for text in UPDATES],
        "named graphs": [text.format(**words) for text in NAMED_GRAPHS],
    }


def test_there_are_fifty_hostile_texts(hostile: dict[str, list[str]]) -> None:
    assert len({text for texts in hostile.values() for text in texts}) >= 50


@pytest.mark.parametrize("door", DOORS)
def test_no_text_makes_a_door_call_another_server(
    doors: dict[str, Door], listener: socket.socket, door: str, folder: Path, hostile: dict[str, list[str]]
) -> None:
    for kind, texts in hostile.items():
        for text in texts:
            status, reply = doors[door](text)
            if kind != "named graphs":
                assert status != 200, (text, reply)
            if door.startswith("/") and kind in ("calls", "updates"):
                assert status == 403, (text, reply)
            if door.startswith("/") and kind == "wrong":  # 403 for what the scanner reads as SERVICE all the same
                assert status in (400, 403), (text, reply)
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert not (folder / "built").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    {
        "a.jsonld": '{"@context": "%s", "@id": "http://x/a", "name": "b"}',
        "b.jsonld": '{"@context": {"@import": "%s"}, "@id": "http://x/a", "http://x/p": {"@id": "http://x/b"}}',
        "c.jsonld": '{"@context": ["%s", {"p": "http://x/p"}], "@id": "http://x/a", "p": {"@id": "http://x/b"}}',
        "d.rdf": '<!DOCTYPE r SYSTEM "%s"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        "e.rdf": '<!DOCTYPE r [<!ENTITY e SYSTEM "%s">]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns:x="http://x/"><rdf:Description rdf:about="http://x/a"><x:p>&e;</x:p></rdf:Description></rdf:RDF>',
        "f.ttl": "<http://x/a> <http://www.w3.org/2002/07/owl#imports> <%s> , <http://x/b> .",
    }.items(),
)
def test_no_file_makes_an_import_call_another_server(
    tmp_path: Path, listener: socket.socket, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text % f"http://127.0.0.1:{listener.getsockname()[1]}/")
    program("import", str(tmp_path / name), "--out", str(tmp_path / "graph"), "--quiet")
    with pytest.raises(BlockingIOError):
        listener.accept()
