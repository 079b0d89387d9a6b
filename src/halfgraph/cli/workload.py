"""`halfgraph sample` and `halfgraph workload`: sample questions, export and import them."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit, Option, Typer

from halfgraph.cli.options import GraphFolder, GraphOption, Json, Limit, Out, Quiet, Seed, Threads
from halfgraph.cli.output import note, print_json, print_table, progress
from halfgraph.errors import SettingError

if TYPE_CHECKING:
    from halfgraph.query.structures import Structure
    from halfgraph.workload.folder import Workload
    from halfgraph.workload.jsonl import Imported

workload = Typer(
    help="Export questions to a file, or import them from one.", no_args_is_help=True, rich_markup_mode=None
)


def sample(
    folder: GraphFolder,
    out: Out,
    two_edges: Annotated[int, Option(min=0, help="Training questions with 2 edges, in total.")] = 1_000_000,
    three_edges: Annotated[int, Option(min=0, help="Training questions with 3 edges, in total.")] = 1_000_000,
    valid: Annotated[int, Option(min=0, help="Validation questions per query structure.")] = 1_000,
    test: Annotated[int, Option(min=0, help="Test questions per query structure.")] = 10_000,
    neighbourhoods: Annotated[
        int | None, Option(min=0, help="Training neighbourhoods per size, 4 to 7 (default: the number of entities).")
    ] = None,
    structures: Annotated[
        str, Option(help="Query structures to sample, by either name (pi or 3-inter_chain).")
    ] = "1p,2p,3p,2i,3i,pi,ip",
    uniform: Annotated[
        Literal["answers", "relations", "triples"],
        Option(help="Sample the target edge uniformly over answers, relations or triples."),
    ] = "answers",
    negatives: Annotated[
        int, Option(min=0, help="Maximum number of negatives, and of hard negatives, per held-out question.")
    ] = 1_000,
    one_in: Annotated[int, Option(min=1, help="One held-out question in this many gets all negatives.")] = 10,
    seed: Seed = 0,
    workers: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sample questions from a graph.

    Held-out questions cannot be answered with the training triples alone.

    Example: halfgraph sample people --two-edges 100000 --three-edges 100000 --test 1000 --out questions
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.workload.folder import Counts, Plan, planned
    from halfgraph.workload.folder import sample as draw
    from halfgraph.workload.negatives import NegativeCounts

    graph = Graph.open(folder)
    counts = Counts(two_edges, three_edges, valid, test, neighbourhoods)
    plan = Plan(counts, seed, uniform, _structures(structures), NegativeCounts(negatives, one_in), workers)
    if not graph.has_split and (valid or test):
        note("The graph has no split, so only training questions are sampled. Import it with --split 90/1/9.")
    wanted = planned(plan, graph)
    total = sum(count for rows in wanted.values() for count in rows.values())
    with progress(quiet or json) as show:
        made = draw(graph, out, plan, lambda _split, _structure, count: show("questions", total, count))
    questions, speed = made.description["questions"], made.description["questions_per_second"]
    for split, rows in wanted.items():
        for name, count in rows.items():
            sampled = questions.get(split, {}).get(name, 0)
            if sampled < count:
                note(f"Only {sampled:,} of {count:,} {split} questions of structure {name} were found in the graph.")
    if json:
        tallies = made.description["tallies"]
        figures = {"questions": questions, "questions_per_second": speed, "wanted": wanted, "tallies": tallies}
        print_json(figures | {"graph": graph.fingerprint})
    elif not quiet:
        _print_questions(made)
        note(f"\n{made.path}: {speed:,.0f} questions/s")


def _structures(names: str) -> "tuple[Structure, ...]":
    """Return the query structures of a comma-separated list, each once, in the paper's order."""
    from halfgraph.query.structures import DRAWN, structure_named

    chosen = [structure_named(name.strip()) for name in names.split(",") if name.strip()]
    if other := [structure.name for structure in chosen if structure not in DRAWN]:
        known = ", ".join(structure.short for structure in DRAWN)
        raise SettingError("--structures", f"{', '.join(other)} cannot be sampled", advice=f"Choose from {known}.")
    if not chosen:
        raise SettingError("--structures", "is empty", advice="Name query structures, for example 2p,2i.")
    return tuple(structure for structure in DRAWN if structure in chosen)


