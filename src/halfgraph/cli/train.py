"""The command that trains a model."""

import contextlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.graph import Out, Quiet
from halfgraph.cli.screen import Json, note, print_json, print_table, telling, training_bar
from halfgraph.errors import SettingError

if TYPE_CHECKING:
    from halfgraph.training.loop import Progress, Told


class RecipeName(StrEnum):
    """The recipes."""

    default = "default"
    paper = "paper"


def train(
    folder: Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph folder.", show_default=False)],
    out: Out,
    questions: Annotated[
        Path | None,
        typer.Argument(
            metavar="[WORKLOAD]",
            help="A workload folder; without one questions are drawn on the fly.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="cga, gqe, transe, bilinear, or a row of the paper's Table 2, such as 'CGA+KG+4[min]'; "
            "the one of --config or cga if not given.",
            show_default=False,
        ),
    ] = None,
    recipe: Annotated[
        RecipeName, typer.Option(help="How it is trained; 'paper' is the paper's plain way.")
    ] = RecipeName.default,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.0, help="Train as many steps as fit in; 5 if no --steps is given.", show_default=False),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Train so many steps.", show_default=False)] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="A setting given otherwise, such as dim=64.")
    ] = [],  # noqa: B006
    config: Annotated[Path | None, typer.Option(help="Settings from a TOML file, such as a run's config.toml.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; all cores if not given.", show_default=False)
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda where there is one.")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="The seed.")] = 0,
    patience: Annotated[int, typer.Option(min=1, help="Stop after so many validations without a better one.")] = 4,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model of a graph; interrupt it at any time and go on with --resume.

    Example: halfgraph train people --minutes 10 --out runs/people
    """
    from halfgraph.evaluation.validation import validation_questions, validator
    from halfgraph.graph.folder import Graph
    from halfgraph.prediction.calibrating import calibrate
    from halfgraph.settings import given_values, model_of, training_settings
    from halfgraph.training.loop import Budget
    from halfgraph.training.run import load_encoder, new_encoder, run, start
    from halfgraph.workload.folder import Workload

    chosen = training_settings(model or model_of(config), recipe.value, given_values(config, settings))
    graph = Graph.open(folder)
    workload = Workload.open(questions, graph) if questions is not None else None
    _use(threads, device)
    if minutes is None and steps is None:
        minutes = 5.0
    start(out, graph, chosen.sections(), seed, workload, resume=resume)
    validate = validator(validation_questions(graph, workload, seed))
    if validate is None:
        note("There is nothing to validate on (a graph needs a split for that): the last weights are kept.")
    encoder = new_encoder(chosen.architecture, graph, seed, device)
    budget = Budget(steps, minutes, patience=patience)
    with _told(quiet or json) as told:
        progress = run(
            out,
            graph,
            encoder,
            chosen.recipe,
            budget,
            name=chosen.model,
            seed=seed,
            workload=workload,
            validate=validate,
            told=told,
        )
    with telling(quiet or json) as told_of:
        found = calibrate(out, graph, load_encoder(out, graph, chosen.architecture, device), seed, told_of)
    if not found.curves:
        note("Without a split there is nothing to measure confidence on: answers will have scores alone.")
    _show(out, progress, json, quiet)


def _use(threads: int | None, device: str) -> None:
    """Nothing; torch is told how many threads to use, and the device is there."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    count = torch.cuda.device_count()
    if device not in {"cpu", *(["cuda"] if count else []), *(f"cuda:{number}" for number in range(count))}:
        raise SettingError("--device", f"{device} is not there", advice="Pass --device cpu.")


@contextlib.contextmanager
def _told(quiet: bool) -> "Iterator[Told]":
    """What shows the progress of a run: a bar where there is a terminal, else a line for each validation."""
    seen = 0

    def line(progress: "Progress", loss: float) -> None:
        nonlocal seen
        if len(progress.history) > seen:
            seen = len(progress.history)
            note(_line(progress, loss))

    with training_bar(quiet) as bar:

        def told(progress: "Progress", loss: float) -> None:
            latest = progress.history[-1] if progress.history else {}
            if bar is not None:
                bar(progress, loss, latest)
            elif not quiet:
                line(progress, loss)

        yield told


def _line(progress: "Progress", loss: float) -> str:
    """One line of where a run is."""
    latest = progress.history[-1]
    pace = progress.questions / max(progress.seconds, 1e-9)
    left = progress.seconds / progress.step * ((progress.total or progress.step) - progress.step)
    measured = f", AUC {latest['auc']:.4f} (hard {latest['auc_hard']:.4f})" if "auc" in latest else ""
    return f"step {progress.step:,}: loss {loss:.3f}{measured}, {pace:,.0f} questions/s, {left:,.0f} s left"


def _show(out: Path, progress: "Progress", json: bool, quiet: bool) -> None:
    """Nothing; how a run ended is printed."""
    from halfgraph.training.run_folder import read_provenance

    made = read_provenance(out)
    best = next((row for row in progress.history if row["step"] == progress.best_step), {})
    figures: dict[str, Any] = {
        "run": str(out),
        "steps": progress.step,
        "seconds": round(progress.seconds, 1),
        "questions": progress.questions,
        "questions_per_second": round(progress.questions / max(progress.seconds, 1e-9)),
        "best_step": progress.best_step,
        **{key: best[key] for key in ("auc", "auc_hard", "apr", "apr_hard") if key in best},
        **{key: made[key] for key in ("parameters", "intersection_parameters")},
    }
    if json:
        print_json(figures)
    elif not quiet:
        print_table(
            f"Trained {out}", ["", ""], [(name.replace("_", " "), value) for name, value in figures.items()][1:]
        )
