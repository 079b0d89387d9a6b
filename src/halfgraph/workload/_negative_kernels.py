"""Compiled sampling of negatives: uniform ones, and hard ones by random walks along the paths of the query.

Random numbers come from a counter that is passed along, so that a block of questions depends on its seed alone.
"""

import numpy as np

from halfgraph.query._kernels import (
    before_negations,
    compiled,
    edge_range,
    is_answer,
    is_of_type,
    mark_answers,
    new_frames,
    new_workspace,
    walk,
)
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT

TRIES = 6  # quick draws of a negative before all answers are computed
HARD_TRIES = 16  # random walks for a hard negative before all answers are computed


@compiled
def random_bits(state):
    """Return the next 64 random bits (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def below(state, bound):
    """Return a random number from 0 to bound - 1."""
    return np.int64((random_bits(state) >> np.uint64(11)) % np.uint64(bound))


@compiled
def type_of(edges, entity):
    return np.searchsorted(edges[3], entity, side="right") - 1


@compiled
def draw_negative(edges, steps, anchors, relations, answer, frames, workspace, exhaustive, state):
    """Draw an entity of the answer's type that is not an answer, uniformly; -1 if none was found.

    With `exhaustive` -1 means that there is none.
    """
    type_id = type_of(edges, answer)
    first, last = edges[3][type_id], edges[3][type_id + 1]
    for _ in range(TRIES):
        entity = first + below(state, last - first)
        if not is_answer(edges, steps, anchors, relations, entity, frames):
            return entity
    if not exhaustive:
        return np.int64(-1)
    mark, marks = mark_answers(edges, steps, anchors, relations, workspace), workspace[2]
    workspace[3][1] += last - first
    count = 0
    for entity in range(first, last):
        count += marks[entity] != mark
    chosen = below(state, max(count, 1))
    for entity in range(first, last):
        if marks[entity] != mark:
            if chosen == 0:
                return entity
            chosen -= 1
    return np.int64(-1)


@compiled
def random_walk(edges, steps, anchors, relations, values, state):
    """Walk from the anchors along one random path of the query; return the entity reached, or -1 at a dead end."""
    operations, columns, _, child_starts, children = steps
    for step in range(len(operations)):
        first, last = child_starts[step], child_starts[step + 1]
        if operations[step] == ANCHOR:
            values[step] = anchors[columns[step]]
        elif operations[step] == PROJECT:
            source = values[children[first]]
            values[step] = -1
            if source >= 0:
                low, high = edge_range(edges, source, relations[columns[step]])
                if low < high:
                    values[step] = edges[2][low + below(state, high - low)]
        elif operations[step] == NEGATE:
            values[step] = -1
        else:
            values[step] = values[children[first + below(state, before_negations(steps, first, last) - first)]]
    return values[len(operations) - 1]


@compiled
def draw_hard_negative(edges, steps, anchors, relations, answer, values, frames, workspace, exhaustive, state):
    """Draw an entity of the answer's type that some paths lead to but not all; -1 if none was found."""
    type_id = type_of(edges, answer)
    for _ in range(HARD_TRIES):
        entity = random_walk(edges, steps, anchors, relations, values, state)
        same_type = entity >= 0 and is_of_type(edges, entity, type_id)
        if same_type and not is_answer(edges, steps, anchors, relations, entity, frames):
            return np.int64(entity)
    if not exhaustive:
        return np.int64(-1)
    candidates = walk(edges, steps, anchors, relations, True, workspace).copy()
    mark, marks = mark_answers(edges, steps, anchors, relations, workspace), workspace[2]
    count = 0
    for entity in candidates:
        if marks[entity] != mark and is_of_type(edges, entity, type_id):
            candidates[count] = entity
            count += 1
    return np.int64(candidates[below(state, count)]) if count else np.int64(-1)


@compiled
def draw_negatives(edges, steps, anchors, relations, answers, count, hard, exhaustive, seed):
    """Draw negatives (n, count), hard or not, for each question; -1 where none was found."""
    negatives = np.empty((len(answers), count), dtype=np.int32)
    frames, workspace = new_frames(steps), new_workspace(edges, steps)
    values = np.empty(len(steps[0]), dtype=np.int64)
    state = np.array([seed], dtype=np.uint64)
    for row in range(len(answers)):
        anchor, relation, answer = anchors[row], relations[row], answers[row]
        for column in range(count):
            if hard:
                negatives[row, column] = draw_hard_negative(
                    edges, steps, anchor, relation, answer, values, frames, workspace, exhaustive, state
                )
            else:
                negatives[row, column] = draw_negative(
                    edges, steps, anchor, relation, answer, frames, workspace, exhaustive, state
                )
    return negatives


@compiled
def answers_among(edges, steps, anchors, relations, candidates, firsts, counts, width):
    """Return which candidates, candidates[firsts:firsts + counts], are answers of each query (n, width).

    Columns beyond a query's own candidates are marked too: neither may serve as a negative.
    """
    workspace = new_workspace(edges, steps)
    marked = np.ones((len(anchors), width), dtype=np.bool_)
    for row in range(len(anchors)):
        mark = mark_answers(edges, steps, anchors[row], relations[row], workspace)
        for index in range(counts[row]):
            marked[row, index] = workspace[2][candidates[firsts[row] + index]] == mark
    return marked