def _print_questions(made: "Workload") -> None:
    """Print tables of the questions by split and structure, and of the reasons for rejection."""
    train, held_out, reasons = [], [], Counter[str]()
    for split, rows in made.description["tallies"].items():
        for name, row in rows.items():
            reasons.update(row["rejected"])
            rejected = sum(row["rejected"].values())
            if split == "train":
                train.append((split, name, row["questions"], rejected))
            else:
                means = row.get("mean_easy", 0.0), row.get("mean_hard", 0.0)
                held_out.append((split, name, row["questions"], *means, rejected))
    if train:
        print_table("Training questions", ["split", "structure", "questions", "rejected"], train)
    if held_out:
        columns = ["split", "structure", "questions", "mean easy", "mean hard", "rejected"]
        print_table("\nHeld-out questions", columns, held_out)
    if reasons:
        by_count = [(count, reason) for reason, count in reasons.most_common()]
        print_table("\nRejected candidates", ["", "reason"], by_count)


@workload.command("export")
def export_(
    folder: Annotated[Path, Argument(metavar="WORKLOAD", help="Workload folder.")],
    graph: GraphOption,
    out: Annotated[
        Path, Option("--out", "-o", help="File to write, gzipped if it ends in .gz; - for standard output.")
    ],
    split: Annotated[Literal["train", "valid", "test"], Option(help="Split of the questions.")] = "test",
    structures: Annotated[str, Option(help="Query structures, by either name (default: all).")] = "",
    limit: Limit = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the questions of a split as JSON lines.

    Example: halfgraph workload export questions --graph people --split test --limit 100 --out test.jsonl.gz
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.query.structures import structure_named
    from halfgraph.workload.folder import Workload
    from halfgraph.workload.jsonl import export

    opened = Graph.open(graph)
    chosen = [structure_named(name.strip()) for name in structures.split(",") if name.strip()]
    with progress(quiet or json) as show:
        questions = Workload.open(folder, opened)
        counts = export(questions, opened, out, split, chosen, limit, lambda count: show("questions", done=count))
    if str(out) == "-":
        return
    if json:
        print_json({"questions": {split: counts}, "file": str(out)})
    elif not quiet:
        note(f"{out}: {sum(counts.values()):,} questions")


@workload.command("import")
def import_(
    source: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="JSON lines (also .gz), or a file or folder of pickles as published by Query2Box and KGReasoning.",
        ),
    ],
    graph: GraphOption,
    out: Out,
    split: Annotated[
        Literal["auto", "valid", "test"],
        Option(help="Split of the questions; 'auto' infers it from their answers or file names."),
    ] = "auto",
    verify: Annotated[
        bool, Option("--verify", help="Recompute every easy and hard answer; exit with 1 if one differs.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import a file of questions into a workload folder.

    Example: halfgraph workload import queries-valid.jsonl.gz --graph fb15k-237 --verify --out questions
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.workload.jsonl import import_workload
    from halfgraph.workload.nested import shown
    from halfgraph.workload.verification import verify as recompute

    opened = Graph.open(graph)
    with progress(quiet or json) as show:
        imported = import_workload(source, opened, out, split, lambda count: show("questions", done=count))
        verified = recompute(opened, imported.workload, imported.lines) if verify else None
    _note_import(imported)
    if json:
        description = imported.workload.description
        counts = {name: description[name] for name in ("questions", "graphs", "set_aside")}
        print_json({**(vars(verified) if verified else {}), **counts})
    elif not quiet:
        _print_questions(imported.workload)
    if verified is None:
        return
    if not (json or quiet):
        summary = f"{verified.equal:,} of {verified.queries:,} queries have exactly the answers that the graph gives"
        note(summary, *map(shown, verified.different))
    if verified.equal < verified.queries:
        raise Exit(1)


def _note_import(imported: "Imported") -> None:
    """Print which split was inferred and which queries were set aside."""
    names = {"train": "the training triples", "known": "train and valid", "whole": "all triples"}
    for split, convention in imported.conventions.items():
        if convention.tried:
            note(
                f"Imported as {split} questions: easy answers on {names[convention.easy_on]}, all answers on "
                f"{names[convention.all_on]}. This holds for {convention.equal:,} of {convention.tried:,} random "
                "questions."
            )
    if aside := imported.workload.description["set_aside"]:
        counts = ", ".join(f"{form} ({count:,})" for form, count in aside.items())
        note(f"Not imported, because of other structures: {counts}")
