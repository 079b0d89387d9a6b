"""The tasks of a worker, one function for each; everything that uses the store or the model happens here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pyoxigraph import Literal, NamedNode, QueryBoolean, QuerySolutions, QueryTriples, serialize

from halfgraph.answering.engine import Engine
from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.exact_engine import ExactEngine
from halfgraph.answering.proposals import triple_quads
from halfgraph.answering.schema import Answers, AnswerTriple
from halfgraph.answering.unknown_names import unknown_names
from halfgraph.answering.workers import TOO_LARGE, Handler, Message, OutOfMemory
from halfgraph.errors import FolderError, InputError, UnknownName
from halfgraph.graph.knowledge_graph import Ids
from halfgraph.graph.store import store_errors, store_path
from halfgraph.serving.examples import examples
from halfgraph.serving.negotiation import graph_format, table_format
from halfgraph.serving.problems import Problem, Reply, as_json, problem_of
from halfgraph.serving.schema import EntityPage, ExampleList, Limits, LiteralValue, RelatedEntities
from halfgraph.sparql.read import request_of
from halfgraph.sparql.results import Binding, store_rows, write_results
from halfgraph.sparql.syntax_tree import (
    Call,
    Filter,
    Iri,
    Query,
    Triple,
    Update,
    Variable,
    columns,
    select,
)
from halfgraph.sparql.writer import write
from halfgraph.training.run_folder import read_provenance

NOTE = "X-Halfgraph-Note"
PROBABILITY = "X-Halfgraph-Probability"  # that the answer to ASK is yes
CUT = "X-Halfgraph-Cut"  # says that there is more than the limit
MOST_LITERALS = 100  # on the page of an entity


@dataclass(frozen=True)
class WorkerContext:
    """What a worker has loaded: the engine and the limits of the server."""

    engine: Engine | ExactEngine
    limits: Limits


Job = Mapping[str, Any]


def open_context(
    load: Callable[[], Engine | ExactEngine],
    limits: Limits,
    run: Path | None,
    served: str | None,
    tasks: "Tasks",
) -> tuple[dict[str, Any], Handler]:
    """Load an engine on one thread and open its store; return graph and modes for the server, and the job handler.

    `run` is None for a graph without a trained run. `served` says which graph and run the server has had from its
    start; FolderError is raised for another one.
    """
    import torch

    torch.set_num_threads(1)
    engine = load()
    found = f"{engine.graph.fingerprint} {'' if run is None else read_provenance(run).get('begun')}"
    if served not in (None, found):
        problem = "has been replaced since the server was started, or its graph has"
        raise FolderError(run or engine.graph.path, problem, advice="Restart the server.")
    assert engine.store.local is not None
    if isinstance(engine, Engine) and engine.models is not None:
        engine.predictors.links.neighbours  # noqa: B018  built before the first query, whose time is limited
    context = WorkerContext(engine, limits)
    graph = {"graph": str(engine.graph.path), "held_out": engine.graph.held_out, "served": found}
    modes = engine.predictors.available if isinstance(engine, Engine) else ()
    return {**graph, "modes": modes}, lambda job: handle(context, job, tasks)


def handle(context: WorkerContext, job: Job, tasks: "Tasks") -> Message:
    """Run a job; an error of ours becomes the client's, any other one is a bug and is logged on stderr."""
    engine = context.engine
    try:
        with store_errors(store_path(engine.graph, engine.view)):
            reply = _bounded(tasks[job["task"]](context, job), context.limits.answer)
    except (MemoryError, RecursionError):
        reply = problem_of(OutOfMemory(TOO_LARGE)).reply()
    except Exception as error:
        reply = problem_of(error).reply()
    return reply.message()


def _bounded(reply: Reply, megabytes: int) -> Reply:
    if len(reply.body) > megabytes * 1_000_000:
        raise Problem(400, f"the answer is larger than {megabytes:,} MB", advice="Ask for less, or add a LIMIT.")
    return reply


def sparql(context: WorkerContext, job: Job) -> Reply:
    """The exact answer to any query that the store can answer; a header warns of names that the graph does not have."""
    query = parsed_query(context, job["query"])
    engine = context.engine
    unknown = unknown_names(request_of(job["query"], engine.graph), engine.graph, engine.store.local)
    return _with_note(_exact_reply(context, query, job), " ".join(map(str, unknown)))


