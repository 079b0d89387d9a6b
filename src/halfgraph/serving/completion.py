"""Names as they are typed: entities and relations by any word of their label or by IRI, best known first."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.sparql.prefixes import Prefixes

FEW = 5  # when fewer are found by how they begin, those spelled nearly so are looked for
MOST_FUZZY = 50_000  # the best known names that are compared one by one, which takes some milliseconds
LIKE = 75.0  # of 100
LAST = "\U0010ffff"


@dataclass(frozen=True)
class Names:
    """The names of one vocabulary in the order of what they are found by; no text is kept twice."""

    words: Vocabulary
    what: str
    degrees: NDArray[np.int64]
    by_word: NDArray[np.int32]  # the number of a name, for each word of its label, sorted by the label from there on
    word_starts: NDArray[np.int32]  # where that word begins
    by_name: NDArray[np.int32]

    @classmethod
    def of(cls, words: Vocabulary, what: str, degrees: NDArray[np.int64]) -> "Names":
        """The names of a vocabulary, sorted."""
        entries = sorted(
            (text[start:], number, start) for number, text in enumerate(_labels(words)) for start in _word_starts(text)
        )
        numbers = np.array([number for _, number, _ in entries], dtype=np.int32)
        starts = np.array([start for _, _, start in entries], dtype=np.int32)
        names = sorted((name, number) for number, name in enumerate(words.names))
        return cls(words, what, degrees, numbers, starts, np.array([number for _, number in names], dtype=np.int32))

    def beginning(self, text: str) -> NDArray[np.int32]:
        """The names with a word in their label that begins so, each once."""
        wanted = plain(text)
        return _once(self.by_word[_range(wanted, len(self.by_word), self._from_word)])

    def named(self, beginnings: Iterable[str]) -> NDArray[np.int32]:
        """The names that begin in one of some ways, each once."""
        name = lambda place: self.words.name(int(self.by_name[place]))  # noqa: E731
        ranges = [self.by_name[_range(text, len(self.by_name), name)] for text in beginnings]
        return _once(np.concatenate(ranges)) if ranges else np.empty(0, np.int32)

    def like(self, text: str, count: int) -> list[int]:
        """The names with a word in their label that begins nearly so, most alike first."""
        wanted = plain(text)
        texts = [text[: len(wanted) + 1] for text in self._well_known[0]]
        found = process.extract(wanted, texts, scorer=fuzz.ratio, limit=4 * count, score_cutoff=LIKE)
        numbers = self._well_known[1]
        ranked = sorted(found, key=lambda one: (-one[1], -self.degrees[numbers[one[2]]]))
        return list(dict.fromkeys(numbers[place] for _, _, place in ranked))[:count]

    @property
    def _well_known(self) -> tuple[list[str], list[int]]:
        """The labels from each word on, and the numbers, of the best known names."""
        if "_known" not in self.__dict__:
            places = np.argsort(-self.degrees[self.by_word], kind="stable")[:MOST_FUZZY].tolist()
            known = [self._from_word(place) for place in places], self.by_word[places].tolist()
            object.__setattr__(self, "_known", known)
        found: tuple[list[str], list[int]] = self.__dict__["_known"]
        return found

    def _from_word(self, place: int) -> str:
        """What an entry is sorted by."""
        return plain(self.words.label(int(self.by_word[place])))[self.word_starts[place] :]


def plain(text: str) -> str:
    """A text for comparison: small letters, and spaces for underscores."""
    return text.replace("_", " ").casefold()


def _labels(words: Vocabulary) -> Iterable[str]:
    return (plain(words.label(number)) for number in range(len(words)))


def _word_starts(text: str) -> list[int]:
    """Where the words of a text begin."""
    return [
        place for place, sign in enumerate(text) if sign.isalnum() and (place == 0 or not text[place - 1].isalnum())
    ]


def _range(beginning: str, count: int, text_at: Callable[[int], str]) -> slice:
    """The places of what begins so, in a sorted order."""
    first = bisect_left(range(count), beginning, key=text_at)
    return slice(first, bisect_left(range(count), beginning + LAST, lo=first, key=text_at))


def _once(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    found: NDArray[np.int32] = np.unique(numbers)
    return found


@dataclass(frozen=True)
class Completion:
    """The names of a graph, ready to be completed."""

    graph: Graph
    prefixes: Prefixes
    names: tuple[Names, ...]

    @classmethod
    def of(cls, graph: Graph, view: str) -> "Completion":
        """That of a graph; degrees are those of a view."""
        edges: KnowledgeGraph = getattr(graph, view)
        uses = np.bincount(edges.relations // 2, minlength=len(graph.relations)) // 2
        entities = Names.of(graph.entities, "entity", edges.degrees())
        return cls(graph, Prefixes.of(graph), (entities, Names.of(graph.relations, "relation", uses.astype(np.int64))))

    def complete(self, text: str, what: str, limit: int) -> list[dict[str, Any]]:
        """The names that a text may become, best known first, then those spelled nearly so."""
        chosen = [names for names in self.names if what in ("any", names.what)]
        found = [item for names in chosen for item in self._found(names, text.strip(), limit)]
        found.sort(key=lambda item: (item["rank"], -item["degree"]))  # stable: equals stay as they were found
        return [{name: value for name, value in item.items() if name != "rank"} for item in found[:limit]]

    def _found(self, names: Names, text: str, limit: int) -> list[dict[str, Any]]:
        """What one vocabulary has for a text."""
        iris = self._iris(text)
        numbers = names.named(iris) if iris else names.beginning(text)
        best = numbers[np.argsort(-names.degrees[numbers], kind="stable")[:limit]].tolist()
        items = [self._item(names, number, 0) for number in best]
        if len(best) < FEW and len(text) > 2:
            rest = text.rpartition(":")[2] if iris else text
            near = [number for number in names.like(rest, limit) if number not in best]
            items += [self._item(names, number, 1 + place) for place, number in enumerate(near)]
        return items

    def _iris(self, text: str) -> list[str]:
        """The beginnings of names that a text means if it is the beginning of an IRI: <http..., or dbr:Uni."""
        prefix, colon, local = text.partition(":")
        if text.startswith("<") or local.startswith("//"):
            return self.graph.namer.names(text.removeprefix("<").removesuffix(">"))
        if colon and prefix in self.prefixes.namespaces:
            return self.graph.namer.names(self.prefixes.namespaces[prefix] + local)
        return []

    def _item(self, names: Names, number: int, rank: int) -> dict[str, Any]:
        """A name as it is shown and put into a query; the rank is 0 unless it is only spelled nearly so."""
        iri = self.graph.namer.iri(names.words.name(number))
        types = self.graph.types
        return {
            "iri": iri,
            "label": names.words.label(number),
            "type": types.names[int(types.of(number))] if names.what == "entity" else None,
            "what": names.what,
            "degree": int(names.degrees[number]),
            "insert": self.prefixes.short(iri),
            "rank": rank,
        }
