"""Every error that halfgraph raises on purpose; each message says what was found, where, and what to do.

HalfgraphError
├── InputError          a file or text that cannot be read: path, line, column, problem, advice
│   └── EmptyGraph      nothing in it to learn from
├── UnknownName         a name that the graph does not know: name, what, nearest
├── MissingPackage      an optional package is needed: package, needed_for, command
├── EndpointError       a SPARQL endpoint that does not answer as it should: address, problem, advice
├── FolderError         a folder that cannot be written or opened: path, problem, advice
│   └── OtherGraph      something made for another graph: path, expected, found
└── SettingError        a setting out of its range: setting, problem, advice
"""

from collections.abc import Sequence
from pathlib import Path


class HalfgraphError(Exception):
    """The root of the tree: catch this to catch everything that halfgraph raises on purpose."""


def _sentence(where: str, problem: str, advice: str) -> str:
    """One line: where it is, what is wrong, what to do."""
    said = f"{where}: {problem}" if where else problem
    if not advice:
        return said
    return f"{said.rstrip('.')}. {advice}"


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
        places = [] if self.path is None else ["standard input" if str(self.path) == "-" else str(self.path)]
        if self.line is not None:
            places.append(f"line {self.line}")
        if self.column is not None:
            places.append(f"column {self.column}")
        return ", ".join(places)


class EmptyGraph(InputError):
    """There is nothing in the input to learn from."""


class UnknownName(HalfgraphError):
    """A name that the graph does not know, with the nearest ones that it does."""

    def __init__(self, name: str, *, what: str, nearest: Sequence[str] = (), where: str = "") -> None:
        self.name, self.what, self.nearest, self.where = name, what, tuple(nearest), where
        advice = f"Did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(_sentence(where, f"no {what} {name} in this graph", advice))


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
