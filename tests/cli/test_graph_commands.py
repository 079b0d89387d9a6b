import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from pyoxigraph import QueryResultsFormat, QueryTriples, RdfFormat, Store, serialize

from command_line import Outcome, Run
from halfgraph.graph.folder import Graph
from imported_graphs import nt, tsv

TRIPLES = [(f"e{n % 31}", f"r{n % 3}", f"e{n * n % 29}") for n in range(300)]
TURTLE = """@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a :City ; :near :b ; rdfs:label "The A" ; :size 3 . :b a :City ; :near :c .
"""


def program(*arguments: str, before: str = "", **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process, after some Python code."""
    script = f"{before}\nfrom halfgraph.cli import main\nmain()"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload, no-any-return]


def write(**files: str | bytes) -> None:
    for name, content in files.items():
        Path(name.replace("__", ".")).write_bytes(content.encode() if isinstance(content, str) else content)


def refused(outcome: Outcome, *said: str) -> None:
    """Check that a command failed with one line that has the messages, and left no files behind."""
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("halfgraph: ")
    assert "Traceback" not in outcome.err
    assert len(outcome.err) < 700
    for words in said:
        assert words in outcome.err
    assert not Path("out").exists()
    assert not list(Path().glob(".*"))


def test_an_import_shows_what_was_read_and_makes_a_graph(run: Run) -> None:
    write(a__ttl=TURTLE)
    outcome = run("import", "a.ttl", "--out", "out")
    assert outcome.code == 0
    for words in ("statements read", "triples of the graph", "literals", "only stated type"):
        assert words in outcome.out
    assert f"graph {Graph.open('out').fingerprint}, 3 entities of 2 types, 1 relations" in outcome.err


def test_import_prints_json_or_nothing_when_asked(run: Run) -> None:
    write(a__ttl=TURTLE)
    printed = json.loads(run("import", "a.ttl", "--out", "out", "--json").out)
    assert printed["triples"] == {"train": 2, "valid": 0, "test": 0}
    assert printed["fingerprint"] == Graph.open("out").fingerprint
    assert {"what": "literals", "count": 2, "used_for": "exact queries"} in printed["report"]
    assert run("import", "a.ttl", "--out", "quiet", "-q") == (0, "", "")


def test_import_and_stats_tell_guessed_types_from_stated_ones(run: Run) -> None:
    typed = "@prefix : <http://example.org/> .\n" + "".join(f":p{n} a :Person ; :knows :p0 .\n" for n in range(5))
    write(a__ttl=typed + ":guess :knows :p0 .")
    outcome = run("import", "a.ttl", "--out", "out")
    assert "1  guess: vote of their relations" in outcome.out
    assert "6 entities of 1 types (guessed for 1), 1 relations" in outcome.err
    printed = json.loads(run("stats", "out", "--json").out)
    assert (printed["guessed_types"], printed["stated_types"]) == (1, {"http://example.org/Person": 5})
    shown = run("stats", "out").out
    assert "guessed types of entities  1" in shown
    assert "6       5  Person" in shown


def test_stats_has_the_promised_fields(run: Run) -> None:
    write(a__ttl=TURTLE, b__tsv=tsv(TRIPLES))
    run("import", "a.ttl", "--out", "a")
    run("import", "b.tsv", "--out", "b", "--split", "80/10/10")
    printed = json.loads(run("stats", "a", "--json").out)
    assert {key: printed[key] for key in ("entities", "relations", "types", "triples", "literals", "fingerprint")} == {
        "entities": 3,
        "relations": 1,
        "types": 2,
        "triples": {"train": 2, "valid": 0, "test": 0},
        "literals": 2,
        "fingerprint": Graph.open("a").fingerprint,
    }
    split = json.loads(run("stats", "b", "--json").out)
    assert sum(split["triples"].values()) == len(set(TRIPLES))
    assert set(split["leakage"]["test"]) == {"another_relation", "reversed", "entities_not_in_train"}
    assert set(split["degrees"]) == {"median", "mean", "95th", "maximum"}


def test_stats_are_shown_as_tables_with_names_as_they_are(run: Run) -> None:
    write(a__tsv="a\t[bold]\tb\na\t:smile:\tb\n", types__tsv="a\t[red]\nb\tB\n")
    run("import", "a.tsv", "--types", "types.tsv", "--out", "[out]")
    outcome = run("stats", "[out]", "--plot", "picture.svg")
    assert outcome.code == 0
    for words in ("[bold]", ":smile:", "[out], graph", "[red]", "maximum", "Most frequent relations"):
        assert words in outcome.out
    assert Path("picture.svg").exists()


def test_a_split_can_be_seen_in_the_tables(run: Run) -> None:
    write(b__tsv=tsv(TRIPLES))
    assert "29 valid, 29 test" in run("import", "b.tsv", "--out", "b", "--split", "80/10/10").err
    assert "Leakage" in run("stats", "b").out


def test_standard_input_is_read(run: Run) -> None:
    outcome = run("import", "-", "--format", "ttl", "--out", "out", "--json", stdin=gzip.compress(TURTLE.encode()))
    assert json.loads(outcome.out)["entities"] == 3
    assert Graph.open("out").description["provenance"]["sources"] == ["-"]


def test_build_makes_a_data_set_of_a_graph(run: Run) -> None:
    write(b__tsv=tsv(TRIPLES), seeds__txt="e1\ne4\n")
    run("import", "b.tsv", "--out", "b")
    outcome = run("build", "b", "--seeds", "seeds.txt", "--hops", "1", "--degree", "2", "--out", "out", "--json")
    printed = json.loads(outcome.out)
    assert 0 < printed["entities"] <= 30
    assert printed["triples"]["test"] > 0
    query = "SELECT ?x { ?x <r0> <e4> }"
    assert run("build", "b", "--seeds-query", query, "--out", "queried", "-q").code == 0


FULL = nt([(f"http://a.org/{n}", "http://a.org/r", "http://a.org/b") for n in range(3)])
RDF_XML = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<rdf:Description></rdf:RDF>'
BAD = {
    "two columns": (
        "a.tsv",
        "a\tr\tb\na\tr\n",
        "a.tsv, line 2: expected 3 tab-separated",
        "found 2",
        "a<TAB>r",
        "--skip-bad",
    ),
    "four columns": ("a.csv", "a,r,b\na,r,b,c\n", "a.csv, line 2: expected 3 comma-separated", "found 4"),
    "an empty column": ("a.tsv", "a\tr\tb\na\t\tb\n", "a.tsv, line 2: column 2 of 3 is empty"),
    "a row of csv over several lines": ("a.csv", 'a,r,b\n"x\ny",r\n', "a.csv, line 2:", "found 2", r"x\ny"),
    "an open quote of csv": ("a.csv", 'a,r,b\n"x,r,b\n', "a.csv, line 2: not CSV", "--skip-bad"),
    "an open quote over lines": ("a.csv", 'a,r,b\n"x,r,b\na,r,b\n', "a.csv, line 2: not CSV", "Correct the quotes"),
    "a huge cell of csv": ("a.csv", f"a,r,b\n{'x' * 200_000},r,b\n", "a.csv, line 2: not CSV: field larger"),
    "a huge line": ("a.tsv", "x" * 1_000_000, "a.tsv, line 1: expected 3", "..."),
    "no utf-8 in tsv": (
        "a.tsv",
        b"a\tr\tb\na\tr\t\xff\n",
        "a.tsv, line 2, column 5: not UTF-8: byte 0xff",
        "--skip-bad",
    ),
    "no utf-8 in n-triples": (
        "a.nt",
        FULL.encode() + b'<http://a> <http://b> "\xff" .',
        "a.nt, line 4",
        "not UTF-8",
        "--skip-bad",
    ),
    "no utf-8 in turtle": (
        "a.ttl",
        FULL.encode() + b'<http://a> <http://b> "\xff" .',
        "a.ttl, line 4",
        "Convert the file",
    ),
    "n-triples": ("a.nt", FULL + "nonsense\n", "a.nt, line 4, column 1:", "--skip-bad"),
    "n-quads": ("a.nq", FULL + "<x> .\n", "a.nq, line 4, column 1:", "--skip-bad"),
    "turtle": ("a.ttl", TURTLE + ":a :near ;; .\n", "a.ttl, line 3", "--skip-bad"),
    "trig": ("a.trig", TURTLE + ":g { :a :near }", "a.trig, line 3", "--skip-bad"),
    "rdf/xml": ("a.rdf", RDF_XML, "a.rdf, line 2", "Correct it"),
    "json-ld": ("a.jsonld", '{"@id": "http://a",\n "http://b": {"@id": }}', "a.jsonld, line 2", "Correct it"),
    "a remote context": ("a.jsonld", '{"@context": "https://schema.org/", "name": "x"}', "a.jsonld", "remote @context"),
    "an empty file": ("a.tsv", "", "a.tsv: the file is empty"),
    "only empty lines": ("a.tsv", "\n\n", "a.tsv: the file has no rows"),
    "a cut gzip file": ("a.nt.gz", gzip.compress(FULL.encode())[:-9], "a.nt.gz", "is incomplete", "Download"),
    "a binary file": ("a.tsv", bytes(range(256)) * 20, "a.tsv, line 1: expected 3"),
    "a binary file as n-triples": ("a.nt", bytes(range(128, 256)) * 20, "a.nt, line 1"),
    "a zip file": ("a.zip", b"PK\x03\x04" + bytes(99), "a.zip: is a zip archive", "Unpack it"),
    "an unknown ending": ("a.pdf", b"%PDF", 'a.pdf: unknown file extension ".pdf"', "--format"),
    "two names for one iri": ("a.tsv", "a\tr\tb\n/a\tr\tb\n", 'a.tsv: the names "a" and "/a" would both be'),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_line_and_no_folder(run: Run, what: str) -> None:
    name, content, *said = BAD[what]
    write(**{str(name): content})
    refused(run("import", str(name), "--out", "out"), *map(str, said))
    assert [path.name for path in Path().iterdir()] == [name]


SKIPPED = [
    "two columns",
    "four columns",
    "an empty column",
    "an open quote of csv",
    "no utf-8 in tsv",
    "n-triples",
    "n-quads",
]


@pytest.mark.parametrize("what", [*SKIPPED, "no utf-8 in n-triples", "turtle", "a huge cell of csv"])
def test_skip_bad_counts_what_is_malformed(run: Run, what: str) -> None:
    name, content, *_ = BAD[what]
    write(**{str(name): content})
    printed = json.loads(run("import", str(name), "--skip-bad", "--out", "out", "--json").out)
    assert {"what": "malformed", "count": 1, "used_for": "nothing: --skip-bad"} in printed["report"]
    assert printed["triples"]["train"] > 0


@pytest.mark.parametrize(
    "what", ["no utf-8 in turtle", "rdf/xml", "json-ld", "an open quote over lines", "a cut gzip file", "an empty file"]
)
def test_skip_bad_never_loses_the_rest_of_a_file(run: Run, what: str) -> None:
    name, content, *said = BAD[what]
    write(**{str(name): content})
    refused(run("import", str(name), "--skip-bad", "--out", "out"), str(said[0]))


def test_bad_arguments_get_one_line_and_no_folder(run: Run) -> None:
    write(a__tsv="a\tr\tb\n", types__tsv="c\tK\n")
    Path("folder").mkdir()
    bad = {
        ("missing.nt",): ["missing.nt: no such file", "Check the path"],
        ("folder",): ["folder: the folder has no file named train"],
        ("a.tsv", "--types", "types.tsv"): ["types.tsv, line 1: no entity c in this graph", "--skip-bad"],
        ("a.tsv", "--types", "nonsense"): ['--types: there is no file "nonsense"', "nearest, top, one"],
        ("a.tsv", "--types", "folder"): ["folder: is a folder"],
        ("a.tsv", "--labels", "missing.tsv"): ["missing.tsv: no such file"],
        ("a.tsv", "--split", "nonsense"): ['--split: cannot read "nonsense"', "90/1/9"],
        ("a.tsv", "--split", "nan/1/1"): ["--split"],
        ("a.tsv", "--split", ""): ["--split"],
        ("a.tsv", "--format", "nonsense"): ['--format: unknown format "nonsense"', "Pass one of tsv"],
        ("a.tsv", "--base", "nonsense"): ["--base"],
        ("-",): ["standard input: the file is empty"],
        ("ftp://a.org/x",): ["ftp://a.org/x", "http://"],
    }
    for arguments, said in bad.items():
        refused(run("import", *arguments, "--out", "out"), *said)


def test_standard_input_is_named_in_errors(run: Run) -> None:
    refused(
        run("import", "-", "--format", "tsv", "--out", "out", stdin=b"a\tb\n"), "standard input, line 1: expected 3"
    )
    refused(
        run("import", "-", "--out", "out", stdin=b"a\tr\tb\n"), "the format of standard input is not known", "--format"
    )


def test_an_existing_output_folder_is_never_changed(run: Run) -> None:
    write(a__tsv="a\tr\tb\n", kept="kept")
    for out in ("kept", "."):
        outcome = run("import", "a.tsv", "--out", out)
        assert outcome.code == 1
        assert "exists already. Remove it, or write the graph to another --out" in outcome.err
    assert Path("kept").read_text() == "kept"
    assert run("build", "nowhere", "--out", "kept").code == 1


def test_a_path_that_cannot_be_written_gets_one_line(run: Run) -> None:
    write(a__tsv="a\tr\tb\n")
    for out in ("a.tsv/out", "x" * 300, "/proc/out", "/dev/null/out"):
        refused(run("import", "a.tsv", "--out", out), out, "cannot be written", "another place")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_parent_folder_without_permission_gets_one_line(run: Run) -> None:
    write(a__tsv="a\tr\tb\n")
    Path("locked").mkdir(mode=0o500)
    refused(run("import", "a.tsv", "--out", "locked/out"), "cannot be written", "Permission denied")


def test_parents_made_for_a_failed_import_are_removed(run: Run) -> None:
    write(a__tsv="a\tr\n")
    refused(run("import", "a.tsv", "--out", "deep/er/out"), "a.tsv, line 1")
    assert [path.name for path in Path().iterdir()] == ["a.tsv"]


def test_stats_and_build_of_no_graph_get_one_line(run: Run) -> None:
    Path("folder").mkdir()
    write(a__tsv="a\tr\tb\n")
    run("import", "a.tsv", "--out", "graph", "-q")
    for command, said in {
        ("stats", "folder"): "folder: no graph here. Make one with: halfgraph import",
        ("stats", "missing"): "missing: no such folder",
        ("build", "missing", "--out", "out"): "missing: no such folder",
        ("build", "graph", "--seeds", "missing.txt", "--out", "out"): "missing.txt: no such file",
        (
            "build",
            "graph",
            "--seeds-query",
            "SELECT",
            "--out",
            "out",
        ): "--seeds-query, line 1, column 7: the query ends too early",
        ("build", "graph", "--seeds-query", "SELECT ?x { SERVICE <http://127.0.0.1:9/> {} }", "--out", "out"): (
            "--seeds-query, line 1, column 13: SERVICE is refused"
        ),
        ("build", "graph", "--seeds-query", "CLEAR ALL", "--out", "out"): "--seeds-query, line 1, column 1: CLEAR",
        ("build", "graph", "--seeds-query", "ASK {}", "--out", "out"): "--seeds-query: is not a SELECT query",
        ("build", "graph", "--seeds", "a", "--seeds-query", "b", "--out", "out"): "--seeds",
        ("build", "graph", "--degree", "9", "--out", "out"): "graph: none of 1 triples is left. Lower --degree",
        ("stats", "graph", "--plot", "x.nonsense"): "x.nonsense: the picture cannot be written",
    }.items():
        refused(run(*command), said)


def test_usage_errors_have_their_own_exit_code(run: Run) -> None:
    for arguments in (
        ["import"],
        ["import", "a.tsv"],
        ["nonsense"],
        ["import", "a.tsv", "--out", "x", "--untyped", "y"],
    ):
        assert run(*arguments).code == 2


def served(answer: Callable[[str], tuple[str, bytes]]) -> Iterator[str]:
    """Address of a local endpoint that answers a query with a media type and a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            media_type, body = answer(form["query"][0])
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/sparql"
        server.shutdown()


@pytest.fixture
def web_page() -> Iterator[str]:
    yield from served(lambda _: ("text/html", b"<!doctype html><title>Welcome</title>"))


@pytest.fixture
def endpoint() -> Iterator[str]:
    store = Store()
    store.load(TURTLE.encode(), RdfFormat.TURTLE)

    def answer(query: str) -> tuple[str, bytes]:
        found = store.query(query)
        if isinstance(found, QueryTriples):
            return "application/n-triples", serialize(found, format=RdfFormat.N_TRIPLES) or b""
        return "application/sparql-results+json", found.serialize(format=QueryResultsFormat.JSON) or b""

    yield from served(answer)


def test_an_endpoint_is_imported_as_its_file_is(run: Run, endpoint: str) -> None:
    write(a__ttl=TURTLE)
    printed = json.loads(run("import", "a.ttl", "--out", "file", "--json").out)
    outcome = run("import", endpoint, "--out", "out", "--pause", "0", "--page-size", "2", "--json")
    assert json.loads(outcome.out) == printed
    assert Graph.open("out").description["provenance"]["sources"] == [endpoint]
    assert sorted(path.name for path in Path().iterdir()) == ["a.ttl", "file", "out"]


def test_a_data_set_is_built_from_an_endpoint(run: Run, endpoint: str) -> None:
    write(seeds__txt="http://example.org/a\nhttp://example.org/alone\n")
    outcome = run("build", endpoint, "--seeds", "seeds.txt", "--hops", "1", "--pause", "0", "--out", "out", "--json")
    assert json.loads(outcome.out)["entities"] == 2
    assert "1 of 2 seeds occur in no triple" in outcome.err
    graph = Graph.open("out")
    assert graph.types.names == ("http://example.org/City",)
    assert graph.entities.label(0) == "The A"
    assert graph.description["provenance"]["sources"] == [endpoint]
    query = "SELECT ?x { ?x a <http://example.org/City> }"
    assert run("build", endpoint, "--seeds-query", query, "--pause", "0", "--out", "queried", "-q").code == 0
    assert not list(Path().glob(".*"))


def test_an_endpoint_that_answers_html_gets_one_line(run: Run, web_page: str) -> None:
    refused(run("import", web_page, "--out", "out", "--pause", "0"), web_page, "web page", "Check that the address")
    write(seeds__txt="http://a.org/a\n")
    arguments = ("--seeds", "seeds.txt", "--out", "out", "--pause", "0")
    refused(run("build", web_page, *arguments), web_page, "web page")
    refused(run("build", web_page, "--out", "out", "--pause", "0"), "--seeds")


def test_an_unreachable_endpoint_gets_one_line(run: Run) -> None:
    refused(run("import", "http://127.0.0.1:9/sparql", "--out", "out", "--pause", "0"), "cannot connect")


@pytest.fixture
def big(tmp_path: Path) -> Path:
    lines = (
        f'<http://a/{n}> <http://r> <http://a/{n + 1}> .\n<http://a/{n}> <http://l> "{n}" .\n' for n in range(20_000)
    )
    source = tmp_path / "big.nt"
    source.write_text("".join(lines))
    return source


def refused_program(done: subprocess.CompletedProcess[str], *said: str) -> None:
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1
    assert all(words in done.stderr for words in said)


@pytest.mark.parametrize("most", [10_000, 200_000, 550_000])
def test_a_limit_on_file_sizes_gets_one_line(tmp_path: Path, big: Path, most: int) -> None:
    before = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"
    done = program("import", str(big), "--out", "out", before=before, cwd=tmp_path)
    refused_program(done, "out: cannot be written: File too large", "No files were kept")
    assert list(tmp_path.iterdir()) == [big]


@pytest.mark.parametrize("size", ["100k", "1m", "1600k"])
def test_a_full_disk_gets_one_line(tmp_path: Path, big: Path, size: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True
    ).returncode:
        pytest.skip("no right to mount a small disk")
    try:
        refused_program(program("import", str(big), "--out", str(disk / "out")), "No space left", "Make room")
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_program_runs_by_its_name(tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "halfgraph"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("halfgraph 0.")
    (tmp_path / "a.tsv").write_text("a\tr\n")
    done = subprocess.run([command, "import", "a.tsv", "--out", "out"], capture_output=True, text=True, cwd=tmp_path)
    refused_program(done, "a.tsv, line 1: expected 3 tab-separated columns, found 2")


def test_output_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tr\tb\n")
    program("import", "a.tsv", "--out", "out", cwd=tmp_path, check=True)
    before = "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1)"
    done = program("stats", "out", before=before, cwd=tmp_path)
    assert done.stderr == ""


def test_output_that_cannot_be_written_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tr\tb\n")
    program("import", "a.tsv", "--out", "out", cwd=tmp_path, check=True)
    before = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)"
    done = program("stats", "out", "--json", before=before, cwd=tmp_path)
    refused_program(done, "No space left")


def test_names_that_the_terminal_cannot_show_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tné\tb\n")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    program("import", "a.tsv", "--out", "out", cwd=tmp_path, check=True, env=environment)
    assert r"n\xe9" in program("stats", "out", cwd=tmp_path, env=environment).stdout
