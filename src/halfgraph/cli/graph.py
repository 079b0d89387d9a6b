"""`halfgraph import` and `halfgraph build`: make a graph folder."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from halfgraph.cli.options import Json, Out, Quiet, Seed
from halfgraph.cli.output import note, print_json, print_table, progress
from halfgraph.errors import HalfgraphError, InputError, SettingError, SparqlError

if TYPE_CHECKING:
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.importing import ImportOptions


Keep = Literal["keep", "drop"]
TypesOption = Annotated[
    str,
    Option(
        "--types",
        help="How an entity gets its one type: 'nearest' (nearest common superclass of its stated types), 'top' "
        "(their class just below the root), 'one' (one type for all), or a file with two columns: entity, type.",
    ),
]
UntypedOption = Annotated[
    Literal["vote", "thing"], Option(help="Type of an entity without a stated type: a vote by its relations, or Thing.")
]
SmallestOption = Annotated[int, Option(min=1, help="Replace types with fewer entities by Thing.")]
PageOption = Annotated[int, Option(min=1, help="Endpoint: rows per request.")]
PauseOption = Annotated[float, Option(min=0.0, help="Endpoint: seconds between two requests.")]


def import_(
    sources: Annotated[
        list[str],
        Argument(
            metavar="SOURCE",
            help="RDF, TSV or CSV files (also .gz), a folder with train/valid/test files, the URL of a SPARQL "
            "endpoint, - for standard input, or 'demo'.",
        ),
    ],
    out: Out,
    format: Annotated[  # noqa: A002
        str | None, Option(help="File format, if the file extension does not tell it.")
    ] = None,
    types: TypesOption = "nearest",
    labels: Annotated[list[Path], Option(help="File with two columns: name, label.")] = [],  # noqa: B006
    language: Annotated[str, Option(help="Preferred language of labels.")] = "en",
    untyped: UntypedOption = "vote",
    smallest_type: SmallestOption = 1,
    blank_nodes: Annotated[Keep, Option(help="Keep blank nodes as entities, or drop them.")] = "keep",
    self_loops: Annotated[Keep, Option(help="Keep triples from an entity to itself, or drop them.")] = "keep",
    schema: Annotated[
        Literal["aside", "use"],
        Option(help="Statements about the vocabulary (subClassOf, domain, ...): only store, or learn them."),
    ] = "aside",
    base: Annotated[str, Option(help="Base IRI for names that are not IRIs.")] = "http://halfgraph.local/",
    header: Annotated[bool, Option("--header", help="Skip the first line of TSV and CSV files.")] = False,
    skip_bad: Annotated[bool, Option("--skip-bad", help="Skip malformed lines and count them.")] = False,
    split: Annotated[str | None, Option(help="Split into train/valid/test, for example 90/1/9.")] = None,
    seed: Seed = 0,
    endpoint_graph: Annotated[str | None, Option(help="Endpoint: named graph to read.")] = None,
    page_size: PageOption = 10_000,
    pause: PauseOption = 0.5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import a graph from files, an endpoint or the demo.

    Example: halfgraph import people.ttl ontology.owl --types top --split 90/1/9 --out people
    """
    from halfgraph.graph.demo import CATALOGUE
    from halfgraph.graph.files import ReadOptions
    from halfgraph.graph.importing import import_graph, import_named

    remote = any("://" in source for source in sources)
    with progress(quiet or json) as show:

        def advance(count: int) -> None:
            show("statements", done=count)

        given = None if remote else format  # the pages of an endpoint are N-Triples
        reading = ReadOptions(given, skip_bad, header, blank_nodes, schema, base, remote, advance)
        choices = _choices(
            types,
            split,
            reading=reading,
            labels_files=tuple(labels),
            language=language,
            untyped=untyped,
            smallest_type=smallest_type,
            self_loops=self_loops,
            seed=seed,
        )
        if len(sources) == 1 and sources[0] in CATALOGUE:
            graph = import_named(CATALOGUE[sources[0]](), out, choices, sources[0])
        else:
            ask = {"page_size": page_size, "pause": pause, "graph": endpoint_graph, "progress": advance}
            paths = [path for source in sources for path in _paths(source, out, ask)]
            graph = import_graph(paths, out, choices, named=sources if remote else None)
            shutil.rmtree(_pages(out), ignore_errors=True)
    _print_import(graph, json, quiet)


def _choices(types: str, split: str | None, **others: Any) -> "ImportOptions":
    """Return the choices of an import; `types` may be the path of a types file."""
    from halfgraph.graph.importing import ImportOptions
    from halfgraph.graph.splitting import Shares

    shares = None if split is None else Shares.parse(split)
    if types in ("nearest", "top", "one"):
        return ImportOptions(types=types, split=shares, **others)  # type: ignore[arg-type]
    if not Path(types).exists():
        problem = f'there is no file "{types}"'
        raise SettingError("--types", problem, advice="Pass nearest, top, one, or a file with two columns.")
    return ImportOptions(types_file=Path(types), split=shares, **others)


def _pages(out: Path) -> Path:
    """Return the folder that keeps the pages of an endpoint until the graph is made, so that an import can resume."""
    return out.parent / f".{out.name}.pages"


@contextlib.contextmanager
def _kept_if_any(pages: Path) -> Iterator[None]:
    """Remove the folder of pages if the endpoint failed before it gave one."""
    try:
        yield
    except HalfgraphError:
        if not any(pages.glob("pages/*")):
            shutil.rmtree(pages, ignore_errors=True)
        raise


