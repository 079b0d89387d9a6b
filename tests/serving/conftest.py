"""A small graph with literals and named graphs, a run of a few steps, and a server of it for the whole session."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from halfgraph.graph.files import ReadOptions
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.graph.splitting import Shares
from server_process import PROGRAM, Running, running

EX = "http://example.org/"
FEW = ["dim=8", "heads=2", "one_edge=16", "longer=4", "neighbourhoods=2", "type_negatives=6", "other_negatives=6"]


def statements() -> Iterator[str]:
    """People, cities and countries, with labels, an age, and two named graphs."""
    for number in range(60):
        person, city = f"<{EX}person{number}>", f"<{EX}city{number % 12}>"
        yield f"{person} <{EX}livesIn> {city} ."
        yield f"{person} <{EX}knows> <{EX}person{(7 * number + 1) % 60}> ."
        yield f'{person} <{EX}age> "{20 + number}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        yield f'{person} <http://www.w3.org/2000/01/rdf-schema#label> "Pérson {number} Müller"@en .'
        yield f"{person} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}Person> ."
    for number in range(12):
        yield f"<{EX}city{number}> <{EX}inCountry> <{EX}country{number % 3}> ."
        yield f"<{EX}city{number}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}City> ."
    for number in (1, 2):
        yield f'<{EX}book{number}> <{EX}title> "Book {number}" <{EX}graph{number}> .'


@pytest.fixture(scope="session")
def graph_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "source.nq").write_text("\n".join(statements()), encoding="utf-8")
    choices = ImportOptions(reading=ReadOptions(), split=Shares(80, 5, 15), default_graph="union")
    return import_graph([folder / "source.nq"], folder / "graph", choices).path


@pytest.fixture(scope="session")
def run_folder(graph_folder: Path) -> Path:
    out = graph_folder.parent / "run"
    few = [word for pair in FEW for word in ("--set", pair)]
    command = ["train", str(graph_folder), "--steps", "20", "--threads", "1", "--quiet", "--out", str(out), *few]
    subprocess.run([PROGRAM, *command], check=True, capture_output=True)
    return out


@pytest.fixture(scope="session")
def server(run_folder: Path) -> Iterator[Running]:
    """A server for tests that leave it as it is."""
    with running(run_folder, "--view", "train", "--time-limit", "20", "--rows", "200") as found:
        yield found


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=60) as found:
        yield found
