"""Proposals: quads that a store reads, with the missing triples and no known one."""

from pyoxigraph import Store

from halfgraph.answering.proposals import missing, proposed
from small_engines import with_links

TEXT = "SELECT ?x { ?x <lives_in> <city0> . ?x <knows> ?y . ?y <lives_in> <city3> }"
ABOUT = """
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> PREFIX : <urn:halfgraph:terms:>
SELECT ?s ?p ?o ?sure ?answer {
  GRAPH ?about { ?n rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ; :supports ?answer
                 OPTIONAL { ?n :confidence ?sure } }
  GRAPH ?proposed { ?s ?p ?o }
}
"""


def test_a_store_reads_the_missing_triples_with_their_confidence_and_answers(engine):
    engine = with_links(engine)
    predicted = engine.ask(TEXT, top=4).predicted
    witnesses = [engine.explain(TEXT, one.entity) for one in predicted]
    triples = missing(witnesses)
    store, known = Store(), engine.store.local
    store.extend(proposed(triples, "runs/a", TEXT))
    rows = list(store.query(ABOUT))
    assert len({(row["s"], row["p"], row["o"]) for row in rows}) == len(triples) > 0
    for row in rows:
        assert not known.query(f"ASK {{ {row['s']} {row['p']} {row['o']} }}")
    assert {row["answer"].value for row in rows} <= {one.entity for one in predicted}
    needed = [triple for witness in witnesses for triple in witness.triples if not triple.known]
    sure = {(one.subject.entity, one.predicate.entity, one.object.entity): one.confidence for one in needed}
    assert {tuple(row[end].value for end in "spo"): float(row["sure"].value) for row in rows} == sure
    assert len(sure) == len(triples)


def test_without_link_models_a_missing_triple_has_no_confidence(engine):
    witnesses = [engine.explain(TEXT, one.entity) for one in engine.ask(TEXT, top=2).predicted]
    store = Store()
    store.extend(proposed(missing(witnesses), "runs/a", TEXT))
    rows = list(store.query(ABOUT))
    assert rows
    assert all(row["sure"] is None for row in rows)
