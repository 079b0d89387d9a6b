"""The command that asks a trained model: every exact answer, then the likely ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halfgraph.cli.query import View, sparql_text
from halfgraph.cli.screen import Json, note, print_json, print_table

if TYPE_CHECKING:
    from halfgraph.answering.answers import Answers, Witness


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.", show_default=False)],
    sparql: Annotated[str, typer.Argument(help="A SPARQL query, a file of one, or - for standard input.")],
    graph: Annotated[
        Path | None, typer.Option("--graph", "-g", help="The graph's folder, if it has moved.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(help="How many predicted answers to give.")] = 10,
    view: Annotated[
        View, typer.Option(help="Which triples count as known: all, without test, training only.")
    ] = View.whole,
    any_kind: Annotated[bool, typer.Option("--any-kind", help="Predict entities of every kind.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(metavar="ENTITY", help="Show why this entity is an answer instead.", show_default=False),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long exact answers may take.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Answer a SPARQL query: all exact answers first, then predicted ones, best first.

    Example: halfgraph ask demo/run 'SELECT ?x { :Hank_Aaron :played_for/:season_of ?x }'
    """
    from halfgraph.answering.engine import Engine
    from halfgraph.graph.folder import Graph
    from halfgraph.settings import read_config
    from halfgraph.training.run_folder import CONFIG, read_provenance

    source = graph or Path(read_provenance(run)["graph_path"])
    architecture = read_config(run / CONFIG).architecture
    engine = Engine.load(run, Graph.open(source), architecture, view.value, time_limit=time_limit)
    text = sparql_text(sparql)
    if explain is not None:
        witness = engine.explain(text, explain)
        print_json(witness.to_dict()) if json else _show_witness(witness)
        return
    answers = engine.ask(text, top, any_kind=any_kind)
    print_json(answers.to_dict()) if json else _show(answers)


def _show(answers: "Answers") -> None:
    """Nothing; the answers are printed, known ones first."""
    known = [("known", answer.label, "", answer.entity) for answer in answers.known]
    predicted = [("predicted", answer.label, f"{answer.score:.3f}", answer.entity) for answer in answers.predicted]
    title = f"{len(known):,} known, {len(predicted):,} predicted"
    print_table(title, ["", "answer", "score", ""], [*known, *predicted])
    for text in answers.notes:
        note(text)


def _show_witness(witness: "Witness") -> None:
    """Nothing; the triples of a witness are printed."""
    from halfgraph.answering.answers import said

    rows = [(said(one), one.subject.label, one.predicate.label, one.object.label) for one in witness.triples]
    print_table(f"Why {witness.answer.label} is an answer", ["", "", "", ""], rows)
    for text in witness.notes:
        note(text)
