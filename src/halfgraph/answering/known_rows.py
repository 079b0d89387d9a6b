"""Known rows: what the store returns for a query, and the entities of all its exact answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.schema import KnownAnswer
from halfgraph.answering.store_rows import GraphStore
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import Select, Variable, every_value
from halfgraph.sparql.writer import write


@dataclass(frozen=True)
class KnownRows:
    """The store's rows for a query, and the entities of all its answers, those that LIMIT leaves out too."""

    variables: Sequence[str]
    answers: Sequence[KnownAnswer]
    entities: NDArray[np.int32]


@dataclass(frozen=True)
class KnownAnswers:
    """Asks the store for the exact answers of queries with one target."""

    store: GraphStore
    names: EntityNames

    def of(self, select: Select, reading: Reading) -> KnownRows:
        """Return the store's rows, and the entities of all exact answers."""
        if known := self.iris(select, write(select)):
            return known
        rows = self.store.rows(select)
        answers = self.names.known(rows)
        is_cut = reading.offset or len(answers) == reading.limit
        cells = self.entities(select, reading.target) if is_cut else self.names.values(answers, reading.target)
        return KnownRows(rows.variables, answers, cells)

    def iris(self, select: Select, text: str) -> KnownRows | None:
        """Return the store's rows, if one variable is selected without LIMIT and OFFSET, and all are IRIs."""
        chosen, modifiers = select.projection, select.modifiers
        if len(chosen) != 1 or not isinstance(chosen[0], Variable) or modifiers.limit is not None or modifiers.offset:
            return None
        iris, variable = self.store.iris(text), chosen[0].name
        if iris is None:
            return None
        rows = [self.names.known_iri(variable, iri) for iri in iris]
        entities = sorted({number for _, number in rows if number is not None})
        return KnownRows([variable], [answer for answer, _ in rows], np.array(entities, np.int32))

    def entities(self, select: Select, target: str) -> NDArray[np.int32]:
        """Return the entities of all exact answers."""
        return self.names.values(self.names.known(self.store.rows(every_value(select, target))), target)
