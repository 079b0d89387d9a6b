"""Descriptions of what is served: /api/info, and the SPARQL service description in RDF with VoID counts."""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple, serialize

from halfgraph import __version__
from halfgraph.errors import FolderError
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import check_file, has_file, read_json
from halfgraph.serving.negotiation import GRAPHS, TABLES, graph_format
from halfgraph.serving.problems import Reply
from halfgraph.serving.schema import Info, Limits
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE

PACKAGES = ("pyoxigraph", "torch", "numpy", "fastapi", "uvicorn")
LONGEST_CARD = 1 << 20  # bytes
AGAIN = "Train the model again."
CARD, PROVENANCE = "README.md", "provenance.json"
PRIVATE = ("graph_path", "format")  # of a run's provenance
FOLDERS = re.compile(r"(?<![\w./:])/(?:[\w.+-]+/)+")  # of a path of this machine only the last part is public
SD = "http://www.w3.org/ns/sparql-service-description#"
VOID = "http://rdfs.org/ns/void#"
TYPE = NamedNode(RDF_TYPE)
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
NAMESPACES = {"sd": SD, "void": VOID}


def info(graph: Graph, run: Path, view: str, modes: Sequence[str], limits: Limits) -> Info:
    """Describe the graph, the model and the server, without the paths of this machine; `run` may be a graph folder."""
    # The worker has validated the run; the run's own reader would import torch.
    provenance = read_json(run / PROVENANCE, AGAIN) if (run / PROVENANCE).is_file() else {}
    public = {name: value for name, value in provenance.items() if name not in PRIVATE}
    packages = {package: version(package) for package in PACKAGES}
    return Info(
        graph=graph_info(graph, view),
        model={"name": run.resolve().name, "card": _card(run), **public},
        modes=modes,
        limits=limits,
        versions={"halfgraph": __version__, "python": platform.python_version(), **packages},
        prefixes=dict(Prefixes.of(graph).namespaces),
    )


def graph_info(graph: Graph, view: str) -> dict[str, Any]:
    """Describe the graph, and the view of it that is served."""
    description = graph.description
    return {
        "name": graph.path.resolve().name,
        "fingerprint": graph.fingerprint,
        **description["counts"],
        "types": {name: int(size) for name, size in zip(graph.types.names, graph.types.sizes, strict=True)},
        "split": graph.has_split,
        "view": view,
        "served_triples": graph.view(view).triple_count,
        "base": graph.namer.base,
        "attribution": description.get("provenance", {}).get("attribution", ""),
    }


def _card(run: Path) -> str:
    path = run / CARD
    if not has_file(path, AGAIN):
        return ""
    if (size := check_file(path, AGAIN).stat().st_size) > LONGEST_CARD:
        raise FolderError(path, f"has {size:,} bytes, more than the {LONGEST_CARD:,} that are read", advice=AGAIN)
    return FOLDERS.sub("", path.read_text(encoding="utf-8", errors="replace"))


def service_description(address: str, counts: Mapping[str, Any], accept: str, name: str | None) -> Reply:
    """The SPARQL 1.1 service description of the endpoint at an address."""
    form, media = graph_format(accept, name)
    return Reply(serialize(_triples(address, counts), format=form, prefixes=NAMESPACES) or b"", media)


def _triples(address: str, counts: Mapping[str, Any]) -> Iterator[Triple]:
    service, dataset, graph = BlankNode("service"), BlankNode("dataset"), BlankNode("graph")
    yield Triple(service, TYPE, _sd("Service"))
    yield Triple(service, _sd("endpoint"), NamedNode(address))
    yield Triple(service, _sd("supportedLanguage"), _sd("SPARQL11Query"))
    yield Triple(service, _sd("defaultDataset"), dataset)
    for iri in [*(form.iri for form in TABLES), *(form.iri for form in GRAPHS)]:
        yield Triple(service, _sd("resultFormat"), NamedNode(iri))
    yield Triple(dataset, TYPE, _sd("Dataset"))
    yield Triple(dataset, _sd("defaultGraph"), graph)
    yield Triple(graph, TYPE, _sd("Graph"))
    for what in ("triples", "entities", "properties", "classes"):
        yield Triple(graph, NamedNode(VOID + what), Literal(str(counts[what]), datatype=INTEGER))


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)
