"""The Python API: read a graph, sample questions, train, evaluate, load a run, ask it, explain an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from halfgraph.answering.engine import Engine
from halfgraph.answering.explanation_schema import Witness
from halfgraph.answering.markup import table
from halfgraph.answering.schema import Answers
from halfgraph.cli.output import progress as progress_display
from halfgraph.cli.train import training_progress
from halfgraph.errors import FolderError, HalfgraphError, SettingError
from halfgraph.evaluation.questions import sample_questions
from halfgraph.evaluation.results import evaluate as figures_of
from halfgraph.evaluation.validation import validation_questions, validator
from halfgraph.graph import folder
from halfgraph.graph.demo import CATALOGUE
from halfgraph.graph.files import ReadOptions
from halfgraph.graph.importing import ImportOptions, import_graph, import_named
from halfgraph.graph.named_graphs import DefaultGraph
from halfgraph.graph.names import DEFAULT_BASE
from halfgraph.graph.splitting import Shares
from halfgraph.graph.types import How, Untyped
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.calibration import calibrate, time_for_links
from halfgraph.prediction.predictors import Predictors
from halfgraph.settings import TrainingSettings, read_config, training_settings
from halfgraph.training.loop import Budget
from halfgraph.training.run import load_encoder, new_encoder, run, start
from halfgraph.training.run_folder import CONFIG, read_provenance, trained_graph
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
PathLike = str | Path
KNOWN_VIEWS = ("whole", "known", "train")  # views whose triples can count as known


class ApiGraph(folder.Graph):
    """A graph folder that can be imported from Python and shown in a notebook; public as `halfgraph.Graph`."""

    @classmethod
    def read(
        cls,
        source: PathLike | Sequence[PathLike],
        out: PathLike,
        *,
        split: str | None = None,
        seed: int = 0,
        format: str | None = None,  # noqa: A002
        header: bool = False,
        skip_bad: bool = False,
        types: How = "nearest",
        types_file: PathLike | None = None,
        labels_files: Sequence[PathLike] = (),
        language: str = "en",
        untyped: Untyped = "vote",
        smallest_type: int = 1,
        blank_nodes: Literal["keep", "drop"] = "keep",
        self_loops: Literal["keep", "drop"] = "keep",
        schema: Literal["aside", "use"] = "aside",
        default_graph: DefaultGraph = "auto",
        base: str = DEFAULT_BASE,
    ) -> "ApiGraph":
        """Import RDF, TSV or CSV files, a folder with train/valid/test files, or "demo" into a new graph folder.

        `split` is for example "90/1/9". The other choices are those of `halfgraph import`; docs/data.md explains them.
        """
        chosen = ImportOptions(
            ReadOptions(format, skip_bad, header, blank_nodes, schema, base),
            types,
            None if types_file is None else Path(types_file),
            tuple(map(Path, labels_files)),
            language,
            untyped,
            smallest_type,
            self_loops,
            default_graph,
            None if split is None else Shares.parse(split),
            seed,
        )
        if isinstance(source, str) and source in CATALOGUE:
            import_named(CATALOGUE[source](), Path(out), chosen, source)
        else:
            sources = [source] if isinstance(source, str | Path) else source
            import_graph([Path(path) for path in sources], Path(out), chosen)
        return cls.open(out)

    def _repr_html_(self) -> str:
        counts = self.description["counts"]
        rows = [(name, f"{counts[name]:,}") for name in ("entities", "relations", "types")]
        return table(("", str(self.path)), [*rows, ("triples", f"{self.whole.triple_count:,}")])


Graph = ApiGraph


def sample(
    graph: folder.Graph,
    out: PathLike,
    *,
    two_edges: int = Counts.two_edges,
    three_edges: int = Counts.three_edges,
    valid: int = Counts.valid,
    test: int = Counts.test,
    neighbourhoods: int | None = None,
    seed: int = 0,
) -> Workload:
    """Sample questions of every query structure into a new folder.

    `two_edges` and `three_edges` count training questions in total, `valid` and `test` questions of each structure, and
    `neighbourhoods` those of each size (default: the number of entities).
    """
    _require_graph(graph)
    counts = Counts(two_edges, three_edges, valid, test, neighbourhoods)
    return draw(graph, Path(out), Plan(counts, seed), lambda *_: None)


def _require_graph(graph: object) -> None:
    """Raise SettingError unless this is an opened graph."""
    if not isinstance(graph, folder.Graph):
        problem = f"must be a halfgraph.Graph, found {graph!r}"
        raise SettingError("graph", problem, advice='Open it with halfgraph.Graph.open("FOLDER").')


def train(
    graph: folder.Graph,
    out: PathLike,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    model: str = "cga",
    recipe: str = "default",
    seed: int = 0,
    patience: int = Budget.patience,
    resume: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Engine:
    """Train a model in a new run folder, for five minutes by default, and load it.

    If the graph has no split, 5 % of its triples are held out to fit confidence on; they still count as known answers.
    `resume` continues an interrupted run with the same settings. `progress` shows a bar in a terminal or notebook.
    `settings` are those of `halfgraph train --set`, such as dim=64, heads=4 or learning_rate=0.01: the fields of
    `halfgraph.model.architecture.Architecture` and `halfgraph.training.recipe.Recipe`.
    """
    _require_graph(graph)
    out, chosen = Path(out), training_settings(model, recipe, settings)
    model_minutes, link_seconds = time_for_links(5.0 if steps is None and minutes is None else minutes)
    budget = Budget(steps, model_minutes, patience=patience)
    graph = start(out, graph, chosen.sections(), seed, resume=resume)
    validate = validator(validation_questions(graph, None, seed))
    encoder = new_encoder(chosen.architecture, graph, seed, "cpu")
    names: dict[str, Any] = {"name": chosen.model, "seed": seed, "validate": validate}
    with training_progress(not progress, lines=False) as report:
        run(out, graph, encoder, chosen.recipe, budget, **names, progress=report)
    trained = load_encoder(out, graph, chosen.architecture)
    with progress_display(not progress) as show:
        calibrate(out, graph, trained, seed, show, seconds=link_seconds)
    return load(out, graph)


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a run on test questions, as `halfgraph evaluate --json` prints them."""

    figures: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as JSON-serialisable values."""
        return dict(self.figures)

    def _repr_html_(self) -> str:
        auc, apr = self.figures["auc"], self.figures["apr"]
        return table(("query type", "AUC", "APR"), [(name, f"{auc[name]:.3f}", f"{apr[name]:.3f}") for name in auc])


def evaluate(
    run: PathLike,
    graph: folder.Graph | None = None,
    *,
    mode: str | None = None,
    limit: int = 1_000,
    seed: int = 0,
) -> Evaluation:
    """Measure a run on newly sampled test questions, at most `limit` of each structure, in the mode of `ask`."""
    opened = open_run(run, graph)
    questions = sample_questions(opened.graph, "test", limit, seed)
    predictors = Predictors.load(opened.path, opened.encoder, opened.graph, questions.view)
    return Evaluation(figures_of(predictors.predictor(predictors.choose(mode)), questions, seed=seed))


@dataclass(frozen=True)
class TrainedRun:
    """A run folder with its settings and the graph it was trained on."""

    path: Path
    graph: folder.Graph
    settings: TrainingSettings

    @cached_property
    def encoder(self) -> Encoder:
        """The trained model."""
        return load_encoder(self.path, self.graph, self.settings.architecture)

    def engine(self, view: str = "whole", *, time_limit: float | None = None, missing: float | None = None) -> Engine:
        """Return the engine that answers SPARQL queries with this run."""
        limits: dict[str, Any] = {"time_limit": time_limit, "missing": missing}
        return Engine.load(self.path, self.graph, self.settings.architecture, view, **limits)


def open_run(run: PathLike, graph: folder.Graph | PathLike | None = None) -> TrainedRun:
    """Open a run with its graph; without `graph`, with the one at the path that the run has recorded."""
    run = Path(run)
    if not isinstance(graph, folder.Graph):
        graph = Graph.open(_recorded_path(run) if graph is None else graph)
    return TrainedRun(run, trained_graph(run, graph), read_config(run / CONFIG))


def _recorded_path(run: Path) -> Path:
    path = Path(str(read_provenance(run).get("graph_path", "")))
    if not path.is_dir():
        raise FolderError(run, f"was trained on {path}, which is not there", advice="Pass its folder as --graph.")
    return path


def load(
    run: PathLike,
    graph: folder.Graph | PathLike | None = None,
    view: str = "whole",
    *,
    time_limit: float | None = None,
    missing: float | None = None,
) -> Engine:
    """Open a trained run to ask it queries.

    `view` says which triples are known: whole, known or train. `missing` is the share of all triples that these are
    taken to lack, which confidences depend on; by default the share that was held out.
    """
    folder.check_view(view, KNOWN_VIEWS)
    return open_run(run, graph).engine(view, time_limit=time_limit, missing=missing)


def ask(
    run: PathLike,
    text: str,
    top: int = 10,
    *,
    mode: str | None = None,
    min_confidence: float | None = None,
    explain: bool = True,
) -> Answers:
    """Answer one SPARQL query; for several queries use `load` and ask the engine."""
    return load(run).ask(text, top, mode=mode, min_confidence=min_confidence, explain=explain)


def explain(run: PathLike, text: str, entity: str) -> Witness:
    """Explain why an entity is an answer to a SPARQL query."""
    return load(run).explain(text, entity)
