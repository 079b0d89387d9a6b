"""Why a missing triple is probable: the strongest of the link predictor's evidence, in words.

The evidence of a pair of entities is weighed as the link predictor weighs it, against a pair that no model favours: a
uniform softmax, no votes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.predicted_rows import rounded
from halfgraph.answering.proposals import ProposedTriple
from halfgraph.prediction.link_predictor import COMPLEX, COSINE, VOTE, LinkPredictor
from halfgraph.prediction.missing_triples import MissingTriple

EXAMPLES = 3  # entities that a reason names
MODELS = {COSINE: "the embedding", COMPLEX: "the link model ComplEx"}


@dataclass(frozen=True)
class LinkReasons:
    """Reasons of missing triples."""

    links: LinkPredictor
    names: EntityNames

    def reason(self, head: int, relation: int, tail: int) -> str:
        """Return the strongest evidence for a triple."""
        there, back = self._evidence(head, relation, tail)
        of_models = {model: there[model] + back[model] for model in MODELS}
        model = max(of_models, key=lambda own: of_models[own])
        strongest = max(there[VOTE], back[VOTE], of_models[model])
        if strongest <= 0:
            return self._frequency(relation, tail)
        if strongest == there[VOTE]:
            return self._similar_heads(head, relation, tail)
        if strongest == back[VOTE]:
            return self._similar_tails(head, relation, tail)
        return self._rank(head, relation, tail, model)

    def _evidence(self, head: int, relation: int, tail: int) -> list[NDArray[np.float64]]:
        """Log-odds by each feature of the pair, from the head and from the tail."""
        links, evidence = self.links, []
        both, sides = links.features(head, relation, np.array([tail])), ((relation, head), (relation ^ 1, tail))
        for (features,), (direction, entity) in zip(both, sides, strict=True):
            values = features[:3].astype(np.float64)
            values[[COSINE, COMPLEX]] += log(links.graph.entity_count)
            evidence.append(values * links.weights.matrix[links.sorts(direction, np.array([entity]))[0], :3])
        return evidence

    def _similar_heads(self, head: int, relation: int, tail: int) -> str:
        """Say which entities like the head have the triple's relation and tail."""
        near = self._neighbours(head)
        all_, have = (np.intersect1d(near, own) for own in (self._heads(relation), self._graph_heads(relation, tail)))
        return f"{len(have)} of {len(all_)} similar subjects with this relation have it too: {self._some(near, have)}"

    def _similar_tails(self, head: int, relation: int, tail: int) -> str:
        """Say to which entities like the tail the head has the relation."""
        near = self._neighbours(tail)
        have = np.intersect1d(near, self.links.graph.tails_of(head, relation))
        what = "similar object" if len(have) == 1 else "similar objects"
        return f"it has this relation to {len(have)} {what}: {self._some(near, have)}"

    def _rank(self, head: int, relation: int, tail: int, model: int) -> str:
        """Say at which place a model ranks the tail among the entities that are not known tails of the head."""
        features = self.links.pair_features(np.array([head]), relation, slice(None))
        scores = next(own for column, (own, _) in enumerate(features) if column == model)[0].numpy()
        unknown = np.ones(len(scores), dtype=bool)
        unknown[self.links.graph.tails_of(head, relation)] = False
        place = 1 + int((scores[unknown] > scores[tail]).sum())
        return f"{MODELS[model]} ranks it number {place:,} of {int(unknown.sum()):,} possible objects"

    def _frequency(self, relation: int, tail: int) -> str:
        tails = self.links.triples.of_relation(relation)[1]
        count = int((tails == tail).sum())
        return f"{count:,} of {len(tails):,} triples of this relation have this object"

    def _neighbours(self, entity: int) -> NDArray[np.int32]:
        ids = self.links.neighbours.ids[entity]
        return ids[ids >= 0]

    def _heads(self, relation: int) -> NDArray[np.int32]:
        return self.links.triples.of_relation(relation)[0]

    def _graph_heads(self, relation: int, tail: int) -> NDArray[np.int32]:
        return self.links.graph.tails_of(tail, relation ^ 1)

    def _some(self, nearest_first: NDArray[np.int32], chosen: Sequence[int] | NDArray[np.int32]) -> str:
        """Name a few of the chosen entities, the nearest first."""
        order = [int(entity) for entity in nearest_first if entity in chosen]
        labels = [self.names.entity(entity).label for entity in order[:EXAMPLES]]
        return ", ".join([*labels, *["..."] * (len(order) > EXAMPLES)])


def proposals_of(links: LinkPredictor, names: EntityNames, triples: Iterable[MissingTriple]) -> list[ProposedTriple]:
    """Return missing triples with names and reasons; one of an inverse relation is turned round."""
    reasons, proposals = LinkReasons(links, names), []
    for head, relation, tail, probability in triples:
        if relation & 1:
            head, relation, tail = tail, relation ^ 1, head
        ends = names.entity(head), names.relation(relation), names.entity(tail)
        proposals.append(ProposedTriple(*ends, rounded(probability), reasons.reason(head, relation, tail)))
    return proposals
