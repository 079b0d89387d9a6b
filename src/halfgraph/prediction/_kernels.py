"""Compiled loops of scored answers: what known edges pass on, and what similar entities vote for."""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np

from halfgraph.query._kernels import compiled, edge_range


@compiled
def pass_on(heads, tails, source, likeness):
    """What the edges of a relation give each entity: the best score of a head that leads to it, and a share of votes.

    The votes are the likeness of the heads that lead to an entity, in all 1 over the relation's heads.
    """
    passed = np.zeros(len(source), dtype=np.float32)
    votes = np.zeros(len(source), dtype=np.float32)
    total, before = 0.0, -1
    for edge in range(len(heads)):  # sorted by head
        head, tail = heads[edge], tails[edge]
        if head != before:
            before = head
            total += likeness[head]
        passed[tail] = max(passed[tail], source[head])
        votes[tail] += likeness[head]
    if total > 0.0:
        votes /= total
    return passed, votes


@compiled
def tails_each(edges, heads, relation):
    """How many edges of a relation leave each of some heads."""
    counts = np.empty(len(heads), dtype=np.int64)
    for place in range(len(heads)):
        first, last = edge_range(edges, heads[place], relation)
        counts[place] = last - first
    return counts
