"""Suggestions in errors."""

from halfgraph.errors import UnknownName, nearest, suggest


def test_the_most_similar_names_are_suggested_best_first() -> None:
    assert suggest("dims", ["margin", "dim", "dime"], count=2) == ["dim", "dime"]
    assert nearest("dims", ["margin", "dim"]) == [1]
    assert suggest("dims", ["margin", "heads"]) == []


def test_an_unknown_name_says_where_it_is_and_what_was_meant() -> None:
    error = UnknownName(":alma", what="relation", nearest=[":almaMater"], line=4, column=11)
    assert str(error) == "line 4, column 11: no relation :alma in this graph. Did you mean :almaMater?"
