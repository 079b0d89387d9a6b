"""The commands about questions: sample, and export and import of workloads."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.graph import Out, Quiet
from halfgraph.cli.screen import Json, counting, note, pacing, print_json, print_table
from halfgraph.errors import SettingError

if TYPE_CHECKING:
    from halfgraph.graph.folder import Graph
    from halfgraph.query.structures import Structure
    from halfgraph.workload.folder import Plan, Workload
    from halfgraph.workload.jsonl import Imported
    from halfgraph.workload.verification import Verified

workload = typer.Typer(
    help="Write questions to files, or read them from files.", no_args_is_help=True, rich_markup_mode=None
)


class Over(StrEnum):
    """What the target of a question is drawn uniformly over."""

    answers = "answers"
    relations = "relations"
    triples = "triples"


class Split(StrEnum):
    """The splits of a workload."""

    train = "train"
    valid = "valid"
    test = "test"


class Custom(StrEnum):
    """Which split a file of questions is of."""

    auto = "auto"
    valid = "valid"
    test = "test"


GraphOption = Annotated[Path, typer.Option("--graph", "-g", help="The graph's folder.", show_default=False)]


def sample(
    folder: Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph folder.", show_default=False)],
    out: Out,
    two_edges: Annotated[int, typer.Option(min=0, help="Training questions of 2 edges, in all.")] = 1_000_000,
    three_edges: Annotated[int, typer.Option(min=0, help="Training questions of 3 edges, in all.")] = 1_000_000,
    valid: Annotated[int, typer.Option(min=0, help="Validation questions of each structure.")] = 1_000,
    test: Annotated[int, typer.Option(min=0, help="Test questions of each structure.")] = 10_000,
    neighbourhoods: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Neighbourhoods of each size (4 to 7) for training; as many as there are entities if not given.",
            show_default=False,
        ),
    ] = None,
    structures: Annotated[
        str, typer.Option(help="The structures to draw, by either name (pi or 3-inter_chain).")
    ] = "1p,2p,3p,2i,3i,pi,ip",
    uniform: Annotated[
        Over, typer.Option(help="What the target of a question is uniform over: entities, relations or triples.")
    ] = Over.answers,
    negatives: Annotated[
        int, typer.Option(min=0, help="At most so many negatives, and as many hard ones, for held-out questions.")
    ] = 1_000,
    one_in: Annotated[int, typer.Option(min=1, help="One held-out question in so many gets all these negatives.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The seed; the same for any number of workers.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads; as many as there are cores if not given.", show_default=False)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw questions from a graph: for training, and held-out ones that the training graph cannot answer.

    Example: halfgraph sample people --two-edges 100000 --three-edges 100000 --test 1000 --out questions
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.workload.folder import Counts, Plan, planned
    from halfgraph.workload.folder import sample as draw
    from halfgraph.workload.negatives import NegativeCounts

    graph = Graph.open(folder)
    counts = Counts(two_edges, three_edges, valid, test, neighbourhoods)
    plan = Plan(counts, seed, uniform.value, _structures(structures), NegativeCounts(negatives, one_in), workers)
    if not graph.has_split and (valid or test):
        note("The graph has no split, so there are no validation and test questions. Import it with --split 90/1/9.")
    total = sum(count for rows in planned(plan, graph).values() for count in rows.values())
    with pacing("questions", total, quiet or json) as more:
        made = draw(graph, out, plan, lambda _split, _shape, count: more(count))
    _show_sample(made, plan, graph, json, quiet)


def _structures(names: str) -> "tuple[Structure, ...]":
    """The structures of a list with commas, each once, in the paper's order."""
    from halfgraph.query.structures import DRAWN, structure_named

    chosen = [structure_named(name.strip()) for name in names.split(",") if name.strip()]
    if other := [structure.name for structure in chosen if structure not in DRAWN]:
        known = ", ".join(structure.short for structure in DRAWN)
        raise SettingError("--structures", f"{', '.join(other)} cannot be drawn", advice=f"Choose from {known}.")
    if not chosen:
        raise SettingError("--structures", "names no structure", advice="Name some, such as 2p,2i.")
    return tuple(structure for structure in DRAWN if structure in chosen)


def _show_sample(made: "Workload", plan: "Plan", graph: "Graph", json: bool, quiet: bool) -> None:
    """Nothing; what was drawn is printed, and what the graph could not fill is said."""
    from halfgraph.workload.folder import planned

    questions, wanted = made.description["questions"], planned(plan, graph)
    for split, rows in wanted.items():
        for name, count in rows.items():
            found = questions.get(split, {}).get(name, 0)
            if found < count:
                note(f"The graph gave only {found:,} of {count:,} {split} questions of {name}; the rest is kept.")
    if json:
        print_json(
            {
                "questions": questions,
                "questions_per_second": made.description["questions_per_second"],
                "graph": graph.fingerprint,
                "wanted": wanted,
                "tallies": made.description["tallies"],
            }
        )
    elif not quiet:
        _show_questions(made)
        note(f"\n{made.path}: {made.description['questions_per_second']:,.0f} questions/s")


