"""The command that measures trained models."""

import contextlib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.options import Json, Limit, Quiet, RunGraph, Threads
from halfgraph.cli.output import note, print_json, print_table, progress
from halfgraph.errors import SettingError
from halfgraph.prediction.modes import EMBEDDING, MODES

if TYPE_CHECKING:
    from halfgraph.api import TrainedRun
    from halfgraph.cli.output import ProgressDisplay
    from halfgraph.evaluation.comparing import Measured, Row
    from halfgraph.evaluation.questions import EvaluationSet
    from halfgraph.evaluation.report import Table
    from halfgraph.graph.folder import Graph


KEPT = ("steps", "parameters", "intersection_parameters")  # of a run's provenance, beside its figures


Mode = StrEnum("Mode", MODES)  # type: ignore[misc]  # mypy wants the names here, and they stand in `modes`
DEFAULT_MODE = Mode(EMBEDDING)


class HeldOut(StrEnum):
    """The splits that a model is measured on."""

    valid = "valid"
    test = "test"


def evaluate(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Run folders: seeds of one row, or rows to be compared.", show_default=False
        ),
    ],
    graph: RunGraph = None,
    workload: Annotated[Path | None, typer.Option(help="Questions of a workload folder.", show_default=False)] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help="Questions of a file: JSON lines (.gz too), or the field's pickles.", show_default=False),
    ] = None,
    mode: Annotated[Mode, typer.Option(help="Prediction mode; links and ensemble take longer.")] = DEFAULT_MODE,
    split: Annotated[HeldOut, typer.Option(help="Which questions, of a workload or drawn.")] = HeldOut.test,
    limit: Limit = None,
    baselines: Annotated[bool, typer.Option(help="Measure popularity and the neighbour vote too.")] = True,
    baseline_questions: Annotated[
        int, typer.Option(min=1, help="At most so many of each structure for the baselines, at random.")
    ] = 2_000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of what is drawn, and of --limit.")] = 0,
    threads: Threads = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to a file.", show_default=False)] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report with charts to one file.", show_default=False)
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Write the scores and ranks of every question as JSON lines, gzipped if it ends with .gz.",
            show_default=False,
        ),
    ] = None,
    every_score: Annotated[
        bool, typer.Option("--every-score", help="With --scores: the score of every entity too (large: use --limit).")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure models: AUC and APR as the paper does, filtered MRR and Hits as the field does, beside two baselines.

    Without --workload or --queries, 1,000 questions of each structure are drawn from the graph.

    Example: halfgraph evaluate runs/people --workload questions --html report.html
    """
    from halfgraph.api import open_run
    from halfgraph.evaluation.comparing import rows_of
    from halfgraph.evaluation.report import make_room
    from halfgraph.prediction.predictors import FittedWeights
    from halfgraph.training.loop import tune_memory

    if workload is not None and queries is not None:
        raise SettingError("--workload", "and --queries are both given", advice="Pass one of them.")
    if every_score and scores is None:
        raise SettingError("--every-score", "has nowhere to go", advice="Pass --scores FILE too.")
    tune_memory()
    first = open_run(runs[0], graph)
    opened, trained = first.graph, [first, *(open_run(run, first.graph) for run in runs[1:])]
    for path in (markdown, html):
        if path is not None:
            make_room(path)
    with _questions(opened, workload, queries, split.value, limit, seed) as asked, _file(scores) as file:
        if not asked.sets:
            raise SettingError("--split", f"there are no {split.value} questions", advice="Choose another split.")
        if queries is not None and not quiet:
            note(f"Taken as {asked.split} questions: {sum(asked.counts.values()):,} of {len(asked.sets)} structures.")
        measured = _measure(trained, opened, asked, mode.value, seed, threads, file, every_score, quiet or json)
        if baselines:
            measured += _baselines(opened, asked.some(baseline_questions, seed), seed, threads, quiet or json)
    rows = rows_of(measured)
    _write(rows, asked, opened, measured, markdown, html)
    if json:
        print_json(_values(measured, rows))
    elif not quiet:
        _show(rows)
        weighings = (FittedWeights.load(run) for run in runs)
        if mode == EMBEDDING and any(fitted and fitted.ensemble for fitted in weighings):
            note("Measured by embedding alone; `ask` uses the ensemble: --mode ensemble --limit 1000 measures that.")


@contextlib.contextmanager
def _questions(
    graph: "Graph", workload: Path | None, queries: Path | None, split: str, limit: int | None, seed: int
) -> "Iterator[EvaluationSet]":
    """The questions to measure with."""
    from halfgraph.evaluation.questions import drawn, of_file, of_workload
    from halfgraph.workload.folder import Workload

    if queries is not None:
        with of_file(queries, graph, limit, seed) as asked:
            yield asked
    elif workload is not None:
        yield of_workload(Workload.open(workload, graph), graph, split, limit, seed)
    else:
        yield drawn(graph, split, limit, seed)


@contextlib.contextmanager
def _file(path: Path | None) -> Iterator[Any]:
    """The file for the scores, if one is wanted."""
    if path is None:
        yield None
        return
    from halfgraph.workload.jsonl import new_file

    with new_file(path) as file:
        yield file


def _measure(
    runs: "Sequence[TrainedRun]",
    graph: "Graph",
    asked: "EvaluationSet",
    mode: str,
    seed: int,
    threads: int | None,
    file: Any,
    every: bool,
    quiet: bool,
) -> "list[Measured]":
    """Each run with its figures."""
    from halfgraph.evaluation.comparing import Measured
    from halfgraph.evaluation.reliability import measure_reliability
    from halfgraph.evaluation.results import evaluate as measure
    from halfgraph.evaluation.score_export import exporter
    from halfgraph.prediction.predictors import Predictors
    from halfgraph.training.run_folder import read_provenance
    from halfgraph.workload.nested import GraphNames

    found: list[Measured] = []
    names = _row_names({run.path: run.settings for run in runs})
    for run in runs:
        about = read_provenance(run.path)
        modes = Predictors.load(run.path, run.encoder, graph.train)
        predictor = modes.predictor(modes.choose(mode), names[run.path])
        watch = None if file is None else exporter(file, GraphNames(graph), str(run.path), every=every)
        with progress(quiet) as show:
            told = partial(_advance, show, str(run.path), asked)
            figures = measure(predictor, asked, seed=seed, threads=threads, watch=watch, told=told)
        figures |= measure_reliability(run.path, modes.choose(mode), modes, asked.sets, graph)
        kept: dict[str, Any] = {key: about[key] for key in KEPT if key in about}
        figures |= {"run": str(run.path), "seed": about["seed"], "model": run.settings.model, "mode": mode, **kept}
        found.append(Measured(names[run.path], figures, int(about["seed"]), kept))
    return found


def _advance(show: "ProgressDisplay", name: str, asked: "EvaluationSet", more: int) -> None:
    show(f"{name}: questions", more=more, total=sum(asked.counts.values()))


def _row_names(settings: dict[Path, Any]) -> dict[Path, str]:
    """The row of each run: its model's name, with the folder's where the same model has other settings."""
    of_model: dict[str, list[Any]] = {}
    for chosen in settings.values():
        some = of_model.setdefault(chosen.model, [])
        some += [] if chosen in some else [chosen]
    return {
        run: chosen.model if len(of_model[chosen.model]) == 1 else f"{chosen.model}, {run.name}"
        for run, chosen in settings.items()
    }


def _baselines(graph: "Graph", asked: "EvaluationSet", seed: int, threads: int | None, quiet: bool) -> "list[Measured]":
    """The two baselines with their figures."""
    from halfgraph.evaluation.comparing import Measured
    from halfgraph.evaluation.results import evaluate as measure
    from halfgraph.prediction.baselines import neighbour_vote, popularity

    found = []
    for predictor in (popularity(graph.train), neighbour_vote(graph.train)):
        with progress(quiet) as show:
            told = partial(_advance, show, predictor.name, asked)
            figures = measure(predictor, asked, seed=seed, threads=threads, told=told)
        found.append(Measured(predictor.name, figures))
    return found


def _values(measured: "Sequence[Measured]", rows: "Sequence[Row]") -> dict[str, Any]:
    """What --json prints: the figures of one run as they are, those of several in a list, with means and spreads."""
    runs = [one.figures for one in measured if not one.is_baseline]
    baselines = {one.row: one.figures for one in measured if one.is_baseline}
    if len(runs) == 1:
        return {**runs[0], "baselines": baselines}
    trained = [row for row in rows if not row.is_baseline]
    means = {row.name: {"seeds": row.seeds, "mean": row.figures, "spread": row.spread} for row in trained}
    return {"runs": runs, "rows": means, "baselines": baselines}


def _write(
    rows: "Sequence[Row]",
    asked: "EvaluationSet",
    graph: "Graph",
    measured: "Sequence[Measured]",
    markdown: Path | None,
    html: Path | None,
) -> None:
    """Nothing; the reports asked for are written."""
    from halfgraph.evaluation.page import page
    from halfgraph.evaluation.report import markdown as as_markdown
    from halfgraph.evaluation.report import write_report

    trained = [one for one in measured if not one.is_baseline]
    title = f"{trained[0].row} on {graph.path.name}" if len(rows) < 4 else f"{len(trained)} runs on {graph.path.name}"
    lead = [
        f"{sum(asked.counts.values()):,} {asked.split} questions of {len(asked.sets)} structures, {asked.source}; "
        f"{len(graph.entities):,} entities, graph {graph.fingerprint}."
    ]
    if markdown is not None:
        write_report(markdown, as_markdown(title, rows, lead))
    if html is not None:
        about = {one.figures["run"]: f"{one.row}, seed {one.seed}, " + _said(one.about) for one in trained}
        write_report(html, page(title, rows, lead, about))


def _said(about: Any) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in about.items())


def _show(rows: "Sequence[Row]") -> None:
    """Nothing; the main tables are printed, and what to know beside them."""
    from halfgraph.evaluation.report import error_table, notes, tables

    for table in (*tables(rows), error_table(rows)):
        if table.brief and table.rows:
            print_report(table)
    for text in notes(rows):
        note(text)


def print_report(table: "Table") -> None:
    """Nothing; a table of a report is printed."""
    from rich.markup import escape

    digits = table.digits
    rows = [[round(cell, digits) if isinstance(cell, float) else cell or "" for cell in row] for row in table.rows]
    print_table(f"\n{table.title}", [escape(column) for column in table.columns], rows)
