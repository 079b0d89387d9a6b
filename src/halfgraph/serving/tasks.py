"""What a worker does, one function for each type of job; all that touches the store or the model happens here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyoxigraph import NamedNode

from halfgraph.answering.engine import Engine
from halfgraph.answering.schema import Answers, Cell, Known, Predicted
from halfgraph.errors import InputError, UnknownName
from halfgraph.serving.entity import entity
from halfgraph.serving.examples import examples
from halfgraph.serving.limits import Limits
from halfgraph.serving.problems import Problem, Reply, as_json
from halfgraph.serving.rows import Wanted, answer, literal, named, table
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.refusals import refuse_service, refuse_size, refuse_update
from halfgraph.sparql.syntax import check
from halfgraph.sparql.tokens import Source

NOTE = "X-Halfgraph-Note"
EXTRA = ("_score", "_confidence", "_source")
DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"


@dataclass(frozen=True)
class Desk:
    """What a worker has at hand."""

    engine: Engine
    limits: Limits


Job = Mapping[str, Any]


def sparql(desk: Desk, job: Job) -> Reply:
    """The exact answer to any query that the store can answer."""
    source = _source(desk, job["query"])
    wanted = Wanted(job["accept"], job["format"], desk.limits.rows)
    return answer(_ask_store(desk, source, job), wanted, _selected(source))


def _selected(source: Source) -> list[str]:
    """The variables of SELECT * in the order in which they appear; the store would sort them by name."""
    words = source.tokens[source.prologue_end + 1 :]
    if not next((token for token in words if not token.says("DISTINCT", "REDUCED")), words[0]).says("*"):
        return []
    return list(dict.fromkeys(token.text[1:] for token in source.tokens if token.type_id == "variable"))


def predict(desk: Desk, job: Job) -> Reply:
    """The exact rows, then predicted ones; what cannot be predicted is answered exactly, and a header says why."""
    source = _source(desk, job["query"])
    if job["default"] is not None or job["named"] is not None:
        return _exact(desk, job, "Nothing is predicted: the request chooses graphs, and there is one to predict from")
    form = source.tokens[source.prologue_end].text.upper()
    if form != "SELECT":
        return _exact(desk, job, f"Nothing is predicted: {form} gives no answers to rank")
    try:
        found = _ask_engine(desk, job, explain=False)
    except UnknownName as error:  # the standard's answer to a name that is nowhere is no row
        return _exact(desk, job, f"Nothing is predicted: {error}")
    target = found.target or found.variables[0]
    rows = [_known(one) for one in found.known] + [_guess(target, one) for one in found.predicted]
    wanted = Wanted(job["accept"], job["format"], desk.limits.rows)
    return table([*found.variables, *EXTRA], rows, wanted, _noted(" ".join(found.notes)))


def _exact(desk: Desk, job: Job, note: str) -> Reply:
    """The exact answer, and a header that says why there is no more."""
    reply = sparql(desk, job)
    return Reply(reply.body, reply.media, reply.status, {**reply.headers, **_noted(note)})


def _noted(note: str) -> dict[str, str]:
    """A header with a note on one line of ASCII."""
    line = " ".join(note.split()).encode("ascii", "replace").decode()
    return {NOTE: line[:1000]} if line else {}


def _known(answer: Known) -> dict[str, Any]:
    """A known answer as a row."""
    row = {variable: _term(cell) for variable, cell in answer.row.items()}
    return row | {"_source": {"type": "literal", "value": "known"}}


def _term(cell: Cell) -> dict[str, Any]:
    """A value of a row as in W3C's JSON results."""
    return literal(cell.value, cell.language, cell.datatype) if cell.type == "literal" else named(cell.value)


def _guess(variable: str, answer: Predicted) -> dict[str, Any]:
    """A predicted answer as a row."""
    row = {variable: named(answer.entity), "_score": _number(answer.score)}
    row |= {"_source": {"type": "literal", "value": "predicted"}}
    return row if answer.confidence is None else row | {"_confidence": _number(answer.confidence)}


def _number(value: float) -> dict[str, str]:
    """A number as a term."""
    return {"type": "literal", "value": f"{value:.6g}" if abs(value) >= 1e-4 else f"{value:.8f}", "datatype": DECIMAL}


def ask(desk: Desk, job: Job) -> Reply:
    """The known and the predicted answers with an explanation, as JSON; known rows are cut at the limit."""
    _source(desk, job["query"])
    found = _ask_engine(desk, job, explain=True).to_dict()
    count, most = len(found["known"]), desk.limits.rows
    if count > most:
        found["known"] = found["known"][:most]
        found["notes"] = [*found["notes"], f"Only the first {most:,} of {count:,} known answers are given."]
    return Reply(as_json(found))


def _ask_engine(desk: Desk, job: Job, *, explain: bool) -> Answers:
    """What the engine answers."""
    chosen = {"mode": job["mode"], "min_confidence": job["min_confidence"], "any_type": job.get("any_type", False)}
    return desk.engine.ask(job["query"], job["top"], **chosen, explain=explain)


def explain(desk: Desk, job: Job) -> Reply:
    """Why an entity is an answer, as JSON."""
    _source(desk, job["query"])
    return Reply(as_json(desk.engine.explain(job["query"], job["entity"], mode=job["mode"]).to_dict()))


def counts(desk: Desk) -> dict[str, int]:
    """How much the served view of the graph holds."""
    graph = desk.engine.graph
    counted = {"entities": len(graph.entities), "properties": len(graph.relations), "classes": len(graph.types)}
    return {"triples": len(desk.engine.facts.store), **counted}


def _source(desk: Desk, text: str) -> Source:
    """A query text that may be asked, or an error: it is too long, an update, not SPARQL, or calls other machines."""
    source = Source(text, Prefixes.of(desk.engine.graph))
    if len(text) > desk.limits.query:
        raise Problem(413, f"the query is longer than {desk.limits.query:,} characters", advice="Ask a shorter one.")
    refuse_size(source)
    refuse_update(source)
    refuse_service(source)
    check(source)
    return source


def _ask_store(desk: Desk, source: Source, job: Job) -> Any:
    """What the store answers; only the thread that asked may use it."""
    chosen: dict[str, Any] = {}
    if job["default"] is not None or job["named"] is not None:  # a request's graphs come before those of the query
        chosen = {"default_graph": _graphs(job["default"]), "named_graphs": _graphs(job["named"])}
    prefixes = dict(source.defaults.namespaces)
    try:
        return desk.engine.facts.store.query(
            source.strict(), base_iri=source.defaults.base, prefixes=prefixes, **chosen
        )
    except SyntaxError as error:
        raise InputError(str(error.msg), line=error.lineno, column=error.offset) from error


def _graphs(iris: Sequence[str] | None) -> list[NamedNode]:
    """The graphs of some IRIs."""
    try:
        return [NamedNode(iri) for iri in iris or ()]
    except ValueError as error:
        raise Problem(400, f"a graph is not named by an IRI: {error}") from error


TASKS: dict[str, Callable[[Desk, Job], Reply]] = {
    "sparql": sparql,
    "predict": predict,
    "ask": ask,
    "explain": explain,
    "entity": lambda desk, job: Reply(as_json(entity(desk.engine, job["iri"], job["limit"]))),
    "examples": lambda desk, job: Reply(as_json({"examples": examples(desk.engine, job["folders"])})),
    "counts": lambda desk, _: Reply(as_json(counts(desk))),
}
