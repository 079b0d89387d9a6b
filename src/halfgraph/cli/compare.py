"""`halfgraph compare`: several runs on the same questions, with a paired test of their differences."""

from pathlib import Path
from typing import Annotated, Any

import typer

from halfgraph.cli.evaluate import (
    KnownView,
    ModeOption,
    Queries,
    QuestionSeed,
    Runs,
    Split,
    WorkloadFolder,
    chosen_questions,
    open_runs,
    print_report,
    question_progress,
)
from halfgraph.cli.options import Json, Limit, Quiet, RunGraph, Threads
from halfgraph.cli.output import note, print_json


def compare(
    runs: Runs,
    graph: RunGraph = None,
    workload: WorkloadFolder = None,
    queries: Queries = None,
    mode: ModeOption = None,
    view: KnownView = None,
    split: Split = "test",
    limit: Limit = None,
    baselines: Annotated[bool, typer.Option("--baselines", help="Add popularity and neighbour vote as rows.")] = False,
    seed: QuestionSeed = 0,
    threads: Threads = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file.", show_default=False)] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare runs on the same questions.

    Prints one table: each measure of each run with its 95 % confidence interval, and its difference to the first run
    with an interval and the p-value of a paired test.

    Example: halfgraph compare runs/cga runs/gqe --workload questions
    """
    from halfgraph.answering.cells import to_json
    from halfgraph.evaluation import comparison
    from halfgraph.evaluation.report import markdown_table, require_writable, write_report
    from halfgraph.evaluation.results import measure
    from halfgraph.evaluation.runs import baseline_predictors, run_predictor, short_names

    opened, trained = open_runs(runs, graph)
    if markdown is not None:
        require_writable(markdown)
    with chosen_questions(opened, workload, queries, split, limit, seed, quiet or json) as questions:
        options: Any = {"seed": seed, "samples": comparison.SAMPLES, "threads": threads}
        names, measured = short_names([run.path for run in trained]), {}
        known = view or questions.view
        own = ((run.path, run.encoder, names[run.path]) for run in trained)
        predictors = [run_predictor(*parts, opened, mode, known)[0] for parts in own]
        for predictor in [*predictors, *(baseline_predictors(opened) if baselines else ())]:
            with question_progress(questions, quiet or json) as show:
                done = lambda count, name=predictor.name: show(name, count)  # noqa: E731
                measured[predictor.name] = measure(predictor, questions, **options, progress=done)
    compared = comparison.compare(measured)
    table = comparison.comparison_table(compared)
    if markdown is not None:
        write_report(markdown, f"# {table.title}\n\n{markdown_table(table)}\n")
    if json:
        print_json({"reference": next(iter(compared)), "rows": to_json(compared), "questions": questions.counts})
    elif not quiet:
        print_report(table)
        note(f"{questions.total:,} {questions.split} questions, {questions.source}.")
        note("95 %: confidence intervals of the value and of the difference, by bootstrap over questions.")
        note(f"p: paired bootstrap test over questions, two-sided; * below {comparison.SIGNIFICANT:g}.")
