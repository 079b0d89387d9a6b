"""The engine of a graph without a trained run: exact answers only."""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.explanation_schema import Witness
from halfgraph.answering.schema import Answers
from halfgraph.answering.store_rows import GraphStore
from halfgraph.errors import SettingError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.sparql.read import request_of
from halfgraph.sparql.syntax_tree import Select
from halfgraph.sparql.unsupported import refuse_unsupported

NO_RUN = "No predictions: a graph is served without a trained run."


@dataclass(frozen=True)
class ExactEngine:
    """Answers queries with the store of a graph; it has what `Engine` has, as far as that needs no model."""

    graph: Graph
    view: str = "whole"
    time_limit: float | None = None  # seconds for a query of the store

    @cached_property
    def known(self) -> KnowledgeGraph:
        """The triples of the view."""
        return self.graph.view(self.view)

    @cached_property
    def store(self) -> GraphStore:
        return GraphStore(self.graph, self.view, self.time_limit)

    @cached_property
    def names(self) -> EntityNames:
        return EntityNames(self.graph)

    def ask(self, text: str, _top: int = 10, **_options: Any) -> Answers:
        """Return the exact answers to a SPARQL query, and a note that nothing is predicted; options have no effect."""
        start = time.perf_counter()
        request = request_of(text, self.graph)
        if not isinstance(request.tree, Select):
            refuse_unsupported(request.tree, request.source)
        assert isinstance(request.tree, Select), "other forms are refused"
        rows = self.store.rows(request.tree)
        seconds = round(time.perf_counter() - start, 6)
        return Answers(rows.variables, self.names.known(rows), [], notes=[NO_RUN], mode="", seconds=seconds)

    def explain(self, _text: str, _entity: str, **_options: Any) -> Witness:
        """Raise SettingError: without a run there is nothing to explain."""
        raise SettingError("explain", "needs a trained run", advice="Train one with: halfgraph train GRAPH --out RUN")