def _paths(source: str, out: Path, ask: dict[str, Any]) -> list[Path]:
    """Return the files of a source; an endpoint is downloaded first."""
    if "://" not in source:
        return [Path(source)]
    from halfgraph.graph.folder import refuse_existing
    from halfgraph.graph.remote import Endpoint, download

    refuse_existing(out, made_by="the graph")
    endpoint = Endpoint(source, page_size=ask["page_size"], pause=ask["pause"])
    with _kept_if_any(_pages(out)):
        return download(endpoint, _pages(out), graph=ask["graph"], progress=ask["progress"])


def _print_import(graph: "Graph", json: bool, quiet: bool) -> None:
    description, counts = graph.description, graph.description["counts"]
    if json:
        print_json({**counts, "fingerprint": graph.fingerprint, "report": description["report"]})
    elif not quiet:
        rows = [(row["what"], row["count"], row["used_for"]) for row in description["report"]]
        print_table("Import", ["Statements", "", "Used for"], rows)
        ways = [(count, way) for way, count in description["types"]["ways"].items()]
        print_table("\nTypes", ["Entities", "Type given by"], ways)
        triples = ", ".join(f"{count:,} {name}" for name, count in counts["triples"].items() if count)
        note(
            f"\n{graph.path}: graph {graph.fingerprint}, {counts['entities']:,} entities of {counts['types']:,} types, "
            f"{counts['relations']:,} relations, triples: {triples}"
        )
        if attribution := description["provenance"].get("attribution"):
            note(f"\n{attribution}")


def build(
    source: Annotated[str, Argument(metavar="SOURCE", help="Graph folder, or the URL of a SPARQL endpoint.")],
    out: Out,
    seeds: Annotated[Path | None, Option(help="File with the seed entities, one per line.")] = None,
    seeds_query: Annotated[str | None, Option(help="SPARQL SELECT query that returns the seed entities.")] = None,
    hops: Annotated[int, Option(min=1, help="Maximum distance from the seeds, in either direction.")] = 2,
    namespace: Annotated[str | None, Option(help="Keep only predicates whose IRI begins with this.")] = None,
    degree: Annotated[int, Option(min=1, help="Minimum degree of an entity.")] = 1,
    types: TypesOption = "nearest",
    untyped: UntypedOption = "vote",
    smallest_type: SmallestOption = 1,
    split: Annotated[str, Option(help="Split into train/valid/test.")] = "90/1/9",
    seed: Seed = 0,
    page_size: PageOption = 10_000,
    pause: PauseOption = 0.5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build a data set as in the paper.

    It has the triples near seed entities, between entities of a minimum degree, with types and a split.

    Example: halfgraph build dbpedia --seeds cities.txt --namespace http://dbpedia.org/ontology/ --degree 10
    --types top --out db18
    """
    from halfgraph.graph.building import SelectionRecipe, build, query_seeds, read_seeds
    from halfgraph.graph.folder import Graph, refuse_existing

    refuse_existing(out, made_by="the graph")
    if seeds is not None and seeds_query is not None:
        raise SettingError("--seeds", "and --seeds-query are both given", advice="Pass one of them.")
    choices = _choices(types, split, untyped=untyped, smallest_type=smallest_type, seed=seed)
    names = read_seeds(seeds) if seeds is not None else None
    with progress(quiet or json) as show:
        if "://" in source:
            ask = {"page_size": page_size, "pause": pause, "progress": lambda count: show("triples", done=count)}
            large, names = _fetch_neighbourhood(source, out, names, seeds_query, hops, namespace, ask)
        else:
            large = Graph.open(source)
            names = query_seeds(large, _store_query(seeds_query, large)) if seeds_query is not None else names
        graph = build(large, out, SelectionRecipe(names, hops, namespace, degree), choices, source)
        shutil.rmtree(_pages(out), ignore_errors=True)
    _print_import(graph, json, quiet)


def _store_query(text: str, graph: "Graph") -> str:
    """Return a checked query as the store is asked it."""
    from halfgraph.sparql.read import request_of
    from halfgraph.sparql.writer import write

    try:
        return write(request_of(text, graph).tree)
    except SparqlError as error:
        place = {"line": error.line, "column": error.column}
        raise InputError(error.problem, path="--seeds-query", **place, advice=error.advice) from error


def _fetch_neighbourhood(
    address: str,
    out: Path,
    seeds: list[str] | None,
    query: str | None,
    hops: int,
    namespace: str | None,
    ask: dict[str, Any],
) -> "tuple[Graph, list[str]]":
    """Download what an endpoint has around the seeds; return it as a graph, with the seeds that are in it."""
    from pyoxigraph import NamedNode

    from halfgraph.graph.files import ReadOptions
    from halfgraph.graph.importing import ImportOptions, import_graph
    from halfgraph.graph.remote import Endpoint, neighbourhood, select

    endpoint = Endpoint(address, page_size=ask["page_size"], pause=ask["pause"])
    if query is not None:
        firsts = [next(iter(row.values())) for row in select(endpoint, query) if row]
        seeds = sorted({first.value for first in firsts if isinstance(first, NamedNode)})
    if seeds is None:
        problem = "is needed to build from an endpoint"
        raise SettingError("--seeds", problem, advice="Pass --seeds FILE or --seeds-query QUERY.")
    with _kept_if_any(_pages(out)):
        pages = neighbourhood(endpoint, seeds, _pages(out), hops=hops, namespace=namespace, progress=ask["progress"])
    shutil.rmtree(_pages(out) / "graph", ignore_errors=True)
    choices = ImportOptions(reading=ReadOptions(one_document=True))
    graph = import_graph(pages, _pages(out) / "graph", choices, named=[address])
    used = [seed for seed in seeds if seed in graph.entities]
    if len(used) < len(seeds):
        note(f"{len(seeds) - len(used):,} of {len(seeds):,} seeds occur in no triple")
    return graph, used
