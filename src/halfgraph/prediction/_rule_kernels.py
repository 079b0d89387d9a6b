"""Compiled loops of rules: the ways between two entities, and where a way leads."""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np

from halfgraph.query._kernels import compiled, edge_range


@compiled
def both_ways(edges, heads, tails, relation, base, busy):
    """All ways of one or two relations between each head and its tail, but for the relation itself.

    The number of the pair for each way, and the way as one number: the first relation times the base, which is above
    the number of relations, plus one more than the second, or plus 0 where there is none.
    """
    starts, relations, ends = edges[0], edges[1], edges[2]
    last_to = np.full(len(starts) - 1, -1, dtype=np.int64)  # the last edge of the head that leads to an entity
    pairs, ways = [np.int64(0)], [np.int64(0)]
    for pair in range(len(heads)):
        head, tail = heads[pair], tails[pair]
        low, high = starts[head], starts[head + 1]
        if high - low + starts[tail + 1] - starts[tail] > busy:
            continue
        before = np.empty(high - low, dtype=np.int64)
        for edge in range(low, high):
            middle = ends[edge]
            before[edge - low] = last_to[middle]
            last_to[middle] = edge
            if middle == tail and relations[edge] != relation:
                pairs.append(np.int64(pair))
                ways.append(np.int64(relations[edge]) * base)
        for back in range(starts[tail], starts[tail + 1]):
            middle = ends[back]
            if middle in (head, tail):
                continue
            edge = last_to[middle]
            while edge >= 0:
                pairs.append(np.int64(pair))
                ways.append(np.int64(relations[edge]) * base + (relations[back] ^ 1) + 1)
                edge = before[edge - low]
        for edge in range(low, high):
            last_to[ends[edge]] = -1
    return np.array(pairs[1:]), np.array(ways[1:])


@compiled
def _follow(edges, sources, weights, first, second, visits, reached, seen):
    """How many entities a way leads to: they are put into `seen`, their best source's weight into `reached`."""
    ends = edges[2]
    count, steps = 0, 0
    for place in range(len(sources)):
        low, high = edge_range(edges, sources[place], first)
        for edge in range(low, high):
            middle = ends[edge]
            if second < 0:
                here, there = edge, edge + 1
            else:
                here, there = edge_range(edges, middle, second)
            for last in range(here, there):
                entity = ends[last]
                if reached[entity] == 0.0:
                    seen[count] = entity
                    count += 1
                reached[entity] = max(reached[entity], weights[place])
            steps += 1 + there - here
            if steps > visits:
                return count
        steps += 1
        if steps > visits:
            return count
    return count


@compiled
def how_often(edges, heads, relation, firsts, seconds, visits):
    """For each way, to how many entities it leads from all heads, and to how many of these the relation does."""
    count = len(edges[0]) - 1
    reached, seen = np.zeros(count, dtype=np.float32), np.empty(count, dtype=np.int64)
    true = np.zeros(count, dtype=np.bool_)
    hits, everything = np.zeros(len(firsts)), np.zeros(len(firsts))
    source, weight = np.empty(1, dtype=np.int64), np.ones(1, dtype=np.float32)
    for head in heads:
        source[0] = head
        low, high = edge_range(edges, head, relation)
        for edge in range(low, high):
            true[edges[2][edge]] = True
        for way in range(len(firsts)):
            found = _follow(edges, source, weight, firsts[way], seconds[way], visits, reached, seen)
            for place in range(found):
                entity = seen[place]
                reached[entity] = 0.0
                if entity != head:
                    everything[way] += 1
                    hits[way] += true[entity]
        for edge in range(low, high):
            true[edges[2][edge]] = False
    return hits, everything


@compiled
def noisy_or(edges, sources, weights, firsts, seconds, right, visits, reached, seen):
    """One minus the chance that every way that leads to an entity is wrong; `reached` is all 0 and stays so."""
    wrong = np.ones(len(edges[0]) - 1, dtype=np.float32)
    for way in range(len(firsts)):
        found = _follow(edges, sources, weights, firsts[way], seconds[way], visits, reached, seen)
        for place in range(found):
            entity = seen[place]
            wrong[entity] *= 1 - right[way] * reached[entity]
            reached[entity] = 0.0
    return 1 - wrong
