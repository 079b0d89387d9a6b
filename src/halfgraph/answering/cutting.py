"""LIMIT and OFFSET over known answers and then predicted ones."""

from dataclasses import dataclass
from itertools import pairwise

from halfgraph.graph.folder import Graph
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.tokens import Source


@dataclass(frozen=True)
class Cut:
    """How many predicted answers to skip, and then how many to take."""

    skip: int
    take: int

    @classmethod
    def of(cls, known: int, limit: int | None, top: int) -> "Cut":
        """The cut after `known` answers from OFFSET on, which is negative where OFFSET goes beyond them."""
        skip = max(0, -known)
        left = top if limit is None else max(0, limit - max(0, known))
        return cls(skip, min(top, left))


def uncut(text: str, graph: Graph) -> str:
    """The text of a query without its LIMIT and OFFSET."""
    source = Source(text, Prefixes.of(graph))
    after = [token for token in source.tokens if token.start > source.body[-1].start]
    for word, number in reversed(list(pairwise(after))):
        if word.says("LIMIT", "OFFSET") and number.type_id == "number":
            text = text[: word.start] + text[number.start + len(number.text) :]
    return text
