"""Recipes: what a training step is made of, the loss and the optimiser's settings."""

from dataclasses import dataclass, replace
from typing import Literal

from halfgraph.errors import SettingError


@dataclass(frozen=True)
class Recipe:
    """The default recipe; docs/results.md says what each ingredient gains."""

    # Departs from the paper, whose recipe is PAPER below: more is learnt in the same time.
    loss: Literal["softmax", "hinge"] = "softmax"
    # Questions in a step.
    one_edge: int = 1024  # with one relation
    longer: int = 256  # of every other structure
    neighbourhoods: int = 64  # of every size; 0: no KG phase
    links: int = 512  # softmax: heads with a relation, for which all tails are predicted at once; 0: none
    # Weights in the sum of losses (eq. 13); the loss of a structure is a mean over its questions.
    one_edge_weight: float = 2.0
    link_weight: float = 4.0
    longer_weight: float = 1.0
    intersection_weight: float = 1.0
    neighbourhood_weight: float = 0.3
    hard_weight: float = 1.0  # of hard negatives
    # Negatives. Softmax: shared by the questions of a step; hinge: drawn for each question.
    type_negatives: int = 512  # of the answer's type
    other_negatives: int = 512  # of any type (softmax only)
    hard_negatives: int = 1  # for each question with an intersection
    link_candidates: int = 16_384  # softmax: entities among which tails are predicted; all, up to twice as many
    temperature: float = 0.1  # softmax
    pooled_weight: float = 4.0  # softmax: of the term that makes scores of different questions comparable
    hard_pooled_weight: float = 1.0  # softmax: of the same term for hard negatives
    margin: float = 1.0  # hinge
    learning_rate: float = 0.01
    decay: Literal["linear", "none"] = "linear"  # of the learning rate
    burn_in: float = 0.0  # share of the steps, at the start, that have one-edge questions only
    uniform: Literal["answers", "relations", "triples"] = "answers"  # what questions are sampled uniformly over

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                problem = f'unknown value "{getattr(self, name)}"'
                raise SettingError(name, problem, advice=f"Choose one of {', '.join(known)}.")
        for name in COUNTS:
            if getattr(self, name) < 0:
                raise SettingError(name, f"cannot be negative, found {getattr(self, name)}")
        for name in ("temperature", "learning_rate"):
            if getattr(self, name) <= 0:
                raise SettingError(name, f"must be above 0, found {getattr(self, name)}")
        if self.links and self.link_candidates < 1:
            raise SettingError("link_candidates", f"must be at least 1, found {self.link_candidates}")
        if self.one_edge + self.longer + self.neighbourhoods == 0:
            raise SettingError("one_edge", "is 0, as are longer and neighbourhoods: there is nothing to learn from")
        if not 0 <= self.burn_in <= 1 or (self.burn_in and not self.one_edge):
            problem = f"is a share of the steps, with one_edge questions only; found {self.burn_in}"
            raise SettingError("burn_in", problem, advice="Pass a number from 0 to 1, and one_edge above 0.")
        if self.loss == "hinge" and not self.type_negatives:
            raise SettingError("type_negatives", "must be at least 1 with the hinge loss")
        if self.type_negatives + self.other_negatives == 0:
            raise SettingError("type_negatives", "is 0, as is other_negatives: answers need negatives")


CHOICES = {"loss": ("softmax", "hinge"), "decay": ("linear", "none"), "uniform": ("answers", "relations", "triples")}
COUNTS = ("one_edge", "longer", "neighbourhoods", "type_negatives", "other_negatives", "hard_negatives", "links")
# The paper's own: margin 1, one negative and one hard negative, 512 questions of each, Adam at 0.001, equal weights.
PAPER = Recipe(
    loss="hinge",
    one_edge=512,
    longer=512,
    neighbourhoods=512,
    one_edge_weight=1.0,
    neighbourhood_weight=1.0,
    pooled_weight=0.0,
    hard_pooled_weight=0.0,
    links=0,
    link_weight=0.0,
    type_negatives=1,
    other_negatives=0,
    hard_negatives=1,
    learning_rate=0.001,
    decay="none",
)
RECIPES = {"default": Recipe(), "paper": PAPER}


def without_kg_phase(recipe: Recipe) -> Recipe:
    """Return the recipe without neighbourhoods."""
    return replace(recipe, neighbourhoods=0)
