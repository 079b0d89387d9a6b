"""The missing triples of a whole graph that the model is surest of, with names and reasons."""

from collections.abc import Callable
from dataclasses import dataclass

from halfgraph.answering.catalogue import Catalogue
from halfgraph.answering.engine import Engine
from halfgraph.answering.link_reasons import proposals_of
from halfgraph.answering.proposals import ProposedTriple
from halfgraph.errors import SettingError
from halfgraph.prediction.missing_triples import likely_triples
from halfgraph.prediction.modes import LINKS


@dataclass(frozen=True)
class GraphCompletion:
    """Missing triples, best first; `left_out` pairs of subject and relation were not looked at."""

    triples: list[ProposedTriple]
    pairs: int
    left_out: int


def complete_graph(
    engine: Engine,
    *,
    type_name: str | None = None,
    relation: str | None = None,
    min_confidence: float = 0.8,
    limit: int = 1_000,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> GraphCompletion:
    """Return the missing triples of a graph of at least a confidence, best first.

    `type_name` is a type of their subjects, and `relation` their relation.
    """
    require_links(engine, "complete")
    if not 0 <= min_confidence <= 1:
        raise SettingError("--min-confidence", f"must be between 0 and 1, found {min_confidence:g}")
    catalogue = Catalogue(engine.graph, engine.view)
    heads = None if type_name is None else catalogue.subjects_of_type(type_name)
    relations = None if relation is None else [catalogue.relation_named(relation)]
    links = engine.predictors.links
    scan = likely_triples(links, least=min_confidence, limit=limit, relations=relations, heads=heads, progress=progress)
    return GraphCompletion(proposals_of(links, engine.names, scan.triples), scan.pairs, scan.left_out)


def require_links(engine: Engine, command: str) -> None:
    """Raise SettingError unless the run has link models."""
    if LINKS not in engine.predictors.available:
        advice = "Fit them with: halfgraph calibrate RUN"
        raise SettingError(command, "needs link models for its confidences, and this run has none", advice=advice)
