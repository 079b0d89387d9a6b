import pytest
import torch

from halfgraph.errors import SettingError
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder, describe
from halfgraph.model.intersection import INTERSECTIONS
from halfgraph.model.variants import ROWS, SHORT, Variant, architecture_of, variant_named
from query_oracles import graph_of
from small_models import RELATIONS, TYPE_SIZES, small_triples

# Projection, intersection, centre, heads and KG phase of each row of the paper's Table 2, and of the eleventh.
TABLE_2 = [
    ("Bilinear[mean_simple]", "bilinear", "simple", "mean", None, False),
    ("Bilinear[min_simple]", "bilinear", "simple", "min", None, False),
    ("TransE[mean]", "translation", "gqe", "mean", None, False),
    ("TransE[min]", "translation", "gqe", "min", None, False),
    ("GQE[mean]", "bilinear", "gqe", "mean", None, False),
    ("GQE[min]", "bilinear", "gqe", "min", None, False),
    ("GQE+KG[min]", "bilinear", "gqe", "min", None, True),
    ("CGA+KG+1[min]", "bilinear", "attention", "min", 1, True),
    ("CGA+KG+4[min]", "bilinear", "attention", "min", 4, True),
    ("CGA+KG+8[min]", "bilinear", "attention", "min", 8, True),
    ("Bilinear[counted]", "bilinear", "counted", "mean", None, False),
]


def paper_count(intersection: str, types: int, dim: int, heads: int) -> int:
    """The paper's count of an intersection's parameters."""
    return {"attention": types * dim * (dim + 2 * heads + 1), "gqe": 2 * types * dim * dim}.get(intersection, 0)


def test_the_rows_are_those_of_the_paper_in_its_order() -> None:
    found = [
        (
            row.name,
            *(row.architecture[name] for name in ("projection", "intersection", "centre")),
            row.architecture.get("heads"),
            row.kg_phase,
        )
        for row in ROWS
    ]
    assert found == TABLE_2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_parameters_are_counted_as_the_paper_counts_them(row: Variant) -> None:
    architecture = architecture_of(row, dim=6)
    graph = graph_of(small_triples(), TYPE_SIZES, RELATIONS)
    encoder = Encoder(architecture, graph, torch.Generator().manual_seed(0))
    count = paper_count(architecture.intersection, len(TYPE_SIZES), 6, architecture.heads)
    assert encoder.intersection.paper_parameter_count() == count
    # The paper leaves out the two layer normalisations, which have 4d parameters for all types together.
    norms = 4 * 6 if architecture.intersection == "attention" else 0
    assert sum(parameter.numel() for parameter in encoder.intersection.parameters()) == count + norms
    of_relation = 6 if architecture.projection == "translation" else 6 * 6
    every = sum(TYPE_SIZES) * 6 + RELATIONS * of_relation + count + norms
    about = describe(encoder)
    assert (about["parameters"], about["intersection_parameters"]) == (every, count)
    assert about["heads"] == architecture.heads


def test_attention_has_fewer_parameters_than_gqes_intersection_at_the_papers_size() -> None:
    counts = [
        INTERSECTIONS[name](Architecture(heads=8, dim=128), 1, torch.Generator()).paper_parameter_count()
        for name in ("attention", "gqe")
    ]
    assert counts == [18_560, 32_768]


@pytest.mark.parametrize("name", [*(row.name for row in ROWS), *SHORT])
def test_a_name_is_known_however_it_is_capitalised(name: str) -> None:
    row = variant_named(name)
    assert row.name == SHORT.get(name, name)
    assert variant_named(name.upper()) is variant_named(name.lower()) is row


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("cga8", "cga"), ("GQE[max]", "GQE[m"), ("CGA+KG+5[min]", "CGA+KG+"), ("transE[mena]", "TransE[mean]")],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(SettingError) as refused:
        variant_named(name)
    message = str(refused.value)
    assert message.startswith(f'model: there is no model named "{name}". Did you mean {nearest}')
    assert "CGA+KG+8[min]" in message


@pytest.mark.parametrize("name", ["", "   ", "🦊"])
def test_a_name_without_a_letter_is_refused_too(name: str) -> None:
    with pytest.raises(SettingError, match="there is no model named"):
        variant_named(name)


def test_a_variant_takes_other_settings() -> None:
    architecture = architecture_of(variant_named("gqe"), dim=16, projection="diagonal")
    assert architecture == Architecture("diagonal", "gqe", "min", dim=16)
