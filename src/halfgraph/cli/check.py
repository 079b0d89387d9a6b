"""`halfgraph check`: what may be wrong with a graph, by a run that was trained on it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from halfgraph.cli.options import Json, Quiet, RunFolder, RunGraph, View
from halfgraph.cli.output import note, print_json, print_table, progress, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfgraph.answering.graph_check import Check, Finding

SHOWN = 20  # findings of each check in a table
SUFFIXES = (".csv", ".jsonl")
TITLES: "dict[Check, str]" = {
    "unlikely": "Unlikely triples: each scored without itself",
    "type": "Types that are rare for the relation",
    "duplicate": "Likely duplicates",
}


def check(
    run: RunFolder,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Write the findings: .csv or .jsonl.")
    ] = None,
    limit: Annotated[int, Option(min=1, help="Maximum number of findings of each check.")] = 1_000,
    graph: RunGraph = None,
    view: View = "whole",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List what may be wrong with a graph.

    Triples that the model finds unlikely, subjects and objects of a type that is rare for the relation, and entities
    with nearly the same label and links. All of it is for a person to judge.

    Example: halfgraph check runs/people --out findings.csv
    """
    from halfgraph.answering.cells import to_json
    from halfgraph.answering.graph_check import CHECKS, GraphCheck
    from halfgraph.answering.proposal_files import check_suffix
    from halfgraph.api import load

    if out is not None:
        check_suffix(out, "--out", SUFFIXES)
    checks = GraphCheck(load(run, graph, view))
    with progress(quiet or json) as show:
        found = {
            name: checks.run(name, limit, lambda total, more: show("triples scored", total, more)) for name in CHECKS
        }
    if out is not None:
        _write(out, [one for own in found.values() for one in own])
    if json:
        print_json({name: to_json(own) for name, own in found.items()})
    elif not quiet:
        for name, own in found.items():
            _print_findings(TITLES[name], own, limit)
    if out is not None and not quiet:
        note(written(out, sum(map(len, found.values())), "finding"))


def _print_findings(title: str, found: "Sequence[Finding]", limit: int) -> None:
    count = f"the first {limit:,}" if len(found) == limit else f"{len(found):,}"
    rows = [(" — ".join((one.subject.label, one.predicate.label, one.object.label)), one.reason) for one in found]
    print_table(f"\n{title} ({count})", ["", "because"], rows[:SHOWN])
    if len(found) > SHOWN:
        note(f"... and {len(found) - SHOWN:,} more; --out FILE or --json gives them all")


def _write(out: Path, found: "Sequence[Finding]") -> None:
    from halfgraph.answering.proposal_files import csv_bytes, json_lines
    from halfgraph.graph.files import write_atomically

    ends = [(one, (one.subject, one.predicate, one.object)) for one in found]
    rows = [
        [one.check, *(end.entity for end in own), one.score, *(end.label for end in own), one.reason]
        for one, own in ends
    ]
    names = ("subject", "predicate", "object")
    head = ["check", *names, "score", *(f"{name}_label" for name in names), "reason"]
    content = csv_bytes(head, rows) if out.suffix.lower() == ".csv" else json_lines(found)
    write_atomically(out, content, advice="Choose another file.")
