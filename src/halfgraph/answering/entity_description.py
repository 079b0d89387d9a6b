"""An entity with its types and statements, and with a run also the best predicted statements."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from halfgraph.answering.catalogue import Catalogue, CataloguedName
from halfgraph.answering.cells import OPTIONAL, Cell
from halfgraph.answering.engine import Engine
from halfgraph.answering.link_reasons import proposals_of
from halfgraph.answering.proposals import ProposedTriple
from halfgraph.graph.statements import TYPE
from halfgraph.graph.types import UNTYPED
from halfgraph.graph.vocabulary import local_name
from halfgraph.prediction.missing_triples import likely_triples
from halfgraph.prediction.modes import LINKS
from halfgraph.sparql.syntax_tree import Iri, Triple, Variable, select

LEAST = 0.01  # confidence of a predicted statement that is listed


@dataclass(frozen=True)
class StatementGroup(CataloguedName):
    """The statements of one relation or property: the first values, and how many there are."""

    count: int
    values: Sequence[Cell]


@dataclass(frozen=True)
class EntityDescription(CataloguedName):
    """What a graph says about an entity, and what a run with link models predicts about it."""

    types: Sequence[CataloguedName]
    statements: Sequence[StatementGroup]
    incoming: Sequence[StatementGroup]
    predicted: Sequence[ProposedTriple] | None = field(default=None, metadata=OPTIONAL)


def describe_entity(catalogue: Catalogue, text: str, top: int, engine: Engine | None = None) -> EntityDescription:
    """Describe the entity that a text names, with at most `top` values of each relation and predictions."""
    entity = catalogue.names.resolve(text)
    iri, label, _ = catalogue.names.described(entity)
    rows = [] if iri.startswith("_:") else _store_rows(catalogue, iri)
    types = [value for predicate, value in rows if predicate == TYPE and value.type == "uri"]
    literals = [(predicate, value) for predicate, value in rows if value.type == "literal"]
    return EntityDescription(
        catalogue.typed(iri),
        label,
        iri,
        [catalogue.class_named(cell.value) for cell in types] or _guessed_type(catalogue, entity),
        [*_edges(catalogue, entity, 0, top), *_groups(catalogue, literals, local_name, top)],
        _edges(catalogue, entity, 1, top),
        None if engine is None else _predicted(engine, entity, top),
    )


def _store_rows(catalogue: Catalogue, iri: str) -> list[tuple[str, Cell]]:
    """Return the property and value of every statement about an IRI."""
    rows = catalogue.store.rows(select([Triple(Iri(iri), Variable("p"), Variable("o"))], ["p", "o"], distinct=True))
    return [(row.row["p"].value, row.row["o"]) for row in catalogue.names.known(rows)]


def _guessed_type(catalogue: Catalogue, entity: int) -> list[CataloguedName]:
    """Return the type that the import has given an entity without a type statement."""
    name = catalogue.graph.types.names[int(catalogue.graph.types.of(entity))]
    if name == UNTYPED:
        return []
    guess = catalogue.class_named(catalogue.graph.namer.iri(name))
    return [CataloguedName(guess.name, f"{guess.label} (guessed)", guess.iri)]


def _edges(catalogue: Catalogue, entity: int, inverse: int, top: int) -> list[StatementGroup]:
    """Return the triples of an entity by relation: those that start from it, or those that lead to it."""
    relations, tails = catalogue.graph.view(catalogue.view).neighbours(entity)
    names, pairs = catalogue.names, list[tuple[str, Cell]]()
    for relation, tail in zip(relations.tolist(), tails.tolist(), strict=True):
        if relation & 1 == inverse:
            iri, label = names.described(tail)[:2]
            cell = Cell("bnode" if iri.startswith("_:") else "uri", iri, label)
            pairs.append((names.relation(relation).entity, cell))
    labels = {names.relation(int(own)).entity: names.relation(int(own)).label for own in np.unique(relations)}
    return _groups(catalogue, pairs, labels.__getitem__, top)


def _groups(
    catalogue: Catalogue, pairs: Iterable[tuple[str, Cell]], label_of: Callable[[str], str], top: int
) -> list[StatementGroup]:
    by_property: dict[str, list[Cell]] = {}
    for iri, value in pairs:
        by_property.setdefault(iri, []).append(value)
    return [
        StatementGroup(catalogue.typed(iri), label_of(iri), iri, len(values), values[:top])
        for iri, values in by_property.items()
    ]


def _predicted(engine: Engine, entity: int, top: int) -> list[ProposedTriple] | None:
    """Return the most probable missing triples of an entity in both directions, best first."""
    if LINKS not in engine.predictors.available:
        return None
    links, relations = engine.predictors.links, range(engine.known.relation_count)
    scan = likely_triples(links, least=LEAST, limit=top, relations=relations, heads=np.array([entity]))
    return proposals_of(links, engine.names, scan.triples)
