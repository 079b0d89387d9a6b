"""The paper's equations one symbol at a time, in numpy with loops; weights are a model's own, by their names.

Nothing here is quick or clever: a line is to be held against the paper. Equations are numbered as in docs/paper.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.tree import Anchor, Intersect, Project, Query
from query_oracles import Plain

Vector = NDArray[np.float64]
Weights = Mapping[str, NDArray[np.float64]]


def zeros(dim: int) -> Vector:
    """The vector of nothing."""
    return np.zeros(dim)


def dot(one: Vector, other: Vector) -> float:
    """The inner product."""
    return math.fsum(float(one[i]) * float(other[i]) for i in range(len(one)))


def length(vector: Vector) -> float:
    """The L2 norm."""
    return math.sqrt(dot(vector, vector))


def times(matrix: Vector, vector: Vector) -> Vector:
    """M v, one entry after another."""
    return np.array([dot(matrix[row], vector) for row in range(len(matrix))])


def look_up(table: Vector, entity: int) -> Vector:
    """Eq. 3: e = Z x / |Z x|; the one-hot x picks a column of Z, which is a row of the table."""
    one_hot = [1.0 if other == entity else 0.0 for other in range(len(table))]
    row = sum((one_hot[other] * table[other] for other in range(len(table))), zeros(table.shape[1]))
    return row / length(row)


def bilinear(stored: Vector, relation: int, vector: Vector) -> Vector:
    """Eq. 1: e' = R_r e; what is stored is the transpose of R_r, for rows of vectors are multiplied from the left."""
    return times(stored[relation].T, vector)


def diagonal(stored: Vector, relation: int, vector: Vector) -> Vector:
    """The diagonal reading of eq. 1: e' = diag(r) e."""
    return np.array([stored[relation][i] * vector[i] for i in range(len(vector))])


def translation(stored: Vector, relation: int, vector: Vector) -> Vector:
    """TransE's reading of eq. 1: e' = e + r."""
    return np.array([vector[i] + stored[relation][i] for i in range(len(vector))])


PROJECTIONS = {"bilinear": bilinear, "diagonal": diagonal, "translation": translation}


def mean(parts: Sequence[Vector]) -> Vector:
    """Psi, as the element-wise mean."""
    return np.array([math.fsum(part[i] for part in parts) / len(parts) for i in range(len(parts[0]))])


def least(parts: Sequence[Vector]) -> Vector:
    """Psi, as the element-wise minimum."""
    return np.array([min(part[i] for part in parts) for i in range(len(parts[0]))])


PSI: Mapping[str, Callable[[Sequence[Vector]], Vector]] = {"mean": mean, "min": least}


def gqe(weights: Weights, psi: str, type_id: int, parts: Sequence[Vector]) -> Vector:
    """Eq. 2: e'' = W1 Psi(ReLU(W2 e'_i)); the stored matrices are transposed."""
    inner, outer = weights["inner"][type_id].T, weights["outer"][type_id].T
    hidden = [np.array([max(0.0, x) for x in times(inner, part)]) for part in parts]
    return times(outer, PSI[psi](hidden))


def shares(attention: Vector, type_id: int, centre: Vector, parts: Sequence[Vector]) -> list[list[float]]:
    """Eq. 5: alpha_ik, for each part i and head k; a_k is one column of 2d numbers."""
    found = [[0.0] * attention.shape[2] for _ in parts]
    for k in range(attention.shape[2]):
        vector = attention[type_id][:, k]
        powers = []
        for part in parts:
            logit = dot(vector, np.concatenate([centre, part]))
            powers.append(math.exp(logit if logit > 0 else 0.2 * logit))  # LeakyReLU
        for i in range(len(parts)):
            found[i][k] = powers[i] / math.fsum(powers)
    return found


def layer_norm(vector: Vector, scale: Vector, shift: Vector) -> Vector:
    """Ba et al.'s layer normalisation."""
    middle = math.fsum(vector) / len(vector)
    spread = math.fsum((x - middle) ** 2 for x in vector) / len(vector)
    return np.array([(vector[i] - middle) / math.sqrt(spread + 1e-5) * scale[i] + shift[i] for i in range(len(vector))])


def attention(weights: Weights, psi: str, type_id: int, parts: Sequence[Vector], activation: str = "sigmoid") -> Vector:
    """Eqs. 4 to 8: the contextual graph attention."""
    centre = PSI[psi](parts)  # eq. 4
    alpha = shares(weights["attention"], type_id, centre, parts)  # eq. 5
    heads = weights["attention"].shape[2]
    mixed = zeros(len(centre))
    for k in range(heads):
        for i, part in enumerate(parts):
            mixed = mixed + alpha[i][k] * part / heads
    attended = np.array([1 / (1 + math.exp(-x)) for x in mixed]) if activation == "sigmoid" else mixed  # eq. 6
    place = type_id if len(weights["norm1.scale"]) > 1 else 0
    first = layer_norm(attended + centre, weights["norm1.scale"][place], weights["norm1.shift"][place])  # eq. 7
    fed = times(weights["weight"][type_id].T, first) + weights["bias"][type_id]
    return layer_norm(fed + first, weights["norm2.scale"][place], weights["norm2.shift"][place])  # eq. 8


