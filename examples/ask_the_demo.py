"""From the demo graph to predicted answers, in Python: `python examples/ask_the_demo.py FOLDER [STEPS]`."""

import sys
from pathlib import Path

from halfgraph.answering.engine import Engine
from halfgraph.evaluation.validation import validation_questions, validator
from halfgraph.graph.demo import baseball
from halfgraph.graph.importing import Choices, import_named
from halfgraph.graph.splitting import Shares
from halfgraph.settings import training_settings
from halfgraph.training.loop import Budget
from halfgraph.training.run import new_encoder, run, start

folder, steps = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500
graph = import_named(baseball(), folder / "graph", Choices(split=Shares(90, 1, 9)), "demo")
settings = training_settings("cga", "default", {})
start(folder / "run", graph, settings.sections(), seed=0, resume=False)
encoder = new_encoder(settings.architecture, graph, seed=0, device="cpu")
validate = validator(validation_questions(graph, None, seed=0))
run(folder / "run", graph, encoder, settings.recipe, Budget(steps), name=settings.model, seed=0, validate=validate)
engine = Engine.load(folder / "run", graph, settings.architecture, view="train")
answers = engine.ask((Path(__file__).parent / "cy_young.rq").read_text(), top=5)
for answer in answers.predicted:
    print(f"{answer.score:.3f}  {answer.label}")
