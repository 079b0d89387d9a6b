"""Compiled sampling of questions: backwards from a target, edge by edge, with negatives and hard negatives."""

import numpy as np

from halfgraph.query._kernels import before_negations, compiled, has_edge, is_answer, new_frames, new_workspace
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT, UNION
from halfgraph.workload._negative_kernels import below, draw_hard_negative, draw_negative, random_walk, type_of

# Why a sampled question is rejected; the first is "kept". Reports show these texts.
REASONS = (
    "kept",
    "an entity has no edge to go on",
    "an edge would be used twice",
    "no held-out triple in it",
    "answerable on the training graph",
    "no negative of the answer's type",
    "no hard negative",
    "nothing for a negation to rule out",
    "a negation rules the answer out",
)
KEPT, NO_EDGE, EDGE_TWICE, NOT_HELD_OUT, ANSWERABLE, NO_NEGATIVE, NO_HARD_NEGATIVE, NOTHING_NEGATED, ANSWER_NEGATED = (
    range(len(REASONS))
)
# How the target is drawn.
BY_ANSWER, BY_RELATION, BY_TRIPLE = 0, 1, 2
PATIENCE = 2_000_000  # effort without a kept question after which a structure is given up; a draw counts 1
VISITS_PER_DRAW = 16  # entities visited for a negative that take about as long as a draw


@compiled
def draw_edge(edges, by_relation, how, state):
    """Draw a target and an edge at it, uniform over entities, relations or triples; the edge is -1 if there is none."""
    starts = edges[0]
    order, relation_starts = by_relation
    if len(edges[2]) == 0:
        return np.int64(0), np.int64(-1)
    if how == BY_ANSWER:
        target = below(state, len(starts) - 1)
        if starts[target] == starts[target + 1]:
            return target, np.int64(-1)
        return target, starts[target] + below(state, starts[target + 1] - starts[target])
    if how == BY_TRIPLE:
        edge = below(state, len(edges[2]))
    else:
        relation = below(state, len(relation_starts) - 1)
        first, last = relation_starts[relation], relation_starts[relation + 1]
        if first == last:
            return np.int64(0), np.int64(-1)
        edge = np.int64(order[first + below(state, last - first)])
    return np.searchsorted(starts, edge, side="right") - 1, edge


@compiled
def draw_query(edges, steps, first_edge, target, anchors, relations, used, needed, values, walked, state):
    """Sample one query backwards from its target; return KEPT or the reason of rejection.

    One part of a union leads to the target, the others to an entity of its type. A negated path leads to another
    entity that the paths it is joined with lead to. `needed` says which edges make the target an answer.
    """
    operations, _, _, child_starts, children = steps
    root = len(operations) - 1
    values[:] = -1
    values[root], needed[:] = target, True
    reason, count = draw_steps(edges, steps, root, 0, first_edge, anchors, relations, used, 0, needed, values, state)
    for step in range(root, -1, -1):
        first, last = child_starts[step], child_starts[step + 1]
        end = before_negations(steps, first, last)
        for part in range(end, last):
            if reason != KEPT:
                return reason
            random_walk(edges, steps, anchors, relations, walked, state)
            other = walked[children[first + below(state, end - first)]]
            if other < 0 or other == values[step]:
                return NOTHING_NEGATED
            top = children[child_starts[children[part]]]
            values[top], needed[top] = other, False
            bottom = first_step(steps, top)
            reason, count = draw_steps(
                edges, steps, top, bottom, -1, anchors, relations, used, count, needed, values, state
            )
    return reason


@compiled
def first_step(steps, step):
    """Return the first of the steps that lead to a step of a tree."""
    child_starts, children = steps[3], steps[4]
    while child_starts[step] < child_starts[step + 1]:
        first = children[child_starts[step]]
        for part in range(child_starts[step], child_starts[step + 1]):
            first = min(first, children[part])
        step = first
    return step


