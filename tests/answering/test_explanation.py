"""The explanation: attention as the model has it, likely entities as a plain search finds them."""

import pytest
import torch

from halfgraph.answering.explanation import EncodedVariables
from halfgraph.query.patterns import variable_names
from halfgraph.query.tree import Anchor, Intersect, Negate, Union, children, nodes
from small_engines import engine_of

MEETING = "SELECT ?x { ?x <lives_in> <city0> . ?y <knows> ?x . ?y <lives_in> <city5> . ?x <knows>/<lives_in> <city1> }"


def test_the_shares_of_the_paths_that_meet_sum_to_one_for_each_head(engine):
    edges = engine.ask(MEETING).explanation.edges
    at = {edge.target for edge in edges if edge.attention is not None}
    assert len(at) == 1
    met = [edge for edge in edges if edge.target in at]
    assert len(met) == 3
    assert sum(edge.attention for edge in met) == pytest.approx(1, abs=1e-3)
    assert [sum(shares) for shares in zip(*(edge.heads for edge in met), strict=True)] == pytest.approx(
        [1, 1], abs=1e-3
    )


@pytest.mark.parametrize("intersection", ["gqe", "simple", "counted"])
def test_a_model_without_attention_has_no_shares(graph, intersection):
    edges = engine_of(graph, intersection=intersection).ask(MEETING).explanation.edges
    assert all(edge.attention is None and edge.heads is None for edge in edges)


def test_the_embeddings_of_the_variables_are_those_of_their_nodes(engine):
    encoded = EncodedVariables.of(engine.index.encoder, engine.templates.read(MEETING).query)
    assert list(encoded.nodes) == ["y", "_3_1", "x"]
    with torch.no_grad():
        for name, node in encoded.nodes.items():
            assert torch.allclose(encoded.embeddings[name], engine.index.encoder.encode([node])[0], atol=1e-6)


def test_likely_entities_are_the_nearest_of_the_variables_type(engine):
    nodes = engine.ask(MEETING, top=30).explanation.nodes
    target = next(node for node in nodes if node.role == "target")
    assert {engine.names.described(engine.names.find(one.entity))[2] for one in target.likely} == {"Person"}
    assert [one.score for one in target.likely] == sorted((one.score for one in target.likely), reverse=True)
    assert [node.name for node in nodes if node.role == "variable"] == ["?y", "?_3_1"]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("?x <knows> _:b . _:b <lives_in> <city0>", {"x", "_b"}),
        ("?x <knows> [ <lives_in> <city0> ]", {"x", "_1"}),
        ("?x <knows>/<lives_in> <city0>", {"x", "_0_1"}),
        ("{ ?x <lives_in> <city0> } UNION { ?x <knows>/<lives_in> <city1> }", {"x", "_1_1"}),
        ("?x <lives_in> <city0> FILTER NOT EXISTS { ?x <knows> ?z . ?z <lives_in> <city1> }", {"x", "z"}),
    ],
)
def test_every_node_has_the_name_of_its_variable(engine, patterns, names):
    query = engine.templates.read(f"SELECT ?x {{ {patterns} }}").query
    named = variable_names(query)
    assert set(named.values()) == names
    assert named[id(query)] == "x"
    for node in nodes(query):
        if isinstance(node, Intersect | Union | Negate):
            assert {named[id(part)] for part in children(node) if not isinstance(part, Anchor)} <= {named[id(node)]}
