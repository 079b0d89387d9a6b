"""The engine of a graph without a trained run: exact answers only."""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.explanation_schema import Witness
from halfgraph.answering.row_answers import RowAnswers
from halfgraph.answering.row_engine import RowEngine
from halfgraph.answering.schema import Answers
from halfgraph.answering.store_rows import GraphStore
from halfgraph.errors import SettingError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.sparql.read import request_of


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

    def ask(self, text: str, top: int = 10, **_options: Any) -> Answers:
        """Return the exact answers to a SPARQL query, and a note that nothing is predicted; options have no effect."""
        start = time.perf_counter()
        answers = RowEngine(RowAnswers(None, self.store, self.names), "").answer(request_of(text, self.graph), top)
        return replace(answers, seconds=round(time.perf_counter() - start, 6))

    def explain(self, _text: str, _entity: str, **_options: Any) -> Witness:
        """Raise SettingError: without a run there is nothing to explain."""
        raise SettingError("explain", "needs a trained run", advice="Train one with: halfgraph train GRAPH --out RUN")