@compiled
def draw_steps(edges, steps, top, bottom, first_edge, anchors, relations, used, count, needed, values, state):
    """Sample the steps of a tree from its top down, without negated parts.

    Returns KEPT or the reason of rejection, and the number of edges used so far.
    """
    operations, columns, _, child_starts, children = steps
    for step in range(top, bottom - 1, -1):  # every step stands after the steps that it uses
        entity = values[step]
        if entity < 0:
            continue
        first, last = child_starts[step], child_starts[step + 1]
        if operations[step] == ANCHOR:
            anchors[columns[step]] = entity
            continue
        if operations[step] != PROJECT:
            end = before_negations(steps, first, last)
            chosen = first + below(state, last - first) if operations[step] == UNION else np.int64(-1)
            for part in range(first, end):
                values[children[part]], needed[children[part]] = entity, needed[step]
                if chosen >= 0 and part != chosen:
                    type_id = type_of(edges, entity)
                    values[children[part]] = edges[3][type_id] + below(state, edges[3][type_id + 1] - edges[3][type_id])
                    needed[children[part]] = False
            continue
        low_edge, high_edge = edges[0][entity], edges[0][entity + 1]
        if low_edge == high_edge:
            return NO_EDGE, count
        if first_edge >= 0 and needed[step]:
            edge, first_edge = first_edge, np.int64(-1)
        else:
            edge = low_edge + below(state, high_edge - low_edge)
        relation, source = edges[1][edge], edges[2][edge]
        head, tail = (source, entity) if relation & 1 else (entity, source)
        for earlier in range(count):
            if used[earlier, 0] == head and used[earlier, 1] == relation >> 1 and used[earlier, 2] == tail:
                return EDGE_TWICE, count
        used[count, 0], used[count, 1], used[count, 2], used[count, 3] = head, relation >> 1, tail, needed[step]
        count += 1
        relations[columns[step]] = relation ^ 1
        values[children[first]], needed[children[first]] = source, needed[step]
    return KEPT, count


@compiled
def count_missing(known, used):
    """Count the needed edges that a graph does not have."""
    missing = 0
    for row in range(len(used)):
        if used[row, 3]:
            missing += not has_edge(known, used[row, 0], 2 * used[row, 1], used[row, 2])
    return missing


@compiled
def draw_block(edges, known, held_from, truth, by_relation, steps, sizes, how, wants, seed, count, most_effort):
    """Sample questions of one structure: anchors, relations, answers, negatives, hard negatives, missing, tally.

    `edges` is the graph to sample from, `known` the training graph, `held_from` the graph that must lack an edge of
    the question, and `truth` the graph that decides about negatives: all the same for training questions. `sizes` is
    (anchors, relations) and `wants` is (held out, negative, hard negative).
    Ends early after too much effort: a rejected draw counts 1, and more if a negative was searched for long.
    """
    anchor_count, relation_count = sizes
    held_out, wants_negative, wants_hard = wants
    anchors = np.zeros((count, anchor_count), dtype=np.int32)
    relations = np.zeros((count, relation_count), dtype=np.int32)
    answers = np.empty(count, dtype=np.int32)
    negatives = np.full(count, -1, dtype=np.int32)
    hard_negatives = np.full(count, -1, dtype=np.int32)
    missing = np.zeros(count, dtype=np.int32)
    tally = np.zeros(len(REASONS), dtype=np.int64)
    used = np.empty((relation_count, 4), dtype=np.int64)
    values, walked = np.empty(len(steps[0]), dtype=np.int64), np.empty(len(steps[0]), dtype=np.int64)
    needed = np.empty(len(steps[0]), dtype=np.bool_)
    negates = (steps[0] == NEGATE).any()
    frames, workspace = new_frames(steps), new_workspace(edges, steps)
    state = np.array([seed], dtype=np.uint64)
    row, effort, in_vain = 0, 0, 0
    while row < count and effort < most_effort and in_vain < PATIENCE:
        visited, reason = workspace[3][1], NO_EDGE
        anchor, relation = anchors[row], relations[row]
        target, edge = draw_edge(edges, by_relation, how, state)
        if edge >= 0:
            reason = draw_query(edges, steps, edge, target, anchor, relation, used, needed, values, walked, state)
        if reason == KEPT and negates and not is_answer(edges, steps, anchor, relation, target, frames):
            reason = ANSWER_NEGATED
        if reason == KEPT and held_out:
            missing[row] = count_missing(known, used)
            if count_missing(held_from, used) == 0:
                reason = NOT_HELD_OUT
            elif is_answer(known, steps, anchor, relation, target, frames):
                reason = ANSWERABLE
        if reason == KEPT and wants_negative:
            negatives[row] = draw_negative(truth, steps, anchor, relation, target, frames, workspace, True, state)
            if negatives[row] < 0:
                reason = NO_NEGATIVE
        if reason == KEPT and wants_hard:
            hard_negatives[row] = draw_hard_negative(
                truth, steps, anchor, relation, target, values, frames, workspace, True, state
            )
            if hard_negatives[row] < 0:
                reason = NO_HARD_NEGATIVE
        tally[reason] += 1
        if reason == KEPT:
            answers[row] = target
            row, in_vain = row + 1, 0
        else:
            cost = 1 + (workspace[3][1] - visited) // VISITS_PER_DRAW
            effort, in_vain = effort + cost, in_vain + cost
    return anchors[:row], relations[:row], answers[:row], negatives[:row], hard_negatives[:row], missing[:row], tally
