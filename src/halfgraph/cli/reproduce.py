"""`halfgraph reproduce`: the paper's Table 2 for a graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.evaluate import print_report
from halfgraph.cli.options import GraphOption, Json, Quiet, Recipe, Settings, Threads
from halfgraph.cli.output import note, print_json
from halfgraph.cli.train import training_progress
from halfgraph.errors import SettingError

if TYPE_CHECKING:
    from halfgraph.evaluation.reproduce import Entry


def reproduce(
    graph: GraphOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create or to continue.", show_default=False)],
    rows: Annotated[
        str, typer.Option(help="Rows, separated by commas (default: the paper's ten).", show_default=False)
    ] = "",
    seeds: Annotated[
        int, typer.Option(min=1, help="Seeds of GQE[min], GQE+KG[min] and CGA+KG+8[min]; other rows have one.")
    ] = 3,
    minutes: Annotated[float, typer.Option(min=0.0, help="Budget per row, in minutes of CGA+KG+8[min].")] = 5.0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps per row, instead of --minutes.", show_default=False)
    ] = None,
    workload: Annotated[
        Path | None, typer.Option(help="Workload folder (default: sample questions).", show_default=False)
    ] = None,
    test: Annotated[int, typer.Option(min=1, help="Number of sampled test questions of each structure.")] = 10_000,
    recipe: Recipe = "default",
    settings: Settings = [],  # noqa: B006
    baseline_questions: Annotated[
        int, typer.Option(min=1, help="Maximum number of questions of each structure for the baselines.")
    ] = 2_000,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's Table 2 on a graph.

    It can be interrupted at any time and continues when called again. Every row gets the same number of steps.

    Example: halfgraph reproduce --graph people --minutes 5 --out tables/people
    """
    import torch

    from halfgraph.evaluation import reproduce as work
    from halfgraph.evaluation.results import rows_of
    from halfgraph.evaluation.table_two import brief_table, table_values, write_table
    from halfgraph.graph.folder import Graph
    from halfgraph.workload.folder import Counts, Plan, Workload

    if threads is not None:
        torch.set_num_threads(threads)
    opened = Graph.open(graph)
    if not opened.has_split:
        raise SettingError("--graph", "has no split, so nothing is held out", advice="Import it with --split 90/1/9.")
    make = _entry_maker(recipe, settings)
    entries = work.entries(_row_names(rows), seeds, make)
    questions = Workload.open(workload, opened) if workload is not None else Plan(Counts(test=test), threads=threads)
    say = (lambda _: None) if quiet or json else note
    begun = work.begin(out, opened, questions, steps, minutes, make(work.DEFAULT_ROW, 0), say)
    lead = [
        f"{begun.steps:,} steps a row, {begun.questions.total:,} test questions of {len(begun.questions.sets)} "
        f"structures, {len(opened.entities):,} entities, graph {opened.fingerprint}."
    ]
    about = {"graph": str(opened.path), "fingerprint": opened.fingerprint, "steps": begun.steps, "recipe": recipe}
    title = f"The paper's Table 2 for {opened.path.resolve().name}"
    work.measure_baselines(begun, baseline_questions, threads)
    for number, entry in enumerate(entries, 1):
        say(f"{number} of {len(entries)}: {entry.row}, seed {entry.seed}")
        with training_progress(quiet or json, lines=False) as show:
            work.measure_entry(begun, entry, threads, show)
        measured = rows_of(work.results(begun))
        write_table(out, title, measured, lead, about)  # after every row, since it may be interrupted
    if json:
        print_json(table_values(measured, about))
    elif not quiet:
        print_report(brief_table(measured))
        note(f"{out}/table.md, table.json, report.html, auc.svg, apr.svg, mrr.svg")


def _row_names(given: str) -> list[str]:
    """Return the full names of the rows, each once."""
    from halfgraph.evaluation.reproduce import PAPER_ROWS
    from halfgraph.model.variants import variant_named

    names = [variant_named(name.strip()).name for name in given.split(",") if name.strip()]
    return list(dict.fromkeys(names)) or list(PAPER_ROWS)


def _entry_maker(recipe: str, settings: list[str]) -> Any:
    """Return a function that makes a run from a row and a seed."""
    from halfgraph.evaluation.reproduce import Entry
    from halfgraph.settings import given_values, training_settings

    given = given_values(None, settings)

    def make(row: str, seed: int) -> "Entry":
        chosen = training_settings(row, recipe, given)
        return Entry(row, chosen.architecture, chosen.recipe, chosen.sections(), seed)

    return make
