"""Compiled walks over a graph's arrays: the answer sets of programs, and whether one entity is an answer.

A graph is (starts, relations, tails) and a program (operations, places, types, child_starts, children); see Edges.
"""

from typing import Any

import numpy as np
from numba import njit

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.program import ANCHOR, NEGATE, PROJECT, UNION, Program

compiled = njit(cache=True, nogil=True)


def edges_of(graph: KnowledgeGraph) -> tuple[Any, ...]:
    """The arrays of a graph as the kernels take them: contiguous, read-only, with the ranges of the types."""
    return tuple(map(contiguous, (graph.starts, graph.relations, graph.tails, graph.types.starts)))


def steps_of(program: Program) -> tuple[Any, ...]:
    """The arrays of a program as the kernels take them."""
    return tuple(map(contiguous, program.arrays))


def contiguous(array: Any) -> Any:
    """The array as the kernels take it; of one type, mapped from disk or not, so that each kernel is compiled once."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


@compiled
def first_from(values, low, high, wanted):
    """The first place of a sorted range whose value is not below the one wanted, or the range's end."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def edge_range(edges, head, relation):
    """Where the edges of a head and a relation begin and end."""
    starts, relations = edges[0], edges[1]
    first, last = starts[head], starts[head + 1]
    low = first_from(relations, first, last, relation)
    end = low
    if end < last and relations[end] == relation:
        # Most ranges are short: look a few steps ahead, then halve.
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
    """Whether an edge is there."""
    low, high = edge_range(edges, head, relation)
    place = first_from(edges[2], low, high, tail)
    return place < high and edges[2][place] == tail


@compiled
def is_of_type(edges, entity, type_id):
    """Whether an entity is of a type; -1 stands for any."""
    return type_id < 0 or (edges[3][type_id] <= entity < edges[3][type_id + 1])


@compiled
def share_a_tail(edges, low, high, other_low, other_high, type_id):
    """Whether two ranges of edges, each sorted by tail, have a tail of a type in common."""
    tails = edges[2]
    if high - low > other_high - other_low:
        low, high, other_low, other_high = other_low, other_high, low, high
    for edge in range(low, high):  # the shorter range; each tail is looked for in what is left of the longer
        tail = tails[edge]
        other_low = first_from(tails, other_low, other_high, tail)
        if other_low == other_high:
            return False
        if tails[other_low] == tail and is_of_type(edges, tail, type_id):
            return True
    return False


@compiled
def new_frames(steps):
    """Room for the walk of `is_answer`: for each step on the way its number, entity, next child and last child."""
    return np.empty((len(steps[0]) + 1, 4), dtype=np.int64)


@compiled
def is_answer(edges, steps, anchors, relations, entity, relaxed, frames):
    """Whether an entity is an answer; `relaxed` reads intersections as unions of what is not negated.

    Leaves as soon as that is known.
    A recursion by hand, from the target back to the anchors: numba cannot keep compiled recursive functions on disk.
    """
    operations, places, types, child_starts, children = steps
    depth, found, returned = 0, False, False
    frames[0, 0], frames[0, 1] = len(operations) - 1, entity
    while depth >= 0:
        step, at = frames[depth, 0], frames[depth, 1]
        is_path = operations[step] == PROJECT
        any_will_do = is_path or relaxed or operations[step] == UNION
        if returned:
            if operations[step] == NEGATE:
                depth, found = depth - 1, not found
                continue
            if found == any_will_do:
                depth -= 1  # what was found settles this step too
                continue
        else:
            first, settled = child_starts[step], False
            if operations[step] == ANCHOR:
                settled, found = True, anchors[places[step]] == at
            elif not is_of_type(edges, at, types[step]) or (relaxed and operations[step] == NEGATE):
                settled, found = True, False
            elif is_path and operations[children[first]] == ANCHOR:
                anchor = anchors[places[children[first]]]
                settled, found = True, has_edge(edges, anchor, relations[places[step]], at)
            elif is_path:
                low, high = edge_range(edges, at, relations[places[step]] ^ 1)
                child = children[first]
                source = children[child_starts[child]]
                if operations[child] == PROJECT and operations[source] == ANCHOR:
                    # Two edges from an anchor: the way from the anchor and the way back meet in one entity.
                    ahead, end = edge_range(edges, anchors[places[source]], relations[places[child]])
                    settled, found = True, share_a_tail(edges, low, high, ahead, end, types[child])
                else:
                    frames[depth, 2], frames[depth, 3] = low, high
            else:
                frames[depth, 2], frames[depth, 3] = first, child_starts[step + 1]
            if settled:
                depth, returned = depth - 1, True
                continue
        place = frames[depth, 2]
        if place == frames[depth, 3]:
            depth, found, returned = depth - 1, not any_will_do, True
            continue
        frames[depth, 2] = place + 1
        depth, returned = depth + 1, False
        if is_path:
            frames[depth, 0], frames[depth, 1] = children[child_starts[step]], edges[2][place]
        else:
            frames[depth, 0], frames[depth, 1] = children[place], at
    return found


