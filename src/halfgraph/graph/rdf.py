"""Read RDF in every syntax of pyoxigraph, and sort its statements by their use."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, QuadParser, RdfFormat, Triple, parse
from pyoxigraph import Literal as RdfLiteral

from halfgraph.errors import InputError
from halfgraph.graph.files import BROKEN, SKIP, SKIP_OR_CONVERT, ReadOptions, broken_off, excerpt, is_full, lines_of
from halfgraph.graph.statements import LABELS, SCHEMA, SUB_CLASS_OF, TYPE, Statements, label_rank

RDF_FORMATS = {
    "nt": RdfFormat.N_TRIPLES,
    "nq": RdfFormat.N_QUADS,
    "ttl": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "n3": RdfFormat.N3,
    "rdf": RdfFormat.RDF_XML,
    "xml": RdfFormat.RDF_XML,
    "owl": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
    "json": RdfFormat.JSON_LD,
}
MOST_PREFIXES = 100_000
LINE_FORMATS = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
TURTLE_FORMATS = (RdfFormat.TURTLE, RdfFormat.TRIG, RdfFormat.N3)
_PLACE = re.compile(r"Parser error (at|between) .*?: ", re.DOTALL)
# After these errors even the parsers of TURTLE_FORMATS cannot find the next statement.
_REST_IS_LOST = re.compile("UTF-8|end of file|Line jumps")


def read_rdf(
    stream: IO[bytes], path: Path, syntax: RdfFormat, split: str, into: Statements, reading: ReadOptions
) -> None:
    """Read an RDF file and sort its statements into triples, types, labels and others."""
    source = _Lines(stream) if syntax == RdfFormat.RDF_XML else stream
    parser = parse(source, syntax, base_iri=reading.base)  # type: ignore[arg-type]
    check = partial(_check_prefixes, parser, path)
    sorter = Sorter(into, split, reading, datasets=syntax.supports_datasets, check=check)
    if reading.skip_bad and syntax in LINE_FORMATS:
        lines = (line for _, line in lines_of(stream, path, into.counts, skip_bad=True))
        sorter.sort_all(_good_lines(lines, syntax, into.counts))
        return
    latest = 0  # the last malformed line: it may have several errors
    while True:
        try:
            sorter.sort_all(parser)
            break
        except SyntaxError as error:
            if not reading.skip_bad or not _can_go_on(syntax, str(error.msg)):
                line = source.line if isinstance(source, _Lines) else error.lineno
                raise _malformed(error, path, line, syntax) from error
            into.counts["malformed"] += error.lineno != latest
            latest = error.lineno or 0
        except BROKEN as error:
            if isinstance(error, OSError) and is_full(error):  # while writing the statements set aside
                raise
            raise broken_off(path, error) from error
    check()
    into.prefixes.update(parser.prefixes)


def _check_prefixes(parser: QuadParser, path: Path) -> None:
    if len(parser.prefixes) > MOST_PREFIXES:
        problem = f"has more than {MOST_PREFIXES:,} prefixes, which is the limit"
        raise InputError(problem, path=path, advice="Write names without prefixes, or as N-Triples.")


def _good_lines(lines: Iterator[str], syntax: RdfFormat, counts: Counter[str]) -> Iterator[Quad]:
    """Yield the statements of well-formed lines and count the others.

    A block with an error is read again line by line, because an open quote would swallow the following lines.
    """
    while block := list(islice(lines, 1000)):
        try:
            yield from list(parse("\n".join(block), syntax))
        except SyntaxError:
            for line in block:
                try:
                    yield from list(parse(line, syntax))
                except SyntaxError:
                    counts["malformed"] += 1


def _can_go_on(syntax: RdfFormat, problem: str) -> bool:
    """Return whether the parser can continue after a malformed statement."""
    return syntax in LINE_FORMATS or (syntax in TURTLE_FORMATS and not _REST_IS_LOST.search(problem))


def _malformed(error: SyntaxError, path: Path, line: int | None, syntax: RdfFormat) -> InputError:
    problem = excerpt(_PLACE.sub("", str(error.msg)), 300)
    advice = SKIP if _can_go_on(syntax, problem) else "Correct it; --skip-bad would lose the rest of the file."
    if "remote context" in problem:
        problem = "refers to a remote @context, which halfgraph does not download"
        advice = "Write the context into the file, or convert the file to N-Quads."
    elif "UTF-8" in problem:
        problem = "not UTF-8"
        advice = SKIP_OR_CONVERT if syntax in LINE_FORMATS else "Convert the file to UTF-8."
    return InputError(problem, path=path, line=line, column=error.offset, advice=advice)


class _Lines:
    """Stream that returns one line at a time and counts lines: the RDF/XML parser reports no positions."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.line, self.ended = stream, 1, False

    def read(self, size: int) -> bytes:
        """Return at most the rest of a line."""
        self.line += self.ended
        piece = self.stream.readline(size)
        self.ended = piece.endswith(b"\n")
        return piece


