"""The command ask: what it prints, and one clear line for what it cannot do."""

import json
import shutil
import subprocess
import sys

import pytest
from pyoxigraph import QueryResultsFormat, RdfFormat, Store, parse, parse_query_results

import halfgraph
from halfgraph.cli import main
from halfgraph.prediction.modes import MODES
from small_runs import people

QUERY = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language1> }"
EMPTY = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language2> }"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asked")
    halfgraph.train(people(folder, count=120), folder / "run", steps=5, dim=8, heads=2)
    return folder / "run"


def asked(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(["ask", *map(str, arguments)])
    shown = capsys.readouterr()
    return left.value.code, shown.out, shown.err


def test_answers_are_shown_with_their_confidence_and_the_query_as_drawn(run, capsys):
    code, out, err = asked(capsys, run, QUERY, "--top", 2, "--heads")
    assert code == 0
    assert out.splitlines()[0].endswith("known, 2 predicted")
    assert "confidence" in out
    assert err.splitlines()[1] == "?x"  # the query states no type
    assert "%" in err
    assert "livesIn⁻¹ ← city1" in err


def test_an_empty_query_says_why(run, capsys):
    code, out, err = asked(capsys, run, EMPTY)
    assert code == 0
    assert out.startswith("0 known, 10 predicted")
    assert "No exact answer: the graph has no match for" in err
    assert "?x :speaks :language2 ." in err
    assert "Without this the query has" in err or "?x :livesIn :city1 ." in err


def test_json_is_the_contract(run, capsys):
    _, out, _ = asked(capsys, run, QUERY, "--json")
    found = json.loads(out)
    assert {"known", "predicted", "explanation", "notes", "mode", "seconds", "variables", "target"} == set(found)
    assert {"entity", "label", "type", "score", "confidence", "row"} == set(found["predicted"][0])


@pytest.mark.parametrize("form", ["json", "xml", "csv", "tsv"])
@pytest.mark.parametrize("annotate", [True, False])
def test_the_formats_of_w3c_are_read_by_others(run, capsys, form, annotate):
    code, out, err = asked(capsys, run, QUERY, "--format", form, *(["--annotate"] if annotate else []))
    assert code == 0
    if form == "csv":
        head = out.splitlines()[0].split(",")
        assert head == (["x", "_score", "_confidence", "_source"] if annotate else ["x"])
        return
    found = parse_query_results(out, format=getattr(QueryResultsFormat, form.upper()))
    assert len(found.variables) == (4 if annotate else 1)
    rows = list(found)
    known = halfgraph.load(run).ask(QUERY).known
    assert [row["x"].value for row in rows[: len(known)]] == [one.entity for one in known]
    assert len(rows) == len(known) + 10 * annotate
    assert ("10 predicted answers left out; --annotate adds them" in err) == (not annotate)
    if annotate:
        sources = [row["_source"].value for row in rows]
        assert sources == sorted(sources)
        assert sources[-1] == "predicted"
        assert all((row["_score"] is None) == (row["_source"].value == "known") for row in rows)


def test_a_reason_is_shown_triple_by_triple(run, capsys):
    predicted = halfgraph.load(run).ask(QUERY, top=1).predicted[0]
    code, out, _ = asked(capsys, run, QUERY, "--explain", predicted.label)
    assert code == 0
    assert f"{predicted.label} is predicted" in out
    assert "missing, " in out
    _, out, _ = asked(capsys, run, QUERY, "--explain", predicted.label, "--json")
    assert json.loads(out)["answer"]["known"] is False


def test_missing_triples_are_written_for_a_triple_store(run, capsys, tmp_path):
    code, _, err = asked(capsys, run, QUERY, "--top", 3, "--missing-as", tmp_path / "missing.nq")
    assert code == 0
    quads = list(parse(path=str(tmp_path / "missing.nq"), format=RdfFormat.N_QUADS))
    count = len({quad.subject for quad in quads if quad.predicate.value.endswith("confidence")})
    assert f"{count} missing triple{'s' * (count > 1)} written to {tmp_path / 'missing.nq'}" in err


def test_the_query_is_kept_with_the_prefixes_and_the_base_that_it_uses(run, capsys, tmp_path):
    asked(capsys, run, "SELECT ?x { ?x :livesIn <city1> }", "--top", 1, "--missing-as", tmp_path / "missing.ttl")
    triples = parse(path=str(tmp_path / "missing.ttl"), format=RdfFormat.TURTLE)
    kept = next(one.object.value for one in triples if one.predicate.value == "urn:halfgraph:terms:query")
    assert kept.splitlines()[:2] == ["BASE <http://halfgraph.local/>", "PREFIX : <http://halfgraph.local/>"]
    Store().query(kept)  # a query by itself


def test_a_file_of_missing_triples_with_an_unknown_suffix_is_refused(run, capsys, tmp_path):
    code, _, err = asked(capsys, run, QUERY, "--missing-as", tmp_path / "missing.xlsx")
    assert code == 1
    assert 'has ".xlsx", which names no format' in err
    assert not list(tmp_path.iterdir())


def test_a_batch_is_a_line_of_json_for_each_query(run, capsys, tmp_path):
    file = tmp_path / "queries.txt"
    file.write_text("\n".join(f"SELECT ?x {{ ?x <livesIn> <city{i}> }}" for i in range(16)) + "\n\n")
    code, out, _ = asked(capsys, run, "--batch", file, "--top", 2)
    assert code == 0
    assert len(out.splitlines()) == 16
    assert all(len(json.loads(line)["predicted"]) == 2 for line in out.splitlines())


def test_a_bad_line_of_a_batch_is_reported_in_its_place_and_the_rest_goes_on(run, capsys, tmp_path):
    file = tmp_path / "queries.txt"
    file.write_text(f"{QUERY}\n\nSELECT ?x {{\n{EMPTY}\nSELECT ?x {{ ?x <livsIn> <city1> }}\n")
    code, out, err = asked(capsys, run, "--batch", file, "--top", 2, "--mode", "embedding")
    first, bad, second, unknown = map(json.loads, out.splitlines())
    assert code == 1
    assert "2 of 4 queries could not be answered" in err
    assert len(first["predicted"]) == len(second["predicted"]) == 2
    assert (bad["line"], unknown["line"]) == (3, 5)
    assert "Did you mean :livesIn" in unknown["error"]


def test_mode_and_min_confidence_reach_a_batch(run, capsys, tmp_path):
    file = tmp_path / "queries.txt"
    file.write_text(QUERY)
    modes = halfgraph.load(run).predictors.available
    for mode in (None, *modes):
        _, out, _ = asked(capsys, run, "--batch", file, *([] if mode is None else ["--mode", mode]))
        assert json.loads(out)["mode"] == (mode or modes[0])
    _, out, _ = asked(capsys, run, "--batch", file, "--min-confidence", 1)
    assert [one for one in json.loads(out)["predicted"] if one["confidence"] < 1] == []


def test_each_variable_has_its_own_column_in_the_order_of_the_select(run, capsys):
    _, out, _ = asked(capsys, run, "SELECT ?who ?c { ?who <livesIn> ?c . ?c <inCountry> <country1> }", "--top", 1)
    assert out.splitlines()[1].split()[:2] == ["?who", "?c"]
    known = next(line.split() for line in out.splitlines() if line.startswith("known"))
    assert known[1].startswith("person")
    assert known[2].startswith("city")


def test_conditions_are_listed_below_the_drawing_as_they_were_written(run, capsys):
    _, _, err = asked(
        capsys, run, "SELECT ?x { ?x <livesIn> <city1>\n FILTER(?x   != <person1>) VALUES ?x {<person2>} }"
    )
    assert err.splitlines()[-2:] == ["FILTER(?x   != <person1>)", "VALUES ?x {<person2>}"]


def test_an_entity_that_a_condition_excludes_is_not_an_answer(run, capsys):
    text = "SELECT ?x { ?x <livesIn> <city1> FILTER(?x != <person0>) }"
    _, out, _ = asked(capsys, run, text, "--explain", "person0")
    assert out.startswith("person0 is not an answer: FILTER (?x != :person0)")
    assert json.loads(asked(capsys, run, text, "--explain", "person0", "--json")[1])["answer"]["against"]


def test_a_query_may_come_from_standard_input(run):
    command = [sys.executable, "-c", "import halfgraph.cli; halfgraph.cli.main()", "ask", str(run), "-", "--json"]
    shown = subprocess.run(command, input=QUERY, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["predicted"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT ?x { ?x foo:livesIn <city1> }"], "the prefix foo: is not declared"),
        (["SELECT ?x { ?x foo:livesIn <city1> }"], "Known without: :, bd:, dbo:"),
        (["nofile.rq"], "nofile.rq: no such file"),
        (["queries/of mine"], "queries/of mine: no such file"),
        (["SELECT ?x { ?x <livsIn> <city1> }"], "Did you mean :livesIn"),
        (["SELECT ?x { ?x <livesIn> <citty1> }"], "Did you mean :city1"),
        ([QUERY, "--top", "0"], "--top: must be at least 1"),
        ([QUERY, "--min-confidence", "2"], "--min-confidence"),
        ([QUERY, "--explain", "nobody at all"], "no entity"),
        ([QUERY, "--time-limit", "0"], "--time-limit"),
        ([f"SELECT ?x {{ ?x <livesIn> <city1> {'# ' * 5_000_000}"], "longer than"),
        (
            ["SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", "--time-limit", "1"],
            "stopped after 1 s",
        ),
        (["ASK { ?x <livesIn> <city1> }", "--format", "csv"], "--format: writes the rows of a SELECT query"),
        ([], "needs either a query or --batch FILE"),
        ([QUERY, "--annotate"], "--annotate: adds columns to a W3C format"),
        ([QUERY, "--format", "csv", "--json"], "--json: has no effect with --format"),
        *(
            (["--batch", "queries.txt", *option], f"{option[0]}: has no effect with --batch")
            for option in (["--explain", "a"], ["--format", "csv"], ["--missing-as", "a.nq"], ["--heads"])
        ),
        *(
            ([QUERY, "--explain", "person1", *option], f"{option[0]}: has no effect with --explain")
            for option in (["--format", "csv"], ["--missing-as", "a.nq"], ["--heads"], ["--min-confidence", "0.5"])
        ),
    ],
)
def test_a_request_that_cannot_be_met_gets_one_line(run, capsys, arguments, said):
    code, out, err = asked(capsys, run, *arguments)
    assert code == 1
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 1


def test_an_unknown_mode_is_a_usage_error_that_lists_the_modes(tmp_path, capsys):
    code, out, err = asked(capsys, tmp_path, QUERY, "--mode", "magic")
    assert (code, out) == (2, "")
    assert "Invalid value for '--mode'" in err
    assert all(mode in err for mode in MODES)


@pytest.mark.parametrize("name", ["model.safetensors", "config.toml", "provenance.json", "links.safetensors"])
@pytest.mark.parametrize("how", ["truncated", "gone"])
def test_a_broken_run_is_reported(run, capsys, tmp_path, name, how):
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    if how == "gone":
        (broken / name).unlink()
    else:
        whole = (broken / name).read_bytes()
        (broken / name).write_bytes(whole[: len(whole) // 2])
    code, _, err = asked(capsys, broken, QUERY, "--json")
    assert code == 1
    assert str(broken / name) in err
    assert len(err.splitlines()) == 1


def test_a_run_of_another_graph_is_refused(run, capsys, tmp_path):
    other = people(tmp_path, seed=5)
    code, _, err = asked(capsys, run, QUERY, "--graph", other.path)
    assert code == 1
    assert "belongs to graph" in err
