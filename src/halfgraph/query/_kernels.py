"""Compiled evaluation of programs on a graph's arrays: answer sets, and whether one entity is an answer.

A graph is (starts, relations, tails, type starts) and a program (operations, columns, types, child_starts, children);
see `edges_of` and `Program.arrays`.
"""

from typing import Any

import numpy as np
from numba import njit

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT, UNION

WALK_COST = 128  # the fixed effort of computing all sets of a query, in entities
compiled = njit(cache=True, nogil=True)


def edges_of(graph: KnowledgeGraph) -> tuple[Any, ...]:
    return tuple(map(contiguous, (graph.starts, graph.relations, graph.tails, graph.types.starts)))


def contiguous(array: Any) -> Any:
    """Return a contiguous read-only array, memory-mapped or not, so that each kernel is compiled only once."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


@compiled
def first_from(values, low, high, wanted):
    """Return the first index of a sorted range whose value is not below the wanted one, or the range's end."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def edge_range(edges, head, relation):
    """Return where the edges of a head and a relation begin and end."""
    starts, relations = edges[0], edges[1]
    first, last = starts[head], starts[head + 1]
    low = first_from(relations, first, last, relation)
    end = low
    if end < last and relations[end] == relation:
        # Most ranges are short: gallop ahead, then bisect.
        step = 1
        while end + step < last and relations[end + step] == relation:
            end += step
            step *= 2
        high = min(end + step, last)
        while end < high and high - end > 1:
            middle = (end + high) >> 1
            if relations[middle] == relation:
                end = middle
            else:
                high = middle
        end += 1
    return low, end


@compiled
def has_edge(edges, head, relation, tail):
    low, high = edge_range(edges, head, relation)
    index = first_from(edges[2], low, high, tail)
    return index < high and edges[2][index] == tail


@compiled
def is_of_type(edges, entity, type_id):
    """Whether an entity is of a type; -1 is any type."""
    return type_id < 0 or (edges[3][type_id] <= entity < edges[3][type_id + 1])


@compiled
def share_a_tail(edges, low, high, other_low, other_high, type_id):
    """Whether two ranges of edges, each sorted by tail, have a tail of a type in common."""
    tails = edges[2]
    if high - low > other_high - other_low:
        low, high, other_low, other_high = other_low, other_high, low, high
    for edge in range(low, high):  # the shorter range; each tail is searched in the rest of the longer one
        tail = tails[edge]
        other_low = first_from(tails, other_low, other_high, tail)
        if other_low == other_high:
            return False
        if tails[other_low] == tail and is_of_type(edges, tail, type_id):
            return True
    return False


@compiled
def new_frames(steps):
    """Allocate the stack of `is_answer`: for each step its number, entity, next child and last child."""
    return np.empty((len(steps[0]) + 1, 4), dtype=np.int64)


@compiled
def is_answer(edges, steps, anchors, relations, entity, frames):
    """Whether an entity is an answer, searched from the target back to the anchors; stops as soon as this is known.

    The recursion is unrolled by hand: numba cannot cache compiled recursive functions on disk.
    """
    operations, columns, types, child_starts, children = steps
    depth, is_found, returned = 0, False, False
    frames[0, 0], frames[0, 1] = len(operations) - 1, entity
    while depth >= 0:
        step, at = frames[depth, 0], frames[depth, 1]
        is_path = operations[step] == PROJECT
        any_suffices = is_path or operations[step] == UNION
        if returned:
            if operations[step] == NEGATE:
                depth, is_found = depth - 1, not is_found
                continue
            if is_found == any_suffices:
                depth -= 1  # the child decides this step too
                continue
        else:
            first, settled = child_starts[step], False
            if operations[step] == ANCHOR:
                settled, is_found = True, anchors[columns[step]] == at
            elif not is_of_type(edges, at, types[step]):
                settled, is_found = True, False
            elif is_path and operations[children[first]] == ANCHOR:
                anchor = anchors[columns[children[first]]]
                settled, is_found = True, has_edge(edges, anchor, relations[columns[step]], at)
            elif is_path:
                low, high = edge_range(edges, at, relations[columns[step]] ^ 1)
                child = children[first]
                source = children[child_starts[child]]
                if operations[child] == PROJECT and operations[source] == ANCHOR:
                    # Two edges from an anchor: search an entity that both the anchor and the target have an edge to.
                    ahead, end = edge_range(edges, anchors[columns[source]], relations[columns[child]])
                    settled, is_found = True, share_a_tail(edges, low, high, ahead, end, types[child])
                else:
                    frames[depth, 2], frames[depth, 3] = low, high
            else:
                frames[depth, 2], frames[depth, 3] = first, child_starts[step + 1]
            if settled:
                depth, returned = depth - 1, True
                continue
        index = frames[depth, 2]
        if index == frames[depth, 3]:
            depth, is_found, returned = depth - 1, not any_suffices, True
            continue
        frames[depth, 2] = index + 1
        depth, returned = depth + 1, False
        if is_path:
            frames[depth, 0], frames[depth, 1] = children[child_starts[step]], edges[2][index]
        else:
            frames[depth, 0], frames[depth, 1] = children[index], at
    return is_found


