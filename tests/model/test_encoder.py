from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.errors import SettingError
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder, QueryEmbedding, cosine
from halfgraph.query.rewriting import disjuncts
from halfgraph.query.structures import STRUCTURES, UNIONS, structure_named
from halfgraph.query.tree import Anchor, Intersect, Project, Query, Union, nodes
from halfgraph.sparql.prefixes import COMMON
from halfgraph.sparql.read import read
from imported_graphs import made, tsv
from model_oracles import Model, attention, bilinear, look_up, usual_type
from model_oracles import cosine as oracle_cosine
from small_graphs import Small, queries, reordered
from small_models import (
    ARCHITECTURES,
    RELATIONS,
    TYPE_SIZES,
    SmallModel,
    all_shapes,
    name_of,
    small_model,
    small_triples,
    some_questions,
    weights_of,
)

CGA = Architecture("bilinear", "attention", "min", heads=3)
EXACT: dict[str, float] = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module")
def model() -> SmallModel:
    return small_model(CGA)


def encoded(model: SmallModel, *some: Query) -> list[np.ndarray]:
    with torch.no_grad():
        return [vectors.numpy() for vectors in model.encoder.encode(some)]


def small_queries(**choices: Any) -> st.SearchStrategy[Query]:
    """Queries over the small graph, variables shared now and then, without unions."""
    small = Small(tuple(small_triples()), TYPE_SIZES, RELATIONS)
    return queries(small, unions=False, **choices).filter(ends_in_relations)


def ends_in_relations(query: Query) -> bool:
    """Whether a relation leads to every intersected variable, so that it has a type."""
    return all(
        isinstance(node, Project) or getattr(node, "type", None) is not None or _has_relation(node)
        for node in nodes(query)
        if not isinstance(node, Anchor)
    )


def _has_relation(node: Query) -> bool:
    return isinstance(node, Project) or (isinstance(node, Intersect) and any(map(_has_relation, node.parts)))


# A query's vector


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=name_of)
def test_a_querys_vector_is_what_the_equations_give(architecture: Architecture) -> None:
    small = small_model(architecture)
    for structure in all_shapes():
        questions = some_questions(small.graph, structure, 3)
        (vectors,) = encoded(small, structure.fill(questions.anchors, questions.relations))
        for row in range(len(questions)):
            np.testing.assert_allclose(vectors[row], small.oracle.vector(questions.query(row)), **EXACT)


@given(st.data())
@settings(max_examples=30)
def test_any_query_without_a_union_has_the_vector_of_the_equations(model: SmallModel, data: st.DataObject) -> None:
    query = data.draw(small_queries())
    np.testing.assert_allclose(encoded(model, query)[0][0], model.oracle.vector(query), **EXACT)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=name_of)
def test_a_batch_equals_its_queries_one_by_one(architecture: Architecture) -> None:
    small = small_model(architecture)
    for structure in STRUCTURES:
        questions = some_questions(small.graph, structure, 6)
        (together,) = encoded(small, structure.fill(questions.anchors, questions.relations))
        alone = [encoded(small, questions.query(row))[0][0] for row in range(len(questions))]
        np.testing.assert_allclose(together, np.stack(alone), rtol=0, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=name_of)
def test_queries_walked_together_have_the_vectors_that_they_have_alone(architecture: Architecture) -> None:
    small = small_model(architecture)
    batches = []
    for size, structure in enumerate(all_shapes(), start=1):
        questions = some_questions(small.graph, structure, size)
        batches.append(structure.fill(questions.anchors, questions.relations))
    for together, query in zip(encoded(small, *batches), batches, strict=True):
        np.testing.assert_allclose(together, encoded(small, query)[0], rtol=0, atol=1e-12)


@given(st.data())
@settings(max_examples=25)
def test_the_order_of_parts_does_not_matter(model: SmallModel, data: st.DataObject) -> None:
    query = data.draw(small_queries())
    again = data.draw(reordered(query))
    np.testing.assert_allclose(encoded(model, query)[0], encoded(model, again)[0], rtol=0, atol=1e-9)


