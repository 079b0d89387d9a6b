"""Compiled loop that counts missing triples; edges and steps are those of `query._kernels`. It releases the GIL."""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np

from halfgraph.query._kernels import compiled, edge_range, is_of_type
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT, UNION

FAR = 127  # more missing triples than any query has links


@compiled
def fewest_missing(whole, known, steps, anchors, relations, answers, offsets, fewest):
    """Write for each answer the fewest missing triples on a path to it: in the whole graph, not in the known one.

    FAR if there is no path. A link of the query counts once for each use, as in the sampled path of a question.
    """
    operations, places, types, child_starts, children = steps
    step_count, entity_count = len(operations), len(whole[0]) - 1
    costs = np.full((step_count, entity_count), FAR, dtype=np.int8)
    reached = np.empty((step_count, entity_count), dtype=np.int32)
    sizes = np.zeros(step_count, dtype=np.int64)
    for row in range(len(anchors)):
        for step in range(step_count):
            out, cost, size = reached[step], costs[step], 0
            first, last = child_starts[step], child_starts[step + 1]
            if operations[step] == ANCHOR:
                out[0], size = anchors[row, places[step]], 1
                cost[out[0]] = 0
            elif operations[step] == PROJECT:
                source, relation = children[first], relations[row, places[step]]
                for place in range(sizes[source]):
                    entity = reached[source][place]
                    begin, end = edge_range(whole, entity, relation)
                    there, there_end = edge_range(known, entity, relation)
                    for edge in range(begin, end):
                        tail = whole[2][edge]
                        while there < there_end and known[2][there] < tail:
                            there += 1
                        is_known = there < there_end and known[2][there] == tail
                        new = costs[source][entity] + (0 if is_known else 1)
                        if new < cost[tail] and is_of_type(whole, tail, types[step]):
                            if cost[tail] == FAR:
                                out[size] = tail
                                size += 1
                            cost[tail] = new
            else:
                # What all parts reach is among what the first one does.
                for part in range(first, last if operations[step] == UNION else min(first + 1, last)):
                    other = children[part]
                    for place in range(sizes[other]):
                        entity = reached[other][place]
                        if cost[entity] != FAR or not is_of_type(whole, entity, types[step]):
                            continue
                        joined = costs[other][entity] if operations[step] == UNION else 0
                        for each in range(first, last):
                            own = costs[children[each]][entity]
                            if operations[children[each]] == NEGATE:  # a negated path needs no triple
                                own = 0 if own == FAR else FAR
                            joined = min(joined, own) if operations[step] == UNION else min(joined + own, FAR)
                        if joined < FAR:
                            cost[entity] = joined
                            out[size] = entity
                            size += 1
            sizes[step] = size
        for place in range(offsets[row], offsets[row + 1]):
            fewest[place - offsets[0]] = costs[step_count - 1][answers[place]]
        for step in range(step_count):
            for place in range(sizes[step]):
                costs[step][reached[step][place]] = FAR
