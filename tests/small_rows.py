"""Small random worlds and row queries, drawn evenly: hypothesis supplies the seed."""

from random import Random

from hypothesis import strategies as st

from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Exclusion,
    Given,
    LinkPattern,
    Path,
    PathChoice,
    PathRepeat,
    PathSequence,
    Pattern,
    Relation,
    RowQuery,
    Term,
    TypePattern,
    pattern_variables,
)
from possible_worlds import SmallWorld

CLASSES = ("http://c/A", "http://c/B")
VARIABLES = ("x", "y", "z")
PROBABILITIES = (0.1, 0.25, 0.5, 0.9)
randoms = st.integers(0, 2**32 - 1).map(Random)


def draw_world(rng: Random, most_uncertain: int = 6, relations: int | None = None) -> SmallWorld:
    """A few facts of three to five entities; up to some of them are uncertain."""
    entities, relations = rng.choice((3, 3, 4, 5)), relations or rng.choice((1, 2, 2, 3))
    facts = {draw_fact(rng, entities, relations): None for _ in range(rng.randint(6, 12))}
    names = rng.sample(list(facts), k=min(len(facts), rng.randint(1, most_uncertain)))
    uncertain = {fact: rng.choice(PROBABILITIES) for fact in names}
    return SmallWorld(entities, 2 * relations, CLASSES, frozenset(facts).difference(uncertain), uncertain)


def draw_fact(rng: Random, entities: int, relations: int):
    """A link, or a class of an entity."""
    if rng.random() < 0.2:
        return rng.randrange(entities), rng.choice(CLASSES)
    return rng.randrange(entities), 2 * rng.randrange(relations), rng.randrange(entities)


def draw_path(rng: Random, world: SmallWorld, depth: int = 2) -> Path:
    """A path of one relation, or up to two levels of others."""
    sort = rng.choice(["relation"] * 4 + ["other"] + ["sequence", "choice", "repeat"] * depth)
    if sort == "relation":
        return Relation(rng.randrange(world.relations))
    if sort == "other":
        return AnyRelation(None, frozenset(rng.sample([0, 2], rng.randint(0, 1))), rng.random() < 0.5)
    if sort == "repeat":
        return PathRepeat(draw_path(rng, world, depth - 1), *rng.choice(((0, 1), (0, None), (1, None))))
    parts = tuple(draw_path(rng, world, depth - 1) for _ in range(2))
    return PathSequence(parts) if sort == "sequence" else PathChoice(parts)


def draw_term(rng: Random, world: SmallWorld, names: tuple[str, ...]) -> Term:
    """A variable, or sometimes an entity."""
    return rng.choice(names) if rng.random() < 0.75 else rng.randrange(world.entities)


def draw_pattern(rng: Random, world: SmallWorld, names: tuple[str, ...] = VARIABLES) -> Pattern:
    """A pattern of any sort but an exclusion."""
    term, other = draw_term(rng, world, names), draw_term(rng, world, names)
    sort = rng.choice(["link"] * 6 + ["path"] * 2 + ["relation", "class", "class of", "given"])
    if sort == "link":
        return LinkPattern(term, Relation(rng.randrange(world.relations)), other)
    if sort == "path":
        return LinkPattern(term, draw_path(rng, world), other)
    if sort == "relation":
        excluded = frozenset([0] if rng.random() < 0.2 else [])
        return LinkPattern(term, AnyRelation(rng.choice(("p", "p", "q")), excluded, rng.random() < 0.3), other)
    if sort == "class":
        return TypePattern(term, rng.choice(CLASSES))
    if sort == "class of":
        return TypePattern(term, None, "c")
    variables = tuple(rng.sample(names, rng.randint(1, 2)))
    values = [*range(world.entities), *[None] * (rng.random() < 0.3)]
    return Given(variables, tuple(tuple(rng.choice(values) for _ in variables) for _ in range(rng.randint(1, 4))))


def draw_conjunction(rng: Random, world: SmallWorld, most: int = 3, exclusions: bool = True) -> Conjunction:
    """Up to some patterns, and sometimes an exclusion."""
    own = [draw_pattern(rng, world) for _ in range(rng.randint(1, most))]
    if exclusions and rng.random() < 0.25:
        inner = ("x", "y", "w")
        parts = [[draw_pattern(rng, world, inner) for _ in range(rng.randint(1, 2))] for _ in range(rng.randint(1, 2))]
        own.append(Exclusion(tuple(map(tuple, parts))))
    return tuple(own)


def draw_query(rng: Random, world: SmallWorld, most: int = 3, exclusions: bool = True) -> RowQuery:
    """One or two conjunctions; all variables or some of them are selected."""
    parts = tuple(draw_conjunction(rng, world, most, exclusions) for _ in range(rng.choice((1, 1, 2))))
    names = sorted({name for part in parts for pattern in part for name in pattern_variables(pattern)} - {"w"})
    return RowQuery(parts, tuple(rng.sample(names, min(len(names), rng.randint(0, 3)))))


def worlds(**choices) -> st.SearchStrategy[SmallWorld]:
    """A small world."""
    return randoms.map(lambda rng: draw_world(rng, **choices))


@st.composite
def worlds_and_queries(draw, most_uncertain: int = 6, **choices) -> tuple[SmallWorld, RowQuery]:
    """A small world with a query."""
    rng = draw(randoms)
    world = draw_world(rng, most_uncertain)
    return world, draw_query(rng, world, **choices)
