"""All errors that halfgraph raises on purpose. A message says what was found, where, and what to do.

HalfgraphError
├── InputError          a file or text cannot be read: path, line, column, problem, advice
│   ├── EmptyGraph      no triples to learn from
│   └── SparqlError     invalid or unsupported SPARQL: feature, line, column, advice
├── QueryError          a query without a meaning, for example only negations: problem, advice
├── UnknownName         a name that is not in the graph: name, what, iri, nearest, line, column
├── MissingPackage      an optional package is not installed: package, needed_for, command
├── EndpointError       a SPARQL endpoint fails: address, problem, advice
├── FolderError         a folder or file cannot be written or opened: path, problem, advice
│   └── OtherGraph      a run or workload of another graph: path, expected, found
├── SettingError        an option or setting is invalid: setting, problem, advice
├── TimeLimit           a query takes too long: seconds, advice
├── Diverged            training/checkpoint.py: the loss or a weight is not finite: step
└── NotANumber          evaluation/metrics.py: a score is not a number
"""

import re
from collections.abc import Sequence
from pathlib import Path

# Control characters and marks that change the direction of text: a terminal would obey them.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")
# An option of the command line, or a whole command line.
OPTION = re.compile(r"\b(?:halfgraph|pip) [a-z][^.;]*|(?<![\w\"'-])--([a-z][a-z-]*[a-z])")


def printable(text: str, most: int | None = None) -> str:
    """Return a text as one line that a terminal shows as it is, cut after `most` characters."""
    cut = text if most is None or len(text) <= most else f"{text[:most]}..."
    return UNSAFE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode(), cut)


def without_dashes(text: str) -> str:
    """Return a text with options as Python and JSON name them: --min-confidence is min_confidence.

    Whole command lines, such as "halfgraph train GRAPH --out RUN", stay as they are.
    """
    return OPTION.sub(lambda match: match[1].replace("-", "_") if match[1] else match[0], text)


class HalfgraphError(Exception):
    """Base class of all errors that halfgraph raises on purpose.

    Messages are written for the command line; everywhere else options have no dashes.
    """

    def __str__(self) -> str:
        return without_dashes(self.for_command_line)

    @property
    def for_command_line(self) -> str:
        """The message, with options as the command line has them."""
        return super().__str__()


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
    text = f"{where}: {problem}" if where else problem
    return f"{text.rstrip('.')}. {advice}" if advice else text


def _position(path: str, line: int | None, column: int | None) -> str:
    """Return the position as far as it is known: "train.tsv, line 4812, column 3"."""
    numbers = (f"{what} {number}" for what, number in (("line", line), ("column", column)) if number is not None)
    return ", ".join(part for part in (path, *numbers) if part)


class InputError(HalfgraphError):
    """A file or text cannot be read."""

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
        """Return the position as far as it is known: "train.tsv, line 4812, column 3"."""
        path = "" if self.path is None else "standard input" if str(self.path) == "-" else str(self.path)
        return _position(path, self.line, self.column)


class EmptyGraph(InputError):
    """The input has no triples to learn from."""


class SparqlError(InputError):
    """Invalid or unsupported SPARQL; `feature` names what is not supported."""

    def __init__(
        self, problem: str, *, feature: str, line: int | None = None, column: int | None = None, advice: str = ""
    ) -> None:
        self.feature = feature
        super().__init__(problem, line=line, column=column, advice=advice)


class QueryError(HalfgraphError):
    """A query without a meaning."""

    def __init__(self, problem: str, *, advice: str = "") -> None:
        self.problem, self.advice = problem, advice
        super().__init__(_sentence("", problem, advice))


class UnknownName(HalfgraphError):
    """A name that is not in the graph, with the most similar names that are."""

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
        iri: str = "",
    ) -> None:
        self.iri = iri
        self.name, self.what, self.nearest, self.line, self.column = name, what, tuple(nearest), line, column
        self.where = _position(where, line, column)
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
    """A SPARQL endpoint fails."""

    def __init__(self, *, address: str, problem: str, advice: str = "") -> None:
        self.address, self.problem, self.advice = address, problem, advice
        super().__init__(_sentence(address, problem, advice))


class FolderError(HalfgraphError):
    """A folder or file cannot be written or opened."""

    def __init__(self, path: str | Path, problem: str, *, advice: str = "") -> None:
        self.path, self.problem, self.advice = path, problem, advice
        super().__init__(_sentence(str(path), problem, advice))


class OtherGraph(FolderError):
    """A run or workload that belongs to another graph."""

    def __init__(self, path: str | Path, *, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            path,
            f"belongs to graph {expected}; this is graph {found}",
            advice="Pass the graph it was made with, or make it again for this one.",
        )


class SettingError(HalfgraphError):
    """An option or setting is invalid."""

    def __init__(self, setting: str, problem: str, *, advice: str = "") -> None:
        self.setting, self.problem, self.advice = setting, problem, advice
        super().__init__(_sentence(setting, problem, advice))


class TimeLimit(HalfgraphError):
    """A query takes too long."""

    def __init__(
        self, seconds: float, *, advice: str = "Tie more of its variables to known entities, or allow more time."
    ) -> None:
        self.seconds, self.advice = seconds, advice
        super().__init__(_sentence("", f"the query was stopped after {seconds:g} s", advice))
