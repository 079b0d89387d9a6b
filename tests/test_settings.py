import contextlib
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import InputError, SettingError
from halfgraph.model.architecture import Architecture
from halfgraph.model.variants import ROWS
from halfgraph.settings import (
    ARCHITECTURE_NAMES,
    RECIPE_NAMES,
    given_values,
    model_of,
    read_config,
    training_settings,
)
from halfgraph.training.recipe import PAPER, RECIPES, Recipe
from halfgraph.training.run_folder import LATER, write_toml


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


# Named models and recipes


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("recipe", list(RECIPES))
def test_a_model_and_a_recipe_by_name_are_all_settings(row, recipe: str) -> None:
    found = training_settings(row.name, recipe, {})
    assert found.model == row.name
    assert {name: getattr(found.architecture, name) for name in row.architecture} == row.architecture
    assert (found.recipe.neighbourhoods > 0) == row.kg_phase
    assert replace(found.recipe, neighbourhoods=RECIPES[recipe].neighbourhoods) == RECIPES[recipe]
    assert found.architecture.initial == ("xavier" if recipe == "paper" else "identity")


def test_given_settings_go_before_those_of_the_names() -> None:
    found = training_settings("gqe", "paper", {"dim": 16, "margin": 0.3, "neighbourhoods": 8, "initial": "identity"})
    assert found.architecture == Architecture("bilinear", "gqe", "min", dim=16, initial="identity")
    assert found.recipe == replace(PAPER, margin=0.3, neighbourhoods=8)


@pytest.mark.parametrize(
    ("name", "nearest"), [("dims", "dim"), ("learning-rate", "learning_rate"), ("head", "heads"), ("marginn", "margin")]
)
def test_an_unknown_setting_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(SettingError) as refused:
        training_settings("cga", "default", {name: 1})
    assert str(refused.value) == f'unknown setting "{name}"; did you mean "{nearest}"?'
    with pytest.raises(SettingError, match=f'did you mean "{nearest}"'):
        given_values(None, [f"{name}=1"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dim": 0}, "dim: must be at least 1, found 0"),
        ({"heads": 0}, "heads: must be at least 1, found 0"),
        ({"temperature": 0.0}, "temperature: must be above 0"),
        ({"loss": "hinges"}, 'loss: unknown value "hinges"'),
    ],
)
def test_settings_out_of_their_range_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        training_settings("cga", "default", given)


def test_an_unknown_recipe_is_refused() -> None:
    with pytest.raises(SettingError, match=r'^recipe: there is no recipe "fast"'):
        training_settings("cga", "fast", {})


# Values


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("dim=64", 64),
        (" dim = 64 ", 64),
        ("margin=0.5", 0.5),
        ("margin=1", 1.0),
        ("learning_rate=1e-3", 0.001),
        ("norm_by_type=true", True),
        ("projection=diagonal", "diagonal"),
        ('projection="diagonal"', "diagonal"),
    ],
)
def test_a_pair_is_read_in_the_type_of_its_setting(pair: str, value: object) -> None:
    ((_, found),) = given_values(None, [pair]).items()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("dim", 'set: cannot read "dim". Write name=value, for example dim=64.'),
        ("dim=", 'dim: must be a whole number, found ""'),
        ("dim=big", 'dim: must be a whole number, found "big"'),
        ("dim=64.5", 'dim: must be a whole number, found "64.5"'),
        ("dim=true", 'dim: must be a whole number, found "True"'),
        ("norm_by_type=1", 'norm_by_type: must be true or false, found "1"'),
        ("margin=[1]", "margin: must be a number"),
        ("projection=3", 'projection: must be a word, found "3"'),
        ("=3", 'set: cannot read "=3"'),
    ],
)
def test_a_pair_that_cannot_be_read_is_refused(pair: str, said: str) -> None:
    with pytest.raises(SettingError) as refused:
        given_values(None, [pair])
    assert str(refused.value).startswith(said)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for name in ("dim", "margin", "loss"):
        with contextlib.suppress(SettingError):
            assert list(given_values(None, [f"{name}={text}"])) == [name]


