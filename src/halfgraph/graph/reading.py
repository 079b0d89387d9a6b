"""Read sources into statements: RDF files, TSV and CSV, a folder with a published split."""

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

from halfgraph.errors import InputError, SettingError
from halfgraph.graph.files import SKIP, STANDARD_INPUT, ReadOptions, excerpt, lines_of, open_input
from halfgraph.graph.isolation import BARREN, metered
from halfgraph.graph.rdf import LINE_FORMATS, RDF_FORMATS, TURTLE_FORMATS, read_rdf
from halfgraph.graph.statements import BUFFERED, SPLITS, Statements

TABLES = {"tsv": "\t", "txt": "\t", "csv": ","}
WHOLE_DOCUMENTS = ("jsonld", "json")  # may give their first statement after their last byte
KNOWN = ", ".join([*TABLES, *RDF_FORMATS])
HEADER_WORDS = (  # names of the three columns by which a header is recognised
    {"head", "h", "subject", "s", "source", "from"},
    {"relation", "rel", "r", "predicate", "p", "property"},
    {"tail", "t", "object", "o", "target", "to"},
)


def read_file(path: Path, split: str, into: Statements, reading: ReadOptions) -> None:
    """Add the statements of one file to `into`."""
    before = into.counts["read"] + into.counts["malformed"]
    may_be_empty = RDF_FORMATS.get(reading.format or _ending(path)) in (*LINE_FORMATS, *TURTLE_FORMATS)
    with open_input(path, may_be_empty=may_be_empty) as source:
        format_name = reading.format or format_of(path)
        barren = None if format_name in WHOLE_DOCUMENTS else BARREN
        stream = metered(source, path, into.mark, barren=barren)
        if format_name in TABLES:
            _Table(stream, path, TABLES[format_name], into, reading).read(split)
        elif format_name in RDF_FORMATS:
            read_rdf(stream, path, RDF_FORMATS[format_name], split, into, reading)
        else:
            raise SettingError("--format", f'unknown format "{format_name}"', advice=f"Pass one of {KNOWN}.")
    if into.counts["read"] + into.counts["malformed"] == before:
        if format_name in TABLES:
            raise InputError("the file has no rows", path=path, advice="Check that it is the file you meant.")
        into.counts["empty files"] += 1


def format_of(path: Path) -> str:
    """Return the format of a file by its extension, ignoring .gz."""
    ending = _ending(path)
    if ending in TABLES or ending in RDF_FORMATS:
        return ending
    advice = f"Pass --format, one of {KNOWN}."
    if path == STANDARD_INPUT:
        raise InputError("the format of standard input is not known", advice=advice)
    raise InputError(f'unknown file extension ".{ending}"', path=path, advice=advice)


def _ending(path: Path) -> str:
    endings = [ending.lstrip(".").lower() for ending in path.suffixes]
    return endings[-2] if len(endings) > 1 and endings[-1] == "gz" else (endings or [""])[-1]


