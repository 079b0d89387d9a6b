"""Witnesses of an engine's answers: known triples where all is known, and which ones are missing where not."""

TWO_HOPS = "SELECT ?x { <person1> <knows> ?y . ?y <knows> ?z . ?z <lives_in> ?x }"


def test_the_witness_of_a_known_answer_is_all_in_the_graph(engine):
    found = engine.explain(TWO_HOPS, "city3")
    assert found.answer.known
    assert [(one.variable, one.label) for one in found.witness] == [("?y", "person2"), ("?z", "person3")]
    assert all(triple.known for triple in found.triples)


def test_the_witness_of_another_answer_says_which_triples_are_missing(graph, engine):
    found = engine.explain(TWO_HOPS, "city4")
    assert not found.answer.known
    for triple in found.triples:
        ends = [engine.names.find(end.entity) for end in (triple.subject, triple.object)]
        relation = 2 * graph.relations.find(triple.predicate.label)
        assert triple.known == (ends[1] in graph.whole.tails_of(ends[0], relation))
    assert any(not triple.known for triple in found.triples)
