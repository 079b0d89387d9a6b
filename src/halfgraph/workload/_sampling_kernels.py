"""Compiled drawing of wrong answers: negatives by chance, hard negatives by a stroll along the paths of the query.

Random numbers come from a counter that is passed along, so that a block of questions depends on its seed alone.
"""

import numpy as np

from halfgraph.query._kernels import before_negations, compiled, edge_range, is_answer, is_of_type, new_frames, walk
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT

WALK = 128  # entities that a walk counts as many more than it finds: one that finds hardly any takes time too
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
def type_of(edges, entity):
    """The type of an entity."""
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
    """An entity of the answer's type that is no answer, each as likely, or -1; `certain`: only if there is none."""
    type_id = type_of(edges, answer)
    first, last = edges[3][type_id], edges[3][type_id + 1]
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
        elif operations[step] == NEGATE:
            values[step] = -1
        else:
            values[step] = values[children[first + below(state, before_negations(steps, first, last) - first)]]
    return values[len(operations) - 1]


@compiled
def draw_hard_negative(edges, steps, anchors, relations, answer, values, frames, workspace, certain, state):
    """An entity of the answer's type on some path of the query but not on all, or -1; `certain` as above."""
    type_id = type_of(edges, answer)
    for _ in range(STROLLS):
        entity = stroll(edges, steps, anchors, relations, values, state)
        same_type = entity >= 0 and is_of_type(edges, entity, type_id)
        if same_type and not is_answer(edges, steps, anchors, relations, entity, False, frames):
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
        if marks[entity] != mark and is_of_type(edges, entity, type_id):
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
