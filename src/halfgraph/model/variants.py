"""Named models: the rows of the paper's Table 2, one that it argues against, and short names."""

from collections.abc import Mapping
from dataclasses import dataclass

from halfgraph.errors import SettingError, suggest
from halfgraph.model.architecture import Architecture


@dataclass(frozen=True)
class Variant:
    """A row of the paper's Table 2: its architecture, and whether it is also trained on neighbourhoods."""

    name: str
    architecture: Mapping[str, str | int]
    kg_phase: bool = False


def _row(name: str, projection: str, intersection: str, centre: str, *, kg_phase: bool = False) -> Variant:
    return Variant(name, {"projection": projection, "intersection": intersection, "centre": centre}, kg_phase)


def _cga(heads: int) -> Variant:
    row = _row(f"CGA+KG+{heads}[min]", "bilinear", "attention", "min", kg_phase=True)
    return Variant(row.name, {**row.architecture, "heads": heads}, row.kg_phase)


# In the order of Table 2; the last row has Wang et al.'s weights, which the paper argues against.
ROWS = (
    _row("Bilinear[mean_simple]", "bilinear", "simple", "mean"),
    _row("Bilinear[min_simple]", "bilinear", "simple", "min"),
    _row("TransE[mean]", "translation", "gqe", "mean"),
    _row("TransE[min]", "translation", "gqe", "min"),
    _row("GQE[mean]", "bilinear", "gqe", "mean"),
    _row("GQE[min]", "bilinear", "gqe", "min"),
    _row("GQE+KG[min]", "bilinear", "gqe", "min", kg_phase=True),
    _cga(1),
    _cga(4),
    _cga(8),
    _row("Bilinear[counted]", "bilinear", "counted", "mean"),
)
SHORT = {"cga": "CGA+KG+8[min]", "gqe": "GQE[min]", "transe": "TransE[mean]", "bilinear": "Bilinear[min_simple]"}
_BY_NAME = {row.name.lower(): row for row in ROWS}


def variant_named(name: str) -> Variant:
    """Return the variant of a name or short name, in any case."""
    row = _BY_NAME.get(SHORT.get(name.lower(), name).lower())
    if row is not None:
        return row
    known = [*SHORT, *(row.name for row in ROWS)]
    meant = "".join(f"Did you mean {near}? " for near in suggest(name, known))
    problem = f'there is no model named "{name}"'
    raise SettingError("--model", problem, advice=f"{meant}Known: {', '.join(known)}.")


def architecture_of(variant: Variant, **settings: str | int | bool) -> Architecture:
    """Return the architecture of a variant, some settings overridden."""
    return Architecture(**{**variant.architecture, **settings})  # type: ignore[arg-type]
