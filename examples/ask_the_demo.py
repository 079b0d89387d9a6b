"""Import the demo, train, ask a query and explain an answer: `python examples/ask_the_demo.py FOLDER [STEPS]`."""

import sys
from pathlib import Path

import halfgraph
from halfgraph.answering.schema import certainty

folder, steps = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500
query = (Path(__file__).parent / "cy_young.rq").read_text()

graph = halfgraph.Graph.read("demo", folder / "graph", split="90/1/9")
halfgraph.train(graph, folder / "run", steps=steps)
engine = halfgraph.load(folder / "run", graph, view="train")  # the test triples count as unknown

answers = engine.ask(query, top=5)
for answer in answers.predicted:
    print(certainty(answer), answer.label)

witness = engine.explain(query, ":Sandy_Koufax")
for triple in witness.triples:
    print("known  " if triple.known else "missing", triple.subject.label, triple.predicate.label, triple.object.label)