@dataclass(frozen=True)
class _Table:
    """A TSV or CSV file that is being read."""

    stream: IO[bytes]
    path: Path
    separator: str
    into: Statements
    reading: ReadOptions

    def read(self, split: str) -> None:
        """Add the rows as triples."""
        into, reading = self.into, self.reading
        triples, names, relations = into.split(split), into.names, into.relations
        add, waiting, before = triples.waiting.append, triples.waiting, len(triples)
        for number, cells in self._rows_after_header():
            if len(cells) != 3 or not all(cells):
                self.refuse_row(cells, number, expected=3)
                continue
            add(names[cells[0]])
            add(relations[cells[1]])
            add(names[cells[2]])
            if len(waiting) >= BUFFERED:
                triples.flush()
                if reading.progress:
                    reading.progress(into.counts["read"] + len(triples) - before)
        into.counts["read"] += len(triples) - before

    def _rows_after_header(self) -> Iterator[tuple[int, list[str]]]:
        rows, header = self.rows(), self.reading.header
        first = list(islice(rows, 1))
        if first and (is_header(first[0][1]) if header is None else header):
            self.into.counts["header lines"] += 1
            return rows
        return chain(first, rows)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line number and cells of each row; skip empty lines."""
        lines = lines_of(self.stream, self.path, self.into.counts, self.reading.skip_bad)
        plain = ((number, line.split("\t")) for number, line in lines if line)
        return plain if self.separator == "\t" else self._quoted_rows(lines)

    def _quoted_rows(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
        """Yield each row of a CSV file, whose quotes may hold commas and line ends, with its first line number."""
        number = 0

        def texts() -> Iterator[str]:
            nonlocal number
            for number, line in lines:  # noqa: B007
                yield line + "\n"

        rows = csv.reader(texts(), strict=True)
        while True:
            first = number + 1
            try:
                if cells := next(rows):
                    yield first, cells
            except StopIteration:
                return
            except csv.Error as error:
                self._refuse(f"not CSV: {error}", first, runs_on=number > first)

    def refuse_row(self, cells: list[str], number: int, expected: int) -> None:
        """Refuse a row that has not as many columns as expected, or an empty one."""
        name, mark = ("tab", "<TAB>") if self.separator == "\t" else ("comma", ",")
        problem = f"expected {expected} {name}-separated columns, found {len(cells)}"
        if "" in cells[:expected] and len(cells) >= expected:
            problem = f"column {1 + cells.index('')} of {expected} is empty"
        runs_on = any("\n" in cell for cell in cells)
        self._refuse(f'{problem}: "{excerpt(mark.join(cells))}"', number, runs_on=runs_on)

    def _refuse(self, problem: str, number: int, *, runs_on: bool) -> None:
        """Count a line as malformed, or raise InputError; always raise if the row spans several lines."""
        if runs_on:
            advice = "Correct the quotes; --skip-bad cannot skip it, because the following lines would be lost."
            raise InputError(problem, path=self.path, line=number, advice=advice)
        if not self.reading.skip_bad:
            raise InputError(problem, path=self.path, line=number, advice=SKIP)
        self.into.counts["malformed"] += 1


def is_header(cells: list[str]) -> bool:
    """Return whether a row has the names of columns, such as head, relation, tail."""
    words = (cell.strip().casefold() for cell in cells)
    return len(cells) == 3 and all(word in known for word, known in zip(words, HEADER_WORDS, strict=True))


def files_of(source: Path) -> list[tuple[str, Path]]:
    """Return the files of a source with their splits; a folder may hold train, valid and test."""
    if not source.is_dir():
        return [("train", source)]
    files = [(split, path) for split in SPLITS if (path := beside(source, split, (*TABLES, *RDF_FORMATS))) is not None]
    if not files or files[0][0] != "train":
        advice = "Name the files of a split train, valid and test (.tsv, .nt, ..., also .gz), or pass files."
        raise InputError("the folder has no file named train with a known extension", path=source, advice=advice)
    return files


def beside(folder: Path, stem: str, endings: Collection[str]) -> Path | None:
    """Return the file of a folder with this stem and one of these extensions, or None."""
    paths = [
        path
        for path in sorted(folder.glob(f"{stem}.*"))
        if path.name.removeprefix(f"{stem}.").lower().removesuffix(".gz") in endings
    ]
    if len(paths) > 1:
        problem = f"the folder has both {paths[0].name} and {paths[1].name}"
        raise InputError(problem, path=folder, advice="Remove one of them, or pass files.")
    return paths[0] if paths else None


def read_pairs(path: Path, skip_bad: bool, into: Statements) -> Iterator[tuple[int, str, str]]:
    """Yield the line number and the first two columns of each row."""
    separator = "," if ".csv" in path.suffixes[-2:] else "\t"
    with open_input(path) as source, metered(source, path, into.mark) as stream:
        table = _Table(stream, path, separator, into, ReadOptions(skip_bad=skip_bad))
        for number, cells in table.rows():
            if len(cells) > 1 and cells[0] and cells[1]:
                yield number, cells[0], cells[1]
            else:
                table.refuse_row(cells, number, expected=2)
