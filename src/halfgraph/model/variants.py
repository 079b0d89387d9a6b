"""The paper's ten rows by name, an eleventh that it argues against, and short names for the command line."""

from collections.abc import Mapping
from dataclasses import dataclass

from rapidfuzz import process

from halfgraph.errors import SettingError
from halfgraph.model.encoder import Architecture


@dataclass(frozen=True)
class Variant:
    """A row of the paper's Table 2: what the model is made of, and whether it is trained on neighbourhoods too."""

    name: str
    architecture: Mapping[str, str | int]
    kg_phase: bool = False


def _cga(heads: int) -> Variant:
    architecture: dict[str, str | int] = {"projection": "bilinear", "intersection": "attention", "centre": "min"}
    architecture["heads"] = heads
    return Variant(f"CGA+KG+{heads}[min]", architecture, kg_phase=True)


def _row(name: str, projection: str, intersection: str, centre: str, *, kg_phase: bool = False) -> Variant:
    return Variant(name, {"projection": projection, "intersection": intersection, "centre": centre}, kg_phase)


# In the order of the paper's Table 2; the last row is Wang et al.'s weighting, which the paper argues against.
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
    """The variant of a name, however it is capitalised."""
    wanted = SHORT.get(name.lower(), name).lower()
    if wanted in _BY_NAME:
        return _BY_NAME[wanted]
    known = [*SHORT, *(row.name for row in ROWS)]
    nearest = process.extractOne(name, known)[0]
    problem = f'there is no model named "{name}"'
    raise SettingError("--model", problem, advice=f"Did you mean {nearest}? Known: {', '.join(known)}.")


def architecture_of(variant: Variant, **others: str | int | bool) -> Architecture:
    """The architecture of a variant, with some of its settings given otherwise."""
    return Architecture(**{**variant.architecture, **others})  # type: ignore[arg-type]
