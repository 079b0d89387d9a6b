"""Which format an answer comes in: the Accept header with its q-values, against what can be given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyoxigraph import QueryResultsFormat, RdfFormat

from halfgraph.serving.problems import Problem

Format = TypeVar("Format")

# What is offered, best first, by the media types that ask for it; the first of each is what the answer says it is.
TABLES = {
    QueryResultsFormat.JSON: ("application/sparql-results+json", "application/json"),
    QueryResultsFormat.XML: ("application/sparql-results+xml", "application/xml", "text/xml"),
    QueryResultsFormat.CSV: ("text/csv; charset=utf-8",),
    QueryResultsFormat.TSV: ("text/tab-separated-values; charset=utf-8",),
}
GRAPHS = {
    RdfFormat.TURTLE: ("text/turtle; charset=utf-8", "application/x-turtle"),
    RdfFormat.N_TRIPLES: ("application/n-triples", "text/plain"),
    RdfFormat.RDF_XML: ("application/rdf+xml", "application/xml", "text/xml"),
    RdfFormat.JSON_LD: ("application/ld+json", "application/json"),
}
# Short names for ?format=, which people type into an address.
NAMES = {"json": 0, "xml": 1, "csv": 2, "tsv": 3}
GRAPH_NAMES = {"turtle": 0, "ttl": 0, "ntriples": 1, "nt": 1, "rdfxml": 2, "rdf": 2, "xml": 2, "jsonld": 3, "json": 3}


@dataclass(frozen=True)
class Range:
    """A part of an Accept header: a media type, in which * stands for any, and how much it is wanted."""

    media_type: str
    subtype: str
    quality: float

    def specificity(self) -> int:
        """How much it says: 2 for a type, 1 for type/*, 0 for */*."""
        return (self.media_type != "*") + (self.subtype != "*")

    def takes(self, media: str) -> bool:
        """Whether a media type is among what it takes."""
        media_type, _, subtype = media.partition(";")[0].strip().partition("/")
        return self.media_type in ("*", media_type) and self.subtype in ("*", subtype)


def ranges(accept: str) -> list[Range]:
    """The parts of an Accept header; a part that cannot be read is left out."""
    found = []
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        media_type, slash, subtype = media.partition("/")
        if slash and media_type and subtype:
            found.append(Range(media_type, subtype, _quality(parameters)))
    return found


def _quality(parameters: Sequence[str]) -> float:
    """The q-value among some parameters, 1 where there is none that can be read."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0) if value.strip().lower() != "nan" else 0.0
            except ValueError:
                return 0.0
    return 1.0


def quality(accept: Sequence[Range], media: str) -> float:
    """How much a media type is wanted: what the most specific part that takes it says."""
    fitting = [part for part in accept if part.takes(media)]
    return max(fitting, key=Range.specificity).quality if fitting else 0.0


def choose(accept: str, offers: Sequence[Sequence[str]]) -> int | None:
    """The number of the offer that is wanted most, the first of equals; None where none is wanted."""
    if not accept.strip():
        return 0
    wanted = ranges(accept)
    scores = [max(quality(wanted, media) for media in names) for names in offers]
    best = max(scores)
    return scores.index(best) if best > 0 else None


def wants_page(accept: str) -> bool:
    """Whether a browser asks: HTML is named, and no less wanted than RDF."""
    wanted = ranges(accept)
    named = any(part.takes("text/html") and part.specificity() == 2 for part in wanted)
    return named and quality(wanted, "text/html") >= max(quality(wanted, names[0]) for names in GRAPHS.values())


def table_format(accept: str, name: str | None = None) -> tuple[QueryResultsFormat, str]:
    """The format of the rows of an answer, with its media type."""
    return _format(accept, name, TABLES, NAMES)


def graph_format(accept: str, name: str | None = None) -> tuple[RdfFormat, str]:
    """The format of the triples of an answer, with its media type."""
    return _format(accept, name, GRAPHS, GRAPH_NAMES)


def _format(
    accept: str, name: str | None, offered: dict[Format, tuple[str, ...]], names: dict[str, int]
) -> tuple[Format, str]:
    """The format that is asked for by name or by an Accept header, with its media type."""
    offers = list(offered.items())
    asked = accept if name is None else name
    by_name = name is not None and "/" not in name  # some clients put the media type there
    number = names.get(asked.lower()) if by_name else choose(asked, [media for _, media in offers])
    if number is None:
        advice = f"There are: {', '.join(media[0].partition(';')[0] for _, media in offers)}."
        raise Problem(406, f"no format of this answer is {asked[:200]}", advice=advice)
    chosen, media = offers[number]
    return chosen, media[0]
