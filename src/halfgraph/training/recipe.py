"""How a model is trained: what a step is made of, the loss, and the optimiser. Plain values, with their reasons."""

from dataclasses import dataclass, replace
from typing import Literal

from halfgraph.errors import SettingError


@dataclass(frozen=True)
class Recipe:
    """The default recipe; docs/results.md says what each ingredient gave."""

    # Departs from the paper, whose recipe is PAPER below: more is learnt in the same time.
    loss: Literal["softmax", "hinge"] = "softmax"
    # A step: so many one-edge questions, so many of every other structure, and of every size of neighbourhood.
    one_edge: int = 1024
    longer: int = 256
    neighbourhoods: int = 64  # 0: no KG phase
    links: int = 512  # softmax: heads with a relation, asked for all their tails at once; 0: none
    # Weights in the sum of losses (eq. 13); each structure's loss is a mean over its questions.
    one_edge_weight: float = 2.0
    link_weight: float = 4.0
    longer_weight: float = 1.0
    intersection_weight: float = 1.0
    neighbourhood_weight: float = 0.3
    hard_weight: float = 1.0  # of the hard negatives' terms
    # Negatives. Softmax: shared by the questions of a step; hinge: drawn for each question.
    type_negatives: int = 512  # of the answer's type
    other_negatives: int = 512  # of any type (softmax only)
    hard_negatives: int = 1  # for each question of a structure with an intersection
    link_candidates: int = 16_384  # softmax: entities that the tails of links are told from; up to twice as many, all
    temperature: float = 0.1  # softmax
    pooled_weight: float = 4.0  # softmax: of the term that makes scores of different questions comparable
    hard_pooled_weight: float = 1.0  # softmax: the same of hard negatives
    margin: float = 1.0  # hinge
    learning_rate: float = 0.01
    decay: Literal["linear", "none"] = "linear"
    burn_in: float = 0.0  # the share of the steps in which one-edge questions are alone
    uniform: Literal["answers", "relations", "triples"] = "answers"

    def __post_init__(self) -> None:
        choices = {
            "loss": ("softmax", "hinge"),
            "decay": ("linear", "none"),
            "uniform": ("answers", "relations", "triples"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                problem = f'cannot be "{getattr(self, name)}"'
                raise SettingError(name, problem, advice=f"Known: {', '.join(known)}.")
        for name in (
            "one_edge",
            "longer",
            "neighbourhoods",
            "type_negatives",
            "other_negatives",
            "hard_negatives",
            "links",
        ):
            if getattr(self, name) < 0:
                raise SettingError(name, f"cannot be negative, found {getattr(self, name)}")
        for name in ("temperature", "learning_rate"):
            if getattr(self, name) <= 0:
                raise SettingError(name, f"must be above 0, found {getattr(self, name)}")
        if self.links and self.link_candidates < 1:
            raise SettingError("link_candidates", f"must be at least 1, found {self.link_candidates}")
        if self.one_edge + self.longer + self.neighbourhoods == 0:
            raise SettingError("one_edge", "longer and neighbourhoods are all 0, so there is nothing to learn from")
        if not 0 <= self.burn_in <= 1 or (self.burn_in and not self.one_edge):
            problem = f"is a share of the steps, in which one_edge questions are alone; found {self.burn_in}"
            raise SettingError("burn_in", problem, advice="Pass a number from 0 to 1, and one_edge above 0.")
        if self.type_negatives + self.other_negatives * (self.loss == "softmax") == 0:
            problem = "must be at least 1: a hinge has no other_negatives"
            if self.loss == "softmax":
                problem = "and other_negatives are both 0, so there is nothing to tell answers from"
            raise SettingError("type_negatives", problem)


# The paper's plain recipe: a margin of 1, one negative of each sort, 512 of each, Adam at 0.001, all weights equal.
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
    """The recipe without neighbourhoods."""
    return replace(recipe, neighbourhoods=0)
