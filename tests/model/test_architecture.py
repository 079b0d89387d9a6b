import re

from doc_pages import DOCS, table_rows, text_of
from halfgraph.model.architecture import CHOICES, Architecture
from halfgraph.model.intersection import INTERSECTIONS
from halfgraph.model.projection import PROJECTIONS


def test_the_dictionaries_of_operators_are_the_choices() -> None:
    assert CHOICES["intersection"] is INTERSECTIONS
    assert CHOICES["projection"] is PROJECTIONS


def test_every_choice_makes_an_architecture() -> None:
    for setting, values in CHOICES.items():
        for value in values:
            assert getattr(Architecture(**{setting: value}), setting) == value  # type: ignore[arg-type]


def test_the_page_on_training_lists_every_choice() -> None:
    rows = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in table_rows(text_of(DOCS / "training.md"))}
    assert {setting: rows[setting] for setting in CHOICES} == {name: list(values) for name, values in CHOICES.items()}
