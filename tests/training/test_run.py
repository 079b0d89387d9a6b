import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from halfgraph.errors import EmptyGraph, FolderError, OtherGraph
from halfgraph.evaluation.validation import validator
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import write_manifest
from halfgraph.model.architecture import Architecture
from halfgraph.query.structures import structure_named
from halfgraph.training.loop import Budget
from halfgraph.training.run import hold_out, is_finished, load_encoder, new_encoder, run, start
from halfgraph.training.run_folder import CARD, CONFIG, LATER, METRICS, MODEL, PROVENANCE, STATE
from halfgraph.workload.folder import Counts, Plan, Workload
from imported_graphs import made, tsv
from query_files import sampled, split_graph
from small_runs import SMALL, TINY, people, training_questions

SETTINGS: dict[str, dict[str, Any]] = {"model": {"name": "x"}, "architecture": asdict(TINY), "recipe": asdict(SMALL)}
FOUR = Budget(steps=4, validations=2, checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def other_graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"), seed=1)


def trained(out: Path, graph: Graph, *, workload: Workload | None = None, resume: bool = False) -> Any:
    start(out, graph, SETTINGS, 3, workload, resume=resume)
    encoder = new_encoder(TINY, graph, 3, "cpu")
    validate = validator(training_questions(graph, [structure_named("2-inter")], 20))
    run(out, graph, encoder, SMALL, FOUR, name="x", seed=3, workload=workload, validate=validate)
    return encoder


@pytest.fixture(scope="module")
def finished(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    trained(out, graph)
    return out


def test_a_run_folder_records_everything(finished: Path, graph: Graph) -> None:
    names = {CARD, CONFIG, METRICS, MODEL, PROVENANCE, STATE, "curves.png", "manifest.json"}
    assert {path.name for path in finished.iterdir()} == names
    assert is_finished(finished)
    assert tomllib.loads((finished / CONFIG).read_text()) == SETTINGS
    said = json.loads((finished / PROVENANCE).read_text())
    assert (said["graph"], said["seed"], said["steps"]) == (graph.fingerprint, 3, 4)
    assert said["parameters"] == sum(p.numel() for p in new_encoder(TINY, graph, 0, "cpu").parameters())
    assert said["intersection_parameters"] == 2 * 4 * (4 + 2 * 2 + 1)
    assert "| 2 |" not in (finished / CARD).read_text().splitlines()[0]
    assert f"on graph {graph.fingerprint}" in (finished / CARD).read_text()


def test_a_trained_model_comes_back_with_its_weights_and_scores(graph: Graph, tmp_path: Path) -> None:
    encoder = trained(tmp_path / "run", graph)
    last_is_best = json.loads((tmp_path / "run" / PROVENANCE).read_text())["best_step"] == 4
    loaded = load_encoder(tmp_path / "run", graph, TINY)
    assert not loaded.training
    same = [
        torch.equal(parameter, dict(loaded.named_parameters())[name]) for name, parameter in encoder.named_parameters()
    ]
    assert all(same) == last_is_best
    again = load_encoder(tmp_path / "run", graph, TINY)
    questions = training_questions(graph, [structure_named("3-inter_chain")], 10)[0]
    query = questions.structure.fill(questions.anchors, questions.relations)
    with torch.no_grad():
        assert torch.equal(loaded.encode([query])[0], again.encode([query])[0])


def test_a_run_resumed_after_its_end_stays_as_it_is(graph: Graph, tmp_path: Path) -> None:
    trained(tmp_path / "run", graph)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in (MODEL, METRICS, CARD, CONFIG)}
    trained(tmp_path / "run", graph, resume=True)
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before


def test_an_existing_folder_is_not_overwritten(finished: Path, graph: Graph) -> None:
    with pytest.raises(FolderError, match=r"already exists. Remove it, pass resume to continue it"):
        start(finished, graph, SETTINGS, 3, resume=False)


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [("model", "name", "y"), ("architecture", "dim", 8), ("recipe", "margin", 0.5), ("recipe", "one_edge", 17)],
)
def test_a_run_begun_with_other_settings_is_refused(
    finished: Path, graph: Graph, section: str, name: str, value: Any
) -> None:
    others = {**SETTINGS, section: {**SETTINGS[section], name: value}}
    with pytest.raises(FolderError, match=r"was started with other settings. Resume with config"):
        start(finished, graph, others, 3, resume=True)
    with pytest.raises(FolderError, match="was started with other settings"):
        start(finished, graph, SETTINGS, 4, resume=True)
    start(finished, graph, SETTINGS, 3, resume=True)


def test_a_run_of_an_earlier_version_goes_on_with_what_it_was_made_with(graph: Graph, tmp_path: Path) -> None:
    older = {
        section: {name: LATER.get(name, value) for name, value in values.items()}
        for section, values in SETTINGS.items()
    }
    start(tmp_path / "run", graph, older, 3, resume=False)
    lines = (tmp_path / "run" / CONFIG).read_text().splitlines(keepends=True)
    (tmp_path / "run" / CONFIG).write_text("".join(line for line in lines if not line.startswith(tuple(LATER))))
    write_manifest(tmp_path / "run")
    start(tmp_path / "run", graph, older, 3, resume=True)
    newer = {**older, "recipe": {**older["recipe"], "hard_pooled_weight": 1.0}}
    with pytest.raises(FolderError, match="was started with other settings"):
        start(tmp_path / "run", graph, newer, 3, resume=True)