def _show_questions(made: "Workload") -> None:
    """Nothing; tables of the questions by split and structure, and of those rejected."""
    train: list[tuple[Any, ...]] = []
    held_out: list[tuple[Any, ...]] = []
    reasons: dict[str, int] = {}
    for split, rows in made.description["tallies"].items():
        for name, row in rows.items():
            rejected = sum(row["rejected"].values())
            means = (row.get("mean_easy", 0.0), row.get("mean_hard", 0.0)) if split != "train" else ()
            (held_out if means else train).append((split, name, row["questions"], *means, rejected))
            for reason, count in row["rejected"].items():
                reasons[reason] = reasons.get(reason, 0) + count
    columns = ["split", "structure", "questions", "mean easy", "mean hard", "rejected"]
    if train:
        print_table("Training questions", [*columns[:3], columns[5]], train)
    if held_out:
        print_table("\nHeld-out questions", columns, held_out)
    if reasons:
        listed = sorted(((count, reason) for reason, count in reasons.items()), reverse=True)
        print_table("\nRejected, and why", ["", ""], listed)


@workload.command("export")
def export_(
    folder: Annotated[Path, typer.Argument(metavar="WORKLOAD", help="A workload folder.", show_default=False)],
    graph: GraphOption,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write, gzipped if it ends with .gz; - for standard output."),
    ],
    split: Annotated[Split, typer.Option(help="Which questions.")] = Split.test,
    structures: Annotated[
        str, typer.Option(help="Which structures, by either name; all if not given.", show_default=False)
    ] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many questions of each structure.", show_default=False)
    ] = None,
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
    with counting("questions", quiet or json) as progress:
        counts = export(Workload.open(folder, opened), opened, out, split.value, chosen, limit, progress)
    if str(out) == "-":
        return
    if json:
        print_json({"questions": {split.value: counts}, "file": str(out)})
    elif not quiet:
        note(f"{out}: {sum(counts.values()):,} questions")


@workload.command("import")
def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file of JSON lines (.gz too), or a file or folder of Query2Box's or KGReasoning's pickles.",
            show_default=False,
        ),
    ],
    graph: GraphOption,
    out: Out,
    split: Annotated[
        Custom,
        typer.Option(
            help="Whether the questions are for validation or test; auto: as their answers or file names say."
        ),
    ] = Custom.auto,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compute every easy and hard answer anew; exit code 1 if any differs.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a workload of a file of questions.

    Example: halfgraph workload import queries-valid.jsonl.gz --graph fb15k-237 --verify --out questions
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.workload.jsonl import import_workload
    from halfgraph.workload.verification import verify as recompute

    opened = Graph.open(graph)
    with counting("questions", quiet or json) as progress:
        imported = import_workload(source, opened, out, split.value, progress)
        verified = recompute(opened, imported.workload, imported.lines) if verify else None
    _note_import(imported)
    if json:
        description = imported.workload.description
        told = {name: description[name] for name in ("questions", "graphs", "set_aside")}
        print_json({**(vars(verified) if verified else {}), **told})
    elif not quiet:
        _show_questions(imported.workload)
    if verified is not None:
        _tell_verified(verified, json or quiet)


def _note_import(imported: "Imported") -> None:
    """Nothing; what was decided and what was set aside is said."""
    names = {"train": "the training graph", "known": "train and valid", "whole": "all triples"}
    for split, convention in imported.conventions.items():
        if convention.tried:
            note(
                f"Taken as {split} questions: easy answers on {names[convention.easy_on]}, all answers on "
                f"{names[convention.all_on]}, as {convention.equal:,} of {convention.tried:,} tried at random "
                "have them."
            )
    aside = imported.workload.description["set_aside"]
    if aside:
        listed = ", ".join(f"{form} ({count:,})" for form, count in aside.items())
        note(f"Set aside, as none of the named structures: {sum(aside.values()):,} queries: {listed}")


def _tell_verified(verified: "Verified", only_code: bool) -> None:
    """Nothing, or exit code 1 where some answers differ."""
    from halfgraph.workload.nested import shown

    if not only_code:
        note(f"{verified.equal:,} of {verified.queries:,} queries have just the answers that the graph gives")
        for different in verified.different:
            note(shown(different))
    if verified.equal < verified.queries:
        raise typer.Exit(1)
