"""Sources to statements: RDF files, tables of three columns, a folder with a published split."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from halfgraph.errors import InputError
from halfgraph.graph.files import SKIP, STANDARD_INPUT, Reading, lines_of, open_input
from halfgraph.graph.rdf import RDF_FORMATS, read_rdf
from halfgraph.graph.statements import SPLITS, WAITING, Statements

TABLES = {"tsv": "\t", "txt": "\t", "csv": ","}


def read_file(path: Path, split: str, into: Statements, reading: Reading) -> None:
    """Nothing; the statements of one file are added to `into`."""
    kind = reading.format or format_of(path)
    before = into.counts["read"] + into.counts["malformed"]
    with open_input(path) as stream:
        if kind in TABLES:
            _read_table(stream, path, TABLES[kind], split, into, reading)
        else:
            read_rdf(stream, path, RDF_FORMATS[kind], split, into, reading)
    if into.counts["read"] + into.counts["malformed"] == before:
        raise InputError("the file holds no statement", path=path, advice="Check that it is the file you meant.")


def format_of(path: Path) -> str:
    """The format by a file's ending, .gz aside."""
    endings = [ending.lstrip(".").lower() for ending in path.suffixes]
    ending = endings[-2] if len(endings) > 1 and endings[-1] == "gz" else (endings or [""])[-1]
    if ending in TABLES or ending in RDF_FORMATS:
        return ending
    known = ", ".join([*TABLES, *RDF_FORMATS])
    raise InputError(
        "standard input has no ending to tell its format by"
        if path == STANDARD_INPUT
        else f'cannot tell the format by the ending ".{ending}"',
        path=None if path == STANDARD_INPUT else path,
        advice=f"Pass --format, one of {known}.",
    )


def _read_table(stream: IO[bytes], path: Path, separator: str, split: str, into: Statements, reading: Reading) -> None:
    """Nothing; the rows of a table are added as triples."""
    triples, names, relations = into.split(split), into.names, into.relations
    add, waiting, before = triples.waiting.append, triples.waiting, len(triples)
    for number, cells in _rows(stream, path, separator, into, reading):
        if len(cells) != 3 or not all(cells):
            _refuse_row(cells, path, number, separator, into, reading)
            continue
        add(names[cells[0]])
        add(relations[cells[1]])
        add(names[cells[2]])
        if len(waiting) >= WAITING:
            triples.flush()
            if reading.progress:
                reading.progress(into.counts["read"] + len(triples) - before)
    into.counts["read"] += len(triples) - before


def _rows(
    stream: IO[bytes], path: Path, separator: str, into: Statements, reading: Reading
) -> Iterator[tuple[int, list[str]]]:
    """Each row of a table as its number and its cells."""
    lines = lines_of(stream, path, into.counts, reading.skip_bad)
    if reading.header:
        next(lines, None)
    if separator == "\t":
        yield from ((number, line.split("\t")) for number, line in lines)
        return
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in lines:  # noqa: B007
            yield line + "\n"

    for cells in csv.reader(texts()):
        yield number, cells


def _refuse_row(cells: list[str], path: Path, number: int, separator: str, into: Statements, reading: Reading) -> None:
    """Nothing; the row is counted as malformed, or it is an error."""
    if reading.skip_bad:
        into.counts["malformed"] += 1
        return
    kind = "tab" if separator == "\t" else "comma"
    shown = "<TAB>".join(cells) if separator == "\t" else ",".join(cells)
    problem = f"expected 3 {kind}-separated columns, found {len(cells)}"
    if len(cells) == 3:
        problem = f"column {1 + cells.index('')} of 3 is empty"
    raise InputError(f'{problem}: "{shown[:120]}"', path=path, line=number, advice=SKIP)


def files_of(source: Path) -> list[tuple[str, Path]]:
    """The files of a source, each with the split it belongs to: a folder may hold train, valid and test."""
    if not source.is_dir():
        return [("train", source)]
    files = [(split, path) for split in SPLITS if (path := beside(source, split)) is not None]
    if not files or files[0][0] != "train":
        raise InputError(
            "the folder has no file named train with a known ending",
            path=source,
            advice="Name the files of a split train, valid and test (.tsv, .nt, ..., also .gz), or pass files.",
        )
    return files


def beside(folder: Path, stem: str) -> Path | None:
    """The file of a folder with this stem and a known ending, if there is one."""
    known = {*TABLES, *RDF_FORMATS}
    for path in sorted(folder.glob(f"{stem}.*")):
        if path.name.removeprefix(f"{stem}.").removesuffix(".gz").lower() in known:
            return path
    return None


def read_pairs(path: Path, skip_bad: bool, into: Statements) -> Iterator[tuple[int, str, str]]:
    """Each row of a table of two columns (more are passed over), with its line number."""
    with open_input(path) as stream:
        for number, line in lines_of(stream, path, into.counts, skip_bad):
            cells = line.split("\t")
            if len(cells) < 2 or not cells[0] or not cells[1]:
                if not skip_bad:
                    problem = f'expected 2 tab-separated columns, found {len(cells)}: "{line[:120]}"'
                    raise InputError(problem, path=path, line=number, advice=SKIP)
                into.counts["malformed"] += 1
                continue
            yield number, cells[0], cells[1]
