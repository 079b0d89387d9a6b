"""The JSON API: what the page uses, and any program may; described at /api/openapi.json."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from halfgraph.serving.asking import answered, response
from halfgraph.serving.completion import Completion
from halfgraph.serving.problems import Problem, Reply, as_json
from halfgraph.serving.shapes import Asked, Complete, Entity, Error, Examples, Explained, Health, Info
from halfgraph.serving.workers import Workers

Mode = Literal["vector", "scored", "both"]
QUERY = Field(min_length=1, max_length=100_000, description="A SPARQL query.")
Responses = dict[int | str, dict[str, Any]]
WRONG: dict[str, Any] = {"model": Error, "description": "What is wrong with the request, where, and what to do."}
BUSY: Responses = {503: {"model": Error, "description": "Too much to do; try again later."}}
SLOW: Responses = {504: {"model": Error, "description": "The query was stopped at its time limit."}}
ASKING: Responses = {400: WRONG, 403: WRONG, 404: WRONG, 413: WRONG, 422: WRONG, **BUSY, **SLOW}


class Question(BaseModel):
    """A question."""

    model_config = ConfigDict(extra="forbid")

    query: str = QUERY
    top: int = Field(10, ge=1, le=1000, description="How many predicted answers to give at most.")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Predicted answers below it are left out.")
    mode: Mode | None = Field(None, description="How to predict; the default is what the run does best.")
    any_type: bool = Field(False, description="Predict entities of every type.")


class Answer(BaseModel):
    """A question and one of its answers."""

    model_config = ConfigDict(extra="forbid")

    query: str = QUERY
    entity: str = Field(min_length=1, max_length=10_000, description="The IRI of the answer.")
    mode: Mode | None = None


@dataclass(frozen=True)
class Serving:
    """What the API serves: the workers, names to complete, and what is said about graph and model."""

    workers: Workers
    completion: Completion
    about: dict[str, Any]
    folders: tuple[str, ...] = ()  # where a file of examples may be


def router(serving: Serving) -> APIRouter:
    """The addresses of the API."""
    api, workers = APIRouter(prefix="/api"), serving.workers

    @api.post("/ask", responses={200: {"model": Asked}, **ASKING})
    async def ask(question: Question, request: Request) -> Response:
        """All known answers, then predicted ones, and how the query was understood."""
        return response(await answered(workers, {"task": "ask", **question.model_dump()}, request))

    @api.get("/ask", responses={200: {"model": Asked}, **ASKING})
    async def twin(question: Annotated[Question, Query()], request: Request) -> Response:
        """The same by GET: the page's link to its JSON."""
        return await ask(question, request)

    @api.post("/explain", responses={200: {"model": Explained}, **ASKING})
    async def explain(answer: Answer, request: Request) -> Response:
        """Why an entity is an answer: an entity for each variable, and which triples are missing."""
        return response(await answered(workers, {"task": "explain", **answer.model_dump()}, request))

    @api.get("/complete", responses={200: {"model": Complete}, 422: WRONG})
    async def complete(
        text: Annotated[str, Query(max_length=500, description="The beginning of a label or of an IRI.")],
        what: Literal["entity", "relation", "any"] = "any",
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> Response:
        """Entities and relations whose label or IRI begins so, the best known first."""
        items = await asyncio.to_thread(serving.completion.complete, text, what, limit)
        return response(Reply(as_json({"items": items})))

    @api.get("/examples", responses={200: {"model": Examples}, **BUSY, **SLOW})
    async def examples(request: Request) -> Response:
        """Questions to begin with."""
        return response(await answered(workers, {"task": "examples", "folders": serving.folders}, request))

    @api.get("/entity", responses={200: {"model": Entity}, 404: WRONG, 422: WRONG, **BUSY, **SLOW})
    async def entity(
        request: Request,
        iri: Annotated[str, Query(min_length=1, max_length=10_000)],
        limit: Annotated[int, Query(ge=1, le=1000, description="Neighbours to name for each relation.")] = 20,
    ) -> Response:
        """What is known of an entity: its neighbours by relation, and its literals."""
        return response(await answered(workers, {"task": "entity", "iri": iri, "limit": limit}, request))

    @api.get("/info", responses={200: {"model": Info}})
    async def info() -> Response:
        """The graph's counts, the model's card, limits, versions and prefixes."""
        return response(Reply(as_json(serving.about)))

    @api.get("/health", responses={200: {"model": Health}, **BUSY})
    async def health() -> Response:
        """Whether there are workers to answer."""
        ready = workers.ready
        if not ready:
            raise Problem(503, "no worker is ready", headers={"Retry-After": "1"})
        return response(Reply(as_json({"status": "ok", "workers": ready, "waiting": workers.waiting})))

    return api