class Sorter:
    """Sorts RDF statements: triples of the graph, types, labels, and statements set aside for the store."""

    def __init__(
        self,
        into: Statements,
        split: str,
        reading: ReadOptions,
        *,
        datasets: bool = True,  # whether there may be named graphs
        blank: Callable[[str], str] | None = None,
        check: Callable[[], None] = lambda: None,  # called now and then
        known: Mapping[str, str] = MappingProxyType({}),  # names by IRI, where they differ
    ) -> None:
        self.into, self.reading, self.triples, self.known = into, reading, into.split(split), known
        self.blank = blank or into.namer_of_blank_nodes(reading.one_document)
        self.datasets, self.check = datasets, check
        self.schema = SCHEMA if reading.schema == "aside" else frozenset()
        self.special = {TYPE, SUB_CLASS_OF, *LABELS, *self.schema}

    def sort_all(self, quads: Iterator[Quad]) -> None:
        """Sort all statements, up to the end or a syntax error."""
        names, relations, special, datasets = self.into.names, self.into.relations, self.special, self.datasets
        literal, write = self.into.literals.append, self.into.aside.write
        add = self.triples.waiting.append
        read = plain = named = 0
        try:
            for read, quad in enumerate(quads, 1):
                subject, predicate, object_ = quad.subject, quad.predicate.value, quad.object
                in_named_graph = datasets and type(quad.graph_name) is not DefaultGraph
                named += in_named_graph
                # The common cases first: this loop determines the speed of an import.
                if predicate in special or type(subject) is not NamedNode:
                    self._sort(quad)
                elif type(object_) is NamedNode:
                    add(names[subject.value])
                    add(relations[predicate])
                    add(names[object_.value])
                    if in_named_graph:
                        self._keep_graph(quad, subject.value, object_.value)
                elif type(object_) is RdfLiteral and not (datasets and type(quad.graph_name) is BlankNode):
                    plain += 1
                    line = str(quad)
                    literal(hash(line))
                    write(line)
                    write(" .\n")
                else:
                    self._sort(quad)
                if not read % 65_536:
                    self.triples.flush()
                    self.check()
                    if self.reading.progress:
                        self.reading.progress(self.into.counts["read"] + read)
        finally:
            self.into.counts["read"] += read
            self.into.counts["literals"] += plain
            self.into.counts["in a named graph"] += named

    def _sort(self, quad: Quad) -> None:
        """Sort a statement that is not simply a triple of two named entities."""
        into, predicate, object_ = self.into, quad.predicate.value, quad.object
        blank = isinstance(quad.subject, BlankNode) or isinstance(object_, BlankNode)
        if blank and self.reading.blank_nodes == "drop":
            into.counts["blank nodes dropped"] += 1
        elif isinstance(object_, RdfLiteral):
            self._literal(quad, predicate, object_)
        elif not isinstance(object_, NamedNode | BlankNode) or not isinstance(quad.subject, NamedNode | BlankNode):
            self._set_aside(quad, "triple terms")
        elif predicate == TYPE:
            if isinstance(object_, NamedNode):
                into.add_type(self._name(quad.subject), self._name(object_))
            self._set_aside(quad, "types")
        else:
            if predicate == SUB_CLASS_OF and not blank:
                into.super_classes.append((self._name(quad.subject), self._name(object_)))
            if predicate in self.schema:
                self._set_aside(quad, "schema")
                return
            head, tail = self._name(quad.subject), self._name(object_)
            self.triples.add((into.names[head], into.relations[predicate], into.names[tail]))
            if not isinstance(quad.graph_name, DefaultGraph):
                self._keep_graph(quad, head, tail)

    def _keep_graph(self, quad: Quad, head: str, tail: str) -> None:
        """Set aside a triple of a named graph, with the name of its graph."""
        into = self.into
        into.named.add((into.names[head], into.relations[quad.predicate.value], into.names[tail]))
        self._set_aside(quad, "triples of named graphs")

    def _literal(self, quad: Quad, predicate: str, value: RdfLiteral) -> None:
        """Set aside a statement with a literal; keep it as a label if it is one."""
        if predicate in LABELS and isinstance(quad.subject, NamedNode | BlankNode):
            rank = label_rank(predicate, value.language, self.into.language)
            self.into.add_label(self._name(quad.subject), value.value, rank)
        self.into.literals.append(hash(self._set_aside(quad, "literals")))

    def _set_aside(self, quad: Quad, why: str) -> str:
        """Write a statement to the ones set aside, as N-Quads, and return its text."""
        self.into.counts[why] += 1
        terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
        text = " ".join(self._n_quads(term) for term in terms if not isinstance(term, DefaultGraph))
        self.into.aside.write(text + " .\n")
        return text

    def _n_quads(self, term: object) -> str:
        """Return a term as N-Quads, with the graph's names of blank nodes."""
        if isinstance(term, Triple):
            return f"<<( {' '.join(map(self._n_quads, (term.subject, term.predicate, term.object)))} )>>"
        return self.blank(term.value) if isinstance(term, BlankNode) else str(term)

    def _name(self, term: object) -> str:
        """Return the name of a node: its IRI or known name, or _:b and a number for a blank node."""
        if isinstance(term, BlankNode):
            return self.blank(term.value)
        assert isinstance(term, NamedNode)
        return self.known.get(term.value, term.value)
