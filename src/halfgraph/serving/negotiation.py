"""Content negotiation: choose a format by the Accept header and its q-values, or by name."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pyoxigraph import QueryResultsFormat, RdfFormat

from halfgraph.serving.problems import Problem
from halfgraph.sparql.results import FORMATS

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
# Short names for ?format=; those of tables are FORMATS.
GRAPH_NAMES = {
    **dict.fromkeys(("turtle", "ttl"), RdfFormat.TURTLE),
    **dict.fromkeys(("ntriples", "nt"), RdfFormat.N_TRIPLES),
    **dict.fromkeys(("rdfxml", "rdf", "xml"), RdfFormat.RDF_XML),
    **dict.fromkeys(("jsonld", "json"), RdfFormat.JSON_LD),
}


def media_ranges(accept: str) -> dict[str, float]:
    """Parse an Accept header to the q-value of each media range, ignoring invalid parts."""
    ranges: dict[str, float] = {}
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if all(media.partition("/")):
            ranges.setdefault(media, _quality(parameters))
    return ranges


def _quality(parameters: Sequence[str]) -> float:
    """The q-value among the parameters; 1 by default, 0 if it is invalid."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0) if value.strip() != "nan" else 0.0
            except ValueError:
                return 0.0
    return 1.0


def quality(ranges: Mapping[str, float], media: str) -> float:
    """The q-value of a media type: that of the most specific range that has it."""
    media = media.partition(";")[0]
    return next((ranges[name] for name in (media, f"{media.partition('/')[0]}/*", "*/*") if name in ranges), 0.0)


def choose(accept: str, offers: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the preferred offer, the first of equals; None if none is acceptable."""
    wanted = media_ranges(accept if accept.strip() else "*/*")
    scores = [max(quality(wanted, media) for media in names) for names in offers]
    return scores.index(max(scores)) if max(scores) > 0 else None


def wants_page(accept: str) -> bool:
    """Whether this is a browser: HTML is named, and preferred to RDF or equal."""
    wanted = media_ranges(accept)
    rdf = max(quality(wanted, names[0]) for names in GRAPHS.values())
    return "text/html" in wanted and wanted["text/html"] >= rdf


def table_format(accept: str, name: str | None = None) -> tuple[QueryResultsFormat, str]:
    """Choose the format of rows; return it with its media type."""
    return _format(accept, name, TABLES, FORMATS)


def graph_format(accept: str, name: str | None = None) -> tuple[RdfFormat, str]:
    """Choose the format of triples; return it with its media type."""
    return _format(accept, name, GRAPHS, GRAPH_NAMES)


def _format(
    accept: str, name: str | None, offered: Mapping[Format, Sequence[str]], names: Mapping[str, Format]
) -> tuple[Format, str]:
    wanted = accept if name is None else name
    if name is not None and "/" not in name:  # some clients put the media type there
        chosen = names.get(name.lower())
    else:
        number = choose(wanted, list(offered.values()))
        chosen = None if number is None else list(offered)[number]
    if chosen is None:
        advice = f"Choose one of {', '.join(media[0].partition(';')[0] for media in offered.values())}."
        raise Problem(406, f"the answer is not available as {wanted[:200]}", advice=advice)
    return chosen, offered[chosen][0]
