"""Compiled loops of the evaluation: ranks of answers and missing triples.

Edges and steps are those of `query._kernels`. All loops release the GIL.
"""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np

from halfgraph.query._kernels import compiled, edge_range, is_of_type
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT, UNION

FAR = 127  # more missing triples than any query has links


@compiled
def count_up_to(values, count, score):
    """Count the values that are not above a score, among the first `count` ascending values."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def rank_rows(scores, easy, easy_offsets, hard, hard_offsets, above, equal, recovered):
    """Count the non-answers that score above each hard answer, and those that score the same.

    scores is (rows, entities); the easy answers of a row are easy[easy_offsets[row]:easy_offsets[row + 1]], and so for
    hard. Writes above and equal for each hard answer, and recovered, the mean reciprocal rank of a row's easy answers.
    One pass over a row serves all its answers: each entity's score is looked up among the answers' scores.
    """
    entity_count = scores.shape[1]
    is_answer = np.zeros(entity_count, dtype=np.bool_)
    for row in range(len(scores)):
        own = scores[row]
        easy_first, easy_count = easy_offsets[row], easy_offsets[row + 1] - easy_offsets[row]
        hard_first, hard_count = hard_offsets[row], hard_offsets[row + 1] - hard_offsets[row]
        if easy_count + hard_count == 0:
            continue
        levels = np.empty(easy_count + hard_count, dtype=scores.dtype)
        for place in range(easy_count):
            is_answer[easy[easy_first + place]] = True
            levels[place] = own[easy[easy_first + place]]
        for place in range(hard_count):
            is_answer[hard[hard_first + place]] = True
            levels[easy_count + place] = own[hard[hard_first + place]]
        levels.sort()
        count = 1
        for place in range(1, len(levels)):
            if levels[place] != levels[count - 1]:
                levels[count] = levels[place]
                count += 1
        same = np.zeros(count, dtype=np.int64)
        beyond = np.zeros(count + 1, dtype=np.int64)
        lowest = levels[0]
        for entity in range(entity_count):
            score = own[entity]
            if score >= lowest and not is_answer[entity]:
                place = count_up_to(levels, count, score)
                beyond[place] += 1
                if levels[place - 1] == score:
                    same[place - 1] += 1
        for place in range(count - 1, -1, -1):
            beyond[place] += beyond[place + 1]
        for place in range(hard_first, hard_first + hard_count):
            level = count_up_to(levels, count, own[hard[place]]) - 1
            above[place - hard_offsets[0]] = beyond[level + 1] - same[level]
            equal[place - hard_offsets[0]] = same[level]
            is_answer[hard[place]] = False
        total = 0.0
        for place in range(easy_first, easy_first + easy_count):
            level = count_up_to(levels, count, own[easy[place]]) - 1
            total += 1.0 / (1.0 + beyond[level + 1] - same[level] / 2.0)
            is_answer[easy[place]] = False
        recovered[row] = total / max(easy_count, 1)


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
