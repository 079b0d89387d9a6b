"""Content negotiation: choose a format by the Accept header and its q-values, or by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyoxigraph import QueryResultsFormat, RdfFormat

from halfgraph.serving.problems import Problem

Format = TypeVar("Format")

# The formats on offer, best first, with the media types that request them; responses use the first one.
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
# Short names for ?format=, by the position above.
NAMES = {"json": 0, "xml": 1, "csv": 2, "tsv": 3}
GRAPH_NAMES = {"turtle": 0, "ttl": 0, "ntriples": 1, "nt": 1, "rdfxml": 2, "rdf": 2, "xml": 2, "jsonld": 3, "json": 3}


@dataclass(frozen=True)
class MediaRange:
    """A part of an Accept header: a media type, with * for any, and its q-value."""

    media_type: str
    subtype: str
    quality: float

    def specificity(self) -> int:
        """2 for a full media type, 1 for type/*, 0 for */*."""
        return (self.media_type != "*") + (self.subtype != "*")

    def matches(self, media: str) -> bool:
        """Whether a media type is in this range."""
        media_type, _, subtype = media.partition(";")[0].strip().partition("/")
        return self.media_type in ("*", media_type) and self.subtype in ("*", subtype)


def media_ranges(accept: str) -> list[MediaRange]:
    """Parse an Accept header, ignoring invalid parts."""
    ranges = []
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        media_type, slash, subtype = media.partition("/")
        if slash and media_type and subtype:
            ranges.append(MediaRange(media_type, subtype, _quality(parameters)))
    return ranges


def _quality(parameters: Sequence[str]) -> float:
    """The q-value among the parameters; 1 by default, 0 if it is invalid."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0) if value.strip().lower() != "nan" else 0.0
            except ValueError:
                return 0.0
    return 1.0


def quality(accept: Sequence[MediaRange], media: str) -> float:
    """The q-value of a media type: that of the most specific range that matches it."""
    matching = [part for part in accept if part.matches(media)]
    return max(matching, key=MediaRange.specificity).quality if matching else 0.0


def choose(accept: str, offers: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the preferred offer, the first of equals; None if none is acceptable."""
    if not accept.strip():
        return 0
    wanted = media_ranges(accept)
    scores = [max(quality(wanted, media) for media in names) for names in offers]
    best = max(scores)
    return scores.index(best) if best > 0 else None


def wants_page(accept: str) -> bool:
    """Whether this is a browser: HTML is named, and preferred to RDF or equal."""
    wanted = media_ranges(accept)
    named = any(part.matches("text/html") and part.specificity() == 2 for part in wanted)
    return named and quality(wanted, "text/html") >= max(quality(wanted, names[0]) for names in GRAPHS.values())


def table_format(accept: str, name: str | None = None) -> tuple[QueryResultsFormat, str]:
    """Choose the format of rows; return it with its media type."""
    return _format(accept, name, TABLES, NAMES)


def graph_format(accept: str, name: str | None = None) -> tuple[RdfFormat, str]:
    """Choose the format of triples; return it with its media type."""
    return _format(accept, name, GRAPHS, GRAPH_NAMES)


def _format(
    accept: str, name: str | None, offered: dict[Format, tuple[str, ...]], names: dict[str, int]
) -> tuple[Format, str]:
    offers = list(offered.items())
    wanted = accept if name is None else name
    by_name = name is not None and "/" not in name  # some clients put the media type there
    number = names.get(wanted.lower()) if by_name else choose(wanted, [media for _, media in offers])
    if number is None:
        advice = f"Choose one of {', '.join(media[0].partition(';')[0] for _, media in offers)}."
        raise Problem(406, f"the answer is not available as {wanted[:200]}", advice=advice)
    chosen, media = offers[number]
    return chosen, media[0]
