"""Training settings: read from TOML files and from name=value pairs."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from halfgraph.errors import InputError, SettingError, suggest
from halfgraph.graph.files import read_text
from halfgraph.graph.manifest import check_file
from halfgraph.model.architecture import Architecture
from halfgraph.model.variants import architecture_of, variant_named
from halfgraph.training.recipe import RECIPES, Recipe, without_kg_phase
from halfgraph.training.run_folder import LATER, renamed


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a run: the name of its model, the architecture and the training recipe."""

    model: str
    architecture: Architecture
    recipe: Recipe

    def sections(self) -> dict[str, dict[str, Any]]:
        """Return the settings as the sections of a run's config.toml."""
        return {"model": {"name": self.model}, "architecture": asdict(self.architecture), "recipe": asdict(self.recipe)}


ARCHITECTURE_NAMES = tuple(field.name for field in fields(Architecture))
RECIPE_NAMES = tuple(field.name for field in fields(Recipe))
# Departs from the paper in the default recipe: without the sigmoid of eq. 6 and with paths of one length attention has
# more of a say (docs/results.md). GQE's intersection is better as it is.
ATTENTION = {"activation": "none", "path_length": 16.0}

LONGEST_CONFIG = 1 << 20  # bytes


def training_settings(model: str, recipe: str, given: Mapping[str, Any]) -> TrainingSettings:
    """Return the settings of a model and recipe by name, with changes."""
    if recipe not in RECIPES:
        problem = f'there is no recipe "{recipe}"'
        raise SettingError("--recipe", problem, advice=f"Known: {', '.join(RECIPES)}.")
    variant = variant_named(model)
    for name in given:
        _require_known(name)
    of_model = {name: value for name, value in given.items() if name in ARCHITECTURE_NAMES}
    start: dict[str, Any] = {}
    if recipe == "paper":
        start["initial"] = "xavier"
    elif of_model.get("intersection", variant.architecture["intersection"]) == "attention":
        start |= ATTENTION
    of_recipe = {name: value for name, value in given.items() if name in RECIPE_NAMES}
    chosen = RECIPES[recipe] if variant.kg_phase else without_kg_phase(RECIPES[recipe])
    return TrainingSettings(
        variant.name, architecture_of(variant, **{**start, **of_model}), replace(chosen, **of_recipe)
    )


def _require_known(name: str) -> None:
    known = (*ARCHITECTURE_NAMES, *RECIPE_NAMES)
    if name not in known:
        meant = "".join(f'; did you mean "{near}"?' for near in suggest(name, known))
        advice = "" if meant else f"Settings: {', '.join(known)}."
        raise SettingError("", f'unknown setting "{name}"{meant}', advice=advice)


def given_values(config: Path | None, pairs: Sequence[str]) -> dict[str, Any]:
    """Read settings from a TOML file, with or without sections, and then from name=value pairs."""
    values: dict[str, Any] = {}
    if config is not None:
        for name, value in _read_toml(config).items():
            values.update(value if isinstance(value, dict) else {name: value})
        values = renamed(values)
        values.pop("name", None)  # of the section [model]
        if {*ARCHITECTURE_NAMES, *RECIPE_NAMES} <= {*values, *LATER}:  # the config.toml of a run
            values = LATER | values
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise SettingError("--set", f'cannot read "{pair}"', advice="Write name=value, for example dim=64.")
        values[name.strip()] = _value(text.strip())
    return {name: _typed(name, value) for name, value in values.items()}


def model_of(config: Path | None) -> str:
    """Return the model that a TOML file names, or the default model."""
    section = {} if config is None else _read_toml(config).get("model", {})
    return str(section.get("name", "cga") if isinstance(section, dict) else section)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, LONGEST_CONFIG, "Pass a TOML file."))
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", path=path, advice="Pass a TOML file.") from error


def _value(text: str) -> Any:
    """Return the value of a text: a number or boolean if it is one, else the text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _typed(name: str, value: Any) -> Any:
    """Return a value in the type of its setting; an integer is accepted as a float."""
    _require_known(name)
    default = getattr(Architecture(), name) if name in ARCHITECTURE_NAMES else getattr(Recipe(), name)
    wanted = type(default)
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        types = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
        raise SettingError(name, f'must be {types[wanted]}, found "{value}"')
    return value


def read_config(path: Path) -> TrainingSettings:
    """Read the config.toml of a run."""
    sections = _read_toml(check_file(path, "Train the model again."))
    try:
        values = LATER | renamed(sections["architecture"] | sections["recipe"])
        architecture, recipe = (
            {name: _typed(name, values.pop(name)) for name in known} for known in (ARCHITECTURE_NAMES, RECIPE_NAMES)
        )
        return TrainingSettings(sections["model"]["name"], Architecture(**architecture), Recipe(**recipe, **values))
    except (AttributeError, KeyError, TypeError, SettingError) as error:
        raise InputError(
            f"is not the config.toml of a run: {error}", path=path, advice="Train the model again."
        ) from error
