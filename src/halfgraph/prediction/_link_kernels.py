"""Compiled loops over triples: known links, nearest neighbours and their votes.

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
def known_ways(heads, tails, source):
    """Probability of any way over a known triple of a relation to each entity, by the scores of the heads."""
    ways = np.zeros(len(source), dtype=np.float32)
    for edge in range(len(heads)):
        score = source[heads[edge]]
        if score > 0.0:
            ways[tails[edge]] += score * (np.float32(1.0) - ways[tails[edge]])
    return ways


@compiled
def best_known_ways(heads, tails, source, best):
    """Raise each entity to the best score of a head with a known triple of a relation to it."""
    for edge in range(len(heads)):
        best[tails[edge]] = max(best[tails[edge]], source[heads[edge]])


@compiled
def add_ways(ways, row, score):
    """Add ways over the missing links of one more head, an entity with this score."""
    for tail in range(len(ways)):
        ways[tail] += score * row[tail] * (np.float32(1.0) - ways[tail])


@compiled
def sum_terms(cosines, scores, first, of_heads, shifts, of_tails, cosine_weights, log_odds):
    """Write the log-odds of some heads of one relation, without votes: rows of (heads, tails) from `first` on.

    cosines (tails, 2 * all heads): from the heads, weighted, then from the tails, not yet; scores (tails, all heads).
    """
    count = scores.shape[1]
    for low in range(0, len(of_tails), 64):  # a block of columns stays in the cache
        for row in range(len(of_heads)):
            head = first + row
            for tail in range(low, min(low + 64, len(of_tails))):
                back = (cosines[tail, count + head] + shifts[row]) * cosine_weights[tail]
                log_odds[head, tail] = cosines[tail, head] + back + scores[tail, head] + of_tails[tail] + of_heads[row]


@compiled
def link_rarity(edges, common):
    """Weight of every link as evidence of similarity, and the length of every entity as a vector of such weights.

    A link weighs log(entities / entities that have it), squared; one that more than `common` entities have weighs 0.
    """
    starts, relations, tails = edges[0], edges[1], edges[2]
    count = len(starts) - 1
    weights, lengths = np.zeros(len(tails), dtype=np.float32), np.zeros(count, dtype=np.float32)
    for head in range(count):
        for edge in range(starts[head], starts[head + 1]):
            low, high = edge_range(edges, tails[edge], relations[edge] ^ 1)
            rarity = np.log(count / (high - low)) ** 2
            lengths[head] += rarity
            if 1 < high - low <= common:
                weights[edge] = rarity
    return weights, np.sqrt(lengths)


@compiled
def nearest_entities(edges, weights, lengths, count):
    """Return the `count` entities nearest to each entity by the cosine of their links, -1 for none, and the cosines."""
    starts, relations, tails = edges[0], edges[1], edges[2]
    ids = np.full((len(lengths), count), -1, dtype=np.int32)
    nearness = np.zeros((len(lengths), count), dtype=np.float32)
    shared, touched = np.zeros(len(lengths), dtype=np.float32), np.empty(len(lengths), dtype=np.int32)
    for head in range(len(lengths)):
        used = 0
        for edge in range(starts[head], starts[head + 1]):
            if weights[edge] == 0.0:
                continue
            low, high = edge_range(edges, tails[edge], relations[edge] ^ 1)
            for back in range(low, high):
                other = tails[back]
                if other == head:
                    continue
                if shared[other] == 0.0:
                    touched[used] = other
                    used += 1
                shared[other] += weights[edge]
        cosines = np.empty(used, dtype=np.float32)
        for row in range(used):
            cosines[row] = shared[touched[row]] / (lengths[head] * lengths[touched[row]])
            shared[touched[row]] = 0.0
        order = np.argsort(-cosines, kind="mergesort")[:count]
        for row in range(len(order)):
            ids[head, row], nearness[head, row] = touched[order[row]], cosines[order[row]]
    return ids, nearness


@compiled
def head_votes(edges, ids, nearness, head, relation):
    """Sum the nearness of the head's neighbours with a link to each entity, and of all those with any link."""
    votes, total = np.zeros(len(ids), dtype=np.float32), np.float32(0.0)
    for column in range(ids.shape[1]):
        neighbour = ids[head, column]
        if neighbour < 0:
            break
        low, high = edge_range(edges, neighbour, relation)
        for edge in range(low, high):
            votes[edges[2][edge]] += nearness[head, column]
        if high > low:
            total += nearness[head, column]
    return votes, total


@compiled
def tail_votes(starts, ids, nearness, tails):
    """Sum for each entity the nearness of its neighbours among the tails; arrays of `Neighbours.reverse`."""
    votes = np.zeros(len(starts) - 1, dtype=np.float32)
    for tail in tails:
        for row in range(starts[tail], starts[tail + 1]):
            votes[ids[row]] += nearness[row]
    return votes


@compiled
def add_votes(edges, ids, nearness, reverse, head, relation, weight, smoothing, tail_weights, log_odds):
    """Add what votes weigh, as `head_votes` and `tail_votes` count them, to the log-odds of a head's links."""
    tails = edges[2]
    total = np.float32(smoothing)
    for column in range(ids.shape[1]):
        if ids[head, column] < 0:
            break
        low, high = edge_range(edges, ids[head, column], relation)
        if high > low:
            total += nearness[head, column]
    for column in range(ids.shape[1]):
        if ids[head, column] < 0:
            break
        low, high = edge_range(edges, ids[head, column], relation)
        for edge in range(low, high):
            log_odds[tails[edge]] += weight * nearness[head, column] / total
    low, high = edge_range(edges, head, relation)
    for edge in range(low, high):
        for row in range(reverse[0][tails[edge]], reverse[0][tails[edge] + 1]):
            voter = reverse[1][row]
            log_odds[voter] += tail_weights[voter] * reverse[2][row]


@compiled
def exclude_known(edges, head, relation, has_loops, row):
    """Set the known tails of a head to 0, and the head itself unless the relation has loops."""
    low, high = edge_range(edges, head, relation)
    for edge in range(low, high):
        row[edges[2][edge]] = 0.0
    if not has_loops:
        row[head] = 0.0


@compiled
def neighbour_sums(ids, nearness, chosen):
    """Sum the nearness of each entity's neighbours among the chosen entities (a mask)."""
    among = np.zeros(len(ids), dtype=np.float32)
    for entity in range(len(ids)):
        for column in range(ids.shape[1]):
            neighbour = ids[entity, column]
            if neighbour < 0:
                break
            if chosen[neighbour]:
                among[entity] += nearness[entity, column]
    return among
