from dataclasses import asdict, replace
from typing import Any

import pytest

from halfgraph.errors import SettingError
from halfgraph.training.recipe import PAPER, RECIPES, Recipe, without_kg_phase


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"loss": "hing"}, 'loss: unknown value "hing". Choose one of softmax, hinge.'),
        ({"decay": "cosine"}, 'decay: unknown value "cosine". Choose one of linear, none.'),
        ({"uniform": "entities"}, 'uniform: unknown value "entities". Choose one of answers, relations, triples.'),
        ({"one_edge": -1}, "one_edge: cannot be negative, found -1"),
        ({"hard_negatives": -2}, "hard_negatives: cannot be negative, found -2"),
        ({"temperature": 0.0}, "temperature: must be above 0, found 0.0"),
        ({"learning_rate": -0.1}, "learning_rate: must be above 0, found -0.1"),
        ({"one_edge": 0, "longer": 0, "neighbourhoods": 0}, "one_edge: is 0, as are longer and neighbourhoods"),
        ({"type_negatives": 0, "other_negatives": 0}, "type_negatives: is 0, as is other_negatives"),
        ({"loss": "hinge", "type_negatives": 0}, "type_negatives: must be at least 1"),
        ({"burn_in": 1.5}, "burn_in: is a share of the steps"),
        ({"burn_in": 0.1, "one_edge": 0}, "burn_in: is a share of the steps"),
    ],
)
def test_a_recipe_out_of_its_range_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as refused:
        Recipe(**wrong)
    assert str(refused.value).startswith(said)


def test_the_papers_recipe_is_the_papers() -> None:
    assert RECIPES["paper"] is PAPER
    assert (PAPER.loss, PAPER.margin, PAPER.learning_rate, PAPER.decay) == ("hinge", 1.0, 0.001, "none")
    assert (PAPER.one_edge, PAPER.longer, PAPER.neighbourhoods) == (512, 512, 512)
    assert (PAPER.type_negatives, PAPER.hard_negatives, PAPER.burn_in) == (1, 1, 0.0)
    weights = {name: value for name, value in asdict(PAPER).items() if name.endswith("_weight")}
    others = (weights.pop(name) for name in ("pooled_weight", "hard_pooled_weight", "link_weight"))
    assert (*others, PAPER.links) == (0.0, 0.0, 0.0, 0)  # not in the paper
    assert set(weights.values()) == {1.0}


def test_a_recipe_without_the_kg_phase_is_otherwise_the_same() -> None:
    assert without_kg_phase(PAPER) == replace(PAPER, neighbourhoods=0)