def _exact_reply(context: WorkerContext, query: Query, job: Job) -> Reply:
    result, limit = _ask_store(context, query, job), context.limits.rows
    if isinstance(result, QuerySolutions):
        variables = columns(query, [variable.value for variable in result.variables])
        return _table(variables, list(islice(store_rows(result), limit + 1)), limit, job)
    if isinstance(result, QueryBoolean):
        form, media = table_format(job["accept"], job["format"])
        return Reply(result.serialize(format=form) or b"", media)
    assert isinstance(result, QueryTriples)
    rdf_format, media = graph_format(job["accept"], job["format"])
    triples = list(islice(result, limit + 1))
    try:
        return Reply(serialize(triples[:limit], format=rdf_format) or b"", media, headers=_cut(len(triples), limit))
    except OSError as error:  # a triple term in a format that has none
        raise Problem(406, f"the answer is not available as {media}: {error}", advice="Ask for text/turtle.") from error


def _table(variables: Sequence[str], rows: Sequence[Binding], limit: int, job: Job) -> Reply:
    form, media = table_format(job["accept"], job["format"])
    return Reply(write_results(variables, rows[:limit], form), media, headers=_cut(len(rows), limit))


def _cut(count: int, limit: int) -> dict[str, str]:
    return {CUT: f"only the first {limit} are given"} if count > limit else {}


def predict(context: WorkerContext, job: Job) -> Reply:
    """The exact rows, then predicted ones; a header says why if nothing can be predicted."""
    parsed_query(context, job["query"])
    if job["default"] is not None or job["named"] is not None:
        return _exact(context, job, "the request selects graphs, and predictions are made from one graph")
    try:
        answers = _ask_engine(context, job, explain=False)
    except UnknownName as error:  # by the standard, an unknown name gives no row
        return _exact(context, job, str(error))
    if answers.truth is not None:
        reply = _with_note(sparql(context, job), " ".join(answers.notes))
        return replace(reply, headers={**reply.headers, PROBABILITY: f"{answers.truth.probability:g}"})
    if answers.triples is not None:
        return _with_note(_predicted_graph(answers.triples, job), " ".join(answers.notes))
    limit = context.limits.rows
    cut = replace(answers, known=answers.known[:limit])
    reply = _table(*cut.rows(annotate=True), limit + len(answers.predicted), job)
    reply = replace(reply, headers={**reply.headers, **_cut(len(answers.known), limit)})
    return _with_note(reply, " ".join(answers.notes))


def _predicted_graph(triples: Sequence[AnswerTriple], job: Job) -> Reply:
    """The known triples, and each predicted one as an rdf:Statement with its confidence, which does not assert it."""
    rdf_format, media = graph_format(job["accept"], job["format"])
    quads = [quad for number, triple in enumerate(triples) for quad in triple_quads(triple, number)]
    return Reply(serialize(quads, format=rdf_format) or b"", media)


def _exact(context: WorkerContext, job: Job, reason: str) -> Reply:
    return _with_note(sparql(context, job), f"No predictions: {reason}")


def _with_note(reply: Reply, note: str) -> Reply:
    """Add a note as a header, on one line of ASCII."""
    line = " ".join(note.split()).encode("ascii", "replace").decode()
    return replace(reply, headers={**reply.headers, NOTE: line[:1000]}) if line else reply


def ask(context: WorkerContext, job: Job) -> Reply:
    """Known and predicted answers with an explanation, as JSON; known rows beyond the limit are left out."""
    parsed_query(context, job["query"])
    answers = _ask_engine(context, job, explain=True)
    count, limit = len(answers.known), context.limits.rows
    if count > limit:
        note = f"Only the first {limit:,} of {count:,} known answers are given."
        answers = replace(answers, known=answers.known[:limit], notes=[*answers.notes, note])
    return Reply(as_json(answers))


