"""The catalogue's counts, compared with what the store counts."""

from hypothesis import given

from halfgraph.answering.catalogue import Catalogue
from imported_graphs import short_lived, tsv
from strategies import named_triples


@given(named_triples())
def test_counts_of_relations_are_those_of_the_store(triples):
    with short_lived(tsv(triples)) as graph:
        catalogue = Catalogue(graph)
        for row in catalogue.relations():
            counts = "(COUNT(*) AS ?n) (COUNT(DISTINCT ?x) AS ?heads) (COUNT(DISTINCT ?y) AS ?tails)"
            answer = next(iter(catalogue.store.local.query(f"SELECT {counts} {{ ?x <{row.iri}> ?y }}")))
            assert [row.triples, row.heads, row.tails] == [int(value.value) for value in answer]
            assert sum(own.count for own in row.domains) == row.heads
            assert sum(own.count for own in row.ranges) == row.tails
            assert catalogue.relation_named(row.name) == catalogue.relation_named(row.iri)
            assert catalogue.names.relation(catalogue.relation_named(row.name)).entity == row.iri


def test_the_entities_of_a_type_are_those_of_the_store(engine):
    catalogue = Catalogue(engine.graph)
    for row in catalogue.types():
        assert len(catalogue.subjects_of_type(row.name)) == row.stated == row.main
        assert list(catalogue.subjects_of_type(row.label)) == list(catalogue.subjects_of_type(row.iri))
