"""The commands that make graphs: import and build."""

import contextlib
import shutil
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.screen import Json, counting, note, print_json, print_table
from halfgraph.errors import HalfgraphError, SettingError

if TYPE_CHECKING:
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.importing import Choices


class Keep(StrEnum):
    """Whether to keep or drop something."""

    keep = "keep"
    drop = "drop"


class Untyped(StrEnum):
    """How entities without a type get a type."""

    vote = "vote"
    thing = "thing"


class Schema(StrEnum):
    """What to do with statements about the vocabulary."""

    aside = "aside"
    use = "use"


Out = Annotated[Path, typer.Option("--out", "-o", help="The folder to make.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no tables.")]
TypesOption = Annotated[
    str,
    typer.Option(
        "--types",
        help="Where types come from: 'nearest' common super class of an entity's types, 'top' (the level-1 class "
        "below the root), 'one' type for all, or a file of two columns: entity, type.",
    ),
]
UntypedOption = Annotated[
    Untyped, typer.Option(help="Type of an entity without a type: by the relations it takes part in, or Thing.")
]
SmallestOption = Annotated[int, typer.Option(min=1, help="Types with fewer entities become Thing.")]
SeedOption = Annotated[int, typer.Option(help="The seed of the split.")]
PageOption = Annotated[int, typer.Option(min=1, help="Rows of a page, from an endpoint.")]
PauseOption = Annotated[float, typer.Option(min=0.0, help="Seconds between two requests to an endpoint.")]


def import_(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="RDF or TSV/CSV files (.gz too), a folder with train/valid/test files, the address of a SPARQL "
            "endpoint, - for standard input, or demo.",
            show_default=False,
        ),
    ],
    out: Out,
    format: Annotated[str | None, typer.Option(help="The format, if the file's ending does not tell it.")] = None,  # noqa: A002
    types: TypesOption = "nearest",
    labels: Annotated[list[Path], typer.Option(help="A file of two columns: name, label.")] = [],  # noqa: B006
    language: Annotated[str, typer.Option(help="The preferred language of labels.")] = "en",
    untyped: UntypedOption = Untyped.vote,
    smallest_type: SmallestOption = 1,
    blank_nodes: Annotated[Keep, typer.Option(help="Whether blank nodes are entities.")] = Keep.keep,
    self_loops: Annotated[Keep, typer.Option(help="Whether triples from an entity to itself are kept.")] = Keep.keep,
    schema: Annotated[
        Schema, typer.Option(help="Statements about the vocabulary (subClassOf, domain, ...): set aside, or learnt.")
    ] = Schema.aside,
    base: Annotated[
        str, typer.Option(help="The IRI that names which are no IRIs are relative to.")
    ] = "http://halfgraph.local/",
    header: Annotated[bool, typer.Option("--header", help="The first line of a table is a header.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Count malformed lines and set them aside.")] = False,
    split: Annotated[str | None, typer.Option(help="Split the triples, such as 90/1/9.", show_default=False)] = None,
    seed: SeedOption = 0,
    endpoint_graph: Annotated[str | None, typer.Option(help="The named graph to read, from an endpoint.")] = None,
    page_size: PageOption = 10_000,
    pause: PauseOption = 0.5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a graph folder of RDF, TSV, a published split, a SPARQL endpoint or the demo.

    Example: halfgraph import people.ttl ontology.owl --types top --split 90/1/9 --out people
    """
    from halfgraph.graph.catalogue import CATALOGUE
    from halfgraph.graph.files import Reading
    from halfgraph.graph.importing import import_graph, import_named

    remote = any("://" in source for source in sources)
    with counting("statements", quiet or json) as progress:
        given = None if remote else format  # the pages of an endpoint are N-Triples
        reading = Reading(given, skip_bad, header, blank_nodes.value, schema.value, base, remote, progress)
        choices = _choices(
            types,
            split,
            reading=reading,
            labels_files=tuple(labels),
            language=language,
            untyped=untyped.value,
            smallest_type=smallest_type,
            self_loops=self_loops.value,
            seed=seed,
        )
        if len(sources) == 1 and sources[0] in CATALOGUE:
            graph = import_named(CATALOGUE[sources[0]](), out, choices, sources[0])
        else:
            ask = {"page_size": page_size, "pause": pause, "graph": endpoint_graph, "progress": progress}
            paths = [path for source in sources for path in _paths(source, out, ask)]
            graph = import_graph(paths, out, choices, named=sources if remote else None)
            shutil.rmtree(_pages(out), ignore_errors=True)
    _show_import(graph, json, quiet)


def _choices(types: str, split: str | None, **others: Any) -> "Choices":
    """The choices of an import, with a types file where `types` is the name of one."""
    from halfgraph.graph.importing import Choices
    from halfgraph.graph.splitting import Shares

    shares = None if split is None else Shares.parse(split)
    if types in ("nearest", "top", "one"):
        return Choices(types=types, split=shares, **others)  # type: ignore[arg-type]
    if not Path(types).exists():
        raise SettingError(
            "--types", f'"{types}" is no file', advice="Pass nearest, top, one, or a file of two columns."
        )
    return Choices(types_file=Path(types), split=shares, **others)


def _pages(out: Path) -> Path:
    """Where the pages of an endpoint are kept until the graph is made of them, so that an import can go on."""
    return out.parent / f".{out.name}.pages"


@contextlib.contextmanager
def _kept_if_any(pages: Path) -> Iterator[None]:
    """Nothing; the folder of pages is removed if an endpoint failed before it gave one."""
    try:
        yield
    except HalfgraphError:
        if not any(pages.glob("pages/*")):
            shutil.rmtree(pages, ignore_errors=True)
        raise


def _paths(source: str, out: Path, ask: dict[str, Any]) -> list[Path]:
    """The files of a source; those of an endpoint are fetched first."""
    if "://" not in source:
        return [Path(source)]
    from halfgraph.graph.folder import refuse_existing
    from halfgraph.graph.remote import Endpoint, download

    refuse_existing(out, made_by="the graph")
    endpoint = Endpoint(source, page_size=ask["page_size"], pause=ask["pause"])
    with _kept_if_any(_pages(out)):
        return download(endpoint, _pages(out), graph=ask["graph"], progress=ask["progress"])


def _show_import(graph: "Graph", json: bool, quiet: bool) -> None:
    """Nothing; what was read and made is printed."""
    description = graph.description
    if json:
        print_json({**description["counts"], "fingerprint": graph.fingerprint, "report": description["report"]})
    elif not quiet:
        rows = [(row["what"], row["count"], row["fate"]) for row in description["report"]]
        print_table("What was read", ["", "", "what became of it"], rows)
        ways = [(count, way) for way, count in description["types"]["ways"].items()]
        print_table("\nTypes", ["", "entities got theirs"], ways)
        counts = description["counts"]
        triples = ", ".join(f"{count:,} {name}" for name, count in counts["triples"].items() if count)
        note(
            f"\n{graph.path}: graph {graph.fingerprint}, {counts['entities']:,} entities of {counts['types']:,} types, "
            f"{counts['relations']:,} relations, triples: {triples}"
        )
        if attribution := description["provenance"].get("attribution"):
            note(f"\n{attribution}")


def build(
    source: Annotated[str, typer.Argument(help="A graph folder, or the address of a SPARQL endpoint.")],
    out: Out,
    seeds: Annotated[Path | None, typer.Option(help="A file that names the seed entities, one on each line.")] = None,
    seeds_query: Annotated[str | None, typer.Option(help="A SPARQL SELECT query that gives the seed entities.")] = None,
    hops: Annotated[int, typer.Option(min=1, help="How many steps to go from the seeds, in either direction.")] = 2,
    namespace: Annotated[str | None, typer.Option(help="Only predicates whose IRI begins with this.")] = None,
    degree: Annotated[int, typer.Option(min=1, help="Remove entities of less degree, until all have it.")] = 1,
    types: TypesOption = "nearest",
    untyped: UntypedOption = Untyped.vote,
    smallest_type: SmallestOption = 1,
    split: Annotated[str, typer.Option(help="Shares of train, valid and test.")] = "90/1/9",
    seed: SeedOption = 0,
    page_size: PageOption = 10_000,
    pause: PauseOption = 0.5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a data set by the paper's recipe: seeds, hops, a degree threshold, types and a split.

    Example: halfgraph build dbpedia --seeds cities.txt --namespace http://dbpedia.org/ontology/ --degree 10
    --types top --out db18
    """
    from halfgraph.graph.building import Recipe, build, query_seeds, read_seeds
    from halfgraph.graph.folder import Graph, refuse_existing

    refuse_existing(out, made_by="the graph")
    if seeds is not None and seeds_query is not None:
        raise SettingError("--seeds", "and --seeds-query are both given", advice="Give one of them.")
    choices = _choices(types, split, untyped=untyped.value, smallest_type=smallest_type, seed=seed)
    listed = read_seeds(seeds) if seeds is not None else None
    with counting("triples", quiet or json) as progress:
        if "://" in source:
            ask = {"page_size": page_size, "pause": pause, "progress": progress}
            found, listed = _fetch_neighbourhood(source, out, listed, seeds_query, hops, namespace, ask)
        else:
            found = Graph.open(source)
            listed = query_seeds(found, seeds_query) if seeds_query is not None else listed
        graph = build(found, out, Recipe(listed, hops, namespace, degree), choices, source)
        shutil.rmtree(_pages(out), ignore_errors=True)
    _show_import(graph, json, quiet)