def _ask_engine(context: WorkerContext, job: Job, *, explain: bool) -> Answers:
    options = {"mode": job["mode"], "min_confidence": job["min_confidence"], "fill": job.get("fill", False)}
    return context.engine.ask(job["query"], job["top"], **options, explain=explain)


def explain(context: WorkerContext, job: Job) -> Reply:
    """Why an entity is an answer, as JSON."""
    parsed_query(context, job["query"])
    return Reply(as_json(context.engine.explain(job["query"], job["entity"] or job["row"], mode=job["mode"])))


def entity_page(engine: Engine | ExactEngine, name: str, limit: int) -> EntityPage:
    """Return what the graph knows about an entity, with at most `limit` neighbours for each relation."""
    graph, names = engine.graph, engine.names
    number = names.resolve(name)
    edges = graph.view(engine.view)
    return EntityPage(
        *names.described(number),
        int(edges.starts[number + 1] - edges.starts[number]),
        _neighbours(names, edges.neighbours(number), 0, limit),
        _neighbours(names, edges.neighbours(number), 1, limit),
        _literals(engine, number),
    )


def _neighbours(names: EntityNames, edges: tuple[Ids, Ids], inverse: int, limit: int) -> list[RelatedEntities]:
    relations, tails = edges
    neighbours = []
    for relation in np.unique(relations[(relations & 1) == inverse]).tolist():
        others = tails[relations == relation]
        first = [names.entity(int(other)) for other in others[:limit]]
        neighbours.append(RelatedEntities(names.relation(relation), first, len(others)))
    return neighbours


def _literals(engine: Engine | ExactEngine, number: int) -> list[LiteralValue]:
    name = engine.graph.entities.name(number)
    if name.startswith("_:"):
        return []
    pattern = Triple(Iri(engine.graph.namer.iri(name)), Variable("p"), Variable("o"))
    literal = Filter(Call("ISLITERAL", (Variable("o"),)))
    rows = engine.store.local.query(write(select([pattern, literal], ["p", "o"], limit=MOST_LITERALS)))
    assert isinstance(rows, QuerySolutions)
    pairs = [(row["p"], row["o"]) for row in rows]
    return [LiteralValue(p.value, o.value) for p, o in pairs if isinstance(o, Literal)]


def counts(context: WorkerContext) -> dict[str, int]:
    """The sizes of the served view."""
    graph = context.engine.graph
    sizes = {"entities": len(graph.entities), "properties": len(graph.relations), "classes": len(graph.types)}
    return {"triples": len(context.engine.store.local), **sizes}


def parsed_query(context: WorkerContext, text: str) -> Query:
    """Parse a query; refuse one that is too long, an update, not SPARQL, or that calls other servers."""
    limit = context.limits.query
    if len(text) > limit:
        raise Problem(413, f"the query is longer than {limit:,} characters", advice="Send a shorter one.")
    tree = request_of(text, context.engine.graph).tree
    assert not isinstance(tree, Update), "updates are refused"
    return tree


def _ask_store(context: WorkerContext, query: Query, job: Job) -> Any:
    """Query the store; its result must stay in this thread."""
    dataset: dict[str, Any] = {}
    if job["default"] is not None or job["named"] is not None:  # the request's graphs override those of the query
        dataset = {"default_graph": _graphs(job["default"]), "named_graphs": _graphs(job["named"])}
    try:
        return context.engine.store.local.query(write(query), **dataset)
    except (SyntaxError, RuntimeError) as error:
        raise InputError(f"the store cannot answer this: {error}") from error


def _graphs(iris: Sequence[str] | None) -> list[NamedNode]:
    try:
        return [NamedNode(iri) for iri in iris or ()]
    except ValueError as error:
        raise Problem(400, f"the name of a graph is not an IRI: {error}") from error


Tasks = Mapping[str, Callable[[WorkerContext, Job], Reply]]
TASKS: Tasks = {
    "sparql": sparql,
    "predict": predict,
    "ask": ask,
    "explain": explain,
    "entity": lambda context, job: Reply(as_json(entity_page(context.engine, job["iri"], job["limit"]))),
    "examples": lambda context, job: Reply(as_json(ExampleList(examples(context.engine, job["folders"])))),
    "counts": lambda context, _: Reply(as_json(counts(context))),
}
