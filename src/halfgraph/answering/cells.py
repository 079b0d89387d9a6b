"""What answers are made of: cells and named entities, and how dataclasses of the schema become JSON.

In a field's metadata, `alias` is its key in JSON, and a field that is `optional` has no key if it is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal

from halfgraph.sparql.results import Term, entity_term, literal_term

OPTIONAL = {"optional": True}


@cache
def json_keys(schema: type) -> list[tuple[str, str, bool]]:
    """The fields of a schema class: name, key in JSON, and whether a None is left out."""
    return [
        (one.name, one.metadata.get("alias", one.name), one.metadata.get("optional", False)) for one in fields(schema)
    ]


def to_json(value: Any) -> Any:
    """Return a value of the schema as what the json module can write."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((key, getattr(value, name), optional) for name, key, optional in json_keys(type(value)))
        return {key: to_json(item) for key, item, optional in pairs if item is not None or not optional}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Cell:
    """One value of a row: an IRI, a literal or a blank node."""

    type: Literal["uri", "literal", "bnode"]
    value: str
    label: str
    datatype: str | None = field(default=None, metadata=OPTIONAL)
    language: str | None = field(default=None, metadata=OPTIONAL)
    confidence: float | None = field(default=None, metadata=OPTIONAL | {"ge": 0, "le": 1})  # of a predicted value

    def term(self) -> Term:
        """Return the value as in SPARQL's JSON results."""
        is_literal = self.type == "literal"
        return literal_term(self.value, self.language, self.datatype) if is_literal else entity_term(self.value)


@dataclass(frozen=True)
class NamedEntity:
    """An entity, relation or type: its IRI and label."""

    entity: str
    label: str


def percent(confidence: float) -> str:
    """Return a confidence as a person reads it: whole percents, but never 0 or 100 for what is uncertain."""
    return "< 1%" if confidence < 0.01 else "> 99%" if confidence > 0.99 else f"{confidence:.0%}"


def shown(cell: Cell) -> str:
    """Return a cell as text, a predicted value with its confidence."""
    return cell.label if cell.confidence is None else f"{cell.label} ({percent(cell.confidence)})"
