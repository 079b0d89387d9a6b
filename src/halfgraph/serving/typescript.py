"""The page's TypeScript types, generated from the schema: `make types` writes web/src/types.ts."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from halfgraph.answering import cells, explanation_schema
from halfgraph.answering import schema as answers
from halfgraph.answering.cells import json_keys
from halfgraph.serving import schema as api

HEADER = "/* The JSON of /api. Generated from the schema by `make types`; do not edit. */\n"
NAMES = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null", Any: "unknown"}


def typescript() -> str:
    """Return an interface for each class of the schema."""
    classes = [
        item
        for module in (cells, explanation_schema, answers, api)
        for item in vars(module).values()
        if is_dataclass(item)
    ]
    return "\n".join([HEADER, *map(_interface, dict.fromkeys(classes))])


def _interface(schema: Any) -> str:
    hints = get_type_hints(schema)
    lines = [
        f"  {key}{'?' * optional}: {_type(hints[name]).removesuffix(' | null' * optional)};"
        for name, key, optional in json_keys(schema)
    ]
    return "\n".join([f"/** {schema.__doc__} */", f"export interface {schema.__name__} {{", *lines, "}\n"])


def _type(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " | ".join(json.dumps(value) for value in arguments)
    if origin in (Union, UnionType):
        return " | ".join(map(_type, arguments))
    if origin is Sequence:
        item = _type(arguments[0])
        return f"({item})[]" if " " in item else f"{item}[]"
    if origin is Mapping:
        return f"Record<string, {_type(arguments[1])}>"
    return NAMES.get(hint) or str(hint.__name__)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(typescript(), encoding="utf-8")