@compiled
def are_answers(edges, steps, anchors, relations, entities, relaxed):
    """For each query of a batch, whether its entity is an answer."""
    found = np.empty(len(entities), dtype=np.bool_)
    frames = new_frames(steps)
    for row in range(len(entities)):
        found[row] = is_answer(edges, steps, anchors[row], relations[row], entities[row], relaxed, frames)
    return found


@compiled
def before_negations(steps, first, last):
    """Where the negated ones among the children of a step begin; they are the last."""
    operations, children = steps[0], steps[4]
    while last > first and operations[children[last - 1]] == NEGATE:
        last -= 1
    return last


@compiled
def left_over(entities, size, others, other_size, marks, stamp):
    """How many entities are not among the others; those are put first."""
    for place in range(other_size):
        marks[others[place]] = stamp
    kept = 0
    for place in range(size):
        if marks[entities[place]] != stamp:
            entities[kept] = entities[place]
            kept += 1
    return kept


@compiled
def walk(edges, steps, anchors, relations, relaxed, slots, sizes, marks, stamp):
    """The last stamp used, after each step's set is written to its slot."""
    operations, places, types, child_starts, children = steps
    for step in range(len(operations)):
        out, size = slots[step], 0
        first, last = child_starts[step], child_starts[step + 1]
        if operations[step] == ANCHOR:
            out[0], size = anchors[places[step]], 1
        elif operations[step] == PROJECT:
            source, relation = children[first], relations[places[step]]
            stamp += 1
            for place in range(sizes[source]):
                low, high = edge_range(edges, slots[source][place], relation)
                for edge in range(low, high):
                    tail = edges[2][edge]
                    if marks[tail] != stamp and is_of_type(edges, tail, types[step]):
                        marks[tail] = stamp
                        out[size] = tail
                        size += 1
        elif relaxed or operations[step] == UNION:
            stamp += 1
            for part in range(first, before_negations(steps, first, last)):
                for place in range(sizes[children[part]]):
                    entity = slots[children[part]][place]
                    if marks[entity] != stamp and is_of_type(edges, entity, types[step]):
                        marks[entity] = stamp
                        out[size] = entity
                        size += 1
        elif operations[step] != NEGATE:
            # Each part raises the mark of those that all parts before it had; the smallest part need not be first.
            stamp += 1
            end = before_negations(steps, first, last)
            for part in range(first, end):
                size = 0
                for place in range(sizes[children[part]]):
                    entity = slots[children[part]][place]
                    if part == first or marks[entity] == stamp - 1:
                        marks[entity] = stamp
                        if part < end - 1 or is_of_type(edges, entity, types[step]):
                            out[size] = entity
                            size += 1
                stamp += 1
            for part in range(end, last):
                negated = children[child_starts[children[part]]]
                size = left_over(out, size, slots[negated], sizes[negated], marks, stamp)
                stamp += 1
        sizes[step] = size
    return stamp


@compiled
def answer_sets(edges, steps, anchors, relations, relaxed):
    """The sorted answers of each query of a batch, one after another, and where each begins."""
    step_count, entity_count = len(steps[0]), len(edges[0]) - 1
    slots = np.empty((step_count, entity_count), dtype=np.int32)
    sizes = np.zeros(step_count, dtype=np.int64)
    marks = np.zeros(entity_count, dtype=np.int64)
    offsets = np.zeros(len(anchors) + 1, dtype=np.int64)
    answers = np.empty(16 * len(anchors) + 64, dtype=np.int32)
    stamp = 0
    for row in range(len(anchors)):
        stamp = walk(edges, steps, anchors[row], relations[row], relaxed, slots, sizes, marks, stamp)
        size, used = sizes[step_count - 1], offsets[row]
        while used + size > len(answers):
            larger = np.empty(2 * len(answers), dtype=np.int32)
            larger[:used] = answers[:used]
            answers = larger
        found = slots[step_count - 1][:size]
        found.sort()
        answers[used : used + size] = found
        offsets[row + 1] = used + size
    return answers[: offsets[len(anchors)]].copy(), offsets


@compiled
def count_edges(edges, heads, relations):
    """How many edges each head has of its relation."""
    counts = np.empty(len(heads), dtype=np.int64)
    for row in range(len(heads)):
        low, high = edge_range(edges, heads[row], relations[row])
        counts[row] = high - low
    return counts


@compiled
def answers_among(edges, steps, anchors, relations, candidates, firsts, counts, width):
    """Which of its candidates are answers of each query (n, width); those are candidates[firsts:firsts + counts].

    Places beyond a query's own candidates are marked too: neither is to be taken for a wrong answer.
    """
    step_count, entity_count = len(steps[0]), len(edges[0]) - 1
    slots = np.empty((step_count, entity_count), dtype=np.int32)
    sizes = np.zeros(step_count, dtype=np.int64)
    marks = np.zeros(entity_count, dtype=np.int64)
    found = np.ones((len(anchors), width), dtype=np.bool_)
    stamp = 0
    for row in range(len(anchors)):
        stamp = 1 + walk(edges, steps, anchors[row], relations[row], False, slots, sizes, marks, stamp)
        for place in range(sizes[step_count - 1]):
            marks[slots[step_count - 1][place]] = stamp
        for place in range(counts[row]):
            found[row, place] = marks[candidates[firsts[row] + place]] == stamp
    return found
