"""Both ways at once: what a query's vector says of an entity and what its edges say, weighed by structure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation.ranking import in_order
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.answerers import Answerer
from halfgraph.prediction.calibration import nearest_structure
from halfgraph.prediction.logistic import Examples, logistic
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import Structure
from halfgraph.query.tree import Intersect, Query, nodes
from halfgraph.workload.sampling import Questions

Scores = NDArray[np.float32]
Starts = NDArray[np.int64]  # where each type of entities begins, and where the last ends
SOME = 1e-3  # the least that evidence counts
LEAST = 1e-12  # what is added to the level of scores by edges
NO_EDGES = 1e-2  # what is added to a score by edges, as a multiple of that level, before its logarithm
TEMPERATURE = 0.1  # of cosines
NEAR, FAR = 40, 100  # wrong answers of each question: the nearest by either way, and others at random
MOST = 10  # right answers of a question that are counted
AT_ONCE = 16  # questions
FEW = 30  # questions of a structure below which its weights are those of all
# What the wrong answers of a question count in all when weights are fitted by which answers are told from wrong ones:
# the nearest, others, others of the answer's type, and those at the end of some of its paths.
SHARES = (0.1, 0.1, 0.4, 0.4)


@dataclass(frozen=True)
class Backdrop:
    """What is known of the entities, whichever the query is."""

    starts: Starts
    ties: Scores  # the logarithm of how many edges an entity has, and one more

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Backdrop":
        """That of a graph."""
        return cls(graph.types.starts, np.log1p(np.diff(graph.starts)).astype(np.float32))

    def without_ties(self) -> "Backdrop":
        """The same, as if all entities had as many edges."""
        return replace(self, ties=np.zeros_like(self.ties))


@dataclass(frozen=True)
class Chance:
    """How likely it is that an entity is an answer: its evidence, and how high the query's scores are as a whole."""

    bias: float
    evidence: float
    edges_level: float
    vector_level: float


@dataclass(frozen=True)
class Fusion:
    """What each way weighs for a structure, in log-odds.

    There are two readings, which rank the entities of one query alike. The first tells answers from wrong ones of their
    own query, whichever query that is; the second says how likely an entity is, so it minds how many answers there are.
    """

    bias: float
    edges: float  # the logarithm of the score by edges, as a multiple of the query's level
    vector: float  # the cosine above the query's level, in temperatures
    low: float  # the same as far as it is below the level: of those that edges say nothing of, it says most
    ties: float  # where paths meet: how many edges it has, against the level; some path ends at a hub in any case
    edges_level: float  # how high the query's scores are as a whole, by edges, what is certain apart
    vector_level: float  # and by its vector
    chance: Chance

    def fuse(self, by_edges: Scores, by_vector: Scores, backdrop: Backdrop, likely: bool) -> Scores:
        """The scores of all entities (n, entities), how likely they are or what tells them apart; 1: certain."""
        *evidence, edges_level, vector_level = features_of(by_edges, by_vector, backdrop)
        weights = (self.edges, self.vector, self.low, self.ties)
        of_query, scale = (self.chance, self.chance.evidence) if likely else (self, 1.0)
        level = of_query.bias + of_query.edges_level * edges_level + of_query.vector_level * vector_level
        parts = zip(weights, evidence, strict=True)
        log_odds = sum((np.float32(scale * weight) * part for weight, part in parts), level.astype(np.float32))
        return np.where(by_edges >= 1, np.float32(1), 1 / (1 + np.exp(-log_odds))).astype(np.float32)


def features_of(by_edges: Scores, by_vector: Scores, backdrop: Backdrop) -> tuple[Scores, ...]:
    """What is said of each entity (n, entities): edges, vector, low, ties; and of the query (n, 1): both levels.

    A level is the mean over the entities of a type, where what is certain does not count; of several types that answers
    may have, as much of each as the edges say.
    """
    used = backdrop.starts[:-1][np.diff(backdrop.starts) > 0]  # a sum over no entities would be that of the next type
    sizes = np.diff(np.append(used, by_edges.shape[-1]))
    uncertain = by_edges < 1
    mass = np.add.reduceat(by_edges * uncertain, used, axis=-1, dtype=np.float64) + LEAST
    shares = mass / mass.sum(axis=-1, keepdims=True)
    means = mass / np.maximum(np.add.reduceat(uncertain, used, axis=-1, dtype=np.float64), 1)
    edges_level = (shares * np.log(means)).sum(axis=-1, keepdims=True)
    warm = by_vector / np.float32(TEMPERATURE)
    cosines = np.log(np.add.reduceat(np.exp(warm), used, axis=-1, dtype=np.float64) / sizes)
    vector_level = (shares * cosines).sum(axis=-1, keepdims=True)
    above = warm - vector_level.astype(np.float32)
    edges = np.log(by_edges / np.exp(edges_level).astype(np.float32) + np.float32(NO_EDGES))
    usual = shares @ (np.add.reduceat(backdrop.ties, used, dtype=np.float64) / sizes)
    ties = backdrop.ties - usual[:, None].astype(np.float32)
    return edges, above, -np.logaddexp(np.float32(0), -above), ties, edges_level, vector_level


@dataclass(frozen=True)
class FusedAnswerer:
    """Both ways as one answerer."""

    by_edges: Answerer
    by_vector: Answerer
    fusions: Mapping[str, Fusion]  # by the structure's short name
    backdrop: Backdrop
    name: str = "both"
    likely: bool = False

    def scores(self, structure: Structure, anchors: NDArray[np.int32], relations: NDArray[np.int32]) -> Scores:
        """The score of every entity (n, entities)."""
        fusion = fusion_for(structure.query, self.fusions)
        by_edges, by_vector = (way.scores(structure, anchors, relations) for way in (self.by_edges, self.by_vector))
        return fusion.fuse(by_edges, by_vector, self.backdrop, self.likely)


