"""Missing statements of one entity or one relation: links that the graph lacks, surest first."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.cells import NamedEntity
from halfgraph.answering.engine import Engine
from halfgraph.answering.predicted_rows import rounded
from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.base import Scores

NO_MODELS = "missing statements need link models, and this run has none"
BLOCK = 64  # heads whose links are computed together
Ids = NDArray[np.int64]
Link = tuple[float, int, int, int]  # probability, head, relation, tail


@dataclass(frozen=True)
class MissingStatement:
    """A triple that the graph lacks, with the probability that it is right."""

    subject: NamedEntity
    predicate: NamedEntity
    object: NamedEntity
    confidence: float = field(metadata={"ge": 0, "le": 1})


@dataclass(frozen=True)
class MissingStatements:
    """The surest missing statements; of a relation, `searched` of `heads` possible subjects were looked at."""

    statements: list[MissingStatement]
    searched: int
    heads: int


def missing_of_entity(engine: Engine, entity: int, limit: int, least: float = 0.0) -> MissingStatements:
    """Return the missing statements of an entity, by the relations that entities of its type have."""
    _require_models(engine)
    links = engine.predictors.links
    rows = links.rows((entity, relation) for relation in _relations_of_type(engine.known, entity))
    found = (link for (head, relation), row in rows.items() for link in _best(row, head, relation, limit, least))
    return MissingStatements(_statements(engine, found, limit), 1, 1)


def missing_of_relation(
    engine: Engine, relation: int, limit: int, least: float = 0.0, seconds: float = 10.0
) -> MissingStatements:
    """Return the missing statements of a relation; heads that are likeliest to miss one first, for some seconds."""
    _require_models(engine)
    deadline, links = time.monotonic() + seconds, engine.predictors.links
    heads = _heads_of_relation(engine.known, relation)
    heads = heads[np.argsort(-links.head_scores(relation)[heads], kind="stable")]
    best: list[Link] = []
    searched = 0
    while searched < len(heads) and time.monotonic() < deadline:
        block = heads[searched : searched + BLOCK]
        for head, row in zip(block.tolist(), links.probabilities(block, relation), strict=True):
            best += _best(row, head, relation, limit, least)
        best = nlargest(limit, best)
        searched += len(block)
    return MissingStatements(_statements(engine, best, limit), searched, len(heads))


def _require_models(engine: Engine) -> None:
    if engine.models is None:
        raise SettingError("", NO_MODELS, advice="Fit them with: halfgraph calibrate RUN")


def _relations_of_type(known: KnowledgeGraph, entity: int) -> list[int]:
    """The relations, in both directions, of all entities of an entity's type."""
    type_id = int(known.types.of(entity))
    first, last = known.types.starts[type_id : type_id + 2]
    return [int(relation) for relation in np.unique(known.relations[known.starts[first] : known.starts[last]])]


def _heads_of_relation(known: KnowledgeGraph, relation: int) -> Ids:
    """All entities of the types that heads of a relation have."""
    heads = known.heads()[known.relations == relation]
    starts = known.types.starts
    ranges = [np.arange(starts[number], starts[number + 1]) for number in np.unique(known.types.of(heads))]
    return np.concatenate([np.empty(0, np.int64), *ranges])


def _best(row: Scores, head: int, relation: int, limit: int, least: float) -> list[Link]:
    """The likeliest missing links of a head and relation."""
    tails = np.flatnonzero((row > 0) & (row >= least))
    if len(tails) > limit:
        tails = tails[np.argpartition(-row[tails], limit - 1)[:limit]]
    return [(float(row[tail]), head, relation, tail) for tail in tails.tolist()]


def _statements(engine: Engine, links: Iterable[Link], limit: int) -> list[MissingStatement]:
    """The likeliest links as statements, the other way round where the relation is an inverse."""
    names, statements = engine.names, []
    for probability, head, relation, tail in nlargest(limit, links):
        subject, object_ = (tail, head) if relation & 1 else (head, tail)
        ends = names.entity(subject), names.relation(relation), names.entity(object_)
        statements.append(MissingStatement(*ends, rounded(probability)))
    return statements
