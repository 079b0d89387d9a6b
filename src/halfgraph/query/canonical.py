"""Canonical forms: when two queries are the same, and which structure they have.

A query's key comes from colours of its nodes, refined by the colours of their neighbours until they tell it from every
query that is not isomorphic.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.tree import Anchor, Column, Project, Query, attributes, children, nodes, shared_variables

Rows = NDArray[np.int32]


def canonical_key(query: Query) -> str:
    """Return a string that is equal for two queries exactly if they are isomorphic."""
    # An anchor is a constant: all anchors of an entity are one node, and are not coloured by their users.
    order = {identity(node): node for node in nodes(query)}
    number = {key: position for position, key in enumerate(order)}
    below = [sorted({number[identity(child)] for child in children(node)}) for node in order.values()]
    above: list[list[int]] = [[] for _ in order]
    for upper, lowers in enumerate(below):
        for lower in lowers:
            above[lower].append(upper)
    variables = [position for position, node in enumerate(order.values()) if not isinstance(node, Anchor)]
    labels = [_digest(*map(_text, attributes(node).values())) for node in order.values()]
    return _Refinement(below, above, variables).key(labels)


def identity(node: Query) -> str | int:
    """Return what tells a node from the others of its query: the entity of an anchor, else the object's id."""
    return _text(node.entity) if isinstance(node, Anchor) else id(node)


def _text(value: Column | str | None) -> str:
    """Return an attribute as text; a column differs from a number."""
    return f"column {np.asarray(value, np.int64).tobytes().hex()}" if isinstance(value, np.ndarray) else str(value)


@dataclass(frozen=True)
class _Refinement:
    """Colour refinement of a query's nodes, given for each node the nodes below and above it.

    Once the colours of all shared variables differ, they identify the query: from the target on, each colour includes
    those below it. Shared variables of equal colour are told apart by marking one of them; the least key over the
    choices of the first one is taken.
    """

    below: list[list[int]]
    above: list[list[int]]
    variables: list[int]

    def key(self, colours: list[str]) -> str:
        """Return the least key over the ways to tell equally coloured variables apart."""
        colours = self.refine(colours)
        tied = self.tied(colours)
        if not tied:
            return self.summarise(colours)
        # Choices with equal greedy keys are symmetric: one of them is enough.
        choices = {self.greedy_key(marked): marked for marked in (_mark(colours, node) for node in tied)}
        return min(map(self.key, choices.values()))

    def greedy_key(self, colours: list[str]) -> str:
        """Return the key when the first tied variable is marked each time."""
        colours = self.refine(colours)
        while tied := self.tied(colours):
            colours = self.refine(_mark(colours, tied[0]))
        return self.summarise(colours)

    def refine(self, colours: list[str]) -> list[str]:
        """Combine each colour with those below and above until the number of colours stays the same."""
        while True:
            old, colours = colours, list(colours)
            for node in self.variables:
                lower, upper = (sorted(old[other] for other in ends[node]) for ends in (self.below, self.above))
                colours[node] = _digest(old[node], *lower, "|", *upper)
            if len(set(colours)) == len(set(old)):
                return colours

    def tied(self, colours: list[str]) -> list[int]:
        """Return the shared variables of the least colour that several of them have."""
        shared = [node for node in self.variables if len(self.above[node]) > 1]
        counts = Counter(colours[node] for node in shared)
        least = min((colour for colour, count in counts.items() if count > 1), default=None)
        return [node for node in shared if colours[node] == least]

    def summarise(self, colours: list[str]) -> str:
        """Return one digest of all colours, the target's first."""
        return _digest(colours[-1], *sorted(colours[node] for node in self.variables))


def _mark(colours: list[str], node: int) -> list[str]:
    return [*colours[:node], _digest(colours[node], "this"), *colours[node + 1 :]]


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=12).hexdigest()


def structure_formula(query: Query) -> str:
    """Return the structure of a query as text, the same for every order of its parts: (ap&app)p.

    a is an anchor, p a projection, (x&~y) an intersection with a negation, (x|y) a union, # marks a shared variable.
    """
    shared = set(map(id, shared_variables(query)))
    formulas: dict[int, str] = {}
    for node in nodes(query):
        # A part given twice counts once.
        parts = sorted({identity(child): formulas[id(child)] for child in children(node)}.values())
        is_joined = "{}" not in node.symbol and children(node)
        formula = f"({node.symbol.join(parts)})" if is_joined else node.symbol.format(*parts)
        formulas[id(node)] = f"#{formula}" if id(node) in shared else formula
    return formulas[id(query)]


def row_keys(query: Query, anchors: Rows, relations: Rows) -> Rows:
    """Return a row of numbers for each query of a structure, equal exactly if the queries are equal.

    The ids of the query are columns of anchors (n, anchors) and relations (n, relations). A row has the ids in the
    order of the walk; parts of equal structure are sorted by their ids.
    """
    keys: dict[int, Rows] = {}
    for node in nodes(query):
        own = [anchors[:, node.entity, None]] if isinstance(node, Anchor) else []
        own = [relations[:, node.relation, None]] if isinstance(node, Project) else own
        parts: dict[str, list[Rows]] = {}
        for child in children(node):
            parts.setdefault(structure_formula(child), []).append(keys[id(child)])
        keys[id(node)] = np.hstack([*(_sorted_rows(np.stack(parts[formula], 1)) for formula in sorted(parts)), *own])
    return keys[id(query)]


def _sorted_rows(keys: Rows) -> Rows:
    """Sort the parts of each row (n, parts, width) and put them side by side (n, parts * width)."""
    count, parts, width = keys.shape
    ranks = np.empty(count * parts, dtype=np.int64)
    ranks[np.lexsort(keys.reshape(-1, width).T[::-1])] = np.arange(count * parts)
    order = np.argsort(ranks.reshape(count, parts), axis=1)
    return np.take_along_axis(keys, order[:, :, None], axis=1).reshape(count, parts * width)
