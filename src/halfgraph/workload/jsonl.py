"""Questions as JSON lines, one object each: `structure`, `query`, `easy`, `hard`, and what we add; out and in."""

import contextlib
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from halfgraph.errors import FolderError, InputError
from halfgraph.graph.files import BROKEN, broken_off, open_input
from halfgraph.graph.folder import Graph, new_folder, refuse_existing
from halfgraph.query.exact import Exact
from halfgraph.query.structures import Structure
from halfgraph.workload.folder import Workload, save_questions, summary, write_description
from halfgraph.workload.gathered import HELD_OUT, SETS, SINGLES, Found, Gathered, gather
from halfgraph.workload.nested import Names, Place, shown
from halfgraph.workload.pickles import is_pickled, read_pickles
from halfgraph.workload.sampling import Drawn, Questions
from halfgraph.workload.verification import CUSTOMS, Custom, custom_of, nested_of, view_named

STANDARD_OUTPUT = Path("-")
Told = Callable[[int], None]  # how many questions there are so far


def export(
    workload: Workload,
    graph: Graph,
    out: Path,
    split: str,
    structures: Sequence[Structure] = (),
    limit: int | None = None,
    told: Told = lambda _: None,
) -> dict[str, int]:
    """How many questions of each structure were written as JSON lines: those of a split, at most `limit` of each."""
    there = workload.structures(split)
    chosen = [structure for structure in there if structure in structures] if structures else there
    if lacking := [structure.name for structure in structures if structure not in there] or (
        [] if there else ["any structure"]
    ):
        has = ", ".join(f"{name}: {' '.join(rows)}" for name, rows in workload.description["questions"].items())
        raise FolderError(workload.path, f"has no {split} questions of {', '.join(lacking)}", advice=f"It has {has}.")
    counts: dict[str, int] = {}
    names, written = Names(graph), 0
    with new_file(out) as file:
        for structure in chosen:
            for line in lines_of(workload.questions(split, structure), names, limit):
                file.write(line)
                written += 1
                if written % 256 == 0:
                    told(written)
            counts[structure.name] = written - sum(counts.values())
    return counts


def lines_of(questions: Questions, names: Names, limit: int | None = None) -> Iterator[bytes]:
    """Each question as a JSON line."""
    for row in range(len(questions) if limit is None else min(limit, len(questions))):
        record = {"structure": questions.structure.short, "query": nested_of(questions, row, names)}
        record |= _answers_of(questions, row, names)
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _answers_of(questions: Questions, row: int, names: Names) -> dict[str, Any]:
    """The fields of a question beside its query, as far as they are known."""
    sets = {name: getattr(questions, name) for name in SETS}
    entities = {
        name: [names.entity_name(i) for i in sets[name][row].tolist()] for name in SETS if sets[name] is not None
    }
    record: dict[str, Any] = {name: entities[name] for name in ("easy", "hard") if name in entities}
    record["answer"] = names.entity_name(int(questions.answers[row]))
    for name in SINGLES:
        entity = int(getattr(questions, name)[row])
        record |= {name: names.entity_name(entity)} if entity >= 0 else {}
    record |= {name: some for name, some in entities.items() if name not in record and some}
    return record | ({} if questions.missing is None else {"missing": int(questions.missing[row])})


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to fill, gzipped if its name says so, that gets its name when it is complete; - is standard output."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    part = path.parent / f".{path.name}.part-{os.getpid()}"
    refuse_existing(path, made_by="the export")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            else:
                yield raw
        part.rename(path)
    except OSError as error:
        raise FolderError(
            path, f"cannot be written: {error.strerror or error}", advice="Choose another place."
        ) from error
    finally:
        part.unlink(missing_ok=True)


@dataclass(frozen=True)
class Imported:
    """A workload made of files, with what is not in it: where its questions came from."""

    workload: Workload
    customs: Mapping[str, Custom]
    lines: Mapping[tuple[str, str], Sequence[int]]


def import_workload(
    source: Path, graph: Graph, out: Path, split: str = "auto", told: Told = lambda _: None
) -> Imported:
    """The workload of a file of JSON lines, or of a file or folder of pickles; split: auto, valid or test."""
    with new_folder(out, made_by="the workload") as folder:
        items = read_pickles(source, graph, split) if is_pickled(source) else read_lines(source)
        gathered, aside = gather(items, Names(graph), told)
        if not gathered:
            found = ", ".join(f"{count:,} {form}" for form, count in aside.items())
            raise InputError("no question of a named structure", path=source, advice=f"Found: {found or 'none'}.")
        customs = {name: _custom(graph, name, rows, split) for name, rows in gathered.items()}
        tallies: dict[str, dict[str, Any]] = {}
        lines = {}
        for name, rows in gathered.items():
            custom = customs[name]
            for row in rows.values():
                questions = completed(row.questions(), graph, custom)
                save_questions(folder, custom.split, questions)
                tallies.setdefault(custom.split, {})[row.structure.name] = summary(Drawn(questions, {}))
                lines[custom.split, row.structure.name] = row.lines
        decided = {custom.split: custom for custom in customs.values()}
        graphs = {custom.split: _described(custom) for custom in decided.values()}
        write_description(folder, graph, tallies, graphs, source=str(source), set_aside=dict(aside))
    return Imported(Workload.open(out), decided, lines)


def _described(custom: Custom) -> dict[str, Any]:
    """What workload.json says of a custom."""
    return {name: value for name, value in asdict(custom).items() if name != "split"}


def _custom(graph: Graph, name: str, rows: Mapping[str, Gathered], split: str) -> Custom:
    """What easy and hard mean in the questions of a split, or of a file that does not say which."""
    if name == "train":
        return Custom("train", "train", "train")
    if name != HELD_OUT:
        return next(Custom(*custom) for custom in CUSTOMS if custom[0] == name)
    return custom_of(graph, [row.questions() for row in rows.values()], split, np.random.default_rng(0))


def completed(questions: Questions, graph: Graph, custom: Custom) -> Questions:
    """The questions with their easy answers computed, where their files give only the hard ones."""
    if questions.easy is not None or questions.hard is None:
        return questions
    return replace(questions, easy=Exact(view_named(graph, custom.easy_on)).answer_sets(questions.batch()))


def read_lines(path: Path) -> Iterator[Found]:
    """The questions of a file of JSON lines, gzipped or not."""
    number = 0
    with open_input(path) as stream:
        try:
            for number, raw in enumerate(stream, 1):
                if raw.strip():
                    yield Found(Place(path, number), _record(raw, Place(path, number)))
        except BROKEN as error:
            raise broken_off(path, error, number + 1) from error


def _record(raw: bytes, place: Place) -> dict[str, Any]:
    """The object of a line."""
    try:
        record = json.loads(raw.rstrip(b"\r\n"))
    except json.JSONDecodeError as error:
        problem = f"no JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise InputError(problem, path=place.path, line=place.line, column=error.colno, advice=_MEND) from error
    except (ValueError, RecursionError) as error:
        raise place.error(f"no JSON: {error}", advice=_MEND) from error
    if not isinstance(record, dict) or "query" not in record:
        raise place.error(f'expected an object with "query", found {shown(record)}', advice=_MEND)
    if ("easy" in record) != ("hard" in record):
        there, absent = ("easy", "hard") if "easy" in record else ("hard", "easy")
        raise place.error(f'has "{there}" and no "{absent}"', advice="Give both; an empty list will do.")
    return record


_MEND = 'A line is an object such as {"structure": "1p", "query": ["anchor", ["relation"]], "easy": [], "hard": ["e"]}.'
