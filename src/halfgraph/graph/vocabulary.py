"""Names and ids: names as one UTF-8 blob with offsets, a hash index to find ids, labels, similar names."""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import nearest


@dataclass(frozen=True)
class Texts:
    """Many strings as one UTF-8 blob; string i is blob[offsets[i]:offsets[i + 1]]."""

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Texts":
        blob, ends = bytearray(), array("q", [0])
        for text in texts:
            blob += text.encode()
            ends.append(len(blob))
        return cls(np.frombuffer(blob, dtype=np.uint8), np.frombuffer(ends, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        return self.raw(i).decode(errors="replace")

    def raw(self, i: int) -> bytes:
        return self.blob[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def __iter__(self) -> Iterator[str]:
        whole = self.blob.tobytes()
        ends = self.offsets.tolist()
        return (whole[start:end].decode(errors="replace") for start, end in pairwise(ends))


@dataclass(frozen=True)
class Vocabulary:
    """Names with ids 0, 1, 2, ...; label i is empty where there is none."""

    names: Texts
    labels: Texts
    hashes: NDArray[np.uint32]  # crc32 of the names, sorted
    by_hash: NDArray[np.int32]  # the id of the name behind each hash

    @classmethod
    def of(cls, names: Sequence[str], labels: Sequence[str] | None = None) -> "Vocabulary":
        hashes = np.fromiter((zlib.crc32(name.encode()) for name in names), dtype=np.uint32, count=len(names))
        order = np.argsort(hashes, kind="stable")
        texts = Texts.of(labels if labels is not None else [""] * len(names))
        return cls(Texts.of(names), texts, hashes[order], order.astype(np.int32))

    def copy(self) -> "Vocabulary":
        """Return the same names in memory, where they do not depend on files."""
        names, labels = (Texts(np.array(own.blob), np.array(own.offsets)) for own in (self.names, self.labels))
        return Vocabulary(names, labels, np.array(self.hashes), np.array(self.by_hash))

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def name(self, i: int) -> str:
        return self.names[i]

    def find(self, name: str) -> int | None:
        raw = name.encode(errors="surrogatepass")  # a name from the command line may hold broken UTF-8
        wanted = np.uint32(zlib.crc32(raw))
        first = int(np.searchsorted(self.hashes, wanted, side="left"))
        for i in range(first, len(self.hashes)):
            if self.hashes[i] != wanted:
                return None
            if self.names.raw(int(self.by_hash[i])) == raw:
                return int(self.by_hash[i])
        return None

    def label(self, i: int) -> str:
        """Return the label of id i, or else the last part of its name."""
        return self.labels[i] or local_name(self.names[i])

    @cached_property
    def _searched(self) -> tuple[list[str], list[int]]:
        """Labels and last parts of names in normal form, with their ids."""
        texts = [(_normalise(local_name(name)), i) for i, name in enumerate(self.names)]
        texts += [(_normalise(label), i) for i, label in enumerate(self.labels) if label]
        distinct = sorted(set(texts), key=lambda pair: pair[1])
        return [text for text, _ in distinct], [i for _, i in distinct]

    def nearest(self, text: str, count: int = 3) -> list[int]:
        """Return the ids whose label or local name is most similar to a text, best first."""
        texts, ids = self._searched
        # Twice as many: an id may match by its name and by its label.
        positions = nearest(_normalise(local_name(text)), texts, 2 * count)
        return list(dict.fromkeys(ids[position] for position in positions))[:count]


def _normalise(text: str) -> str:
    return text.replace("_", " ").casefold()


def local_name(name: str) -> str:
    """Return the part of an IRI after its last #, / or :, or the whole name."""
    trimmed = name.rstrip("/#")
    for mark in "#/:":
        _, separator, rest = trimmed.rpartition(mark)
        if separator and rest:
            return rest
    return name
