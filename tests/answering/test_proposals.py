"""Proposals: N-Quads that a store reads, with the missing triples and no known one."""

import pytest
from pyoxigraph import RdfFormat, Store

from halfgraph.answering.proposals import write_proposed
from halfgraph.errors import FolderError
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


def test_a_store_reads_the_missing_triples_with_their_confidence_and_answers(engine, tmp_path):
    engine = with_links(engine)
    predicted = engine.ask(TEXT, top=4).predicted
    witnesses = [engine.explain(TEXT, one.entity) for one in predicted]
    count = write_proposed(tmp_path / "missing.nq", witnesses, "runs/a", TEXT)
    store, known = Store(), engine.store.local
    store.bulk_load(path=str(tmp_path / "missing.nq"), format=RdfFormat.N_QUADS)
    rows = list(store.query(ABOUT))
    assert len({(row["s"], row["p"], row["o"]) for row in rows}) == count > 0
    for row in rows:
        assert not known.query(f"ASK {{ {row['s']} {row['p']} {row['o']} }}")
    assert {row["answer"].value for row in rows} <= {one.entity for one in predicted}
    needed = [triple for witness in witnesses for triple in witness.triples if not triple.known]
    sure = {(one.subject.entity, one.predicate.entity, one.object.entity): one.confidence for one in needed}
    assert {tuple(row[end].value for end in "spo"): float(row["sure"].value) for row in rows} == sure
    assert len(sure) == count


def test_without_link_models_a_missing_triple_has_no_confidence(engine, tmp_path):
    witnesses = [engine.explain(TEXT, one.entity) for one in engine.ask(TEXT, top=2).predicted]
    write_proposed(tmp_path / "missing.nq", witnesses, "runs/a", TEXT)
    store = Store()
    store.bulk_load(path=str(tmp_path / "missing.nq"), format=RdfFormat.N_QUADS)
    rows = list(store.query(ABOUT))
    assert rows
    assert all(row["sure"] is None for row in rows)


def test_a_file_that_cannot_be_written_is_reported(tmp_path):
    with pytest.raises(FolderError):
        write_proposed(tmp_path / "no" / "where.nq", [], "run", TEXT)