# Files


def test_a_file_is_read_with_sections_or_plain_and_pairs_go_before_it(tmp_path: Path) -> None:
    plain = written(tmp_path, "dim = 32\nmargin = 2\n")
    assert given_values(plain, []) == {"dim": 32, "margin": 2.0}
    sections = written(tmp_path, '[model]\nname = "GQE[min]"\n[architecture]\ndim = 32\n[recipe]\nmargin = 0.2\n')
    assert given_values(sections, ["dim=8"]) == {"dim": 8, "margin": 0.2}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_settings_of_a_run_come_back(row, tmp_path: Path) -> None:
    settings = training_settings(row.name, "paper", {"dim": 24, "burn_in": 0.125, "learning_rate": 1e-5})
    path = written(tmp_path, write_toml(settings.sections()))
    assert read_config(path) == settings
    # The same file given to another run makes the same settings.
    assert training_settings(model_of(path), "default", given_values(path, [])) == settings


def test_without_a_file_the_model_is_cga(tmp_path: Path) -> None:
    assert model_of(None) == model_of(written(tmp_path, "dim = 3")) == "cga"
    assert model_of(written(tmp_path, 'model = "gqe"')) == "gqe"


@pytest.mark.parametrize("content", [b"dim = ", b"\xff\xfe", b"dim = 3\ndim = 4"])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"settings\.toml: cannot be read"):
        given_values(path, [])
    with pytest.raises(InputError, match=r"absent.toml: cannot be read.*Pass a TOML file"):
        given_values(tmp_path / "absent.toml", [])


@pytest.mark.parametrize(
    "text",
    ["", "[model]\n", '[model]\nname = "x"\n[architecture]\n[recipe]\nbogus = 1\n', "model = 3\n", "[architecture]\n"],
)
def test_what_is_not_the_settings_of_a_run_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"is not the config\.toml of a run"):
        read_config(written(tmp_path, text))


def test_settings_that_lost_their_end_are_not_taken_for_others(tmp_path: Path) -> None:
    whole = write_toml(training_settings("cga", "default", {}).sections())
    lines = whole.splitlines(keepends=True)
    for kept in range(len(lines)):
        if lines[kept].strip():
            with pytest.raises(InputError, match=r"is not the config\.toml of a run"):
                read_config(written(tmp_path, "".join(lines[:kept])))


def test_the_default_recipe_departs_from_the_paper_for_attention_alone() -> None:
    def of(model: str, recipe: str = "default", **given: object) -> tuple[str, float]:
        architecture = training_settings(model, recipe, given).architecture
        return architecture.activation, architecture.path_length

    paper = ("sigmoid", 0.0)
    assert of("cga") == of("gqe", intersection="attention") == ("none", 16.0)
    assert of("cga", path_length=0.0) == ("none", 0.0)
    assert of("cga", "paper") == of("gqe") == of("bilinear") == of("cga", intersection="gqe") == paper


def test_a_run_of_a_version_without_a_setting_is_read_as_it_was_made(tmp_path: Path) -> None:
    settings = training_settings("cga", "default", LATER)
    lines = write_toml(settings.sections()).splitlines(keepends=True)
    older = written(tmp_path, "".join(line for line in lines if not line.startswith(tuple(LATER))))
    assert read_config(older) == settings
    assert training_settings("cga", "default", given_values(older, [])) == settings
    some = given_values(written(tmp_path, "[architecture]\ndim = 3\n[recipe]\nlinks = 0\n"), [])
    assert some == {"dim": 3, "links": 0}


def test_an_unknown_setting_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match='unknown setting "dims"; did you mean "dim"'):
        given_values(written(tmp_path, "[architecture]\ndims = 3\n"), [])


def test_no_name_is_a_setting_of_both_the_model_and_the_recipe() -> None:
    assert not set(ARCHITECTURE_NAMES) & set(RECIPE_NAMES)
    assert set(ARCHITECTURE_NAMES) == set(asdict(Architecture()))
    assert set(RECIPE_NAMES) == set(asdict(Recipe()))
