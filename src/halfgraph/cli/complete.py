"""`halfgraph complete`: the missing triples of the whole graph that a run is surest of."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from halfgraph.cli.options import Json, Missing, Quiet, RunFolder, RunGraph, View
from halfgraph.cli.output import note, print_json, print_proposals, print_table, progress, written

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine
    from halfgraph.answering.graph_completion import GraphCompletion

SHOWN = 20  # triples in the table


def complete(
    run: RunFolder,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FILE", help="Write the triples: .nq, .trig, .ttl, .csv or .jsonl."),
    ] = None,
    type: Annotated[  # noqa: A002
        str | None, Option(metavar="TYPE", help="Only triples whose subject has this type.")
    ] = None,
    relation: Annotated[str | None, Option(metavar="RELATION", help="Only triples of this relation.")] = None,
    min_confidence: Annotated[float, Option(help="Leave out triples below this confidence (0 to 1).")] = 0.8,
    limit: Annotated[int, Option(min=1, help="Maximum number of triples, the surest first.")] = 1_000,
    graph: RunGraph = None,
    view: View = "whole",
    missing: Missing = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the missing triples that the model is surest of.

    Looks at the whole graph; each triple has its confidence and the strongest evidence for it. At the end, prints which
    share of such triples is right, measured on held-out triples.

    Example: halfgraph complete runs/people --relation ex:livesIn --min-confidence 0.9 --out missing.ttl
    """
    from halfgraph.answering.cells import to_json
    from halfgraph.answering.graph_completion import complete_graph
    from halfgraph.answering.proposal_files import check_suffix
    from halfgraph.api import load

    if out is not None:
        check_suffix(out, "--out")
    engine = load(run, graph, view, missing=missing)
    with progress(quiet or json) as show:
        completion = complete_graph(
            engine,
            type_name=type,
            relation=relation,
            min_confidence=min_confidence,
            limit=limit,
            progress=lambda total, more: show("subjects and relations", total, more),
        )
    bands = _bands(engine, min_confidence)
    if out is not None:
        _write(engine, run, completion, out, {"--type": type, "--relation": relation})
    if json:
        print_json({**to_json(completion), "precision": bands})
    elif not quiet:
        if out is None:
            _print_triples(completion, limit)
        _print_bands(bands)
        note(*_remarks(completion, engine, bands, min_confidence))
    if out is not None and not quiet:
        note(written(out, len(completion.triples)))


def _bands(engine: "Engine", least: float) -> list[dict[str, Any]]:
    """Measure the precision of the same model on held-out triples, from the training triples."""
    from halfgraph.evaluation.reliability import precision_by_band
    from halfgraph.prediction.predictors import Predictors, missing_share

    graph = engine.graph
    if not graph.has_split:
        return []
    predictors = Predictors(engine.index, graph.train, engine.models, missing_share(graph, "train"))
    return precision_by_band(predictors.links, graph.whole, 0, least)


def _write(
    engine: "Engine", run: Path, completion: "GraphCompletion", out: Path, chosen: dict[str, str | None]
) -> None:
    from halfgraph.answering.proposal_files import write_proposals
    from halfgraph.sparql.prefixes import Prefixes

    given = " ".join(f"{option} {value}" for option, value in chosen.items() if value is not None)
    request = f"halfgraph complete {run} {given}".strip()
    write_proposals(out, completion.triples, str(run), request, Prefixes.of(engine.graph).namespaces)


def _print_triples(completion: "GraphCompletion", limit: int) -> None:
    count = len(completion.triples)
    title = (
        f"The {count:,} surest missing triples" if count == limit else f"{count:,} missing triple{'s' * (count != 1)}"
    )
    print_proposals(title, completion.triples[:SHOWN])
    if count > SHOWN:
        note(f"... and {count - SHOWN:,} more; --out FILE or --json gives them all")


def _print_bands(bands: list[dict[str, Any]]) -> None:
    rows = [
        (f"{own['from']:.0%} to {own['to']:.0%}", own["links"], own["drawn"], f"{own['right']:.0%}")
        for own in reversed(bands)
        if own["drawn"]
    ]
    if rows:
        title = "\nPrecision by confidence, measured on held-out triples"
        print_table(title, ["confidence", "triples, estimated", "of these judged", "right"], rows)


def _remarks(completion: "GraphCompletion", engine: "Engine", bands: list[dict[str, Any]], least: float) -> list[str]:
    """Say how the precision is meant, and what was left out."""
    lines = []
    if not completion.triples:
        lines.append(f"No missing triple has a confidence of {least:.0%} or more. Pass a lower --min-confidence.")
    if not bands:
        why = "it is too large" if engine.graph.has_split else "it has no held-out triples"
        lines.append(f"The precision is not measured on this graph: {why}.")
    elif any(own["drawn"] for own in bands):
        lines.append("Right are those that were held out; a true triple that the graph does not have counts as wrong.")
    if completion.left_out:
        lines.append(
            f"Looked at {completion.pairs:,} pairs of subject and relation; {completion.left_out:,} were left out, "
            "where neither the subject nor a similar entity has the relation."
        )
    return lines
