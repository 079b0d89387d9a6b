"""Questions as JSON lines, one object each with `structure`, `query`, `easy`, `hard` and our own fields."""

import contextlib
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from halfgraph.errors import FolderError, InputError
from halfgraph.graph.files import BROKEN, atomic_path, broken_off, open_input, raw_lines
from halfgraph.graph.folder import Graph
from halfgraph.graph.new_folder import new_folder, refuse_existing
from halfgraph.query.exact import Exact
from halfgraph.query.structures import Structure
from halfgraph.workload.columns import HELD_OUT, SETS, SINGLES, QuestionColumns, QuestionRecord, collect
from halfgraph.workload.folder import Workload, save_questions, summary, write_description
from halfgraph.workload.nested import FilePosition, GraphNames, shown
from halfgraph.workload.pickles import is_pickled, read_pickles
from halfgraph.workload.sampling import Questions
from halfgraph.workload.verification import CONVENTIONS, AnswerConvention, find_convention, nested_query

STANDARD_OUTPUT = Path("-")
Progress = Callable[[int], None]  # called with the number of questions so far
_EXAMPLE = (
    'A line is an object such as {"structure": "1p", "query": ["anchor", ["relation"]], "easy": [], "hard": ["e"]}.'
)


def export(
    workload: Workload,
    graph: Graph,
    out: Path,
    split: str,
    structures: Sequence[Structure] = (),
    limit: int | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, int]:
    """Write the questions of a split, at most `limit` of each structure; return how many of each."""
    names, written, counts = GraphNames(graph), 0, dict[str, int]()
    chosen = [workload.questions(split, structure) for structure in _chosen(workload, split, structures)]
    with new_file(out) as file:
        for questions in chosen:
            for line in lines_of(questions, names, limit):
                file.write(line)
                written += 1
                if written % 256 == 0:
                    progress(written)
            counts[questions.structure.name] = written - sum(counts.values())
    return counts


def _chosen(workload: Workload, split: str, structures: Sequence[Structure]) -> list[Structure]:
    available = workload.structures(split)
    absent = [structure.name for structure in structures if structure not in available]
    if absent or not available:
        has = ", ".join(f"{name}: {' '.join(rows)}" for name, rows in workload.description["questions"].items())
        problem = f"has no {split} questions of {', '.join(absent or ['any structure'])}"
        raise FolderError(workload.path, problem, advice=f"It has {has}.")
    return [structure for structure in available if structure in structures or not structures]


def lines_of(questions: Questions, names: GraphNames, limit: int | None = None) -> Iterator[bytes]:
    """Write each question as a JSON line."""
    for row in range(len(questions) if limit is None else min(limit, len(questions))):
        record = {"structure": questions.structure.short, "query": nested_query(questions, row, names)}
        record |= _answer_fields(questions, row, names)
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _answer_fields(questions: Questions, row: int, names: GraphNames) -> dict[str, Any]:
    sets = {name: column for name in SETS if (column := getattr(questions, name)) is not None}
    entities = {name: [names.entity_name(i) for i in column[row].tolist()] for name, column in sets.items()}
    fields: dict[str, Any] = {name: entities[name] for name in ("easy", "hard") if name in entities}
    fields["answer"] = names.entity_name(int(questions.answers[row]))
    for name in SINGLES:
        entity = int(getattr(questions, name)[row])
        fields |= {name: names.entity_name(entity)} if entity >= 0 else {}
    fields |= {name: members for name, members in entities.items() if name not in fields and members}
    return fields | ({} if questions.missing is None else {"missing": int(questions.missing[row])})


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that gets its name when it is complete, gzipped if it ends with .gz; - is standard output."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    refuse_existing(path, made_by="the export")
    with atomic_path(path) as part:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            else:
                yield raw


@dataclass(frozen=True)
class Imported:
    """An imported workload, with the conventions of its splits and the lines that its questions came from."""

    workload: Workload
    conventions: Mapping[str, AnswerConvention]
    lines: Mapping[tuple[str, str], Sequence[int]]


def import_workload(
    source: Path, graph: Graph, out: Path, split: str = "auto", progress: Progress = lambda _: None
) -> Imported:
    """Import a file of JSON lines, or a file or folder of pickles; `split` is auto, valid or test."""
    with new_folder(out, made_by="the workload") as folder:
        records = read_pickles(source, graph, split) if is_pickled(source) else read_lines(source, graph)
        collected, set_aside = collect(records, progress)
        if not collected:
            others = ", ".join(f"{count:,} {structure}" for structure, count in set_aside.items())
            raise InputError("no question of a named structure", path=source, advice=f"Found: {others or 'none'}.")
        conventions: dict[str, AnswerConvention] = {}
        tallies: dict[str, dict[str, Any]] = {}
        lines = {}
        for name, by_structure in collected.items():
            convention = _convention(graph, name, by_structure, split)
            conventions[convention.split] = convention
            for columns in by_structure.values():
                questions = columns.questions()
                if questions.easy is None and questions.hard is not None:  # the file gives only the hard answers
                    easy = Exact(graph.view(convention.easy_on)).answer_sets(questions.batch())
                    questions = replace(questions, easy=easy)
                save_questions(folder, convention.split, questions)
                tallies.setdefault(convention.split, {})[columns.structure.name] = summary(questions, {})
                lines[convention.split, columns.structure.name] = columns.lines
        graphs = {name: asdict(convention) for name, convention in conventions.items()}
        for described in graphs.values():
            del described["split"]
        write_description(folder, graph, tallies, graphs, source=str(source), set_aside=dict(set_aside))
    return Imported(Workload.open(out), conventions, lines)


def _convention(graph: Graph, name: str, columns: Mapping[str, QuestionColumns], split: str) -> AnswerConvention:
    """Return what easy and hard mean in the questions of a split, or of a file that does not say which."""
    if name == "train":
        return AnswerConvention("train", "train", "train")
    if name != HELD_OUT:
        return next(convention for convention in CONVENTIONS if convention.split == name)
    questions = [column.questions() for column in columns.values()]
    return find_convention(graph, questions, split, np.random.default_rng(0))


def read_lines(path: Path, graph: Graph) -> Iterator[QuestionRecord]:
    """Read the questions of a file of JSON lines, gzipped or not."""
    number, names = 0, GraphNames(graph)
    with open_input(path) as stream:
        try:
            for number, raw in raw_lines(stream, path):
                if raw.strip():
                    position = FilePosition(path, number)
                    fields = _parse_line(raw, position)
                    yield QuestionRecord(position, fields["query"], fields, names)
        except BROKEN as error:
            raise broken_off(path, error, number + 1) from error


def _parse_line(raw: bytes, position: FilePosition) -> dict[str, Any]:
    try:
        fields = json.loads(raw.rstrip(b"\r\n"))
    except json.JSONDecodeError as error:
        problem = f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise position.error(problem, advice=_EXAMPLE, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        raise position.error(f"not valid JSON: {error}", advice=_EXAMPLE) from error
    if not isinstance(fields, dict) or "query" not in fields:
        raise position.error(f'expected an object with "query", found {shown(fields)}', advice=_EXAMPLE)
    if ("easy" in fields) != ("hard" in fields):
        given, absent = ("easy", "hard") if "easy" in fields else ("hard", "easy")
        raise position.error(f'has "{given}" but no "{absent}"', advice="Give both; an empty list will do.")
    return fields
