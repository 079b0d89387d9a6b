"""Predict missing triples of a graph as N-Quads: `python examples/propose_triples.py GRAPH.ttl FOLDER [STEPS]`."""

import sys
from pathlib import Path

import halfgraph
from halfgraph.answering.proposal_files import write_proposals
from halfgraph.answering.proposals import missing

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 500

graph = halfgraph.Graph.read(source, folder / "graph", split="80/10/10")
engine = halfgraph.train(graph, folder / "run", steps=steps)

relation = graph.namer.iri(graph.relations.name(0))
witnesses = []
for number in range(20):
    subject = graph.namer.iri(graph.entities.name(number))
    query = f"SELECT ?what {{ <{subject}> <{relation}> ?what }}"
    witnesses += [engine.explain(query, answer.entity) for answer in engine.ask(query, top=3).predicted]
triples = missing(witnesses)
write_proposals(folder / "missing.nq", triples, str(folder / "run"), "objects of the first relation", {})
print(f"{len(triples)} triples to check in {folder / 'missing.nq'}")
