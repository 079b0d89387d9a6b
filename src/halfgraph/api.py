"""What Python programs use: read a graph, sample, train, evaluate, load a run, ask it and have it explained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfgraph.answering.engine import Engine
from halfgraph.answering.schema import Answers, Witness, table
from halfgraph.errors import FolderError, HalfgraphError
from halfgraph.evaluation.questions import drawn
from halfgraph.evaluation.results import evaluate as figures_of
from halfgraph.evaluation.validation import validation_questions, validator
from halfgraph.graph import folder
from halfgraph.graph.catalogue import CATALOGUE
from halfgraph.graph.importing import Choices, import_graph, import_named
from halfgraph.graph.splitting import Shares
from halfgraph.prediction.answerers import VectorAnswerer
from halfgraph.prediction.calibrating import calibrate
from halfgraph.settings import read_config, training_settings
from halfgraph.training.loop import Budget
from halfgraph.training.run import load_encoder, new_encoder, run, start
from halfgraph.training.run_folder import CONFIG, read_provenance
from halfgraph.workload.folder import Counts, Plan, Workload
from halfgraph.workload.folder import sample as draw

__all__ = [
    "Answers",
    "Engine",
    "Evaluation",
    "Graph",
    "HalfgraphError",
    "Witness",
    "ask",
    "evaluate",
    "explain",
    "load",
    "sample",
    "train",
]
Place = str | Path


class Graph(folder.Graph):
    """A knowledge graph with its names, types and splits, in a folder."""

    @classmethod
    def read(cls, source: Place | Sequence[Place], out: Place, *, split: str | None = None, **choices: Any) -> "Graph":
        """The graph of files (RDF, TSV, CSV), a folder with a published split, or "demo", made in a new folder.

        `split` is such as "90/1/9"; `choices` are those of `Choices` in graph/importing.py.
        """
        made = Choices(split=None if split is None else Shares.parse(split), **choices)
        if isinstance(source, str) and source in CATALOGUE:
            import_named(CATALOGUE[source](), Path(out), made, source)
        else:
            sources = [source] if isinstance(source, str | Path) else source
            import_graph([Path(one) for one in sources], Path(out), made)
        return cls.open(out)

    @classmethod
    def open(cls, path: Place) -> "Graph":
        """The graph in a folder."""
        found = super().open(path)
        return cls(found.path, found.description)

    def _repr_html_(self) -> str:
        """The graph's counts as a table in a notebook."""
        counts = self.description["counts"]
        rows = [(name, f"{counts[name]:,}") for name in ("entities", "relations", "types")]
        return table(("", str(self.path)), [*rows, ("triples", f"{self.whole.triple_count:,}")])


def sample(graph: folder.Graph, out: Place, *, seed: int = 0, **counts: int) -> Workload:
    """Questions of every structure in a new folder; `counts` are those of `Counts` in query/workload.py."""
    return draw(graph, Path(out), Plan(Counts(**counts), seed), lambda *_: None)


def train(
    graph: folder.Graph,
    out: Place,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    model: str = "cga",
    recipe: str = "default",
    seed: int = 0,
    **settings: Any,
) -> Engine:
    """A model of the graph, trained in a new run folder and ready to be asked; five minutes if nothing is said."""
    out, chosen = Path(out), training_settings(model, recipe, settings)
    budget = Budget(steps, 5.0 if steps is None and minutes is None else minutes)
    start(out, graph, chosen.sections(), seed, resume=False)
    validate = validator(validation_questions(graph, None, seed))
    encoder = new_encoder(chosen.architecture, graph, seed, "cpu")
    run(out, graph, encoder, chosen.recipe, budget, name=chosen.model, seed=seed, validate=validate)
    calibrate(out, graph, load_encoder(out, graph, chosen.architecture), seed)
    return load(out, graph)


@dataclass(frozen=True)
class Evaluation:
    """The figures of a run on test questions, as `halfgraph evaluate --json` prints them."""

    figures: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The figures, ready for JSON."""
        return dict(self.figures)

    def _repr_html_(self) -> str:
        """AUC and APR by query type as a table in a notebook."""
        auc, apr = self.figures["auc"], self.figures["apr"]
        return table(("query type", "AUC", "APR"), [(name, f"{auc[name]:.3f}", f"{apr[name]:.3f}") for name in auc])


def evaluate(run: Place, graph: folder.Graph | None = None, *, limit: int = 1_000, seed: int = 0) -> Evaluation:
    """The figures of a run on fresh test questions, at most `limit` of each structure."""
    run, graph = Path(run), graph or graph_of(Path(run))
    encoder = load_encoder(run, graph, read_config(run / CONFIG).architecture)
    return Evaluation(figures_of(VectorAnswerer(encoder), drawn(graph, "test", limit, seed), seed=seed))


def graph_of(run: Path) -> Graph:
    """The graph that a run was trained on, where it says it is."""
    path = Path(read_provenance(run).get("graph_path", ""))
    if not path.is_dir():
        raise FolderError(run, f"was trained on {path}, which is not there", advice="Pass --graph FOLDER.")
    return Graph.open(path)


def load(
    run: Place, graph: folder.Graph | Place | None = None, view: str = "whole", *, time_limit: float | None = None
) -> Engine:
    """The engine of a trained run; `view` says which triples count as known: whole, known or train."""
    run = Path(run)
    opened = graph if isinstance(graph, folder.Graph) else graph_of(run) if graph is None else Graph.open(graph)
    return Engine.load(run, opened, read_config(run / CONFIG).architecture, view, time_limit=time_limit)


def ask(run: Place, text: str, top: int = 10, **choices: Any) -> Answers:
    """The answers of a run to a SPARQL query; to ask more than once, load the run and ask that."""
    return load(run).ask(text, top, **choices)


def explain(run: Place, text: str, entity: str) -> Witness:
    """Why an entity is an answer to a SPARQL query."""
    return load(run).explain(text, entity)
