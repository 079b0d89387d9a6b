"""Expected results, computed slowly and plainly from Python sets."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction

from pyoxigraph import Literal, Quad, Triple

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"

Named = tuple[str, str, str]
Edge = tuple[str, str, str]  # an inverse relation is written ^r


def edges(triples: Iterable[Named]) -> set[Edge]:
    """Both directions of each triple."""
    return {edge for head, relation, tail in triples for edge in ((head, relation, tail), (tail, f"^{relation}", head))}


def entities(triples: Iterable[Named]) -> set[str]:
    """Every head and tail."""
    return {name for head, _, tail in triples for name in (head, tail)}


def above(pairs: Iterable[tuple[str, str]], name: str) -> dict[str, int]:
    """The steps from a class to each class above it, itself included."""
    steps, pairs = {name: 0}, set(pairs)
    for step in range(len(pairs) + 1):
        for lower, upper in pairs:
            if steps.get(lower) == step and upper not in steps:
                steps[upper] = step + 1
    return steps


def common_super_classes(pairs: Iterable[tuple[str, str]], classes: Iterable[str]) -> set[str]:
    """The classes that stand above all of the given ones, themselves included."""
    return set.intersection(*(set(above(pairs, name)) for name in classes))


def below_the_root(pairs: Iterable[tuple[str, str]], classes: Iterable[str], root: str) -> set[str]:
    """The classes whose only super class is the root, or that have none, above the given ones."""
    parents = defaultdict(set)
    for lower, upper in pairs:
        if lower != upper:
            parents[lower].add(upper)
    met = {upper for name in classes for upper in above(pairs, name)}
    return {name for name in met if name != root and parents[name] <= {root}}


def votes(triples: Iterable[Named], types: Mapping[str, str], fewest: int) -> dict[str, dict[str, Fraction]]:
    """For each entity without a type, the sum over its places in triples of the share of each type in that place.

    Places with fewer typed entities have no say.
    """
    seats = {
        seat for head, relation, tail in triples for seat in ((head, (relation, 0), tail), (tail, (relation, 1), head))
    }
    there: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for entity, place in {(entity, place) for entity, place, _ in seats}:
        if entity in types:
            there[place][types[entity]] += 1
    found: dict[str, dict[str, Fraction]] = {}
    for entity, place, _ in seats:
        if entity not in types:
            tally = found.setdefault(entity, {})
            for type_id, count in there[place].items() if there[place].total() >= fewest else ():
                tally[type_id] = tally.get(type_id, Fraction(0)) + Fraction(count, there[place].total())
    return found


def learnt(quads: Iterable[Quad], aside: Iterable[str]) -> set[Triple]:
    """The triples between two nodes whose predicate is not among those set aside."""
    return {
        quad.triple for quad in quads if not isinstance(quad.object, Literal) and quad.predicate.value not in set(aside)
    }


def around(triples: Iterable[Named], seeds: Iterable[str], hops: int) -> set[Named]:
    """The triples met when walking some hops from the seeds, in either direction."""
    triples, here, met = set(triples), set(seeds), set[Named]()
    for _ in range(hops):
        met = {triple for triple in triples if {triple[0], triple[2]} & here}
        here |= entities(met)
    return met


def of_enough_degree(triples: Iterable[Named], degree: int) -> set[Named]:
    """The triples that are left when entities of less degree are removed one by one."""
    left = set(triples)
    while True:
        ends = Counter(end for head, _, tail in left for end in (head, tail))
        poor = min((end for end in ends if ends[end] < degree), default=None)
        if poor is None:
            return left
        left = {triple for triple in left if poor not in (triple[0], triple[2])}
