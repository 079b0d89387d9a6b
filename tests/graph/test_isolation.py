"""Files made to bring a reader down: each is one line that names the file and the limit, and leaves nothing behind."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halfgraph.errors import FolderError, HalfgraphError, InputError
from halfgraph.graph import isolation
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.graph.isolation import relayed, run_isolated

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
DEPTH = 300_000
# In a process without the memory of the test process: imports each file and prints how it went.
SCRIPT = """
import contextlib, io, json, resource, sys
from halfgraph.cli import main
from halfgraph.graph import files, isolation
isolation.SECONDS, files.UNPACKED_ANYWAY = 3, 8 << 20
for name in sys.argv[1:]:
    with contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main(["import", name, "--out", "out", "-q"])
        except SystemExit as leaving:
            code = leaving.code
    print(json.dumps([name, code, err.getvalue(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10]))
"""


def entities() -> bytes:
    """Entities that stand for ten of the one before."""
    names = [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "a" * 10}">' for i in range(10)]
    head = f'<?xml version="1.0"?><!DOCTYPE rdf:RDF [{"".join(names)}]><rdf:RDF xmlns:rdf="{RDF}" xmlns:x="http://x/">'
    return f'{head}<rdf:Description rdf:about="http://a"><x:p>&a9;</x:p></rdf:Description></rdf:RDF>'.encode()


def nested_elements() -> bytes:
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:x="http://x/">'.encode() + b"<x:a><x:p>" * 100_000


QUOTED = b"<http://a> <http://p> " + b"<<( <http://a> <http://p> " * DEPTH + b"<http://o> " + b")>> " * DEPTH + b".\n"
PREFIXES = b"".join(b"@prefix p%d: <http://p%d/> .\n" % (i, i) for i in range(450_000))
MANY_PREFIXES = b"".join(b"@prefix p%d: <http://p/> .\n<a> <b> <c> .\n" % i for i in range(140_000))
BOMBS: dict[str, tuple[bytes, str]] = {
    "entities.rdf": (entities(), "needs more memory than the limit, 256 MB and 64 times"),
    "elements.rdf": (nested_elements(), "takes more time than the limit"),
    "quoted.nt": (QUOTED, "nested too deeply"),
    "quoted.ttl": (QUOTED, "nested too deeply"),
    "objects.jsonld": (b'{"http://p":' * DEPTH, "Max stack size of 65536"),
    "lists.ttl": (b"<http://a> <http://p> " + b"( " * 20_000, "line 1"),
    "zeros.tsv.gz": (b"", "limit"),
    "zeros.rdf.gz": (b"", "limit"),
    "repeated.nt.gz": (b"<http://a> <http://p> <http://b> .\n", "unpacks to more than 200 times its size"),
    "line.tsv": (b"", "no statement within 16 MB"),
    "line.nt": (b"<http://a", "limit"),
    "line.csv": (b'"', "limit"),
    "prefixes.ttl": (PREFIXES, "limit"),
    "many_prefixes.ttl": (MANY_PREFIXES, "more than 100,000 prefixes"),
    "zeros.zip": (b"PK\x03\x04" + bytes(1000), "zip archive"),
}


def write_bomb(path: Path, content: bytes) -> None:
    if path.name.startswith("line"):
        path.write_bytes(content)
        os.truncate(path, 1_000_000_000)
    elif path.suffix == ".gz":
        with gzip.open(path, "wb", 9) as file:
            for _ in range(9):
                file.write((content or bytes(30)) * 100_000)
    else:
        path.write_bytes(content)


def test_bombs_are_one_line_in_little_memory_and_leave_nothing_behind(tmp_path: Path) -> None:
    for name, (content, _) in BOMBS.items():
        write_bomb(tmp_path / name, content)
    command = [sys.executable, "-c", SCRIPT, *BOMBS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [outcome[0] for outcome in outcomes] == list(BOMBS)
    for name, code, err, megabytes in outcomes:
        assert (code, err.count("\n")) == (1, 1), err
        assert err.startswith(f"halfgraph: {name}"), err
        assert BOMBS[name][1] in err
        assert megabytes < 500, name
    assert {path.name for path in tmp_path.iterdir()} == set(BOMBS)


def test_an_ordinary_file_may_take_memory_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "LEAST", 16 << 20)
    lines = "".join(f":{2 * i:x} :p :{2 * i + 1:x} .\n" for i in range(100_000))
    (tmp_path / "a.ttl").write_text(f"@prefix : <http://example.org/a/long/path/of/resources/> .\n{lines}")
    assert len(import_graph([tmp_path / "a.ttl"], tmp_path / "graph", ImportOptions()).entities) == 200_000


def test_errors_come_back_with_their_fields_and_progress_is_shown_here() -> None:
    shown: list[int] = []
    progress = relayed(shown.append)
    assert progress is not None

    def work(error: Exception) -> None:
        progress(3)
        raise error

    for error in (InputError("is bad", path="a.nt", line=3), FolderError("x", "is gone"), OSError(28, "No space left")):
        with pytest.raises(type(error), match=str(error.args[-1])[-5:]) as raised:
            run_isolated(lambda given=error: work(given), shown.append)
        assert str(raised.value) == str(error)
        assert vars(raised.value) == vars(error)
    assert shown == [3, 3, 3]

    class Local(Exception):
        pass

    with pytest.raises(HalfgraphError, match="Local"):
        run_isolated(lambda: work(Local("of this test")))


def test_an_interrupted_parent_ends_its_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    progress: Any = relayed(interrupt)
    fork, children = os.fork, []
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    with pytest.raises(KeyboardInterrupt):
        run_isolated(lambda: [progress(1), signal.pause()], interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)
