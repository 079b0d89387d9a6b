"""Settings that say what a model is made of."""

from collections.abc import Collection
from dataclasses import dataclass

from halfgraph.errors import SettingError
from halfgraph.model.intersection import ACTIVATIONS, CENTRES, INTERSECTIONS
from halfgraph.model.projection import INITIAL, PROJECTIONS


@dataclass(frozen=True)
class Architecture:
    """The operators of a model and their sizes."""

    projection: str = "bilinear"  # a key of PROJECTIONS
    intersection: str = "attention"  # a key of INTERSECTIONS
    centre: str = "min"  # element-wise function over the paths of an intersection: a key of CENTRES
    heads: int = 8  # of attention
    dim: int = 128
    norm_by_type: bool = False  # layer normalisation with its own parameters for each type
    activation: str = "sigmoid"  # in eq. 6: a key of ACTIVATIONS
    path_length: float = 0.0  # length to which path embeddings are scaled before they intersect; 0: unscaled, the paper
    initial: str = "identity"  # initial matrices of a bilinear projection: one of INITIAL

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                problem = f'unknown value "{getattr(self, name)}"'
                raise SettingError(name, problem, advice=f"Choose one of {', '.join(choices)}.")
        for name in ("dim", "heads"):
            if getattr(self, name) < 1:
                raise SettingError(name, f"must be at least 1, found {getattr(self, name)}")
        if not 0 <= self.path_length < float("inf"):
            raise SettingError("path_length", f"must be 0 or a positive number, found {self.path_length}")


# The dictionaries themselves, so that an operator added to one is a choice at once.
CHOICES: dict[str, Collection[str]] = {
    "projection": PROJECTIONS,
    "intersection": INTERSECTIONS,
    "centre": CENTRES,
    "activation": ACTIVATIONS,
    "initial": INITIAL,
}
