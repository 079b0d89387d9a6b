"""`halfgraph import` and `build`: make a graph folder."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from halfgraph.cli.options import Json, Out, Quiet, Seed
from halfgraph.cli.output import note, print_json, print_table, progress
from halfgraph.errors import HalfgraphError, InputError, SettingError, SparqlError

if TYPE_CHECKING:
    from halfgraph.graph.building import SelectionRecipe
    from halfgraph.graph.endpoint import Endpoint
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
    Literal["vote", "leave"],
    Option(help="Type of an entity without a stated one: guess it by a vote of its relations, or leave it Untyped."),
]
SmallestOption = Annotated[int, Option(min=1, help="Replace types with fewer entities by Untyped.")]
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
    default_graph: Annotated[
        Literal["auto", "own", "union"],
        Option(
            help="What queries without GRAPH see: 'own' (statements outside named graphs), 'union' (all statements), "
            "or 'auto' (own, unless all statements are in named graphs)."
        ),
    ] = "auto",
    base: Annotated[str, Option(help="Base IRI for names that are not IRIs.")] = "http://halfgraph.local/",
    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header",
            help="Skip the first line of TSV and CSV files, or read it as a triple (default: skip it if it has names "
            "of columns, such as head,relation,tail).",
            show_default=False,
        ),
    ] = None,
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
    from halfgraph.graph.endpoint import Endpoint
    from halfgraph.graph.files import ReadOptions
    from halfgraph.graph.importing import import_graph, import_named
    from halfgraph.graph.new_folder import refuse_existing
    from halfgraph.graph.remote import download

    others = {"smallest_type": smallest_type, "self_loops": self_loops, "default_graph": default_graph}
    choices = _choices(types, split, untyped=untyped, seed=seed, **others)
    remote = any("://" in source for source in sources)
    if remote:
        refuse_existing(out, made_by="the graph")
    with progress(quiet or json) as show, _pages_folder(out) as pages:

        def advance(count: int) -> None:
            show("statements", done=count)

        def paths_of(source: str) -> list[Path]:
            if "://" not in source:
                return [Path(source)]
            endpoint = Endpoint(source, page_size=page_size, pause=pause)
            return download(endpoint, pages, graph=endpoint_graph, progress=advance)

        given = None if remote else format  # the pages of an endpoint are N-Triples
        reading = ReadOptions(given, skip_bad, header, blank_nodes, schema, base, remote, advance)
        choices = replace(choices, reading=reading, labels_files=tuple(labels), language=language)
        if len(sources) == 1 and sources[0] in CATALOGUE:
            graph = import_named(CATALOGUE[sources[0]](), out, choices, sources[0])
        else:
            paths = [path for source in sources for path in paths_of(source)]
            graph = import_graph(paths, out, choices, named=sources if remote else None)
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


@contextlib.contextmanager
def _pages_folder(out: Path) -> Iterator[Path]:
    """Folder for the pages of an endpoint; after an error it stays if it has any, so that the command can resume."""
    pages = out.parent / f".{out.name}.pages"
    try:
        yield pages
    except HalfgraphError:
        with contextlib.suppress(OSError):  # the name may be one that no folder can have
            if not any(pages.glob("pages/*")):
                shutil.rmtree(pages)
        raise
    shutil.rmtree(pages, ignore_errors=True)


def _print_import(graph: "Graph", json: bool, quiet: bool) -> None:
    description, counts = graph.description, graph.description["counts"]
    if json:
        print_json({**counts, "fingerprint": graph.fingerprint, "report": description["report"]})
    elif not quiet:
        rows = [(row["what"], row["count"], row["used_for"]) for row in description["report"]]
        print_table("Import", ["Statements", "", "Used for"], rows)
        ways = [(count, way) for way, count in description["types"]["ways"].items()]
        print_table("\nTypes", ["Entities", "Type given by"], ways)
        triples = ", ".join(f"{count:,} {name}" for name, count in counts["triples"].items() if count) or "none"
        guessed = f" (guessed for {counts['guessed_types']:,})" if counts["guessed_types"] else ""
        note(
            f"\n{graph.path}: graph {graph.fingerprint}, {counts['entities']:,} entities of {counts['types']:,} types"
            f"{guessed}, {counts['relations']:,} relations, triples: {triples}"
        )
        if not graph.whole.triple_count:
            note("No triple between two entities: queries are answered exactly, and nothing can be predicted.")
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
    from halfgraph.graph.endpoint import Endpoint
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.new_folder import refuse_existing

    refuse_existing(out, made_by="the graph")
    if seeds is not None and seeds_query is not None:
        raise SettingError("--seeds", "and --seeds-query are both given", advice="Pass one of them.")
    choices = _choices(types, split, untyped=untyped, smallest_type=smallest_type, seed=seed)
    recipe = SelectionRecipe(None if seeds is None else read_seeds(seeds), hops, namespace, degree)
    with progress(quiet or json) as show, _pages_folder(out) as pages:
        if "://" in source:
            endpoint = Endpoint(source, page_size=page_size, pause=pause)
            large, recipe = _download(endpoint, pages, recipe, seeds_query, lambda count: show("triples", done=count))
        else:
            large = Graph.open(source)
            if seeds_query is not None:
                recipe = replace(recipe, seeds=query_seeds(large, _store_query(seeds_query, large)))
        graph = build(large, out, recipe, choices, source)
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


def _download(
    endpoint: "Endpoint", pages: Path, recipe: "SelectionRecipe", query: str | None, progress: Callable[[int], None]
) -> "tuple[Graph, SelectionRecipe]":
    """Download what an endpoint has around the seeds; return it as a graph, and the recipe with the seeds in it."""
    from pyoxigraph import NamedNode

    from halfgraph.graph.endpoint import select
    from halfgraph.graph.files import ReadOptions
    from halfgraph.graph.importing import ImportOptions, import_graph
    from halfgraph.graph.remote import neighbourhood

    seeds = recipe.seeds
    if query is not None:
        firsts = (next(iter(row.values())) for row in select(endpoint, query) if row)
        seeds = sorted({first.value for first in firsts if isinstance(first, NamedNode)})
    if seeds is None:
        problem = "is needed to build from an endpoint"
        raise SettingError("--seeds", problem, advice="Pass --seeds FILE or --seeds-query QUERY.")
    files = neighbourhood(endpoint, seeds, pages, hops=recipe.hops, namespace=recipe.namespace, progress=progress)
    shutil.rmtree(pages / "graph", ignore_errors=True)
    choices = ImportOptions(reading=ReadOptions(one_document=True))
    graph = import_graph(files, pages / "graph", choices, named=[endpoint.address])
    used = [seed for seed in seeds if seed in graph.entities]
    if len(used) < len(seeds):
        note(f"{len(seeds) - len(used):,} of {len(seeds):,} seeds occur in no triple")
    return graph, replace(recipe, seeds=used)