@compiled
def are_answers(edges, steps, anchors, relations, entities):
    """Return for each query of a batch whether its entity is an answer."""
    result = np.empty(len(entities), dtype=np.bool_)
    frames = new_frames(steps)
    for row in range(len(entities)):
        result[row] = is_answer(edges, steps, anchors[row], relations[row], entities[row], frames)
    return result


@compiled
def before_negations(steps, first, last):
    """Return where the negated children of a step begin; they come last."""
    operations, children = steps[0], steps[4]
    while last > first and operations[children[last - 1]] == NEGATE:
        last -= 1
    return last


@compiled
def exclude(entities, size, others, other_size, marks, stamp):
    """Move the entities that are not among the others to the front and return their number."""
    for index in range(other_size):
        marks[others[index]] = stamp
    kept = 0
    for index in range(size):
        if marks[entities[index]] != stamp:
            entities[kept] = entities[index]
            kept += 1
    return kept


@compiled
def new_workspace(edges, steps):
    """Allocate a slot for each step's set, their sizes, marks of entities, and [last mark, effort of all walks]."""
    step_count, entity_count = len(steps[0]), len(edges[0]) - 1
    slots = np.empty((step_count, entity_count), dtype=np.int32)
    return slots, np.zeros(step_count, dtype=np.int64), np.zeros(entity_count, dtype=np.int64), np.zeros(2, np.int64)


@compiled
def walk(edges, steps, anchors, relations, relaxed, workspace):
    """Compute the set of each step and return the unsorted set of the last one, a view of the workspace.

    `relaxed` reads intersections as unions and ignores negations.
    """
    operations, columns, types, child_starts, children = steps
    slots, sizes, marks, counters = workspace
    stamp = counters[0]
    for step in range(len(operations)):
        out, size = slots[step], 0
        first, last = child_starts[step], child_starts[step + 1]
        if operations[step] == ANCHOR:
            out[0], size = anchors[columns[step]], 1
        elif operations[step] == PROJECT:
            source, relation = children[first], relations[columns[step]]
            stamp += 1
            for index in range(sizes[source]):
                low, high = edge_range(edges, slots[source][index], relation)
                for edge in range(low, high):
                    tail = edges[2][edge]
                    if marks[tail] != stamp and is_of_type(edges, tail, types[step]):
                        marks[tail] = stamp
                        out[size] = tail
                        size += 1
        elif relaxed or operations[step] == UNION:
            stamp += 1
            for part in range(first, before_negations(steps, first, last)):
                for index in range(sizes[children[part]]):
                    entity = slots[children[part]][index]
                    if marks[entity] != stamp and is_of_type(edges, entity, types[step]):
                        marks[entity] = stamp
                        out[size] = entity
                        size += 1
        elif operations[step] != NEGATE:
            # Each part raises the mark of the entities that all parts before it contain.
            stamp += 1
            end = before_negations(steps, first, last)
            for part in range(first, end):
                size = 0
                for index in range(sizes[children[part]]):
                    entity = slots[children[part]][index]
                    if part == first or marks[entity] == stamp - 1:
                        marks[entity] = stamp
                        if part < end - 1 or is_of_type(edges, entity, types[step]):
                            out[size] = entity
                            size += 1
                stamp += 1
            for part in range(end, last):
                negated = children[child_starts[children[part]]]
                size = exclude(out, size, slots[negated], sizes[negated], marks, stamp)
                stamp += 1
        sizes[step] = size
    counters[0] = stamp
    counters[1] += WALK_COST + sizes.sum()
    return slots[-1][: sizes[-1]]


@compiled
def mark_answers(edges, steps, anchors, relations, workspace):
    """Mark the answers of a query and return the mark, which no other entity has."""
    answers, marks, counters = walk(edges, steps, anchors, relations, False, workspace), workspace[2], workspace[3]
    counters[0] += 1
    for entity in answers:
        marks[entity] = counters[0]
    return counters[0]


@compiled
def answer_sets(edges, steps, anchors, relations, relaxed):
    """Return the sorted answers of the queries of a batch, concatenated, and their offsets."""
    workspace = new_workspace(edges, steps)
    offsets = np.zeros(len(anchors) + 1, dtype=np.int64)
    answers = np.empty(16 * len(anchors) + 64, dtype=np.int32)
    for row in range(len(anchors)):
        row_answers = walk(edges, steps, anchors[row], relations[row], relaxed, workspace)
        used, end = offsets[row], offsets[row] + len(row_answers)
        while end > len(answers):
            larger = np.empty(2 * len(answers), dtype=np.int32)
            larger[:used] = answers[:used]
            answers = larger
        row_answers.sort()
        answers[used:end] = row_answers
        offsets[row + 1] = end
    return answers[: offsets[len(anchors)]].copy(), offsets


@compiled
def count_edges(edges, heads, relations):
    """Count the edges of each head with its relation."""
    counts = np.empty(len(heads), dtype=np.int64)
    for row in range(len(heads)):
        low, high = edge_range(edges, heads[row], relations[row])
        counts[row] = high - low
    return counts
