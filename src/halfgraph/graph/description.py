"""The JSON file that describes a folder: read, brought up to date, and checked before anything relies on it."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.errors import FolderError
from halfgraph.graph.files import excerpt
from halfgraph.graph.manifest import has_file, read_json, require_fields, require_manifest

FORMAT = 2
LAST_WITHOUT_MANIFEST = 1  # the last format of which a folder may lack a manifest
AGAIN = "Import the graph again."
FIELDS = {
    "fingerprint": str,
    "counts": {
        **dict.fromkeys(("entities", "relations", "types", "guessed_types", "literals"), int),
        "triples": {"train": int},
    },
    "split": bool,
    "types": {"names": list, "starts": list, "stated": list, "ways": dict},
    "base": str,
    "prefixes": dict,
    "report": list,
    "provenance": {"sources": list},
}


def graph_description(path: Path) -> dict[str, Any]:
    """Read the description of a graph."""
    description = _upgrade(read_description(path, "graph", "halfgraph import SOURCE --out FOLDER", AGAIN))
    _check(description, path)
    return description


def read_description(path: Path, what: str, made_by: str, again: str) -> dict[str, Any]:
    """Read the JSON file that describes a folder, and check its format; `made_by` and `again` are advice for errors."""
    if not has_file(path, again):
        problem = f"no {what} here" if path.parent.is_dir() else "no such folder"
        raise FolderError(path.parent, problem, advice=f"Make one with: {made_by}")
    description = read_json(path, again)
    number: Any = description.get("format")
    if type(number) is not int or not 1 <= number <= FORMAT:
        problem = f"has format {excerpt(str(number))}, but this halfgraph reads formats 1 to {FORMAT}"
        raise FolderError(path.parent, problem, advice=again)
    if number > LAST_WITHOUT_MANIFEST:
        require_manifest(path.parent, again)
    return description


def _upgrade(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description with today's keys: earlier versions had other names, and did not mark guessed types."""
    if "kinds" in description:
        description["types"] = description.pop("kinds")
    counts, types = description.get("counts"), description.get("types")
    if not isinstance(counts, dict) or not isinstance(types, dict):
        return description  # which is refused then
    if "kinds" in counts:
        counts["types"] = counts.pop("kinds")
    for row in description.get("report", ()):
        if "fate" in row:
            row["used_for"] = row.pop("fate")
    starts, ways = types.get("starts"), types.get("ways")
    if isinstance(starts, list) and all(isinstance(start, int) for start in starts):
        types.setdefault("stated", [last - first for first, last in pairwise(starts)])
    counts.setdefault("guessed_types", ways.get("vote of their relations", 0) if isinstance(ways, dict) else 0)
    return description


def _check(description: Mapping[str, Any], path: Path) -> None:
    """Raise FolderError unless the description of a graph has all its fields, and types that fit together."""
    require_fields(description, FIELDS, path, AGAIN)
    types, counts = description["types"], description["counts"]
    numbers = [*types["starts"], *types["stated"]]
    if not all(type(number) is int and 0 <= number <= counts["entities"] for number in numbers):
        raise FolderError(path, "has types with impossible numbers of entities", advice=AGAIN)
    sizes = np.diff(types["starts"])
    is_whole = [0, counts["entities"]] == [*types["starts"][:1], *types["starts"][-1:]] and len(sizes) == counts[
        "types"
    ]
    if not is_whole or not len(types["names"]) == len(types["stated"]) == len(sizes) or (sizes < types["stated"]).any():
        raise FolderError(path, "has types that do not fit its entities", advice=AGAIN)
    words = [*types["names"], *description["prefixes"].values(), *description["provenance"]["sources"]]
    if not all(isinstance(word, str) for word in words):
        raise FolderError(path, "has names that are not text", advice=AGAIN)