def fusion_for(query: Query, fusions: Mapping[str, Fusion]) -> Fusion:
    """The weights for a query: those of its structure, or of the one that it is most like."""
    fusion = fusions[nearest_structure(query, tuple(fusions))]
    return fusion if any(isinstance(node, Intersect) for node in nodes(query)) else replace(fusion, ties=0.0)


def fit_fusions(
    by_edges: Answerer,
    by_vector: Answerer,
    sets: Iterable[Questions],
    backdrop: Backdrop,
    seed: int,
    told: Callable[[int], None] = lambda _: None,
) -> dict[str, Fusion]:
    """The weights for each structure that there are questions with hard answers of."""
    rng = np.random.default_rng(seed)
    examples: dict[str, list[tuple[Examples, Scores]]] = {}
    for questions in sets:
        if questions.hard is None:
            continue
        found = examples.setdefault(questions.structure.short, [])
        own = backdrop if questions.structure.has_intersection else backdrop.without_ties()

        def both(rows: slice, some: Questions = questions) -> tuple[Scores, Scores]:
            asked = (some.structure, some.anchors[rows], some.relations[rows])
            return by_edges.scores(*asked), by_vector.scores(*asked)

        for rows, scores in in_order(both, len(questions), AT_ONCE):
            for row, edges, vector in zip(range(rows.start, rows.stop), *scores, strict=True):
                found.append(_of_question(edges[None], vector[None], own, questions, row, rng))
            told(rows.stop - rows.start)
    everything = [one for some in examples.values() for one in some]
    return {name: _fitted(some if len(some) >= FEW else everything) for name, some in examples.items() if some}


def _of_question(
    by_edges: Scores, by_vector: Scores, backdrop: Backdrop, questions: Questions, row: int, rng: np.random.Generator
) -> tuple[Examples, Scores]:
    """Hard answers of a question, and wrong ones; and what each counts when it is asked how likely answers are."""
    assert questions.hard is not None
    answers = questions.hard[row]
    wrong = np.ones(by_edges.shape[1], dtype=bool)
    wrong[answers] = wrong[_of(questions.easy, row)] = False
    near = np.zeros(len(wrong), dtype=bool)
    for scores in (by_edges[0], by_vector[0]):
        near[np.argpartition(-np.where(wrong, scores, -1), min(NEAR, len(scores) - 1))[:NEAR]] = True
    others = np.flatnonzero(wrong & ~near)
    far = rng.permutation(others)[:FAR]
    right = rng.permutation(answers)[:MOST]
    sets = [np.flatnonzero(wrong & near), far, _of(questions.negatives, row), _of(questions.hard_negatives, row)]
    chosen = np.concatenate([right, *sets]).astype(np.int64)
    sizes = [len(right), *(len(some) for some in sets)]
    features = [np.broadcast_to(part, by_edges.shape)[0, chosen] for part in features_of(by_edges, by_vector, backdrop)]
    true = (np.arange(len(chosen)) < len(right)).astype(np.float32)
    # Every question counts as one right answer, as in the measures: else those with many answers would rule.
    there = sum(share for share, some in zip(SHARES, sets, strict=True) if len(some)) or 1.0
    apart = [1.0, *(share / there for share in SHARES)]
    each = 1 / max(len(answers), 1)  # as many wrong ones as there are
    likely = [1.0, len(sets[0]) * each, len(others) * each, 0.0, 0.0]
    weights = [
        np.repeat(np.array(counts) / np.maximum(sizes, 1), sizes).astype(np.float32) for counts in (apart, likely)
    ]
    return Examples(np.stack(features, axis=1), true, weights[0], np.zeros(len(chosen), np.int64)), weights[1]


def _of(sets: Ragged | None, row: int) -> NDArray[np.int32]:
    """The entities of a row."""
    return np.empty(0, np.int32) if sets is None else sets[row]


def _fitted(examples: list[tuple[Examples, Scores]]) -> Fusion:
    """The weights of some questions: what tells answers apart, then how likely what it says is."""
    every = Examples.together([one for one, _ in examples])
    bias, (edges, vector, low, ties, edges_level, vector_level) = _rounded(every)
    evidence = every.features[:, :4] @ np.array([edges, vector, low, ties], np.float32)
    of_query = np.column_stack([evidence, every.features[:, 4:]])
    counts = np.concatenate([likely for _, likely in examples])
    chance, (firm, *levels) = _rounded(Examples(of_query, every.true, counts, every.groups))
    # A model that has learnt nothing may seem to be right the other way round; both readings rank alike all the same.
    likely = Chance(chance, max(firm, SOME), *levels)
    return Fusion(bias, edges, vector, low, ties, edges_level, vector_level, likely)


def _rounded(examples: Examples) -> tuple[float, list[float]]:
    """The bias and the weights that fit the examples."""
    fitted = logistic(examples, 1)
    return round(fitted.bias + float(fitted.offsets[0]), 6), [round(float(weight), 6) for weight in fitted.weights]


def as_dict(fusions: Mapping[str, Fusion]) -> dict[str, Any]:
    """The weights, ready for JSON."""
    return {name: asdict(fusion) for name, fusion in fusions.items()}


def of_dict(kept: Mapping[str, Any]) -> dict[str, Fusion]:
    """The weights, as JSON has them."""
    return {name: Fusion(**{**one, "chance": Chance(**one["chance"])}) for name, one in kept.items()}
