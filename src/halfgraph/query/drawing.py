"""Compiled drawing of questions: backwards from a target, edge by edge, with negatives and hard negatives.

Random numbers come from a counter that is passed along, so that a block of questions depends on its seed alone.
"""

import numpy as np

from halfgraph.query.kernels import compiled, edge_range, has_edge, is_answer, is_of_kind, new_frames, walk
from halfgraph.query.program import ANCHOR, PROJECT

# Why a drawn question is not kept; the first is "kept". The names are for reports.
REASONS = (
    "kept",
    "an entity has no edge to go on",
    "an edge would be used twice",
    "no held-out triple in it",
    "answerable on the training graph",
    "no negative of the answer's kind",
    "no hard negative",
)
KEPT, NO_EDGE, EDGE_TWICE, NOTHING_MISSING, ANSWERABLE, NO_NEGATIVE, NO_HARD_NEGATIVE = range(len(REASONS))
# How the target is drawn.
BY_ANSWER, BY_RELATION, BY_TRIPLE = 0, 1, 2
PATIENCE = 2_000_000  # draws in vain, one after another, before a structure is given up
WALKED = 16  # entities walked over in vain that take about as long as a draw ...
WALK = 128  # ... and as many more for a walk that finds hardly any
TRIES = 6  # quick draws of a negative before all answers are found out
STROLLS = 16  # the same for a hard negative


@compiled
def random_bits(state):
    """The next 64 random bits (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def below(state, bound):
    """A random number from 0 to bound - 1."""
    return np.int64((random_bits(state) >> np.uint64(11)) % np.uint64(bound))


@compiled
def draw_edge(edges, by_relation, how, state):
    """A target and the edge that its last step goes back over: by answer, by relation or by triple."""
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
def draw_query(edges, steps, first_edge, target, anchors, relations, used, values, state):
    """Why not, or KEPT: from the target back to the anchors, each step over a random edge not used before."""
    operations, places, _, child_starts, children = steps
    root = len(operations) - 1
    values[root] = target
    used_count = 0
    for step in range(root, -1, -1):  # every step stands after the steps that it uses
        entity = values[step]
        if operations[step] == ANCHOR:
            anchors[places[step]] = entity
            continue
        if operations[step] != PROJECT:
            for part in range(child_starts[step], child_starts[step + 1]):
                values[children[part]] = entity
            continue
        first, last = edges[0][entity], edges[0][entity + 1]
        if first == last:
            return NO_EDGE
        edge = first_edge if used_count == 0 else first + below(state, last - first)
        relation, source = edges[1][edge], edges[2][edge]
        head, tail = (source, entity) if relation & 1 else (entity, source)
        for earlier in range(used_count):
            if used[earlier, 0] == head and used[earlier, 1] == relation >> 1 and used[earlier, 2] == tail:
                return EDGE_TWICE
        used[used_count, 0], used[used_count, 1], used[used_count, 2] = head, relation >> 1, tail
        used_count += 1
        relations[places[step]] = relation ^ 1
        values[children[child_starts[step]]] = source
    return KEPT


@compiled
def count_missing(known, used, count):
    """How many of the edges used are not in a graph."""
    missing = 0
    for place in range(count):
        missing += not has_edge(known, used[place, 0], 2 * used[place, 1], used[place, 2])
    return missing


@compiled
def kind_of(edges, entity):
    """The kind of an entity."""
    return np.searchsorted(edges[3], entity, side="right") - 1


@compiled
def new_workspace(edges, steps):
    """Room for walks: a slot for each step's set, their sizes, marks of entities; the last mark, entities walked."""
    step_count, entity_count = len(steps[0]), len(edges[0]) - 1
    slots = np.empty((step_count, entity_count), dtype=np.int32)
    return slots, np.zeros(step_count, dtype=np.int64), np.zeros(entity_count, dtype=np.int64), np.zeros(2, np.int64)


@compiled
def mark_answers(edges, steps, anchors, relations, workspace):
    """The mark that every answer of a query, and no other entity, has now."""
    slots, sizes, marks, last = workspace
    last[0] = 1 + walk(edges, steps, anchors, relations, False, slots, sizes, marks, last[0])
    last[1] += WALK + sizes.sum()
    root = len(steps[0]) - 1
    for place in range(sizes[root]):
        marks[slots[root][place]] = last[0]
    return last[0]


@compiled
def draw_negative(edges, steps, anchors, relations, answer, frames, workspace, certain, state):
    """An entity of the answer's kind that is no answer, each as likely, or -1; `certain`: only if there is none."""
    kind = kind_of(edges, answer)
    first, last = edges[3][kind], edges[3][kind + 1]
    for _ in range(TRIES):
        entity = first + below(state, last - first)
        if not is_answer(edges, steps, anchors, relations, entity, False, frames):
            return entity
    if not certain:
        return np.int64(-1)
    mark, marks = mark_answers(edges, steps, anchors, relations, workspace), workspace[2]
    workspace[3][1] += last - first
    free = 0
    for entity in range(first, last):
        free += marks[entity] != mark
    chosen = below(state, max(free, 1))
    for entity in range(first, last):
        if marks[entity] != mark:
            if chosen == 0:
                return entity
            chosen -= 1
    return np.int64(-1)