class _Counting:
    """The vectors of an encoder, with a count of the nodes that were asked for."""

    def __init__(self, encoder: Encoder) -> None:
        self.meaning, self.seen = QueryEmbedding(encoder), Counter[int]()

    def __getattr__(self, name: str) -> Any:
        def counted(some: list[Query], *others: Any) -> Any:
            self.seen.update(map(id, some))
            return getattr(self.meaning, name)(some, *others)

        return counted


def test_a_variable_used_twice_is_computed_once(model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Project(Anchor(1), 0)
    query = Intersect((Project(person, 2), Project(Project(person, 3), 4), person))
    counting = _Counting(model.encoder)
    monkeypatch.setattr("halfgraph.model.encoder.QueryEmbedding", lambda _: counting)
    with torch.no_grad():
        (vectors,) = model.encoder.encode([query])
    assert counting.seen == {id(node): 1 for node in nodes(query)}
    np.testing.assert_allclose(vectors[0].numpy(), model.oracle.vector(query), **EXACT)


def test_queries_may_share_nodes(model: SmallModel) -> None:
    person = Project(Anchor(np.array([1, 4], np.int32)), np.array([0, 2], np.int32))
    first, second = Project(person, np.array([1, 1], np.int32)), Intersect((person, person))
    together = encoded(model, first, second, person)
    for found, query in zip(together, (first, second, person), strict=True):
        np.testing.assert_allclose(found, encoded(model, query)[0], rtol=0, atol=1e-12)


def test_the_gradient_through_a_walk_is_the_difference_quotient() -> None:
    small = small_model(Architecture(heads=2), dim=3)
    structure = structure_named("3-inter_chain")
    questions = some_questions(small.graph, structure, 2)
    query = structure.fill(questions.anchors, questions.relations)
    names = [name for name, _ in small.encoder.named_parameters()]
    wrapped = _Walk(small.encoder, query)

    def walk(*weights: torch.Tensor) -> torch.Tensor:
        given = {f"encoder.{name}": weight for name, weight in zip(names, weights, strict=True)}
        return torch.func.functional_call(wrapped, given, ())

    weights = [parameter.detach().clone().requires_grad_() for parameter in small.encoder.parameters()]
    assert torch.autograd.gradcheck(walk, tuple(weights), fast_mode=True)


class _Walk(torch.nn.Module):
    def __init__(self, encoder: Encoder, query: Query) -> None:
        super().__init__()
        self.encoder, self.query = encoder, query

    def forward(self) -> torch.Tensor:
        return self.encoder.encode([self.query])[0]


def test_a_score_is_the_cosine(model: SmallModel) -> None:
    questions = some_questions(model.graph, structure_named("2-inter"), 5)
    with torch.no_grad():
        (vectors,) = model.encoder.encode([questions.structure.fill(questions.anchors, questions.relations)])
        entities = model.encoder.entities(torch.from_numpy(questions.answers.astype(np.int64)))
        units = torch.nn.functional.normalize(vectors, dim=-1)
        scores = cosine(units, entities.unsqueeze(1)).squeeze(1).numpy()
        against_all = cosine(units, model.encoder.entities.embeddings()).numpy()
    for row, answer in enumerate(questions.answers.tolist()):
        vector = model.oracle.vector(questions.query(row))
        assert scores[row] == pytest.approx(oracle_cosine(vector, model.oracle.entity(answer)), abs=1e-10)
        assert against_all[row, answer] == pytest.approx(scores[row], abs=1e-12)


# The type of a variable


def test_a_variable_is_of_the_type_that_the_query_says(model: SmallModel) -> None:
    node = Intersect((Project(Anchor(0), 0), Project(Anchor(1), 2)), type_id=1)
    assert model.encoder.types_of(node, 1).tolist() == [1]
    column = Anchor(np.array([0, 1, 2], np.int32))
    batch = Intersect((Project(column, np.zeros(3, np.int32)),) * 2, type_id=2)
    assert model.encoder.types_of(batch, 3).tolist() == [2, 2, 2]


def test_a_variable_without_a_type_is_of_the_usual_one_at_the_end_of_its_relations(model: SmallModel) -> None:
    for one, other in permutations(range(RELATIONS), 2):
        node = Intersect((Project(Anchor(0), one), Project(Project(Anchor(1), 3), other)))
        assert model.encoder.types_of(node, 1).tolist() == [usual_type(model.plain, len(TYPE_SIZES), [one, other])]


def test_the_usual_type_is_found_row_by_row_and_through_nested_intersections(model: SmallModel) -> None:
    relations = [np.arange(RELATIONS, dtype=np.int32), np.arange(RELATIONS, dtype=np.int32)[::-1].copy()]
    anchor = Anchor(np.zeros(RELATIONS, np.int32))
    inner = Intersect(tuple(Project(anchor, column) for column in relations))
    node = Intersect((inner, Project(anchor, relations[0])))
    expected = [
        usual_type(model.plain, len(TYPE_SIZES), [relation, RELATIONS - 1 - relation, relation])
        for relation in range(RELATIONS)
    ]
    assert model.encoder.types_of(node, RELATIONS).tolist() == expected


def test_the_usual_type_does_not_depend_on_the_order_of_parts() -> None:
    # Sevenths: rounded sums of 1, 2 and 3 of them differ with their order, so that either type would come first.
    shares = [(0, 3, 3, 6, 7, 8, 9), (0, 0, 3, 6, 7, 8, 9), (0, 0, 0, 3, 3, 3, 6)]
    tails = [[type_id + row[:place].count(type_id) for place, type_id in enumerate(row)] for row in shares]
    triples = tuple((0, 2 * relation, tail) for relation, row in enumerate(tails) for tail in row)
    small = Small(triples, (3, 3, 1, 1, 1, 1), RELATIONS)
    encoder = Encoder(replace(CGA, dim=2), small.graph, torch.Generator())
    for order in permutations((0, 2, 4)):
        node = Intersect(tuple(Project(Anchor(0), relation) for relation in order))
        assert encoder.types_of(node, 1).tolist() == [0]


# Unions


@pytest.mark.parametrize("structure", UNIONS, ids=lambda structure: structure.name)
def test_a_query_with_a_union_has_no_vector_and_its_disjuncts_have_one_each(model: SmallModel, structure: Any) -> None:
    query = structure.fill(np.array([1, 2], np.int32), np.arange(structure.relation_count, dtype=np.int32))
    with pytest.raises(TypeError, match="use disjuncts"):
        model.encoder.encode([query])
    ways = disjuncts(query)
    assert len(ways) == 2
    for vectors, way in zip(encoded(model, *ways), ways, strict=True):
        np.testing.assert_allclose(vectors[0], model.oracle.vector(way), **EXACT)


def test_a_union_of_a_type_has_disjuncts_of_that_type(model: SmallModel) -> None:
    paths = (Project(Anchor(1), 0), Project(Anchor(2), 2))
    for way in disjuncts(Union(paths, type_id=1)):
        assert way.type_id == 1
        np.testing.assert_allclose(encoded(model, way)[0][0], model.oracle.vector(way), **EXACT)


# The paper's example

LISTING_1 = """
SELECT ?Disease WHERE {
    ?Person dbo:deathCause ?Disease .
    ?Person dbo:almaMater dbr:University_of_California,_Los_Angeles .
    dbr:Escape_Clause dbo:guest ?Person .
}
"""
DBPEDIA = """
Virginia_Christine almaMater University_of_California,_Los_Angeles
Escape_Clause guest Virginia_Christine
Escape_Clause guest Joe_Flynn
Fritz_Feld deathCause Cardiovascular_disease
Joe_Flynn deathCause Drowning
"""
CLASSES = {"Cardiovascular_disease": "Disease", "Drowning": "Disease", "Escape_Clause": "Work"}


def test_listing_1_is_two_projections_an_intersection_and_a_projection(tmp_path: Path) -> None:
    dbr, dbo = COMMON["dbr"], COMMON["dbo"]
    triples = [line.split() for line in DBPEDIA.strip().splitlines()]
    names = sorted({name for head, _, tail in triples for name in (head, tail)})
    classes = {name: CLASSES.get(name, "Place" if "University" in name else "Person") for name in names}
    (tmp_path / "types").write_text("".join(f"{dbr}{name}\t{dbo}{type_id}\n" for name, type_id in classes.items()))
    content = tsv((dbr + head, dbo + relation, dbr + tail) for head, relation, tail in triples)
    graph = made(tmp_path, content, types_file=tmp_path / "types")
    encoder = Encoder(replace(CGA, dim=4), graph.train, torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        (vectors,) = encoder.encode([read(LISTING_1, graph).query])

    weights = weights_of(encoder)

    def entity(name: str) -> Any:
        return look_up(weights["entities.table"], graph.entities.find(dbr + name) or 0)

    def moved(vector: Any, relation: str) -> Any:
        number = 2 * (graph.relations.find(dbo + relation.removesuffix("^-1")) or 0) + relation.endswith("^-1")
        return bilinear(weights["projection.weight"], number, vector)

    p1 = moved(entity("University_of_California,_Los_Angeles"), "almaMater^-1")
    p2 = moved(entity("Escape_Clause"), "guest")
    own = {name.removeprefix("intersection."): value for name, value in weights.items()}
    person = attention(own, "min", graph.types.names.index(f"{dbo}Person"), [p1, p2])
    np.testing.assert_allclose(vectors[0].numpy(), moved(person, "deathCause"), **EXACT)


# Making a model


def test_the_same_seed_gives_the_same_model() -> None:
    one, same, other = (Encoder(CGA, small_model(CGA).graph, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
    for name, parameter in one.named_parameters():
        assert torch.equal(parameter, dict(same.named_parameters())[name])
    assert not torch.equal(one.entities.table, other.entities.table)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"dim": 0}, "dim: must be at least 1, found 0"),
        ({"heads": 0}, "heads: must be at least 1, found 0"),
        ({"heads": -3}, "heads: must be at least 1, found -3"),
        (
            {"projection": "rotate"},
            'projection: unknown value "rotate". Choose one of bilinear, diagonal, translation.',
        ),
        ({"intersection": "max"}, 'intersection: unknown value "max"'),
        ({"centre": "max"}, 'centre: unknown value "max". Choose one of mean, min.'),
        ({"activation": "tanh"}, 'activation: unknown value "tanh"'),
        ({"initial": "zero"}, 'initial: unknown value "zero"'),
    ],
)
def test_an_architecture_out_of_its_range_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as refused:
        Architecture(**wrong)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=name_of)