def counted(matches: Sequence[int], parts: Sequence[Vector]) -> Vector:
    """Wang et al.: each part weighted by the inverse of how many triples it matches; no triple counts as one."""
    inverses = [1 / max(1, count) for count in matches]
    found = zeros(len(parts[0]))
    for inverse, part in zip(inverses, parts, strict=True):
        found = found + inverse / math.fsum(inverses) * part
    return found


def cosine(one: Vector, other: Vector) -> float:
    """Eq. 11."""
    return dot(one, other) / (length(one) * length(other))


def hinge(query: Vector, answer: Vector, negatives: Sequence[Vector], margin: float) -> float:
    """A term of eqs. 10 and 12; the mean over the negatives instead of the sum, and nothing where there is none."""
    terms = [max(0.0, margin - cosine(query, answer) + cosine(query, negative)) for negative in negatives]
    return math.fsum(terms) / len(terms) if terms else 0.0


def softmax(query: Vector, answer: Vector, negatives: Sequence[Vector], temperature: float) -> float:
    """The cross-entropy of the answer among the negatives."""
    right = cosine(query, answer) / temperature
    return math.log(math.fsum(math.exp(cosine(query, other) / temperature - right) for other in (answer, *negatives)))


def soft_hinge(query: Vector, answer: Vector, negatives: Sequence[Vector], temperature: float) -> float:
    """The mean over the negatives of log(1 + exp of how far each is above the answer)."""
    terms = [math.log1p(math.exp((cosine(query, other) - cosine(query, answer)) / temperature)) for other in negatives]
    return math.fsum(terms) / len(terms) if terms else 0.0


def level(query: Vector, negatives: Sequence[Vector], count: int, temperature: float) -> float:
    """How high a question's wrong scores are: the mean of their exponentials, over all candidates of the type."""
    return math.fsum(math.exp(cosine(query, other) / temperature) for other in negatives) / count


def pooled(query: Vector, answer: Vector, levels: Sequence[float], temperature: float) -> float:
    """The cross-entropy of an answer against the mean level of all questions of its structure."""
    wrong = math.fsum(levels) / len(levels)
    return math.log1p(wrong / math.exp(cosine(query, answer) / temperature))


def usual_type(plain: Plain, type_count: int, relations: Sequence[int]) -> int:
    """The type with the most votes, each relation giving the shares of the types of its tails; the first of equals."""
    votes = [0.0] * type_count
    for relation in relations:
        tails = [tail for _, its, tail in plain.edges if its == relation]
        for tail in tails:
            votes[plain.types[tail]] += 1 / len(tails)
    return max(range(type_count), key=lambda type_id: (round(votes[type_id], 6), -type_id))


@dataclass(frozen=True)
class Model:
    """A model as its weights and its graph, which says types and counts; `vector` is the walk by recursion."""

    weights: Weights
    projection: str
    intersection: str
    centre: str
    activation: str
    plain: Plain
    type_count: int

    def entity(self, entity: int) -> Vector:
        """The vector of an entity."""
        return look_up(self.weights["entities.table"], entity)

    def vector(self, node: Query) -> Vector:
        """The vector of a query: anchors are looked up, edges project, meeting paths intersect."""
        if isinstance(node, Anchor):
            return self.entity(int(node.entity))
        if isinstance(node, Project):
            stored = self.weights["projection.weight"]
            return PROJECTIONS[self.projection](stored, int(node.relation), self.vector(node.source))
        assert isinstance(node, Intersect)
        parts = [self.vector(part) for part in node.parts]
        own = {name.removeprefix("intersection."): value for name, value in self.weights.items()}
        if self.intersection == "simple":
            return PSI[self.centre](parts)
        if self.intersection == "counted":
            return counted([self.matches(part) for part in node.parts], parts)
        if self.intersection == "gqe":
            return gqe(own, self.centre, self.type_id(node), parts)
        return attention(own, self.centre, self.type_id(node), parts, self.activation)

    def type_id(self, node: Intersect) -> int:
        """The type of an intersected variable: as the query says, or the usual one."""
        if node.type_id is not None:
            return node.type_id
        return usual_type(self.plain, self.type_count, last_relations(node))

    def matches(self, part: Query) -> int:
        """How many triples the last step of a path matches."""
        if not isinstance(part, Project):
            return 1
        from_anywhere = not isinstance(part.source, Anchor)
        return sum(
            relation == part.relation and (from_anywhere or head == part.source.entity)
            for head, relation, _ in self.plain.edges
        )


def last_relations(node: Query) -> list[int]:
    """The relations that lead to a variable."""
    if isinstance(node, Project):
        return [int(node.relation)]
    return [] if isinstance(node, Anchor) else [relation for part in node.parts for relation in last_relations(part)]
