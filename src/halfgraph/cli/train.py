"""`halfgraph train`: train a model of a graph and fit its confidence."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from halfgraph.cli.options import GraphFolder, Json, Out, Quiet, Recipe, Seed, Settings, Threads
from halfgraph.cli.output import note, print_json, print_table, progress
from halfgraph.errors import SettingError

if TYPE_CHECKING:
    from halfgraph.training.checkpoint import TrainingState
    from halfgraph.training.loop import Progress


def train(
    folder: GraphFolder,
    out: Out,
    questions: Annotated[
        Path | None,
        Argument(metavar="WORKLOAD", help="Workload folder; by default questions are sampled during training."),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            help="cga, gqe, transe, bilinear, or a row of the paper's Table 2, for example 'CGA+KG+4[min]' "
            "(default: the model of --config, else cga)."
        ),
    ] = None,
    recipe: Recipe = "default",
    minutes: Annotated[
        float | None, Option(min=0.0, help="Training time (default: 5, unless --steps is given).")
    ] = None,
    steps: Annotated[int | None, Option(min=1, help="Number of training steps.")] = None,
    settings: Settings = [],  # noqa: B006
    config: Annotated[Path | None, Option(help="TOML file with settings, for example a run's config.toml.")] = None,
    threads: Threads = None,
    device: Annotated[str, Option(help="cpu, or cuda if there is a GPU.")] = "cpu",
    seed: Seed = 0,
    patience: Annotated[int, Option(min=1, help="Stop after this many validations without improvement.")] = 4,
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted run.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model of a graph.

    If the graph has no split and no workload is given, 5 % of its triples (20 to 5,000) are held out to choose the best
    weights and to fit confidence. Press Ctrl-C at any time and continue later with --resume.

    Example: halfgraph train people --minutes 10 --out runs/people
    """
    from halfgraph.evaluation.validation import validation_questions, validator
    from halfgraph.graph.folder import Graph
    from halfgraph.prediction.calibration import calibrate, time_for_links
    from halfgraph.settings import given_values, model_of, training_settings
    from halfgraph.training.loop import Budget
    from halfgraph.training.run import load_encoder, new_encoder, run, start
    from halfgraph.workload.folder import Workload

    chosen = training_settings(model or model_of(config), recipe, given_values(config, settings))
    graph = Graph.open(folder)
    workload = Workload.open(questions, graph) if questions is not None else None
    _set_up_torch(threads, device)
    graph = start(out, graph, chosen.sections(), seed, workload, resume=resume)
    if graph.held_out is not None and not quiet and not json:
        count, total = graph.held_out["count"], graph.whole.triple_count
        note(f"The graph has no split, so {count:,} of its {total:,} triples are held out to fit confidence on.")
    validate = validator(validation_questions(graph, workload, seed))
    if validate is None:
        too_small = workload is None and not graph.has_split
        advice = "It is too small to hold some out." if too_small else "Import it with --split 90/1/9."
        note(f"The graph has no validation triples, so the last weights are kept. {advice}")
    encoder = new_encoder(chosen.architecture, graph, seed, device)
    minutes = 5.0 if minutes is None and steps is None else minutes
    model_minutes, link_seconds = time_for_links(minutes)
    budget = Budget(steps, model_minutes, patience=patience)
    with training_progress(quiet or json) as report:
        ended = run(
            *(out, graph, encoder, chosen.recipe, budget),
            name=chosen.model,
            seed=seed,
            workload=workload,
            validate=validate,
            progress=report,
        )
    trained = load_encoder(out, graph, chosen.architecture, device)
    with progress(quiet or json) as show:
        models = calibrate(out, graph, trained, seed, show, seconds=link_seconds)
    if models is None:
        note("There is nothing to fit confidence on, so answers will have scores only.")
    _print_result(out, ended, json, quiet)


def _set_up_torch(threads: int | None, device: str) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    count = torch.cuda.device_count()
    if device not in {"cpu", *(["cuda"] if count else []), *(f"cuda:{number}" for number in range(count))}:
        raise SettingError("--device", f"there is no {device} on this machine", advice="Pass --device cpu.")


@contextlib.contextmanager
def training_progress(quiet: bool, *, lines: bool = True) -> "Iterator[Progress]":
    """Callback that shows the progress of training: a bar on a terminal, else a line for each validation."""
    validations = 0
    with progress(quiet) as show:

        def report(state: "TrainingState", loss: float) -> None:
            nonlocal validations
            if show.visible:
                show("step", done=state.step, total=state.total, detail=", " + _metrics(state, loss))
            elif lines and not quiet and len(state.history) > validations:
                validations = len(state.history)
                left = state.seconds / state.step * ((state.total or state.step) - state.step)
                note(f"step {state.step:,}: {_metrics(state, loss)}, {left:,.0f} s left")

        yield report


def _metrics(state: "TrainingState", loss: float) -> str:
    latest = state.history[-1] if state.history else {}
    auc = f", AUC {latest['auc']:.4f} (hard {latest['auc_hard']:.4f})" if "auc" in latest else ""
    return f"loss {loss:.3f}{auc}, {state.questions_per_second:,.0f} questions/s"


def _print_result(out: Path, ended: "TrainingState", json: bool, quiet: bool) -> None:
    from halfgraph.training.run_folder import read_provenance

    about = read_provenance(out)
    best = next((row for row in ended.history if row["step"] == ended.best_step), {})
    figures: dict[str, Any] = {
        "run": str(out),
        "steps": ended.step,
        "seconds": round(ended.seconds, 1),
        "questions": ended.questions,
        "questions_per_second": round(ended.questions_per_second),
        "best_step": ended.best_step,
        **{key: best[key] for key in ("auc", "auc_hard", "apr", "apr_hard") if key in best},
        **{key: about[key] for key in ("parameters", "intersection_parameters")},
    }
    if json:
        print_json(figures)
    elif not quiet:
        rows = [(name.replace("_", " "), value) for name, value in figures.items()][1:]
        print_table(f"Trained {out}", ["", ""], rows)
