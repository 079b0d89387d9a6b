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
DOORS = ("query", "ask", "build", "/sparql", "/sparql/predict", "/api/ask")
HOSTILE = (
    "SERVICE:x{{ ?x dbo:spouse ?y }}",
    "SERVICESILENT{call}",
    "?x dbo:spouse trueSERVICE{call}",
    "{pattern} SERVICE{call}",
    "{pattern}.SERVICE SILENT{call}",
    "?x dbo:spouse 5SERVICE{call}",
    "?x dbo:spouse 'a'SERVICE{call}",
    "?x dbo:spouse 'a'@enSERVICE{call}",
    "?x dbo:spouse <a>SERVICE{call}",
    "?x dbo:spouse ?ySERVICE{call}",
    "?x dbo:spouse _:bSERVICE{call}",
    "{pattern} FILTER(true)SERVICE{call}",
    "{pattern} FILTER EXISTS{{SERVICE{call}}}",
    "{pattern} {{ SELECT * {{SERVICE{call}}} }}",
    "{pattern} #\rSERVICE{call}",
    r"{pattern} \u0053ERVICE{call}",
    r"{pattern} SERVIC\U00000045 ?y {{ ?x dbo:spouse ?y }} VALUES ?y {{ <http://127.0.0.1:9/> }}",
    "{pattern} GRAPH ?g{{SERVICE{call}}}",
    "{pattern} MINUS{{OPTIONAL{{SERVICE{call}}}}}",
)
Door = Callable[[str], tuple[bool, str]]  # whether it takes a text, and what it says


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    schools = [UCLA, "school1", "school2", "school3"]
    rows = [f"{DBR}person{n}\t{DBO}almaMater\t{DBR}{schools[n % 4]}" for n in range(40)]
    rows += [f"{DBR}person{n}\t{DBO}spouse\t{DBR}person{(n + 1) % 40}" for n in range(40)]
    graph = made(folder, "\n".join(rows))
    trained, said = program("train", str(graph.path), "--steps", "5", "--quiet", "--out", str(folder / "run"), *FEW)
    assert trained, said
    (folder / "run-graph").symlink_to(graph.path)
    return folder


@pytest.fixture(scope="module")
def doors(folder: Path) -> Iterator[dict[str, Door]]:
    graph, run = str(folder / "run-graph"), str(folder / "run")

    def answer(reply: httpx.Response) -> tuple[bool, str]:
        assert reply.status_code in (200, 400, 403), reply.text
        return reply.status_code == 200, reply.text

    with running(Path(run)) as server, httpx.Client(base_url=server.address, timeout=60) as client:
        yield {
            "query": lambda text: program("query", graph, text, "--json"),
            "ask": lambda text: program("ask", run, text, "--json"),
            "build": lambda text: program("build", graph, "--seeds-query", text, "--out", str(folder / "built")),
            "/sparql": lambda text: answer(client.get("/sparql", params={"query": text})),
            "/sparql/predict": lambda text: answer(client.get("/sparql/predict", params={"query": text})),
            "/api/ask": lambda text: answer(client.post("/api/ask", json={"query": text})),
        }


def program(*words: str) -> tuple[bool, str]:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(list(words))
    return code == 0, out.getvalue() or err.getvalue()


def answers(reply: str) -> set[str]:
    """Return the people in a JSON reply."""
    return {word for word in json.dumps(json.loads(reply)).split('"') if word.startswith(f"{DBR}person")}


@pytest.mark.parametrize("door", ["query", "ask", "/sparql", "/sparql/predict", "/api/ask"])
def test_a_known_name_may_have_a_bare_comma_at_every_door(doors: dict[str, Door], door: str) -> None:
    bare, escaped = (f"SELECT ?x {{ ?x dbo:almaMater dbr:{UCLA.replace(',', comma)} }}" for comma in (",", "\\,"))
    accepted, reply = doors[door](bare)
    assert accepted, reply
    assert set(PEOPLE) <= answers(reply)
    assert answers(doors[door](escaped)[1]) == answers(reply)


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """A server that would notice a call."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.mark.parametrize("door", DOORS)
def test_no_text_makes_a_door_call_another_server(
    doors: dict[str, Door], listener: socket.socket, door: str, folder: Path
) -> None:
    here = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    call = f"<{here}>{{ ?x dbo:spouse ?y }}"
    pattern = "?x dbo:spouse dbr:person1"
    for text in HOSTILE:
        asked = f"PREFIX SERVICE: <{here}> SELECT ?x {{ {text.format(call=call, pattern=pattern)} }}"
        accepted, reply = doors[door](asked)
        assert not accepted, (asked, reply)
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert not (folder / "built").exists()
