import json
from pathlib import Path

import numpy as np
import pytest

from halfgraph.errors import EmptyGraph, FolderError, OtherGraph
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.structures import NEIGHBOURHOODS, STRUCTURES, structure_named
from halfgraph.workload import sampling
from halfgraph.workload.folder import DESCRIPTION, Counts, Plan, Workload, draw, planned, sample
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions
from query_oracles import Plain, answers, clean_paths

COUNTS = Counts(two_edges=100, three_edges=200, valid=20, test=30, neighbourhoods=25)
PLAN = Plan(COUNTS, seed=3, negatives=NegativeCounts(most=12, one_in=4), threads=2)
COLUMNS = ("anchors", "relations", "answers", "negative", "hard_negative", "missing")
SETS = ("easy", "hard", "negatives", "hard_negatives")


def named_triples(seed: int = 0, entities: int = 30, count: int = 220) -> list[str]:
    """Lines of a TSV file, each once."""
    generator = np.random.default_rng(seed)
    rows = {(int(h), int(r), int(t)) for h, r, t in generator.integers(0, (entities, 3, entities), (count, 3))}
    return [f"e{head}\tr{relation}\te{tail}" for head, relation, tail in sorted(rows)]


def folder_of(path: Path, lines: list[str], split: bool = True) -> Path:
    """A source folder; every seventh triple is held out if it is to be split."""
    path.mkdir()
    parts = {"train": lines}
    if split:
        parts = {
            "train": [line for place, line in enumerate(lines) if place % 7 > 1],
            "valid": lines[::7],
            "test": lines[1::7],
        }
    for name, some in parts.items():
        (path / f"{name}.tsv").write_text("\n".join(some) + "\n", encoding="utf-8")
    entities = sorted({cell for line in lines for cell in line.split("\t")[::2]})
    (path / "types.tsv").write_text(
        "".join(f"{name}\tkind{int(name[1:]) % 2}\n" for name in entities), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    folder = tmp_path_factory.mktemp("graph")
    return import_graph([folder_of(folder / "source", named_triples())], folder / "graph", ImportOptions())


@pytest.fixture(scope="module")
def workload(graph, tmp_path_factory) -> Workload:
    return sample(graph, tmp_path_factory.mktemp("workload") / "made", PLAN)


@pytest.fixture
def broken(workload, tmp_path) -> Path:
    """A copy of a workload, to be broken."""
    for file in workload.path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.fixture
def _impatient(monkeypatch):
    """Not to wait long for what is not there."""
    monkeypatch.setattr(sampling, "PATIENCE", 1)


def plain_of(graph: Graph, view: str) -> Plain:
    """A view of the graph, plain."""
    types = tuple(graph.types.of(np.arange(len(graph.entities))).tolist())
    return Plain.of(map(tuple, graph.view(view).triples().tolist()), types)


def assert_same(one: Questions, other: Questions) -> None:
    assert one.structure == other.structure
    for name in COLUMNS:
        mine, yours = getattr(one, name), getattr(other, name)
        assert (mine is None) == (yours is None)
        np.testing.assert_array_equal(mine, yours)
        assert mine is None or mine.dtype == yours.dtype == np.int32
    for name in SETS:
        mine, yours = getattr(one, name), getattr(other, name)
        assert (mine is None) == (yours is None)
        if mine is not None:
            np.testing.assert_array_equal(mine.values, yours.values)
            np.testing.assert_array_equal(mine.offsets, yours.offsets)


def test_a_workload_has_every_structure_of_every_split(graph, workload):
    found = {
        split: {structure.name for structure in workload.structures(split)} for split in ("train", "valid", "test")
    }
    seven = {structure.name for structure in STRUCTURES}
    assert found == {"train": seven | {structure.name for structure in NEIGHBOURHOODS}, "valid": seven, "test": seven}
    counts = workload.description["questions"]
    assert counts["train"]["1-chain"] == 2 * graph.train.triple_count
    assert counts["train"]["2-chain"] == counts["train"]["2-inter"] == 50
    assert counts["train"]["3-inter_chain"] == 50
    assert counts["train"]["7-inter"] == 25
    assert set(counts["valid"].values()) == {20}
    assert set(counts["test"].values()) == {30}


def test_a_workload_opened_is_the_one_that_was_drawn(graph, workload):
    opened = Workload.open(workload.path, graph)
    count = 0
    for split, drawn in draw(graph, PLAN):
        assert_same(opened.questions(split, drawn.questions.structure), drawn.questions)
        count += 1
    assert count == sum(len(opened.structures(split)) for split in ("train", "valid", "test"))


def test_the_columns_of_an_opened_workload_are_mapped_and_can_be_worked_with(graph, workload):
    questions = workload.questions("test", structure_named("pi"))
    assert isinstance(questions.anchors, np.memmap)
    found = Exact(graph.whole).answer_sets(questions.batch())
    for i in range(len(questions)):
        assert found[i].tolist() == sorted([*questions.easy[i], *questions.hard[i]])
    assert Exact(graph.whole).have_answers(questions.batch(), questions.answers).all()
    some = questions.take(np.array([3, 1]))
    assert some.query(0) == questions.query(3)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_plan_gives_the_same_questions_for_any_number_of_threads(graph, threads):
    plan = Plan(COUNTS, seed=3, negatives=PLAN.negatives, threads=threads)
    for (split, mine), (other, yours) in zip(draw(graph, PLAN), draw(graph, plan), strict=True):
        assert split == other
        assert mine.tally == yours.tally
        assert_same(mine.questions, yours.questions)


def test_another_seed_gives_other_questions(graph, workload):
    other = dict_of(graph, Plan(COUNTS, seed=4))
    for structure in STRUCTURES[1:]:
        for split in ("train", "valid", "test"):
            mine = workload.questions(split, structure)
            assert mine.anchors.tobytes() != other[split, structure.name].anchors.tobytes()


def dict_of(graph: Graph, plan: Plan) -> dict[tuple[str, str], Questions]:
    """The questions of a plan by split and structure."""
    return {(split, drawn.questions.structure.name): drawn.questions for split, drawn in draw(graph, plan)}


@pytest.mark.parametrize("structure", [*STRUCTURES, *NEIGHBOURHOODS], ids=lambda structure: structure.name)
def test_training_questions_are_answered_on_the_training_graph(graph, workload, structure):
    questions, train = workload.questions("train", structure), plain_of(graph, "train")
    for i in range(min(len(questions), 15)):
        query, answer = questions.query(i), int(questions.answers[i])
        assert next(clean_paths(train, query, answer), None)
        if structure.relation_count in (2, 3):
            right = answers(train, query)
            assert questions.negative[i] not in right
            assert train.types[questions.negative[i]] == train.types[answer]
            if structure.has_intersection:
                assert questions.hard_negative[i] in answers(train, query, relaxed=True)
                assert questions.hard_negative[i] not in right
        else:
            assert questions.negative[i] == questions.hard_negative[i] == -1


@pytest.mark.parametrize("split", ["valid", "test"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.name)
def test_held_out_questions_cannot_be_answered_from_the_training_graph(graph, workload, split, structure):
    questions = workload.questions(split, structure)
    easy_on, all_on = workload.graphs(split)
    train, whole = plain_of(graph, easy_on), plain_of(graph, all_on)
    truth = plain_of(graph, "whole")
    new = {tuple(row) for row in graph.view(split).triples().tolist()}
    seen = set()
    for i in range(len(questions)):
        query, answer = questions.query(i), int(questions.answers[i])
        seen.add((query, answer))
        everything, easy = answers(whole, query), answers(train, query)
        assert answer not in easy
        assert questions.easy[i].tolist() == easy
        assert questions.hard[i].tolist() == sorted(set(everything) - set(easy))
        assert any(
            sum(triple not in train.edges for triple in path) == questions.missing[i] and new & set(path)
            for path in clean_paths(whole, query, answer)
        )
        many = [int(questions.negative[i]), *questions.negatives[i].tolist()]
        assert not set(many) & set(answers(truth, query))
        assert {whole.types[entity] for entity in many} == {whole.types[answer]}
        if structure.has_intersection:
            many = [int(questions.hard_negative[i]), *questions.hard_negatives[i].tolist()]
            assert set(many) <= set(answers(truth, query, relaxed=True)) - set(answers(truth, query))
            assert {whole.types[entity] for entity in many} == {whole.types[answer]}
        assert bool(len(questions.negatives[i])) == (i % 4 == 0)
        assert len(questions.negatives[i]) <= 12
    assert len(seen) == len(questions)


def test_a_workload_of_another_graph_is_refused(workload, tmp_path):
    other = import_graph([folder_of(tmp_path / "source", named_triples(1))], tmp_path / "graph", ImportOptions())
    with pytest.raises(OtherGraph, match=f"belongs to graph .*; this is graph {other.fingerprint}"):
        Workload.open(workload.path, other)


def test_a_graph_without_a_split_gives_training_questions_only(tmp_path):
    graph = import_graph(
        [folder_of(tmp_path / "source", named_triples(), split=False)], tmp_path / "graph", ImportOptions()
    )
    workload = sample(graph, tmp_path / "made", PLAN)
    assert set(workload.description["questions"]) == {"train"}
    assert workload.structures("test") == []
    with pytest.raises(FolderError, match="has no test questions of 2-chain"):
        workload.questions("test", structure_named("2p"))


@pytest.mark.usefixtures("_impatient")
def test_an_empty_test_split_gives_no_test_questions_and_says_why(tmp_path):
    source = folder_of(tmp_path / "source", named_triples())
    (source / "test.tsv").unlink()
    graph = import_graph([source], tmp_path / "graph", ImportOptions())
    workload = sample(graph, tmp_path / "made", Plan(COUNTS, structures=STRUCTURES[:4]))
    assert len(workload.structures("valid")) == 4
    assert workload.structures("test") == []
    assert "no held-out triple in it" in workload.description["tallies"]["test"]["2-inter"]["rejected"]


@pytest.mark.usefixtures("_impatient")
def test_a_graph_that_gives_no_question_of_some_structures_keeps_the_rest_and_says_why(tmp_path):
    lines = [f"e0\tr0\te{leaf}" for leaf in range(1, 12)]
    graph = import_graph([folder_of(tmp_path / "source", lines)], tmp_path / "graph", ImportOptions())
    workload = sample(graph, tmp_path / "made", PLAN)
    assert "1-chain" in {structure.name for structure in workload.structures("train")}
    rows = workload.description["tallies"]["train"]
    assert rows["3-chain"]["questions"] == 0
    assert rows["3-chain"]["rejected"]["an edge would be used twice"] > 0
    assert not any(structure.name == "3-chain" for structure in workload.structures("train"))
    assert len(workload.questions("train", structure_named("3-chain"))) == 0


@pytest.mark.usefixtures("_impatient")
def test_nothing_at_all_is_an_error_and_leaves_no_folder(tmp_path):
    graph = import_graph(
        [folder_of(tmp_path / "source", ["e0\tr0\te1"], split=False)], tmp_path / "graph", ImportOptions()
    )
    plan = Plan(COUNTS, structures=(structure_named("2p"), structure_named("2i")))
    with pytest.raises(EmptyGraph, match="an edge would be used twice"):
        sample(graph, tmp_path / "made", plan)
    assert not (tmp_path / "made").exists()


def test_a_workload_is_not_written_over_another(graph, workload):
    with pytest.raises(FolderError, match="exists already"):
        sample(graph, workload.path, PLAN)


@pytest.mark.parametrize("column", ["anchors", "answers", "easy.values", "hard.offsets"])
@pytest.mark.parametrize("kept", [0, 20, 128, 130, -4])
def test_a_truncated_column_is_refused_by_name(broken, column, kept):
    file = broken / f"test.2-chain.{column}.npy"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(FolderError, match=r"test\.2-chain\." + column):
        Workload.open(broken).questions("test", structure_named("2p"))


@pytest.mark.parametrize("column", ["anchors", "negative", "easy.offsets"])
def test_a_lost_column_is_refused(broken, column):
    (broken / f"test.2-chain.{column}.npy").unlink()
    with pytest.raises(FolderError, match=column.partition(".")[0]):
        Workload.open(broken).questions("test", structure_named("2p"))


@pytest.mark.parametrize("column", ["anchors", "missing", "easy.offsets", "easy.values"])
def test_a_column_of_another_length_is_refused(broken, column):
    file = broken / f"test.2-chain.{column}.npy"
    np.save(file, np.load(file)[:-1])
    with pytest.raises(FolderError, match=column.partition(".")[0]):
        Workload.open(broken).questions("test", structure_named("2p"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"text"', '{"format": 99}', '{"format": 1}', '{"format": 1, "graph": "a", "questions": []}']
    + ['{"format": 1, "graph": "a", "questions": {"test": 3}}', "\udcff"],
)
def test_a_broken_description_is_refused(broken, graph, text):
    (broken / DESCRIPTION).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FolderError, match=str(broken)):
        Workload.open(broken, graph)


def test_a_folder_that_is_no_workload_says_how_to_make_one(tmp_path):
    for path, problem in ((tmp_path, "no workload here"), (tmp_path / "nowhere", "no such folder")):
        with pytest.raises(FolderError, match=f"{problem}. Make one with: halfgraph sample"):
            Workload.open(path)


def test_the_description_counts_what_there_is(workload):
    description = json.loads((workload.path / DESCRIPTION).read_text(encoding="utf-8"))
    for split, rows in description["questions"].items():
        for name, count in rows.items():
            questions = workload.questions(split, structure_named(name))
            assert len(questions) == count == description["tallies"][split][name]["questions"]
            if split != "train":
                assert description["tallies"][split][name]["mean_hard"] == round(questions.hard.sizes().mean(), 2)
    assert description["questions_per_second"] > 0


def test_default_counts_are_the_papers(graph):
    plan = Plan(Counts())
    training = {structure.short: plan.training(structure, graph) for structure in (*STRUCTURES, *NEIGHBOURHOODS)}
    assert training == {
        "1p": len(graph.train.tails),
        "2p": 500_000,
        "2i": 500_000,
        **dict.fromkeys(("3p", "3i", "pi", "ip"), 250_000),
        **dict.fromkeys(("4i", "5i", "6i", "7i"), len(graph.entities)),
    }
    assert planned(plan, graph)["valid"] == dict.fromkeys([structure.name for structure in STRUCTURES], 1_000)
    assert planned(plan, graph)["test"] == dict.fromkeys([structure.name for structure in STRUCTURES], 10_000)


def test_sets_of_no_questions_are_saved_and_opened(tmp_path, graph):
    workload = sample(
        graph, tmp_path / "made", Plan(Counts(0, 0, 2, 2, 0), negatives=NegativeCounts(1, 5), structures=STRUCTURES[:2])
    )
    questions = workload.questions("test", structure_named("2p"))
    assert questions.hard_negatives.values.size == 0
    assert isinstance(questions.hard_negatives, Ragged)
    assert [structure.name for structure in workload.structures("train")] == ["1-chain"]
