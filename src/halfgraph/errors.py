"""Every error that halfgraph raises on purpose; each message says what was found, where, and what to do.

HalfgraphError
├── InputError          a file or text that cannot be read: path, line, column, problem, advice
│   ├── EmptyGraph      nothing in it to learn from
│   └── SparqlError     a query that is not SPARQL, or asks what cannot be answered: feature, line, column, advice
├── QueryError          a query that has no meaning, as one that only negates: problem, advice
├── UnknownName         a name that the graph does not know: name, what, nearest, line, column
├── MissingPackage      an optional package is needed: package, needed_for, command
├── EndpointError       a SPARQL endpoint that does not answer as it should: address, problem, advice
├── FolderError         a folder that cannot be written or opened: path, problem, advice
│   └── OtherGraph      something made for another graph: path, expected, found
├── SettingError        a setting out of its range: setting, problem, advice
├── TimeLimit           a query that takes longer than it may: seconds, advice
├── Diverged            training/checkpoint.py: the loss or a weight is not finite: step
└── NotANumber          evaluation/metrics.py: a score is not a number
"""

from collections.abc import Sequence
from pathlib import Path


class HalfgraphError(Exception):
    """The root of the tree: catch this to catch everything that halfgraph raises on purpose."""


def nearest(text: str, known: Sequence[str], count: int = 3, cutoff: float = 60.0) -> list[int]:
    """Return the positions of the known texts most similar to a text, best first; the cutoff is in percent."""
    from rapidfuzz import fuzz, process

    return [
        position for _, _, position in process.extract(text, known, scorer=fuzz.ratio, limit=count, score_cutoff=cutoff)
    ]


def suggest(text: str, known: Sequence[str], count: int = 1, cutoff: float = 60.0) -> list[str]:
    """Return the known texts that somebody who wrote this one may have meant, best first."""
    return [known[position] for position in nearest(text, known, count, cutoff)]


def _sentence(where: str, problem: str, advice: str) -> str:
    """One line: where it is, what is wrong, what to do."""
    said = f"{where}: {problem}" if where else problem
    if not advice:
        return said
    return f"{said.rstrip('.')}. {advice}"


def _place(path: str, line: int | None, column: int | None) -> str:
    """The place, as far as it is known: "train.tsv, line 4812, column 3"."""
    numbers = (f"{what} {number}" for what, number in (("line", line), ("column", column)) if number is not None)
    return ", ".join(part for part in (path, *numbers) if part)


class InputError(HalfgraphError):
    """A file or text that cannot be read."""

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
        advice: str = "",
    ) -> None:
        self.problem, self.path, self.line, self.column, self.advice = problem, path, line, column, advice
        super().__init__(_sentence(self.where(), problem, advice))

    def where(self) -> str:
        """The place, as far as it is known: "train.tsv, line 4812, column 3"."""
        path = "" if self.path is None else "standard input" if str(self.path) == "-" else str(self.path)
        return _place(path, self.line, self.column)


class EmptyGraph(InputError):
    """There is nothing in the input to learn from."""


class SparqlError(InputError):
    """A query text that is not SPARQL, or asks what cannot be answered; the feature is a name for what it says."""

    def __init__(
        self, problem: str, *, feature: str, line: int | None = None, column: int | None = None, advice: str = ""
    ) -> None:
        self.feature = feature
        super().__init__(problem, line=line, column=column, advice=advice)


class QueryError(HalfgraphError):
    """A query that has no meaning."""

    def __init__(self, problem: str, *, advice: str = "") -> None:
        self.problem, self.advice = problem, advice
        super().__init__(_sentence("", problem, advice))


class UnknownName(HalfgraphError):
    """A name that the graph does not know, with the nearest ones that it does."""

    def __init__(
        self,
        name: str,
        *,
        what: str,
        nearest: Sequence[str] = (),
        where: str = "",
        line: int | None = None,
        column: int | None = None,
        advice: str = "",
    ) -> None:
        self.name, self.what, self.nearest, self.line, self.column = name, what, tuple(nearest), line, column
        self.where = _place(where, line, column)
        self.advice = f"Did you mean {' or '.join(self.nearest)}?" if self.nearest else advice
        super().__init__(_sentence(self.where, f"no {what} {name} in this graph", self.advice))


class MissingPackage(HalfgraphError):
    """An optional package is not installed."""

    def __init__(self, *, package: str, needed_for: str, command: str) -> None:
        self.package, self.needed_for, self.command = package, needed_for, command
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed. Install it with: {command}"
        )


class EndpointError(HalfgraphError):
    """A SPARQL endpoint does not answer as it should."""

    def __init__(self, *, address: str, problem: str, advice: str = "") -> None:
        self.address, self.problem, self.advice = address, problem, advice
        super().__init__(_sentence(address, problem, advice))


class FolderError(HalfgraphError):
    """A folder that cannot be written or opened."""

    def __init__(self, path: str | Path, problem: str, *, advice: str = "") -> None:
        self.path, self.problem, self.advice = path, problem, advice
        super().__init__(_sentence(str(path), problem, advice))


class OtherGraph(FolderError):
    """Something made for another graph."""

    def __init__(self, path: str | Path, *, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            path,
            f"made for graph {expected}, and this is graph {found}",
            advice="Pass the graph it was made for, or make it anew for this one.",
        )


class SettingError(HalfgraphError):
    """A setting out of its range."""

    def __init__(self, setting: str, problem: str, *, advice: str = "") -> None:
        self.setting, self.problem, self.advice = setting, problem, advice
        super().__init__(_sentence(setting, problem, advice))


class TimeLimit(HalfgraphError):
    """A query that takes longer than it may."""

    def __init__(
        self, seconds: float, *, advice: str = "Tie more of its variables to known entities, or allow more time."
    ) -> None:
        self.seconds, self.advice = seconds, advice
        super().__init__(_sentence("", f"the query was stopped after {seconds:g} s", advice))
