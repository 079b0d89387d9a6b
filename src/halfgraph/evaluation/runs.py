"""Evaluation of trained runs and of the baselines on one set of questions, as `halfgraph evaluate` does it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from halfgraph.evaluation.page import page
from halfgraph.evaluation.questions import EvaluationSet, from_file, from_workload, sample_questions
from halfgraph.evaluation.ranking import Watch
from halfgraph.evaluation.reliability import judge_sure_links, measure_reliability
from halfgraph.evaluation.report import markdown, write_report
from halfgraph.evaluation.results import Measured, Row, evaluate
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.base import Predictor
from halfgraph.prediction.baselines import neighbour_vote, popularity
from halfgraph.prediction.modes import LINKS
from halfgraph.prediction.predictors import Predictors
from halfgraph.training.run_folder import read_provenance
from halfgraph.workload.folder import Workload

KEPT = ("steps", "parameters", "intersection_parameters")  # of a run's provenance
Progress = Callable[[str, int], None]  # name of the run or baseline, questions done since the last call


@contextmanager
def open_questions(
    graph: Graph, workload: Path | None, queries: Path | None, split: str, limit: int | None, seed: int
) -> Iterator[EvaluationSet]:
    """Take the questions of a file or a workload, or sample them if neither is given."""
    if queries is not None:
        with from_file(queries, graph, limit, seed) as questions:
            yield questions
    elif workload is not None:
        yield from_workload(Workload.open(workload, graph), graph, split, limit, seed)
    else:
        yield sample_questions(graph, split, limit, seed)


def row_names(settings: Mapping[Path, Any]) -> dict[Path, str]:
    """Name the row of each run by its model, and by its folder too if the same model has several settings."""
    by_model: dict[str, list[Any]] = {}
    for chosen in settings.values():
        distinct = by_model.setdefault(chosen.model, [])
        distinct += [] if chosen in distinct else [chosen]
    return {
        run: chosen.model if len(by_model[chosen.model]) == 1 else f"{chosen.model}, {run.name}"
        for run, chosen in settings.items()
    }


def measure_run(
    run: Path,
    encoder: Encoder,
    model: str,
    row: str,
    graph: Graph,
    questions: EvaluationSet,
    mode: str | None = None,
    *,
    view: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    watch: Watch | None = None,
    progress: Progress = lambda *_: None,
) -> Measured:
    """Measure a run in a mode (default: that of `ask`), with the reliability of its confidences.

    `view` names the triples that count as known; by default those on which the questions' easy answers hold.
    """
    provenance, view = read_provenance(run), view or questions.view
    predictor, predictors, mode = run_predictor(run, encoder, row, graph, mode, view)
    show = partial(progress, str(run))
    figures = evaluate(predictor, questions, seed=seed, threads=threads, watch=watch, progress=show)
    if mode == LINKS:
        figures |= measure_reliability(predictor, questions.sets, graph.view(view), graph.whole, seed)
        figures["calibration"]["sure_links"] = judge_sure_links(predictors.links, graph.whole, seed)
    kept: dict[str, Any] = {key: provenance[key] for key in KEPT if key in provenance}
    figures |= {"run": str(run), "seed": provenance["seed"], "model": model, "mode": mode, "view": view, **kept}
    return Measured(row, figures, int(provenance["seed"]), kept)


def run_predictor(
    run: Path, encoder: Encoder, name: str, graph: Graph, mode: str | None, view: str
) -> tuple[Predictor, Predictors, str]:
    """Return the predictor of a run in a mode (default: that of `ask`), with all of the run's, and the mode."""
    predictors = Predictors.load(run, encoder, graph, view)
    mode = predictors.choose(mode)
    return predictors.predictor(mode, name), predictors, mode


def short_names(runs: Sequence[Path]) -> dict[Path, str]:
    """Name each run by its folder, or by its whole path if two folders have the same name."""
    names = [run.resolve().name for run in runs]
    return {run: name if names.count(name) == 1 else str(run) for run, name in zip(runs, names, strict=True)}


def baseline_predictors(graph: Graph) -> tuple[Predictor, ...]:
    """Return popularity and neighbour vote."""
    return popularity(graph.train), neighbour_vote(graph.train)


def measure_baselines(
    graph: Graph,
    questions: EvaluationSet,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = lambda *_: None,
) -> list[Measured]:
    """Measure popularity and neighbour vote."""
    measured = []
    for predictor in baseline_predictors(graph):
        show = partial(progress, predictor.name)
        figures = evaluate(predictor, questions, seed=seed, threads=threads, progress=show)
        measured.append(Measured(predictor.name, figures))
    return measured


def to_json(measured: Sequence[Measured], rows: Sequence[Row]) -> dict[str, Any]:
    """Return what --json prints: the figures of one run, or those of several in a list with means and spreads."""
    runs = [own.figures for own in measured if not own.is_baseline]
    baselines = {own.row: own.figures for own in measured if own.is_baseline}
    if len(runs) == 1:
        return {**runs[0], "baselines": baselines}
    trained = [row for row in rows if not row.is_baseline]
    means = {row.name: {"seeds": row.seeds, "mean": row.figures, "spread": row.spread} for row in trained}
    return {"runs": runs, "rows": means, "baselines": baselines}


def write_reports(
    measured: Sequence[Measured],
    rows: Sequence[Row],
    graph: Graph,
    questions: EvaluationSet,
    markdown_file: Path | None,
    html_file: Path | None,
) -> None:
    """Write the tables as Markdown and the report as HTML, where a file is given."""
    trained = [own for own in measured if not own.is_baseline]
    subject = trained[0].row if len(rows) < 4 else f"{len(trained)} runs"
    title = f"{subject} on {graph.path.name}"
    lead = [
        f"{questions.total:,} {questions.split} questions of {len(questions.sets)} structures, {questions.source}; "
        f"{len(graph.entities):,} entities, graph {graph.fingerprint}."
    ]
    if markdown_file is not None:
        write_report(markdown_file, markdown(title, rows, lead))
    if html_file is not None:
        about = {own.figures["run"]: f"{own.row}, seed {own.seed}, {_listed(own.about)}" for own in trained}
        write_report(html_file, page(title, rows, lead, about))


def _listed(about: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in about.items())
