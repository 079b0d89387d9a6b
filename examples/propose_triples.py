"""Statements to check, as RDF for a triple store: `python examples/propose_triples.py GRAPH.ttl FOLDER [STEPS]`."""

import sys
from pathlib import Path

import halfgraph
from halfgraph.answering.proposals import write_proposed

source, folder = Path(sys.argv[1]), Path(sys.argv[2])
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 500

graph = halfgraph.Graph.read(source, folder / "graph", split="80/10/10")
engine = halfgraph.train(graph, folder / "run", steps=steps)

relation = graph.namer.iri(graph.relations.name(0))
witnesses = []
for number in range(20):
    subject = graph.namer.iri(graph.entities.name(number))
    question = f"SELECT ?what {{ <{subject}> <{relation}> ?what }}"
    witnesses += [engine.explain(question, answer.entity) for answer in engine.ask(question, top=3).predicted]
count = write_proposed(folder / "missing.nq", witnesses, str(folder / "run"), "what the relation may lead to")
print(f"{count} triples to check in {folder / 'missing.nq'}")
