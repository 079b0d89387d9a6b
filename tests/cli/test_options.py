"""The values of options are those that the rooms know."""

from typing import get_args, get_type_hints

import pytest

from halfgraph.cli.ask import ask
from halfgraph.cli.graph import import_
from halfgraph.cli.options import RecipeName, ViewName
from halfgraph.cli.workload import sample
from halfgraph.graph.files import ReadOptions
from halfgraph.graph.folder import VIEWS
from halfgraph.graph.importing import ImportOptions
from halfgraph.sparql.results import FORMATS
from halfgraph.training.recipe import RECIPES, Recipe


def test_views_and_recipes_are_those_of_the_rooms() -> None:
    assert set(get_args(ViewName)) <= set(VIEWS)
    assert get_args(RecipeName) == tuple(RECIPES)


@pytest.mark.parametrize(
    ("command", "option", "data"),
    [
        (import_, "untyped", ImportOptions),
        (import_, "self_loops", ImportOptions),
        (import_, "blank_nodes", ReadOptions),
        (import_, "schema", ReadOptions),
        (sample, "uniform", Recipe),
    ],
)
def test_choices_are_those_of_the_rooms(command: object, option: str, data: type) -> None:
    assert get_args(get_type_hints(command)[option]) == get_args(get_type_hints(data)[option])


def test_result_formats_are_those_of_the_writer() -> None:
    assert set(get_args(get_args(get_type_hints(ask)["format"])[0])) == {str(name) for name in FORMATS}