def test_the_smallest_sizes_do(architecture: Architecture, dim: int) -> None:
    small = small_model(replace(architecture, heads=1), dim=dim)
    questions = some_questions(small.graph, structure_named("3-inter_chain"), 4)
    (vectors,) = encoded(small, questions.structure.fill(questions.anchors, questions.relations))
    assert vectors.shape == (4, dim)
    assert np.isfinite(vectors).all()


def test_an_oracle_reads_the_weights_by_name(model: SmallModel) -> None:
    assert isinstance(model.oracle, Model)
    assert set(model.oracle.weights) == {name for name, _ in model.encoder.named_parameters()}


def test_paths_of_one_length_meet_as_if_their_own_lengths_were_nothing() -> None:
    """A relation that makes vectors three times as long changes where paths meet, unless their length is set."""
    query = Intersect((Project(Anchor(0), 0), Project(Anchor(1), 2)), type_id=0)
    for length, is_same in ((0.0, False), (2.0, True)):
        model = small_model(replace(CGA, path_length=length))
        before = encoded(model, query)[0]
        with torch.no_grad():
            model.encoder.projection.weight[0] *= 3
        after = encoded(model, query)[0]
        assert np.allclose(before, after, **EXACT) is is_same


@pytest.mark.parametrize("length", [-1.0, float("inf"), float("nan")])
def test_a_length_of_paths_that_is_none_is_refused(length: float) -> None:
    with pytest.raises(SettingError, match="path_length"):
        Architecture(path_length=length)
