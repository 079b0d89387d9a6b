"""The command that makes the paper's Table 2 for a graph."""

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
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to make, or to go on with.", show_default=False)],
    rows: Annotated[
        str, typer.Option(help="The rows, with commas between; the paper's ten if not given.", show_default=False)
    ] = "",
    seeds: Annotated[
        int, typer.Option(min=1, help="Seeds for GQE[min], GQE+KG[min] and CGA+KG+8[min]; other rows have one.")
    ] = 3,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="As many steps a row as CGA+KG+8[min] makes in so many minutes.")
    ] = 5.0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="So many steps a row, instead of --minutes.", show_default=False)
    ] = None,
    workload: Annotated[
        Path | None, typer.Option(help="A workload folder; without one questions are drawn.", show_default=False)
    ] = None,
    test: Annotated[int, typer.Option(min=1, help="Test questions of each structure, where they are drawn.")] = 10_000,
    recipe: Recipe = "default",
    settings: Settings = [],  # noqa: B006
    baseline_questions: Annotated[
        int, typer.Option(min=1, help="At most so many of each structure for the baselines, at random.")
    ] = 2_000,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train and measure the paper's ten rows on a graph under one budget, and write its Table 2 for it.

    Interrupt it at any time; called again it goes on where it stopped. Every row is given the same number of steps.

    Example: halfgraph reproduce --graph people --minutes 5 --out tables/people
    """
    import torch

    from halfgraph.evaluation import reproduce as work
    from halfgraph.evaluation.comparing import rows_of
    from halfgraph.evaluation.table_two import brief_table, values, write_table
    from halfgraph.graph.folder import Graph
    from halfgraph.workload.folder import Counts, Plan, Workload

    if threads is not None:
        torch.set_num_threads(threads)
    opened = Graph.open(graph)
    if not opened.has_split:
        raise SettingError("--graph", "has no split, so nothing is held out", advice="Import it with --split 90/1/9.")
    named = work.entries(_rows(rows), seeds, _maker(recipe, settings))
    questions = Workload.open(workload, opened) if workload is not None else Plan(Counts(test=test), threads=threads)
    say = (lambda _: None) if quiet or json else note
    begun = work.begin(out, opened, questions, steps, minutes, _maker(recipe, settings)(work.DEFAULT_ROW, 0), say)
    lead = [
        f"{begun.steps:,} steps a row, {sum(begun.asked.counts.values()):,} test questions of "
        f"{len(begun.asked.sets)} structures, {len(opened.entities):,} entities, graph {opened.fingerprint}."
    ]
    about = {"graph": str(opened.path), "fingerprint": opened.fingerprint, "steps": begun.steps, "recipe": recipe}
    title = f"The paper's Table 2 for {opened.path.resolve().name}"
    work.measure_baselines(begun, baseline_questions, threads)
    for number, entry in enumerate(named, 1):
        say(f"{number} of {len(named)}: {entry.row}, seed {entry.seed}")
        with training_progress(quiet or json, lines=False) as told:
            work.measure_entry(begun, entry, threads, told)
        rows_so_far = rows_of(work.results(begun))
        write_table(out, title, rows_so_far, lead, about)  # after every row, for it may be interrupted
    if json:
        print_json(values(rows_so_far, about))
    elif not quiet:
        print_report(brief_table(rows_so_far))
        note(f"{out}/table.md, table.json, report.html, auc.svg, apr.svg, mrr.svg")


def _rows(given: str) -> list[str]:
    """The rows by their full names, each once."""
    from halfgraph.evaluation.reproduce import PAPER_ROWS
    from halfgraph.model.variants import variant_named

    names = [variant_named(name.strip()).name for name in given.split(",") if name.strip()]
    return list(dict.fromkeys(names)) or list(PAPER_ROWS)


def _maker(recipe: str, settings: list[str]) -> Any:
    """What makes a run of a row and a seed, with the settings of every row."""
    from halfgraph.evaluation.reproduce import Entry
    from halfgraph.settings import given_values, training_settings

    given = given_values(None, settings)

    def make(row: str, seed: int) -> "Entry":
        chosen = training_settings(row, recipe, given)
        return Entry(row, chosen.architecture, chosen.recipe, chosen.sections(), seed)

    return make
