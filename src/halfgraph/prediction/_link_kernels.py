"""Compiled loops over triples: known links, votes of similar entities, rules.

`edges` are the arrays of `query._kernels.edges_of`. All loops release the GIL.
"""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np

from halfgraph.query._kernels import compiled, edge_range


@compiled
def pass_on(heads, tails, source, similarity):
    """Follow the triples of a relation: (best score of a head with a triple to the entity, its share of votes).

    Every head votes for its tails by its similarity; votes are divided by the similarity of all heads of the relation.
    """
    known = np.zeros(len(source), dtype=np.float32)
    votes = np.zeros(len(source), dtype=np.float32)
    total, before = 0.0, -1
    for edge in range(len(heads)):  # sorted by head
        head, tail = heads[edge], tails[edge]
        if head != before:
            before = head
            total += similarity[head]
        known[tail] = max(known[tail], source[head])
        votes[tail] += similarity[head]
    if total > 0.0:
        votes /= total
    return known, votes


@compiled
def same_tail_ranges(edges):
    """Return for each edge the range of edges that lead back from its tail over the same relation.

    Their tails are the entities that share the edge's relation and tail with its head, the head included.
    """
    relations, tails = edges[1], edges[2]
    firsts, lasts = np.empty(len(tails), dtype=np.int64), np.empty(len(tails), dtype=np.int64)
    for edge in range(len(tails)):
        firsts[edge], lasts[edge] = edge_range(edges, tails[edge], relations[edge] ^ 1)
    return firsts, lasts


@compiled
def similar_entities(edges, groups, source, least, weights, touched):
    """Similarity of every entity with a source distribution, in all 1: a walk of two steps over shared tails.

    The walk starts at an entity by its source score (not below `least`), takes one of its edges, and returns over the
    same relation to any entity. Scratch: weights (edges,) are 0 before and after; touched (edges,).
    """
    starts, tails = edges[0], edges[2]
    firsts, lasts = groups
    similarity = np.zeros(len(starts) - 1, dtype=np.float32)
    used, total = 0, 0.0
    for head in range(len(similarity)):
        if source[head] < least:
            continue
        degree = starts[head + 1] - starts[head]
        total += source[head] if degree else 0.0
        for edge in range(starts[head], starts[head + 1]):
            group = firsts[edge]
            if weights[group] == 0.0:
                touched[used] = edge
                used += 1
            weights[group] += source[head] / degree
    for row in range(used):
        first, last = firsts[touched[row]], lasts[touched[row]]
        share = weights[first] / (total * (last - first))
        weights[first] = 0.0
        for edge in range(first, last):
            similarity[tails[edge]] += share
    return similarity


@compiled
def paths_between(edges, heads, tails, relation, base, busy):
    """Find all paths of one or two relations from each head to its tail, except the relation itself.

    Return the row of the pair for each path, and the path as one number: first relation * base + second relation + 1,
    or + 0 if there is no second one. Pairs with more than `busy` edges at both ends are skipped.
    """
    starts, relations, ends = edges[0], edges[1], edges[2]
    last_to = np.full(len(starts) - 1, -1, dtype=np.int64)  # the head's last edge to each entity
    pairs, paths = [np.int64(0)], [np.int64(0)]
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
                paths.append(np.int64(relations[edge]) * base)
        for back in range(starts[tail], starts[tail + 1]):
            middle = ends[back]
            if middle in (head, tail):
                continue
            edge = last_to[middle]
            while edge >= 0:
                pairs.append(np.int64(pair))
                paths.append(np.int64(relations[edge]) * base + (relations[back] ^ 1) + 1)
                edge = before[edge - low]
        for edge in range(low, high):
            last_to[ends[edge]] = -1
    return np.array(pairs[1:]), np.array(paths[1:])


@compiled
def _follow(edges, sources, weights, first, second, visits, reached, seen):
    """Follow a path from the sources; list the entities in `seen`, their best weight in `reached`; return their number.

    Stops after `visits` steps.
    """
    ends = edges[2]
    count, steps = 0, 0
    for row in range(len(sources)):
        low, high = edge_range(edges, sources[row], first)
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
                reached[entity] = max(reached[entity], weights[row])
            steps += 1 + there - here
            if steps > visits:
                return count
        steps += 1
        if steps > visits:
            return count
    return count


@compiled
def count_hits(edges, heads, relation, firsts, seconds, visits):
    """Count for each path the entities it leads to from all heads: (those that the relation leads to as well, all)."""
    count = len(edges[0]) - 1
    reached, seen = np.zeros(count, dtype=np.float32), np.empty(count, dtype=np.int64)
    true = np.zeros(count, dtype=np.bool_)
    hits, totals = np.zeros(len(firsts)), np.zeros(len(firsts))
    source, weight = np.empty(1, dtype=np.int64), np.ones(1, dtype=np.float32)
    for head in heads:
        source[0] = head
        low, high = edge_range(edges, head, relation)
        for edge in range(low, high):
            true[edges[2][edge]] = True
        for path in range(len(firsts)):
            size = _follow(edges, source, weight, firsts[path], seconds[path], visits, reached, seen)
            for row in range(size):
                entity = seen[row]
                reached[entity] = 0.0
                if entity != head:
                    totals[path] += 1
                    hits[path] += true[entity]
        for edge in range(low, high):
            true[edges[2][edge]] = False
    return hits, totals


@compiled
def noisy_or(edges, sources, weights, firsts, seconds, confidence, visits, reached, seen):
    """Combine rules as independent: 1 - product of (1 - confidence * weight). `reached` is 0 before and after."""
    wrong = np.ones(len(edges[0]) - 1, dtype=np.float32)
    for rule in range(len(firsts)):
        size = _follow(edges, sources, weights, firsts[rule], seconds[rule], visits, reached, seen)
        for row in range(size):
            entity = seen[row]
            wrong[entity] *= 1 - confidence[rule] * reached[entity]
            reached[entity] = 0.0
    return 1 - wrong