def _fetch_neighbourhood(
    address: str,
    out: Path,
    seeds: list[str] | None,
    query: str | None,
    hops: int,
    namespace: str | None,
    ask: dict[str, Any],
) -> "tuple[Graph, list[str]]":
    """What an endpoint has around the seeds, as a graph, and the seeds."""
    from pyoxigraph import NamedNode

    from halfgraph.graph.files import Reading
    from halfgraph.graph.importing import Choices, import_graph
    from halfgraph.graph.remote import Endpoint, neighbourhood, select

    endpoint = Endpoint(address, page_size=ask["page_size"], pause=ask["pause"])
    if query is not None:
        firsts = [next(iter(row.values())) for row in select(endpoint, query) if row]
        seeds = sorted({first.value for first in firsts if isinstance(first, NamedNode)})
    if seeds is None:
        raise SettingError(
            "--seeds", "is needed to build from an endpoint", advice="Give --seeds FILE or --seeds-query QUERY."
        )
    with _kept_if_any(_pages(out)):
        pages = neighbourhood(endpoint, seeds, _pages(out), hops=hops, namespace=namespace, progress=ask["progress"])
    shutil.rmtree(_pages(out) / "graph", ignore_errors=True)
    choices = Choices(reading=Reading(one_document=True))
    graph = import_graph(pages, _pages(out) / "graph", choices, named=[address])
    found = [seed for seed in seeds if seed in graph.entities]  # one without a triple is no entity
    if len(found) < len(seeds):
        note(f"{len(seeds) - len(found):,} of {len(seeds):,} seeds take part in no triple")
    return graph, found
