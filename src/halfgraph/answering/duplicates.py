"""Likely duplicates: entities with nearly the same label that share most of their links."""

import re
import unicodedata
from typing import NamedTuple

import numpy as np
from rapidfuzz import fuzz, process

from halfgraph.graph.folder import Graph
from halfgraph.prediction.neighbours import Neighbours

NEAR = 0.3  # least nearness of two entities, the cosine of their links
ALIKE = 88.0  # least similarity of two labels, of 100
CHUNK = 100_000  # pairs at a time
_NUMERAL = re.compile(r"\d+|\b[ivxlcdm]+\b")  # Louis XIV and Louis XV are two kings


class DuplicatePair(NamedTuple):
    """Two entities that may be one: the similarity of their labels (of 100) and of their links (of 1)."""

    first: int
    second: int
    label: float
    nearness: float


def likely_duplicates(graph: Graph, neighbours: Neighbours) -> list[DuplicatePair]:
    """Return pairs of entities with nearly equal labels and links, the most similar first."""
    rows, columns = np.nonzero((neighbours.ids >= 0) & (neighbours.nearness >= NEAR))
    others, nearness = neighbours.ids[rows, columns], neighbours.nearness[rows, columns]
    same_type = np.flatnonzero(graph.types.of(rows) == graph.types.of(others))
    pairs: dict[tuple[int, int], DuplicatePair] = {}  # a pair may be found from both ends
    for first in range(0, len(same_type), CHUNK):
        chosen = same_type[first : first + CHUNK]
        labels = [[normalise(graph.entities.label(int(own))) for own in ends[chosen]] for ends in (rows, others)]
        similar = process.cpdist(*labels, scorer=fuzz.token_sort_ratio, score_cutoff=ALIKE)
        for row in np.flatnonzero(similar).tolist():
            if numerals(labels[0][row]) == numerals(labels[1][row]):
                ends = _ordered(rows[chosen[row]], others[chosen[row]])
                pairs[ends] = DuplicatePair(*ends, float(similar[row]), float(nearness[chosen[row]]))
    return sorted(pairs.values(), key=lambda pair: (-pair.label * pair.nearness, pair[:2]))


def _ordered(one: int, other: int) -> tuple[int, int]:
    return min(int(one), int(other)), max(int(one), int(other))


def normalise(label: str) -> str:
    """Return a label in lower case, without accents and punctuation."""
    plain = "".join(own for own in unicodedata.normalize("NFKD", label) if not unicodedata.combining(own))
    return re.sub(r"[\W_]+", " ", plain).strip().casefold()


def numerals(label: str) -> list[str]:
    """Return the numbers of a label, Roman ones too: labels that differ in them name different things."""
    return _NUMERAL.findall(label)
