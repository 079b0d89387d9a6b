"""Every Python example of the documentation runs; those of docs/extending.md are run by test_extending.py."""

from pathlib import Path
from typing import Any

import pytest

import halfgraph
from doc_pages import DOCS, ROOT, code_blocks, name_of, run_examples, text_of
from server_process import PROGRAM, running

EXAMPLES = [page for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))) if code_blocks(text_of(page), "python")]
CITIES = ("london", "paris", "rome")
PEOPLE = "@prefix ex: <http://people.example/> .\n" + "".join(
    f"ex:{name} a ex:Person ; ex:livesIn ex:{CITIES[number % 3]} ; ex:knows ex:person{(number + 1) % 60} .\n"
    f"ex:{CITIES[number % 3]} a ex:City .\n"
    for number, name in enumerate(["ada", *(f"person{number}" for number in range(1, 60))])
)
PLAYERS = "".join(
    f"player{number}\tplayed_for\tLos_Angeles_Dodgers_1963\nplayer{number}\twon_award\tCy_Young_Award\n"
    for number in range(40)
)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the examples of a page define, in a folder with people.ttl."""
    monkeypatch.chdir(tmp_path)
    Path("people.ttl").write_text(PEOPLE)
    return {}


def test_the_pages_with_examples_are_those_that_are_run_here() -> None:
    tested = ["docs/agents.md", "docs/ask.md", "docs/data.md", "docs/extending.md", "docs/http.md", "docs/sparql.md"]
    assert [name_of(page) for page in EXAMPLES] == tested


def test_the_example_of_asking_runs(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run_examples(DOCS / "ask.md", names, **{"minutes=5": "steps=5, dim=8, heads=2"})
    out = capsys.readouterr().out.splitlines()
    assert len(out) == len(names["answers"].known) + len(names["answers"].predicted) + 1
    assert out[-1] == "ada is known"


def test_the_example_of_a_graph_folder_runs(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    halfgraph.Graph.read("people.ttl", "people")
    run_examples(DOCS / "data.md", names)
    assert "london" in capsys.readouterr().out


def test_the_example_of_reading_sparql_runs(names: dict[str, Any]) -> None:
    halfgraph.Graph.read("people.ttl", "people")
    run_examples(DOCS / "sparql.md", names)
    assert names["reading"].target == "x"
    assert len(names["reading"].conditions.elements) == 1


def test_the_example_of_asking_over_http_runs(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas

    tables = []
    read_csv = pandas.read_csv
    monkeypatch.setattr(pandas, "read_csv", lambda address: tables.append(read_csv(address)))
    Path("players.tsv").write_text(PLAYERS)
    halfgraph.train(halfgraph.Graph.read("players.tsv", "players"), "run", steps=2, dim=8, heads=2)
    with running(Path("run")) as server:
        run_examples(DOCS / "http.md", names, **{"http://localhost:8000": server.address})
    assert list(tables[0].columns) == ["player", "_score", "_confidence", "_source"]
    assert (tables[0]._source == "known").sum() == 40


def test_the_example_of_an_agent_runs(names: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    Path("players.tsv").write_text(PLAYERS)
    halfgraph.train(halfgraph.Graph.read("players.tsv", "players"), "run", steps=2, dim=8, heads=2)
    changes = {
        '"halfgraph"': f'"{PROGRAM}"',
        "demo/run": "run",
        "args=": "env=dict(__import__('os').environ), args=",
        ":throws :Left_hand ; ": "",
        ":Sandy_Koufax": "player0",
    }
    run_examples(DOCS / "agents.md", names, **changes)
    search, answers, reason = capfd.readouterr().out.splitlines()
    assert "Los_Angeles_Dodgers_1963" in search
    assert answers.count("'status': 'known'") > 10  # some of the 40 are held out
    assert "'verdict': 'player0 is " in reason
