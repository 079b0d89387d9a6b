"""`halfgraph evaluate`: measure trained runs, beside two baselines."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from halfgraph.cli.options import Json, Limit, Quiet, RunGraph, Threads, ViewName
from halfgraph.cli.output import note, print_json, print_table, progress
from halfgraph.errors import SettingError
from halfgraph.prediction.modes import Mode

if TYPE_CHECKING:
    from halfgraph.api import TrainedRun
    from halfgraph.evaluation.questions import EvaluationSet
    from halfgraph.evaluation.report import Table
    from halfgraph.evaluation.results import Row
    from halfgraph.evaluation.runs import Progress
    from halfgraph.graph.folder import Graph


Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN", help="Run folders: several seeds of a model, or models to compare.", show_default=False
    ),
]
WorkloadFolder = Annotated[Path | None, typer.Option(help="Workload folder with questions.", show_default=False)]
Queries = Annotated[
    Path | None, typer.Option(help="File with questions: JSON lines (also .gz) or pickles.", show_default=False)
]
ModeOption = Annotated[
    Mode | None,
    typer.Option(help="How answers are predicted (default: links, if the run has it).", show_default=False),
]
KnownView = Annotated[
    ViewName | None,
    typer.Option(
        help="Triples that count as known (default: those that the questions' easy answers need).", show_default=False
    ),
]
Split = Annotated[Literal["valid", "test"], typer.Option(help="Split of the questions.")]
QuestionSeed = Annotated[int, typer.Option(min=0, help="Seed of sampled questions and of --limit.")]


def evaluate(
    runs: Runs,
    graph: RunGraph = None,
    workload: WorkloadFolder = None,
    queries: Queries = None,
    mode: ModeOption = None,
    view: KnownView = None,
    split: Split = "test",
    limit: Limit = None,
    baselines: Annotated[bool, typer.Option(help="Also measure popularity and neighbour vote.")] = True,
    baseline_questions: Annotated[
        int, typer.Option(min=1, help="Maximum number of questions of each structure for the baselines.")
    ] = 2_000,
    seed: QuestionSeed = 0,
    threads: Threads = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to this file.", show_default=False)] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report with charts to this file.", show_default=False)
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Write scores and ranks of every question to this file, as JSON lines (.gz: compressed).",
            show_default=False,
        ),
    ] = None,
    every_score: Annotated[
        bool, typer.Option("--every-score", help="With --scores: the scores of all entities (large; use --limit).")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure trained runs beside two baselines.

    Prints AUC and APR as in the paper, filtered MRR and Hits@k, and in the mode links the calibration error. Without
    --workload or --queries, 1,000 questions of each query structure are sampled from the graph.

    Example: halfgraph evaluate runs/people --workload questions --html report.html
    """
    from halfgraph.evaluation import runs as work
    from halfgraph.evaluation.report import require_writable
    from halfgraph.evaluation.results import rows_of
    from halfgraph.evaluation.score_export import exporter
    from halfgraph.workload.jsonl import new_file
    from halfgraph.workload.nested import GraphNames

    if every_score and scores is None:
        raise SettingError("--every-score", "needs a file to write to", advice="Pass --scores FILE too.")
    opened, trained = open_runs(runs, graph)
    for path in (markdown, html):
        if path is not None:
            require_writable(path)
    names = work.row_names({run.path: run.settings for run in trained})
    scores_file = contextlib.nullcontext() if scores is None else new_file(scores)
    with chosen_questions(opened, workload, queries, split, limit, seed, quiet) as questions, scores_file as file:
        measured = []
        for run in trained:
            watch = None if file is None else exporter(file, GraphNames(opened), str(run.path), every=every_score)
            given = (run.path, run.encoder, run.settings.model, names[run.path], opened, questions, mode)
            options: Any = {"view": view, "seed": seed, "threads": threads, "watch": watch}
            with question_progress(questions, quiet or json) as show:
                measured.append(work.measure_run(*given, **options, progress=show))
        if baselines:
            sample = questions.sample(baseline_questions, seed)
            with question_progress(sample, quiet or json) as show:
                measured += work.measure_baselines(opened, sample, seed=seed, threads=threads, progress=show)
    rows = rows_of(measured)
    work.write_reports(measured, rows, opened, questions, markdown, html)
    if json:
        print_json(work.to_json(measured, rows))
    elif not quiet:
        _print_rows(rows)
        figures = measured[0].figures
        note(f"Predicted by {figures['mode']}, from the triples of the view {figures['view']}.")


def open_runs(runs: Sequence[Path], graph: Path | None) -> "tuple[Graph, list[TrainedRun]]":
    """Open runs of the same graph."""
    from halfgraph.api import open_run
    from halfgraph.training.loop import tune_memory

    tune_memory()
    first = open_run(runs[0], graph)
    return first.graph, [first, *(open_run(run, first.graph) for run in runs[1:])]


@contextlib.contextmanager
def chosen_questions(
    graph: "Graph", workload: Path | None, queries: Path | None, split: str, limit: int | None, seed: int, quiet: bool
) -> "Iterator[EvaluationSet]":
    """Open the questions that the options choose."""
    from halfgraph.evaluation.runs import open_questions

    if workload is not None and queries is not None:
        raise SettingError("--workload", "and --queries are both given", advice="Pass one of them.")
    with open_questions(graph, workload, queries, split, limit, seed) as questions:
        if not questions.sets:
            raise SettingError("--split", f"there are no {split} questions", advice="Choose another split.")
        if queries is not None and not quiet:
            note(f"Read {questions.total:,} {questions.split} questions of {len(questions.sets)} structures.")
        yield questions


@contextlib.contextmanager
def question_progress(questions: "EvaluationSet", quiet: bool) -> "Iterator[Progress]":
    """Display how many questions are done."""
    with progress(quiet) as show:
        yield lambda name, done: show(f"{name}: questions", more=done, total=questions.total)


def _print_rows(rows: "Sequence[Row]") -> None:
    """Print the main tables and the remarks on them."""
    from halfgraph.evaluation.report import error_tables, notes, tables

    for table in (*tables(rows), *error_tables(rows)):
        if table.brief and table.rows:
            print_report(table)
    for text in notes(rows):
        note(text)


def print_report(table: "Table") -> None:
    """Print a table of a report."""
    digits = table.digits
    rows = [[round(cell, digits) if isinstance(cell, float) else cell or "" for cell in row] for row in table.rows]
    print_table(f"\n{table.title}", table.columns, rows)
