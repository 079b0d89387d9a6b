"""Settings at the door: sections of plain values from a TOML file and from key=value, unknown names refused."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from halfgraph.errors import InputError, SettingError, suggest
from halfgraph.model.architecture import Architecture
from halfgraph.model.variants import architecture_of, variant_named
from halfgraph.training.recipe import RECIPES, Recipe, without_kg_phase
from halfgraph.training.run_folder import LATER, renamed


@dataclass(frozen=True)
class TrainingSettings:
    """All that a run is made with: the model's row, what it is made of, and how it is trained."""

    model: str
    architecture: Architecture
    recipe: Recipe

    def sections(self) -> dict[str, dict[str, Any]]:
        """The settings as a run folder keeps them."""
        return {"model": {"name": self.model}, "architecture": asdict(self.architecture), "recipe": asdict(self.recipe)}


ARCHITECTURE_NAMES = tuple(field.name for field in fields(Architecture))
RECIPE_NAMES = tuple(field.name for field in fields(Recipe))
# Departs from the paper in the default recipe: without the sigmoid of eq. 6 and with paths of one length attention has
# more of a say (docs/results.md). GQE's intersection is better as it is.
ATTENTION = {"activation": "none", "path_length": 16.0}


def training_settings(model: str, recipe: str, given: Mapping[str, Any]) -> TrainingSettings:
    """The settings of a named model and recipe, with some given otherwise."""
    if recipe not in RECIPES:
        problem = f'there is none named "{recipe}"'
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
    """The settings of a TOML file (its architecture and recipe sections, or plain), then those of key=value pairs."""
    values: dict[str, Any] = {}
    if config is not None:
        for name, value in _read_toml(config).items():
            values.update(value if isinstance(value, dict) else {name: value})
        values = renamed(values)
        values.pop("name", None)  # of the section [model]
        if {*ARCHITECTURE_NAMES, *RECIPE_NAMES} <= {*values, *LATER}:  # a run's own
            values = LATER | values
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise SettingError("--set", f'cannot read "{pair}"', advice="Write name=value, such as dim=64.")
        values[name.strip()] = _value(text.strip())
    return {name: _typed(name, value) for name, value in values.items()}


def model_of(config: Path | None) -> str:
    """The model that a TOML file names, as a run's config.toml does, or the usual one."""
    section = {} if config is None else _read_toml(config).get("model", {})
    return str(section.get("name", "cga") if isinstance(section, dict) else section)


def _read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path, advice="Pass a TOML file.") from error


def _value(text: str) -> Any:
    """The value of a text: a number or truth value if it reads as one."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _typed(name: str, value: Any) -> Any:
    """The value in its setting's type; a whole number does for a real one."""
    _require_known(name)
    default = getattr(Architecture(), name) if name in ARCHITECTURE_NAMES else getattr(Recipe(), name)
    wanted = type(default)
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        types = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
        raise SettingError(name, f'takes {types[wanted]}, found "{value}"')
    return value


def read_config(path: Path) -> TrainingSettings:
    """The settings that a run folder keeps."""
    sections = _read_toml(path)
    try:
        values = LATER | renamed(sections["architecture"] | sections["recipe"])
        architecture, recipe = (
            {name: values.pop(name) for name in known} for known in (ARCHITECTURE_NAMES, RECIPE_NAMES)
        )
        return TrainingSettings(sections["model"]["name"], Architecture(**architecture), Recipe(**recipe, **values))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"is not the settings of a run: {error}", path=path, advice="Train the model again."
        ) from error
