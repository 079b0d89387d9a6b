import gzip
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import FolderError, HalfgraphError, InputError, OtherGraph, QueryError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import NAMED, structure_named
from halfgraph.workload.columns import collect
from halfgraph.workload.folder import Workload
from halfgraph.workload.jsonl import export, import_workload, read_lines
from halfgraph.workload.nested import EXPECTED, FilePosition, GraphNames, read_nested, to_nested
from halfgraph.workload.sampling import Questions
from halfgraph.workload.verification import verify
from imported_graphs import made
from query_files import (
    edges_on,
    plain_answers,
    published,
    read_json_lines,
    sampled,
    some_queries,
    split_graph,
    write_lines,
)

HERE = FilePosition(Path("queries.jsonl"), 3)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def workload(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return sampled(graph, tmp_path_factory.mktemp("workload") / "w")


def same(one: Any, other: Any) -> bool:
    """Return whether two columns are equal."""
    if isinstance(one, Ragged) and isinstance(other, Ragged):
        return np.array_equal(one.values, other.values) and np.array_equal(one.offsets, other.offsets)
    return one is other if one is None or other is None else np.array_equal(one, other)


def assert_same(one: Questions, other: Questions) -> None:
    for column in fields(one):
        if column.name != "structure":
            assert same(getattr(one, column.name), getattr(other, column.name)), column.name


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_questions_come_back_as_they_went(
    graph: Graph, workload: Workload, tmp_path: Path, split: str, ending: str
) -> None:
    counts = export(workload, graph, tmp_path / f"q.{ending}", split)
    imported = import_workload(tmp_path / f"q.{ending}", graph, tmp_path / "w").workload
    assert imported.description["questions"] == {split: workload.description["questions"][split]} == {split: counts}
    for structure in workload.structures(split):
        assert_same(workload.questions(split, structure), imported.questions(split, structure))
    assert imported.graphs(split) == workload.graphs(split)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_what_is_exported_has_the_answers_of_a_plain_walk(
    graph: Graph, workload: Workload, tmp_path: Path, split: str
) -> None:
    export(workload, graph, tmp_path / "q.jsonl", split)
    easy_on, all_on = (edges_on(graph, name) for name in workload.graphs(split))
    lines = read_json_lines(tmp_path / "q.jsonl")
    assert {line["structure"] for line in lines} == {"1p", "2p", "3p", "2i", "3i", "pi", "ip"}
    for line in lines:
        everything = plain_answers(line["query"], all_on)
        assert set(line["easy"]) == plain_answers(line["query"], easy_on)
        assert set(line["hard"]) == everything - set(line["easy"])
        assert line["answer"] in line["hard"]
        assert line["negative"] not in everything
        assert not everything & {*line.get("negatives", ()), *line.get("hard_negatives", ())}
        assert line["missing"] >= 1
    assert any("negatives" in line for line in lines)


def test_training_questions_have_an_answer_and_no_easy_and_hard_ones(
    graph: Graph, workload: Workload, tmp_path: Path
) -> None:
    export(workload, graph, tmp_path / "q.jsonl", "train", limit=7)
    edges = edges_on(graph, "train")
    for line in read_json_lines(tmp_path / "q.jsonl"):
        assert not {"easy", "hard"} & set(line)
        assert line["answer"] in plain_answers(line["query"], edges)


relations = st.lists(st.sampled_from(["r0", "r1^-1", "u", "n"]), min_size=1, max_size=3)
paths = st.tuples(st.sampled_from(["e0", "e1", "u"]), relations).map(list)


def joined(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Branches that meet, with a union's mark or not, and with a further hop or not."""
    lists = st.lists(parts, min_size=2, max_size=3)
    branches = st.one_of(lists, lists.map(lambda some: [*some, ["u"]]))
    return st.one_of(branches, st.tuples(branches, relations).map(list))


@given(st.recursive(paths, joined, max_leaves=6), st.booleans())
def test_nested_lists_read_as_a_tree_are_written_as_the_same_lists(nested: list[Any], negations: bool) -> None:
    class Known:
        """Names that are known, whatever they are; an id is a place in a list."""

        leaf, union, expected = str, ["u"], EXPECTED
        seen: ClassVar[list[object]] = []

        def entity(self, name: object, place: FilePosition) -> int:  # noqa: ARG002
            self.seen.append(name)
            return len(self.seen) - 1

        relation = entity

        def negates(self, name: object) -> bool:
            return negations and name == "n"

    known = Known()
    try:
        tree = read_nested(nested, known, HERE)
    except QueryError:
        assert negations
        return
    assert to_nested(tree, lambda i: str(known.seen[i]), lambda i: str(known.seen[i])) == nested  # type: ignore[index]


@pytest.mark.parametrize(("easy_on", "all_on"), [("train", "known"), ("known", "whole"), ("train", "whole")])
def test_the_graphs_behind_easy_and_hard_answers_are_found_out(
    graph: Graph, tmp_path: Path, easy_on: str, all_on: str
) -> None:
    path = write_lines(tmp_path / "q.jsonl.gz", published(graph, some_queries(150), easy_on, all_on))
    imported = import_workload(path, graph, tmp_path / "w")
    split = "valid" if all_on == "known" else "test"
    assert list(imported.conventions) == [split] == list(imported.workload.description["questions"])
    assert imported.workload.graphs(split) == (easy_on, all_on)
    assert imported.conventions[split].tried == imported.conventions[split].equal > 400
    assert {structure.short for structure in imported.workload.structures(split)} == {
        *("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up")
    }
    verified = verify(graph, imported.workload, imported.lines)
    assert verified.equal == verified.queries == imported.conventions[split].tried


@pytest.mark.parametrize(("easy_on", "all_on"), [("train", "known"), ("known", "whole"), ("train", "whole")])
def test_the_five_structures_with_negation_are_imported_and_verified(
    graph: Graph, tmp_path: Path, easy_on: str, all_on: str
) -> None:
    lines = published(graph, some_queries(80, negated=True), easy_on, all_on)
    imported = import_workload(write_lines(tmp_path / "q.jsonl", lines), graph, tmp_path / "w")
    split = "valid" if all_on == "known" else "test"
    assert imported.workload.graphs(split) == (easy_on, all_on)
    assert {structure.short for structure in imported.workload.structures(split)} == {"2in", "3in", "inp", "pin", "pni"}
    verified = verify(graph, imported.workload, imported.lines)
    assert verified.equal == verified.queries == len(lines)
    export(imported.workload, graph, tmp_path / "again.jsonl", split)
    again = import_workload(tmp_path / "again.jsonl", graph, tmp_path / "w2", split).workload
    for structure in again.structures(split):
        one, other = (some.questions(split, structure) for some in (imported.workload, again))
        assert one.anchors.tolist() == other.anchors.tolist()
        assert one.relations.tolist() == other.relations.tolist()


def test_a_split_that_is_given_is_taken(graph: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", published(graph, some_queries(3), "train", "known"))
    imported = import_workload(path, graph, tmp_path / "w", "test")
    assert imported.workload.graphs("test")[1] == "whole"
    assert imported.conventions["test"].equal < imported.conventions["test"].tried


def test_verification_finds_a_tampered_answer_and_says_where(graph: Graph, tmp_path: Path) -> None:
    lines = published(graph, some_queries(8), "train", "known")
    wrong = next(i for i, line in enumerate(lines) if len(line["hard"]) > 1)
    gone = lines[wrong]["hard"].pop()
    extra = next(i for i, line in enumerate(lines) if i > wrong and line["easy"])
    outsider = next(f"e{n}" for n in range(30) if f"e{n}" not in {*lines[extra]["easy"], *lines[extra]["hard"]})
    lines[extra]["easy"].append(outsider)
    imported = import_workload(write_lines(tmp_path / "q.jsonl", lines), graph, tmp_path / "w")
    verified = verify(graph, imported.workload, imported.lines)
    assert (verified.queries, verified.equal) == (len(lines), len(lines) - 2)
    by_line = {row["line"]: row for row in verified.different}
    assert by_line[wrong + 1]["missing_hard"] == [gone]
    assert by_line[wrong + 1]["query"] == lines[wrong]["query"] or "i" in by_line[wrong + 1]["structure"]
    assert by_line[extra + 1]["wrong_easy"] == [outsider]


def test_the_first_hard_answer_is_the_answer_and_there_are_no_negatives(graph: Graph, tmp_path: Path) -> None:
    lines = [line for line in published(graph, some_queries(6), "train", "known") if isinstance(line["query"][0], str)]
    imported = import_workload(write_lines(tmp_path / "q.jsonl", lines), graph, tmp_path / "w").workload
    for structure in imported.structures("valid"):
        questions = imported.questions("valid", structure)
        own = [line for line in lines if len(line["query"][1]) == structure.relation_count]
        names = [graph.entities.name(int(answer)) for answer in questions.answers]
        assert names == [(line["hard"] or line["easy"])[0] for line in own]
        assert (questions.negative == -1).all()
        assert (questions.hard_negative == -1).all()
        assert questions.negatives is None
        assert questions.missing is None


def test_other_trees_and_negations_are_set_aside_and_counted(graph: Graph, tmp_path: Path) -> None:
    path4 = ["e1", ["r0", "r0^-1", "r0", "r0^-1"]]
    lines = [
        *published(graph, some_queries(1), "train", "known"),
        {"query": path4, "easy": ["e1"], "hard": []},
        {"query": path4, "easy": ["e1"], "hard": []},
        {"query": [["e1", ["r0", "n"]], ["e2", ["r1", "n"]]], "easy": ["e1"], "hard": []},
    ]
    imported = import_workload(write_lines(tmp_path / "q.jsonl", lines), graph, tmp_path / "w").workload
    assert imported.description["set_aside"] == {"apppp": 2, "with a negation that stands alone": 1}


def test_relations_may_be_called_what_marks_a_union_or_a_negation(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\tu\tb\nb\tn\tc\nc\tback^-1\ta\n")
    names = GraphNames(graph)
    for relation in ("u", "n", "back^-1"):
        tree = read_nested(["b", [relation, f"{relation}^-1"]], names, HERE)
        entity = names.entity_name
        assert to_nested(tree, entity, graph.relation_name) == ["b", [relation, f"{relation}^-1"]]  # type: ignore[arg-type]
    lines = [
        {"query": ["a", ["u"]], "easy": [], "hard": ["b"]},
        {"query": [["a", ["u"]], ["n"]], "easy": ["c"], "hard": []},
        {"query": [[["a", ["u"]], ["b", ["u^-1"]], ["u"]], ["u"]], "easy": ["b"], "hard": []},
    ]
    gathered, aside = collect(read_lines(write_lines(tmp_path / "q.jsonl", lines), graph), lambda _: None)
    assert not aside
    assert [rows.structure.short for rows in gathered["held out"].values()] == ["1p", "2p", "up"]


def test_every_named_structure_has_nested_lists() -> None:
    for structure in NAMED:
        nested = to_nested(structure.query, lambda place: f"e{place}", lambda place: f"r{place}")
        assert str(nested).count("'e") == structure.anchor_count
        assert str(nested).count("'r") == structure.relation_count


GOOD = '{"query": ["e1", ["r0"]], "easy": [], "hard": ["e2"]}'
BAD = {
    '{"query": ["e1", ["r0"]], "easy": [], "hard": ["e2"]': "line 2, column 53: not valid JSON: expecting ','",
    '{"query": ["e1"': "not valid JSON",
    "\ufeffnothing": "not valid JSON",
    '["e1", ["r0"]]': 'expected an object with "query", found ["e1", ["r0"]]',
    '{"easy": [], "hard": ["e2"]}': 'expected an object with "query"',
    '{"query": ["e1", ["r0"]], "hard": ["e2"]}': 'has "hard" but no "easy"',
    '{"query": ["e1", ["r0"]], "easy": [], "hard": []}': "the query has no answers",
    '{"query": ["e1", ["r0"]]}': "the query has no answers",
    '{"query": ["e1", ["r0"]], "easy": ["e2"], "hard": ["e2"]}': "1 answers are both easy and hard",
    '{"query": ["e1", ["r0"]], "easy": ["e2"], "hard": [], "answer": "e3"}': '"answer" is neither',
    '{"structure": "2p", "query": ["e1", ["r0"]], "easy": ["e2"], "hard": []}': "says 2p, but the query is 1p",
    '{"query": ["e1", ["r0"]], "easy": "e2", "hard": []}': 'expected a list of entities, found "e2"',
    '{"query": ["e1", ["r0"]], "easy": [], "hard": [7]}': "expected the name of an entity, found 7",
    '{"query": ["e1", ["r0"]], "easy": [], "hard": [["e1"]]}': 'expected the name of an entity, found ["e1"]',
    '{"query": ["e1", [0]], "easy": [], "hard": ["e1"]}': "expected the name of a relation, found 0",
    '{"query": ["e1", []], "easy": [], "hard": ["e1"]}': "expected [anchor, [relation, ...]]",
    '{"query": "e1", "easy": [], "hard": ["e1"]}': "expected [anchor, [relation, ...]]",
    '{"query": [["e1", ["r0"]]], "easy": [], "hard": ["e1"]}': "expected [anchor, [relation, ...]]",
    '{"query": [["e1", ["r0"]], "e2"], "easy": [], "hard": ["e1"]}': "expected [anchor, [relation, ...]]",
    '{"query": ["e1", ["r0"], ["r1"]], "easy": [], "hard": ["e1"]}': "expected [anchor, [relation, ...]]",
    '{"query": ["e1", ["r0"]], "easy": [], "hard": ["e1"], "missing": "two"}': '"missing" should be how many',
    f'{{"query": {"[" * 50}["e1", ["r0"]]{"]" * 50}, "easy": [], "hard": ["e1"]}}': "expected [anchor, [relation",
    "[" * 100_000: "not valid JSON",
    '{"query": ["e77", ["r0"]], "easy": [], "hard": ["e1"]}': "no entity e77 in this graph. Did you mean e7 or",
    '{"query": ["e1", ["r9"]], "easy": [], "hard": ["e1"]}': "no relation r9 in this graph",
    '{"query": ["e1", ["r0^-2"]], "easy": [], "hard": ["e1"]}': "no relation r0^-2 in this graph",
    '{"query": ["e1", ["r0"]], "easy": [], "hard": ["e1", "nobody"]}': "no entity nobody in this graph",
    '{"query": ["e1", ["r0"]], "easy": [], "hard": ["e1"], "negative": "nobody"}': "no entity nobody in this graph",
}


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:60])
def test_a_bad_line_is_an_error_with_file_and_line_and_leaves_nothing(graph: Graph, tmp_path: Path, line: str) -> None:
    path = write_lines(tmp_path / "q.jsonl", [GOOD, line, GOOD])
    with pytest.raises((InputError, UnknownName)) as error:
        import_workload(path, graph, tmp_path / "w")
    assert str(error.value).startswith(f"{path}, line 2")
    assert BAD[line] in str(error.value)
    assert [found.name for found in tmp_path.iterdir()] == ["q.jsonl"]


def test_lists_too_deep_are_refused_without_reaching_the_end_of_the_stack(graph: Graph, tmp_path: Path) -> None:
    deep: Any = ["e1", ["r0"]]
    for _ in range(60):
        deep = [deep, ["r0"]]
    path = write_lines(tmp_path / "q.jsonl", [{"query": deep, "easy": [], "hard": ["e1"]}])
    with pytest.raises(InputError, match="more than 32 lists within lists"):
        import_workload(path, graph, tmp_path / "w")


def test_files_that_are_none_of_ours_are_refused(graph: Graph, tmp_path: Path) -> None:
    whole = gzip.compress((GOOD + "\n").encode() * 400)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "latin.jsonl").write_bytes(GOOD.encode().replace(b"e2", b"\xe9"))
    write_lines(tmp_path / "aside.jsonl", [{"query": ["e1", ["r0", "n"]], "easy": ["e1"], "hard": []}])
    said = {
        "cut.jsonl.gz": "is incomplete",
        "empty.jsonl": "the file is empty",
        "absent.jsonl": "no such file",
        "latin.jsonl": "line 1: not valid JSON",
        "aside.jsonl": "no question of a named structure. Found: 1 with a negation",
    }
    for name, words in said.items():
        with pytest.raises(HalfgraphError, match=words):
            import_workload(tmp_path / name, graph, tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_blank_lines_are_passed_over_and_counted_as_lines(graph: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", ["", GOOD, "  ", GOOD])
    assert [record.position.line for record in read_lines(path, graph)] == [2, 4]


def test_an_export_is_limited_by_structure(graph: Graph, workload: Workload, tmp_path: Path) -> None:
    chosen = [structure_named("2i"), structure_named("2p")]
    counts = export(workload, graph, tmp_path / "q.jsonl", "test", chosen, limit=3)
    assert counts == {"2-chain": 3, "2-inter": 3}
    assert [line["structure"] for line in read_json_lines(tmp_path / "q.jsonl")] == ["2p"] * 3 + ["2i"] * 3


def test_an_export_says_what_the_workload_does_not_have(graph: Graph, workload: Workload, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"has no test questions of 2-union. It has train: 1-chain"):
        export(workload, graph, tmp_path / "q.jsonl", "test", [structure_named("2u")])
    (tmp_path / "q.jsonl").write_text("mine")
    with pytest.raises(FolderError, match="exists already"):
        export(workload, graph, tmp_path / "q.jsonl", "test")
    assert (tmp_path / "q.jsonl").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_workload_of_another_graph_is_refused(workload: Workload, tmp_path: Path) -> None:
    with pytest.raises(OtherGraph, match="belongs to graph"):
        Workload.open(workload.path, split_graph(tmp_path, seed=1))
