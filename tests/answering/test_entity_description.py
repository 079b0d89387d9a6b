"""Descriptions of entities: every statement of the store, and predictions in both directions."""

from halfgraph.answering.catalogue import Catalogue
from halfgraph.answering.entity_description import describe_entity
from small_engines import with_links


def test_every_triple_of_an_entity_is_described_in_its_direction(graph):
    catalogue = Catalogue(graph, "train")
    for entity in range(0, len(graph.entities), 7):
        iri = catalogue.names.entity(entity).entity
        description = describe_entity(catalogue, iri, 100)
        for groups, pattern in ((description.statements, f"<{iri}> ?p ?o"), (description.incoming, f"?o ?p <{iri}>")):
            described = {(group.iri, value.value) for group in groups for value in group.values}
            rows = catalogue.store.local.query(f"SELECT ?p ?o {{ {pattern} FILTER(!STRENDS(STR(?p), 'type')) }}")
            assert described == {(row["p"].value, row["o"].value) for row in rows}
        assert [own.label for own in description.types] == [catalogue.names.described(entity)[2]]


def test_predictions_are_missing_triples_of_the_entity_in_both_directions(engine):
    engine = with_links(engine)
    description = describe_entity(Catalogue(engine.graph), "city0", 200, engine)
    assert description.predicted
    subjects = [triple.subject.label == "city0" for triple in description.predicted]
    assert any(subjects)
    assert not all(subjects)
    known = {(value.value, group.iri) for group in description.incoming for value in group.values}
    incoming = [triple for triple in description.predicted if triple.object.label == "city0"]
    assert not known & {(triple.subject.entity, triple.predicate.entity) for triple in incoming}


def test_without_link_models_nothing_is_predicted(engine):
    assert describe_entity(Catalogue(engine.graph), "city0", 5, engine).predicted is None