def test_a_run_of_another_graph_is_refused(finished: Path, other_graph: Graph) -> None:
    with pytest.raises(OtherGraph, match="Pass the graph it was made with"):
        start(finished, other_graph, SETTINGS, 3, resume=True)
    with pytest.raises(OtherGraph):
        load_encoder(finished, other_graph, TINY)


def test_weights_of_another_model_are_refused(finished: Path, graph: Graph) -> None:
    for other in (replace(TINY, dim=8), Architecture(dim=4, intersection="gqe")):
        with pytest.raises(FolderError, match=r"model.safetensors: does not fit the model"):
            load_encoder(finished, graph, other)


def test_a_run_without_weights_yet_is_refused(graph: Graph, tmp_path: Path) -> None:
    start(tmp_path / "run", graph, SETTINGS, 3, resume=False)
    assert not is_finished(tmp_path / "run")
    with pytest.raises(FolderError, match=r"model.safetensors: is not there. Train the model"):
        load_encoder(tmp_path / "run", graph, TINY)


def test_what_is_no_run_is_not_resumed(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no run here"):
        start(tmp_path, graph, SETTINGS, 3, resume=True)


def test_a_run_that_was_never_begun_is_begun_when_resumed(graph: Graph, tmp_path: Path) -> None:
    start(tmp_path / "deep" / "run", graph, SETTINGS, 3, resume=True)
    assert {path.name for path in (tmp_path / "deep" / "run").iterdir()} == {CONFIG, PROVENANCE, "manifest.json"}


def test_a_folder_that_cannot_be_made_leaves_nothing(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(FolderError, match="No space left on device"):
        start(tmp_path / "run", graph, SETTINGS, 3, resume=False)
    assert not list(tmp_path.iterdir())


def test_a_model_is_trained_from_a_workload(graph: Graph, tmp_path: Path) -> None:
    workload = sampled(graph, tmp_path / "w")
    trained(tmp_path / "run", graph, workload=workload)
    on_the_fly = tmp_path / "fly"
    trained(on_the_fly, graph)
    assert (tmp_path / "run" / MODEL).read_bytes() != (on_the_fly / MODEL).read_bytes()
    for out, other in ((tmp_path / "run", None), (on_the_fly, workload)):
        with pytest.raises(FolderError, match="was started with other questions"):
            start(out, graph, SETTINGS, 3, other, resume=True)
    start(tmp_path / "run", graph, SETTINGS, 3, workload, resume=True)


def test_fresh_weights_depend_on_the_seed_alone(graph: Graph) -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    torch_state = torch.get_rng_state()
    one, same = (new_encoder(TINY, graph, 5, "cpu") for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]


# A graph without a split


def test_a_graph_without_a_split_gets_validation_triples_that_a_resumed_run_has_too(tmp_path: Path) -> None:
    whole = people(tmp_path, split=None)
    held = start(tmp_path / "run", whole, SETTINGS, 3, resume=False)
    total = whole.whole.triple_count
    assert held.valid.triple_count == 20  # more than a twentieth
    assert held.train.triple_count == total - 20
    said = json.loads((tmp_path / "run" / PROVENANCE).read_text())["held_out"]
    assert said == {"count": 20, "seed": 0, "share": round(20 / total, 4)}
    again = start(tmp_path / "run", Graph.open(whole.path), SETTINGS, 3, resume=True)
    assert np.array_equal(again.valid.triples(), held.valid.triples())


def test_a_graph_that_has_a_split_keeps_it(graph: Graph, tmp_path: Path) -> None:
    assert start(tmp_path / "run", graph, SETTINGS, 3, resume=False) is graph


@pytest.mark.parametrize(("triples", "count"), [(40, 0), (60, 12), (300, 20), (2000, 100)])
def test_a_twentieth_is_held_out_and_a_fifth_at_most(tmp_path: Path, triples: int, count: int) -> None:
    graph = made(tmp_path, tsv((f"a{n % 11}", "r", f"b{n // 11}") for n in range(triples)))
    assert hold_out(graph).valid.triple_count == count


def test_a_workload_has_drawn_from_all_triples_so_none_are_held_out(tmp_path: Path) -> None:
    whole = people(tmp_path, split=None)
    workload = sampled(whole, tmp_path / "w", Plan(Counts(20, 20, 0, 0, 0)))
    assert start(tmp_path / "run", whole, SETTINGS, 3, workload, resume=False) is whole


def test_a_model_is_loaded_with_the_triples_that_it_was_trained_on(tmp_path: Path) -> None:
    whole, counted = people(tmp_path, split=None), replace(TINY, intersection="counted")
    held = start(tmp_path / "run", whole, SETTINGS, 3, resume=False)
    encoder = new_encoder(counted, held, 3, "cpu")
    run(tmp_path / "run", held, encoder, SMALL, FOUR, name="x", seed=3)
    loaded = [load_encoder(tmp_path / "run", graph, counted) for graph in (whole, held)]
    assert torch.equal(loaded[0].tail_types, loaded[1].tail_types)
    assert f"{held.train.triple_count:,} training triples" in (tmp_path / "run" / CARD).read_text()


def test_a_graph_without_triples_of_entities_is_not_trained_on(tmp_path: Path) -> None:
    graph = made(tmp_path, '<http://a.org/a> <http://a.org/age> "3" .', "nt")
    with pytest.raises(EmptyGraph, match="nothing to learn"):
        start(tmp_path / "run", graph, SETTINGS, 3, resume=False)
    assert not (tmp_path / "run").exists()
