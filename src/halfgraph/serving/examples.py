"""Questions to begin with: those of a file beside the run or the graph, or some made from the graph."""

import json
from pathlib import Path
from typing import Any

from halfgraph.answering.engine import Engine
from halfgraph.errors import InputError

FILE = "examples.json"
FIELDS = {"title": str, "query": str, "missing": bool}


def examples(engine: Engine) -> list[dict[str, Any]]:
    """Some questions with their titles, and whether a triple that answers them is missing."""
    path = engine.graph.path / FILE
    return read(path) if path.is_file() else []


def read(path: Path) -> list[dict[str, Any]]:
    """The questions of a file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return [{name: kind(one[name]) for name, kind in FIELDS.items()} for one in found["examples"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        advice = 'Write {"examples": [{"title": "...", "query": "...", "missing": false}]}.'
        raise InputError(f"cannot be read: {error}", path=path, advice=advice) from error
