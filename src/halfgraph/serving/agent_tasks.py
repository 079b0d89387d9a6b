"""The tools for agents as tasks of a worker: describe an entity, ask, explain, complete."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyoxigraph import QuerySolutions

from halfgraph.answering.cells import Cell, NamedEntity
from halfgraph.answering.engine import Engine
from halfgraph.answering.exact_engine import ExactEngine
from halfgraph.answering.explanation_schema import ExplainedAnswer, WitnessTriple
from halfgraph.answering.missing_statements import MissingStatement, missing_of_entity, missing_of_relation
from halfgraph.answering.schema import AnswerTriple, PredictedAnswer
from halfgraph.errors import InputError, SettingError, UnknownName
from halfgraph.graph.vocabulary import local_name
from halfgraph.serving.agent_schema import (
    AnswerReason,
    DescribedEntity,
    EvidenceItem,
    MissingResult,
    QueryAnswer,
    RowItem,
    StatementItem,
    ToolResult,
    short_text,
    shortened,
)
from halfgraph.serving.problems import Reply, as_json
from halfgraph.serving.schema import EntityPage, LiteralValue
from halfgraph.serving.tasks import Job, Tasks, WorkerContext, entity_page, parsed_query
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE, Iri, Triple, Variable, select
from halfgraph.sparql.writer import write

SEARCHING = 1 / 3  # share of the time limit for which statements of a relation are searched
TRAIN = "halfgraph train GRAPH --out RUN"
NO_MODELS = f"Nothing is predicted: there are no link models. Make them with {TRAIN}, or halfgraph calibrate RUN."


def describe(context: WorkerContext, job: Job) -> DescribedEntity:
    """Types, known statements and predicted statements of an entity."""
    engine, limit = context.engine, job["limit"]
    page = entity_page(engine, job["entity"], limit)
    known, entity = _known_statements(page), engine.names.resolve(job["entity"])
    predicts = isinstance(engine, Engine) and engine.models is not None
    notes = [] if predicts else [NO_MODELS]
    if page.degree > limit:
        notes.append(f"Only {min(limit, len(known))} of {page.degree:,} known statements are given; `ask` gives all.")
    missing = missing_of_entity(with_model(engine), entity, job["predictions"]).statements if predicts else []
    return DescribedEntity(
        notes=notes,
        entity=page.entity,
        label=short_text(page.label),
        types=_types(engine, page),
        known_count=page.degree,
        known=known[:limit],
        literals=[LiteralValue(one.relation, short_text(one.value)) for one in page.literals[:limit]],
        predicted=[_predicted(one) for one in missing],
    )


def with_model(engine: Engine | ExactEngine) -> Engine:
    """Return the engine; raise SettingError if a graph is served without a run."""
    if not isinstance(engine, Engine):
        raise SettingError("", "there are no predictions without a trained run", advice=f"Make one with: {TRAIN}")
    return engine


def _known_statements(page: EntityPage) -> list[StatementItem]:
    """Statements of an entity, one of each relation first, then the second of each, and so on."""
    entity = NamedEntity(page.entity, page.label)
    ranked = [
        (rank, StatementItem("known", *(ends[::-1] if inverse else ends)))
        for inverse, groups in ((False, page.out), (True, page.incoming))
        for group in groups
        for rank, ends in enumerate((entity, group.relation, other) for other in group.others)
    ]
    return [statement for _, statement in sorted(ranked, key=lambda pair: pair[0])]


def _types(engine: Engine | ExactEngine, page: EntityPage) -> list[NamedEntity]:
    """The types that the store states for an entity; without one, the type that the import has chosen."""
    if page.entity.startswith("_:"):
        return [NamedEntity("", page.type)]
    pattern = Triple(Iri(page.entity), Iri(RDF_TYPE), Variable("type"))
    rows = engine.store.local.query(write(select([pattern], ["type"], distinct=True)))
    assert isinstance(rows, QuerySolutions)
    iris = sorted(row["type"].value for row in rows)
    return [NamedEntity(iri, local_name(iri)) for iri in iris] or [NamedEntity("", page.type)]


def _predicted(missing: MissingStatement) -> StatementItem:
    return StatementItem("predicted", missing.subject, missing.predicate, missing.object, missing.confidence)


def ask(context: WorkerContext, job: Job) -> QueryAnswer:
    """Exact rows of a query, then predicted ones."""
    parsed_query(context, job["query"])
    answers = context.engine.ask(job["query"], job["top"], min_confidence=job["min_confidence"])
    count, limit = len(answers.known), job["rows"]
    notes = list(answers.notes)
    if count > limit:
        notes.append(f"Only {limit:,} of {count:,} known rows are given.")
    empty = answers.explanation.empty
    return QueryAnswer(
        notes=notes,
        variables=list(answers.variables),
        known_count=count,
        known=[RowItem("known", _row(one.row), expected=one.expected) for one in answers.known[:limit]],
        predicted=_predicted_rows(answers.predicted),
        missing_rows=None if answers.missing_rows is None else _predicted_rows(answers.missing_rows),
        truth=answers.truth,
        triples=None if answers.triples is None else [_triple(one) for one in answers.triples[: limit + job["top"]]],
        no_exact_answer_because=list(empty.part) if empty is not None else [],
    )


def _predicted_rows(answers: Sequence[PredictedAnswer]) -> list[RowItem]:
    return [
        RowItem("predicted", _row(one.row), one.confidence, one.score if one.confidence is None else None, one.expected)
        for one in answers
    ]


def _triple(one: AnswerTriple) -> StatementItem:
    ends = _named(one.subject), _named(one.predicate), _named(one.object)
    return StatementItem("known" if one.known else "predicted", *ends, one.confidence)


def _row(row: Mapping[str, Cell]) -> dict[str, NamedEntity]:
    return {name: _named(cell) for name, cell in row.items()}


def _named(cell: Cell) -> NamedEntity:
    return NamedEntity(short_text(cell.value), short_text(cell.label))


def explain(context: WorkerContext, job: Job) -> AnswerReason:
    """Why an entity or a row is an answer to a query."""
    if (job["entity"] is None) == (job["row"] is None):
        raise InputError("pass an entity or a row, and not both")
    parsed_query(context, job["query"])
    witness = context.engine.explain(job["query"], job["row"] if job["entity"] is None else job["entity"])
    return AnswerReason(
        notes=list(witness.notes),
        verdict=witness.answer.verdict,
        status=_status(witness.answer),
        confidence=witness.answer.confidence,
        variables={one.variable: NamedEntity(one.entity, one.label) for one in witness.witness},
        triples=[_evidence(triple) for triple in witness.triples],
    )


def _status(answer: ExplainedAnswer) -> Any:
    return "known" if answer.known else "predicted" if answer.against is None else "no answer"


def _evidence(triple: WitnessTriple) -> EvidenceItem:
    status: Any = "known" if triple.known else "absent" if triple.negated else "predicted"
    return EvidenceItem(status, triple.subject, triple.predicate, triple.object, triple.confidence, triple.negated)


def complete(context: WorkerContext, job: Job) -> MissingResult:
    """Missing statements of an entity or of a relation, the surest first."""
    engine, limit, least = with_model(context.engine), job["limit"], job["min_confidence"]
    entity, relation = job["entity"], job["relation"]
    if (entity is None) == (relation is None):
        raise InputError("pass an entity or a relation, and not both")
    if entity is not None:
        found = missing_of_entity(engine, engine.names.resolve(entity), limit, least)
    else:
        seconds = SEARCHING * context.limits.time
        found = missing_of_relation(engine, resolve_relation(engine, relation), limit, least, seconds)
    notes = []
    if found.searched < found.heads:
        notes.append(f"Searched for {seconds:.0f} s: the likeliest {found.searched:,} of {found.heads:,} subjects.")
    return MissingResult(notes=notes, predicted=[_predicted(one) for one in found.statements])


def resolve_relation(engine: Engine, text: str) -> int:
    """Return a relation by its IRI, <IRI>, prefixed name, name or label."""
    graph, words = engine.graph, engine.graph.relations
    prefix, colon, local = text.partition(":")
    namespaces = Prefixes.of(graph).namespaces
    iris = [text, text.strip("<>"), *([namespaces[prefix] + local] if colon and prefix in namespaces else [])]
    found = next((number for iri in iris if (number := graph.find_relation(iri)) is not None), None)
    if found is None and (number := words.find(text)) is not None:
        found = 2 * number
    if found is None:
        near = words.nearest(text)
        if near and words.label(near[0]).casefold() == text.casefold():
            return 2 * near[0]
        raise UnknownName(text, what="relation", nearest=[graph.namer.iri(words.name(number)) for number in near])
    return found


def _reply(task: Callable[[WorkerContext, Job], ToolResult]) -> Callable[[WorkerContext, Job], Reply]:
    """A task whose result is cut to the number of characters that the job allows."""
    return lambda context, job: Reply(as_json(shortened(task(context, job), job["characters"])))


AGENT_TASKS: Tasks = {task.__name__: _reply(task) for task in (describe, ask, explain, complete)}
