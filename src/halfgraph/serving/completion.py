"""Completion of names: entities, relations and types by any word of their label or by IRI, most connected first."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from halfgraph.graph.folder import Graph
from halfgraph.graph.types import UNTYPED
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.serving.schema import CompletionItem
from halfgraph.sparql.prefixes import Prefixes

FEW = 5  # with fewer matches, names of similar spelling are added
MOST_FUZZY = 50_000  # most connected names that are compared one by one, in a few milliseconds
SIMILAR = 75.0  # of 100
LAST = "\U0010ffff"
What = Literal["entity", "relation", "type"]


@dataclass(frozen=True)
class CompletionIndex:
    """The names of one vocabulary, sorted by each word of their labels and by name."""

    words: Vocabulary
    what: What
    degrees: NDArray[np.int64]
    by_word: NDArray[np.int32]  # the id of a name, for each word of its label, sorted by the label from that word on
    word_starts: NDArray[np.int32]  # where that word starts
    by_name: NDArray[np.int32]

    @classmethod
    def of(cls, words: Vocabulary, what: What, degrees: NDArray[np.int64]) -> "CompletionIndex":
        entries = sorted(
            (label[word.start() :], number, word.start())
            for number, label in enumerate(normalise(words.label(number)) for number in range(len(words)))
            for word in re.finditer(r"\w+", label)
        )
        numbers = np.array([number for _, number, _ in entries], dtype=np.int32)
        starts = np.array([start for _, _, start in entries], dtype=np.int32)
        names = sorted((name, number) for number, name in enumerate(words.names))
        return cls(words, what, degrees, numbers, starts, np.array([number for _, number in names], dtype=np.int32))

    def with_word(self, text: str) -> NDArray[np.int32]:
        """Return the ids of names with a word in their label that starts with a text."""
        wanted = normalise(text)
        return np.unique(self.by_word[_range(wanted, len(self.by_word), self._from_word)])

    def with_prefix(self, prefixes: Iterable[str]) -> NDArray[np.int32]:
        """Return the ids of names that start with one of some texts."""
        name = lambda position: self.words.name(int(self.by_name[position]))  # noqa: E731
        ranges = [self.by_name[_range(text, len(self.by_name), name)] for text in prefixes]
        return np.unique(np.concatenate(ranges)) if ranges else np.empty(0, np.int32)

    def similar(self, text: str, count: int) -> list[int]:
        """Return the ids of names with a word in their label of similar spelling, most similar first."""
        wanted = normalise(text)
        texts = [label[: len(wanted) + 1] for label in self._most_connected[0]]
        matches = process.extract(wanted, texts, scorer=fuzz.ratio, limit=4 * count, score_cutoff=SIMILAR)
        ids = self._most_connected[1]
        ranked = sorted(matches, key=lambda match: (-match[1], -self.degrees[ids[match[2]]]))
        return list(dict.fromkeys(ids[position] for _, _, position in ranked))[:count]

    @cached_property
    def _most_connected(self) -> tuple[list[str], list[int]]:
        """The labels from each word on, and the ids, of the most connected names."""
        positions = np.argsort(-self.degrees[self.by_word], kind="stable")[:MOST_FUZZY].tolist()
        return [self._from_word(position) for position in positions], self.by_word[positions].tolist()

    def _from_word(self, position: int) -> str:
        """The label from the word of an entry on, which the entries are sorted by."""
        return normalise(self.words.label(int(self.by_word[position])))[self.word_starts[position] :]


def normalise(text: str) -> str:
    """Return a text for comparison: in lower case, with spaces for underscores."""
    return text.replace("_", " ").casefold()


def _range(prefix: str, count: int, text_at: Callable[[int], str]) -> slice:
    """The range of sorted texts that start with a prefix."""
    first = bisect_left(range(count), prefix, key=text_at)
    return slice(first, bisect_left(range(count), prefix + LAST, lo=first, key=text_at))


@dataclass(frozen=True)
class Completion:
    """Completion of the names of a graph."""

    graph: Graph
    prefixes: Prefixes
    indexes: tuple[CompletionIndex, ...]

    @classmethod
    def of(cls, graph: Graph, view: str) -> "Completion":
        """Index the names of a graph; degrees are those of a view."""
        edges = graph.view(view)
        uses = np.bincount(edges.relations // 2, minlength=len(graph.relations)) // 2
        # Copies: a mapped file that is cut while the server runs would end it.
        entities = CompletionIndex.of(graph.entities.copy(), "entity", edges.degrees())
        relations = CompletionIndex.of(graph.relations.copy(), "relation", uses.astype(np.int64))
        sizes = {name: int(size) for name, size in zip(graph.types.names, graph.types.sizes, strict=True)}
        sizes.pop(UNTYPED, None)
        types = CompletionIndex.of(Vocabulary.of(list(sizes)), "type", np.array(list(sizes.values()), np.int64))
        return cls(graph, Prefixes.of(graph), (entities, relations, types))

    def complete(self, text: str, what: str, limit: int) -> list[CompletionItem]:
        """Return the names that a text may become: first those that start with it, then those of similar spelling."""
        indexes = [index for index in self.indexes if what in ("any", index.what)]
        ranked = [pair for index in indexes for pair in self._ranked(index, text.strip(), limit)]
        ranked.sort(key=lambda pair: (pair[0], -pair[1].degree))  # stable: equals keep their order
        return [item for _, item in ranked[:limit]]

    def _ranked(self, index: CompletionIndex, text: str, limit: int) -> list[tuple[int, CompletionItem]]:
        """Matches in one vocabulary with their ranks: 0, or the position among those of similar spelling."""
        iris = self._iris(text)
        ids = index.with_prefix(iris) if iris else index.with_word(text)
        best = ids[np.argsort(-index.degrees[ids], kind="stable")[:limit]].tolist()
        items = [(0, self._item(index, number)) for number in best]
        if len(best) < FEW and len(text) > 2:
            rest = text.rpartition(":")[2] if iris else text
            similar = [number for number in index.similar(rest, limit) if number not in best]
            items += [(rank, self._item(index, number)) for rank, number in enumerate(similar, 1)]
        return items

    def _iris(self, text: str) -> list[str]:
        """The starts of names that a text means if it is the start of an IRI: <http..., or dbr:Uni."""
        prefix, colon, local = text.partition(":")
        if text.startswith("<") or local.startswith("//"):
            return self.graph.namer.names(text.removeprefix("<").removesuffix(">"))
        if colon and prefix in self.prefixes.namespaces:
            return self.graph.namer.names(self.prefixes.namespaces[prefix] + local)
        return []

    def _item(self, index: CompletionIndex, number: int) -> CompletionItem:
        iri, types = self.graph.namer.iri(index.words.name(number)), self.graph.types
        return CompletionItem(
            iri=iri,
            label=index.words.label(number),
            type=types.names[int(types.of(number))] if index.what == "entity" else None,
            what=index.what,
            degree=int(index.degrees[number]),
            insert=self.prefixes.short(iri),
        )
