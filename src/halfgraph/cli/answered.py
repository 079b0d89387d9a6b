"""Answers and reasons for people: tables, the query drawn with what each path counts, and why it is empty."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from halfgraph.answering.schema import certainty, status
from halfgraph.cli.screen import note, print_table

if TYPE_CHECKING:
    from halfgraph.answering.schema import Answers, EmptyReason, Explanation, KnownAnswer, QueryEdge, QueryNode, Witness

MOST_SHOWN = 20  # known answers on the screen


def show_answers(answers: "Answers", short: Callable[[str], str], *, heads: bool) -> None:
    """Nothing; the answers are printed, known ones first, and below them what the query was understood as."""
    known = [("known", _row(one), "", one.type or "", _short(one, short)) for one in answers.known[:MOST_SHOWN]]
    predicted = [("predicted", one.label, certainty(one), one.type, short(one.entity)) for one in answers.predicted]
    title = f"{len(answers.known):,} known, {len(predicted):,} predicted"
    sure = "confidence" if any(one.confidence is not None for one in answers.predicted) else "score"
    print_table(title, ["", "answer", sure, "type", ""], [*known, *predicted])
    if len(answers.known) > MOST_SHOWN:
        note(f"... and {len(answers.known) - MOST_SHOWN:,} more known answers; --json or --format gives them all")
    if answers.explanation.empty is not None:
        note("\n" + "\n".join(why_empty(answers.explanation.empty)))
    if answers.explanation.nodes:
        note("\n" + "\n".join(drawing(answers.explanation, heads=heads)))
    for text in answers.notes:
        note(text)


def _row(answer: "KnownAnswer") -> str:
    """The values of a row, by their labels."""
    return ", ".join(cell.label for cell in answer.row.values())


def _short(answer: "KnownAnswer", short: Callable[[str], str]) -> str:
    """The name of a known answer as a query would write it; a literal needs none beside itself."""
    return "" if next(iter(answer.row.values())).type != "uri" else short(answer.entity)


def why_empty(empty: "EmptyReason") -> list[str]:
    """Why a query has no exact answer, line by line."""
    lines = ["No exact answer: the graph has nothing for", *(f"    {pattern}" for pattern in empty.part)]
    if empty.without is None:
        return lines
    some = ", ".join(one.label for one in empty.without.some)
    more = ", ..." if empty.without.count > len(empty.without.some) else ""
    plural = "answer" if empty.without.count == 1 else "answers"
    return [*lines, f"Without this it has {empty.without.count:,} {plural}: {some}{more}"]


def drawing(explanation: "Explanation", *, heads: bool) -> list[str]:
    """The query as a tree of lines from the answer to the known entities, with the share of each path."""
    from halfgraph.query.rendering import hung

    nodes = {node.id: node for node in explanation.nodes}
    target = next(node for node in explanation.nodes if node.role == "target")
    seen: set[int] = set()

    def below(node: "QueryNode") -> list[str]:
        seen.add(node.id)
        into = [edge for edge in explanation.edges if edge.target == node.id]
        branches = [branch(edge) for edge in into]
        return [line for place, one in enumerate(branches) for line in hung(one, place == len(branches) - 1)]

    def branch(edge: "QueryEdge") -> list[str]:
        source = nodes[edge.source]
        first = f"{_share(edge, heads)}{_label(edge)} ← {source.name}"
        if source.role == "anchor":
            return [first]
        if source.id in seen:
            return [f"{first} (as above)"]
        return [first + _likely(source), *below(source)]

    return [target.name + (f" : {target.type}" if target.type else ""), *below(target)]


def _label(edge: "QueryEdge") -> str:
    """A relation as it is walked."""
    said = edge.label + ("⁻¹" if edge.inverse else "")
    return f"not {said}" if edge.negated else f"either {said}" if edge.alternative else said


def _share(edge: "QueryEdge", heads: bool) -> str:
    """What a path counts where several meet, by head where that is wanted."""
    if edge.attention is None:
        return ""
    each = f" [{' '.join(f'{share:.0%}' for share in edge.heads)}]" if heads and edge.heads else ""
    return f"{edge.attention:.0%}{each} "


def _likely(node: "QueryNode") -> str:
    """The likeliest entities of a variable."""
    return f"  (likely {', '.join(one.label for one in node.likely)})" if node.likely else ""


def show_witness(witness: "Witness") -> None:
    """Nothing; why an entity is an answer is printed, triple by triple."""
    answer = witness.answer
    sure = "" if answer.confidence is None else f", {answer.confidence:.0%} sure"
    title = f"{answer.label} is {'known' if answer.known else f'predicted{sure}'}"
    stands = ", ".join(f"{one.variable} = {one.label}" for one in witness.witness)
    print_table(
        title + (f", with {stands}" if stands else ""),
        ["subject", "relation", "object", ""],
        [(one.subject.label, one.predicate.label, one.object.label, status(one)) for one in witness.triples],
    )
    for text in witness.notes:
        note(text)