@compiled
def stroll(edges, steps, anchors, relations, values, state):
    """An entity that some path of the query leads to, by a random way forward, or -1 where the way ends."""
    operations, places, _, child_starts, children = steps
    for step in range(len(operations)):
        first, last = child_starts[step], child_starts[step + 1]
        if operations[step] == ANCHOR:
            values[step] = anchors[places[step]]
        elif operations[step] == PROJECT:
            source = values[children[first]]
            values[step] = -1
            if source >= 0:
                low, high = edge_range(edges, source, relations[places[step]])
                if low < high:
                    values[step] = edges[2][low + below(state, high - low)]
        else:
            values[step] = values[children[first + below(state, last - first)]]
    return values[len(operations) - 1]


@compiled
def draw_hard_negative(edges, steps, anchors, relations, answer, values, frames, workspace, certain, state):
    """An entity of the answer's kind on some path of the query but not on all, or -1; `certain` as above."""
    kind = kind_of(edges, answer)
    for _ in range(STROLLS):
        entity = stroll(edges, steps, anchors, relations, values, state)
        same_kind = entity >= 0 and is_of_kind(edges, entity, kind)
        if same_kind and not is_answer(edges, steps, anchors, relations, entity, False, frames):
            return np.int64(entity)
    if not certain:
        return np.int64(-1)
    slots, sizes, marks, last = workspace
    last[0] = walk(edges, steps, anchors, relations, True, slots, sizes, marks, last[0])
    last[1] += WALK + sizes.sum()
    on_some_path = slots[len(steps[0]) - 1][: sizes[len(steps[0]) - 1]].copy()
    mark = mark_answers(edges, steps, anchors, relations, workspace)
    free = 0
    for entity in on_some_path:
        if marks[entity] != mark and is_of_kind(edges, entity, kind):
            on_some_path[free] = entity
            free += 1
    return np.int64(on_some_path[below(state, free)]) if free else np.int64(-1)


@compiled
def draw_negatives(edges, steps, anchors, relations, answers, count, hard, certain, seed):
    """So many negatives (n, count) for each question, hard ones or not; -1 where none was found."""
    found = np.empty((len(answers), count), dtype=np.int32)
    frames, workspace = new_frames(steps), new_workspace(edges, steps)
    values = np.empty(len(steps[0]), dtype=np.int64)
    state = np.array([seed], dtype=np.uint64)
    for row in range(len(answers)):
        anchor, relation, answer = anchors[row], relations[row], answers[row]
        for place in range(count):
            if hard:
                found[row, place] = draw_hard_negative(
                    edges, steps, anchor, relation, answer, values, frames, workspace, certain, state
                )
            else:
                found[row, place] = draw_negative(
                    edges, steps, anchor, relation, answer, frames, workspace, certain, state
                )
    return found


@compiled
def draw_block(edges, known, held_from, truth, by_relation, steps, shape, how, wants, seed, count, most_effort):
    """Questions of one structure: anchors, relations, answers, negatives, hard negatives, missing, tallies.

    `edges` is the graph drawn from, `known` the training graph, `held_from` the graph that must lack an edge of the
    question, and `truth` the graph that negatives are judged by: all the same for training questions. `wants` is
    (held out, negative, hard negative).
    Ends early after so much effort in vain: draws that were not kept, and long walks for a negative count as several.
    """
    anchor_count, relation_count = shape
    held_out, wants_negative, wants_hard = wants
    anchors = np.empty((count, anchor_count), dtype=np.int32)
    relations = np.empty((count, relation_count), dtype=np.int32)
    answers = np.empty(count, dtype=np.int32)
    negatives = np.full(count, -1, dtype=np.int32)
    hard_negatives = np.full(count, -1, dtype=np.int32)
    missing = np.zeros(count, dtype=np.int32)
    tally = np.zeros(len(REASONS), dtype=np.int64)
    used = np.empty((relation_count, 3), dtype=np.int64)
    values = np.empty(len(steps[0]), dtype=np.int64)
    frames = new_frames(steps)
    workspace = new_workspace(edges, steps)
    state = np.array([seed], dtype=np.uint64)
    row, effort, in_vain = 0, 0, 0
    while row < count and effort < most_effort and in_vain < PATIENCE:
        walked = workspace[3][1]
        target, edge = draw_edge(edges, by_relation, how, state)
        reason = NO_EDGE
        if edge >= 0:
            reason = draw_query(edges, steps, edge, target, anchors[row], relations[row], used, values, state)
        if reason == KEPT and held_out:
            missing[row] = count_missing(known, used, relation_count)
            if count_missing(held_from, used, relation_count) == 0:
                reason = NOTHING_MISSING
            elif is_answer(known, steps, anchors[row], relations[row], target, False, frames):
                reason = ANSWERABLE
        if reason == KEPT and wants_negative:
            negatives[row] = draw_negative(
                truth, steps, anchors[row], relations[row], target, frames, workspace, True, state
            )
            if negatives[row] < 0:
                reason = NO_NEGATIVE
        if reason == KEPT and wants_hard:
            hard_negatives[row] = draw_hard_negative(
                truth, steps, anchors[row], relations[row], target, values, frames, workspace, True, state
            )
            if hard_negatives[row] < 0:
                reason = NO_HARD_NEGATIVE
        tally[reason] += 1
        if reason == KEPT:
            answers[row] = target
            row, in_vain = row + 1, 0
        else:
            cost = 1 + (workspace[3][1] - walked) // WALKED
            effort, in_vain = effort + cost, in_vain + cost
    return (
        anchors[:row],
        relations[:row],
        answers[:row],
        negatives[:row],
        hard_negatives[:row],
        missing[:row],
        tally,
    )
