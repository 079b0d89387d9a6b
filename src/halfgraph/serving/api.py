"""The JSON API, which the page uses; described at /api/openapi.json."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from halfgraph.answering.explanation_schema import Witness
from halfgraph.answering.pool import WorkerPool
from halfgraph.answering.schema import Answers
from halfgraph.prediction.modes import Mode
from halfgraph.serving.access import ALIVE, CLIENT, AccessRules
from halfgraph.serving.completion import Completion
from halfgraph.serving.problems import Problem, Reply, as_json
from halfgraph.serving.schema import Alive, Completions, EntityPage, ErrorBody, ExampleList, Health, Info, Limits

QUERY = Field(min_length=1, max_length=500_000, description="A SPARQL query.")
Responses = dict[int | str, dict[str, Any]]
WRONG: dict[str, Any] = {"model": ErrorBody, "description": "What is wrong with the request, where, and what to do."}
BUSY: Responses = {503: {"model": ErrorBody, "description": "The server is busy; try again later."}}
SLOW: Responses = {504: {"model": ErrorBody, "description": "The query was stopped at its time limit."}}
ASKING: Responses = {400: WRONG, 403: WRONG, 404: WRONG, 413: WRONG, 422: WRONG, **BUSY, **SLOW}


def refuse_unknown(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise a problem that names the parameters which a route does not have, and lists those that it has."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        advice = f"Known: {', '.join(known)}." if known else "This path takes no parameters."
        raise Problem(400, f"unknown parameter {', '.join(name[:50] for name in unknown)}", advice=advice)


class Parameters(BaseModel):
    """Parameters of a request; others than the fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_others(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            refuse_unknown(given, list(cls.model_fields))
        return given


class AskRequest(Parameters):
    """A query, and how to predict its answers."""

    query: str = QUERY
    top: int = Field(10, ge=1, le=1000, description="Maximum number of predicted answers.")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Leave out predictions below this confidence.")
    mode: Mode | None = Field(None, description="Prediction mode; by default the first of /api/info.")
    fill: bool = Field(False, description="Fill empty cells of OPTIONAL parts with their most likely value.")


class ExplainRequest(Parameters):
    """A query and one of its answers: an entity, or for several variables a row."""

    query: str = QUERY
    entity: str | None = Field(None, min_length=1, max_length=10_000, description="The IRI of the answer.")
    row: dict[str, str] | None = Field(None, max_length=100, description="The IRI of each variable.")
    mode: Mode | None = None

    @model_validator(mode="after")
    def _refuse_both(self) -> "ExplainRequest":
        if (self.entity is None) == (self.row is None):
            raise Problem(400, "a request to explain needs either an entity or a row", advice="Pass one of them.")
        return self


@dataclass(frozen=True)
class AppContext:
    """What the server needs to answer: workers, completion and descriptions."""

    workers: WorkerPool
    limits: Limits
    completion: Completion
    info: Info
    rules: AccessRules = field(default_factory=AccessRules)
    folders: tuple[str, ...] = ()  # that may hold a file of examples


async def run_job(workers: WorkerPool, job: Mapping[str, Any], request: Request) -> Reply:
    """Return a worker's reply; the job is stopped when the client disconnects."""
    asking = asyncio.create_task(workers.ask(job, request.scope.get(CLIENT, "")))
    leaving = asyncio.create_task(_disconnect(request))
    try:
        await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise Problem(499, "the client has disconnected")
        return Reply.of(await asking)
    finally:
        asking.cancel()
        leaving.cancel()


async def _disconnect(request: Request) -> None:
    await request.body()
    while (await request.receive())["type"] != "http.disconnect":
        pass


def response(reply: Reply, headers: Mapping[str, str] | None = None) -> Response:
    """Return a reply as the framework's response."""
    return Response(reply.body, reply.status, {**reply.headers, **(headers or {})}, media_type=reply.media)


def _refuse_undescribed(request: Request) -> None:
    """Refuse parameters of the address that the OpenAPI description of the route does not list."""
    operation = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    refuse_unknown(request.query_params, [one["name"] for one in operation.get("parameters", ())])


def router(context: AppContext) -> APIRouter:
    """The routes of the API."""
    api, workers = APIRouter(prefix="/api", dependencies=[Depends(_refuse_undescribed)]), context.workers

    @api.post("/ask", responses={200: {"model": Answers}, **ASKING})
    async def ask(question: AskRequest, request: Request) -> Response:
        """Exact answers, then predicted ones, and how the query was understood."""
        return response(await run_job(workers, {"task": "ask", **question.model_dump()}, request))

    @api.get("/ask", responses={200: {"model": Answers}, **ASKING})
    async def ask_by_get(question: Annotated[AskRequest, Query()], request: Request) -> Response:
        """The same by GET, so that answers have a link."""
        return await ask(question, request)

    @api.post("/explain", responses={200: {"model": Witness}, **ASKING})
    async def explain(answer: ExplainRequest, request: Request) -> Response:
        """Why an entity is an answer: an entity for each variable, and which triples are missing."""
        return response(await run_job(workers, {"task": "explain", **answer.model_dump()}, request))

    @api.get("/complete", responses={200: {"model": Completions}, 400: WRONG, 422: WRONG})
    async def complete(
        text: Annotated[str, Query(max_length=500, description="The start of a label or of an IRI.")],
        what: Literal["entity", "relation", "type", "any"] = "any",
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> Response:
        """Entities, relations and types whose label or IRI starts with a text, those with the most triples first."""
        items = await asyncio.to_thread(context.completion.complete, text, what, limit)
        return response(Reply(as_json(Completions(items))))

    @api.get("/examples", responses={200: {"model": ExampleList}, 400: WRONG, **BUSY, **SLOW})
    async def examples(request: Request) -> Response:
        """Example queries."""
        return response(await run_job(workers, {"task": "examples", "folders": context.folders}, request))

    @api.get("/entity", responses={200: {"model": EntityPage}, 400: WRONG, 404: WRONG, 422: WRONG, **BUSY, **SLOW})
    async def entity(
        request: Request,
        iri: Annotated[str, Query(min_length=1, max_length=10_000)],
        limit: Annotated[int, Query(ge=1, le=1000, description="Neighbours to list for each relation.")] = 20,
    ) -> Response:
        """What the graph knows about an entity: its neighbours by relation, and its literals."""
        return response(await run_job(workers, {"task": "entity", "iri": iri, "limit": limit}, request))

    @api.get("/info", responses={200: {"model": Info}, 400: WRONG})
    async def info() -> Response:
        """The graph's counts, the model card, prediction modes, limits, versions and prefixes."""
        return response(Reply(as_json(context.info)))

    @api.get("/health", responses={200: {"model": Health}, 400: WRONG, **BUSY})
    async def health() -> Response:
        """Whether queries can be answered: 503 as long as no worker is ready."""
        if not workers.ready:
            raise Problem(503, "no worker is ready", headers={"Retry-After": "1"})
        return response(Reply(as_json(Health("ready", workers.ready, workers.waiting))))

    @api.get(ALIVE.removeprefix(api.prefix), responses={200: {"model": Alive}, 400: WRONG})
    async def alive() -> Response:
        """Whether the server runs; this needs no token and no worker."""
        return response(Reply(as_json(Alive())))

    return api
