"""The commands about graphs: import, build, stats."""

import shutil
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.screen import counting, note, print_json, print_table
from halfgraph.errors import SettingError

if TYPE_CHECKING:
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.importing import Choices


class Keep(StrEnum):
    """Whether to keep or drop something."""

    keep = "keep"
    drop = "drop"


class Untyped(StrEnum):
    """How entities without a type get a kind."""

    vote = "vote"
    thing = "thing"


class Schema(StrEnum):
    """What to do with statements about the vocabulary."""

    aside = "aside"
    use = "use"


Out = Annotated[Path, typer.Option("--out", "-o", help="The folder to make.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no tables.")]
KindsOption = Annotated[
    str,
    typer.Option(
        "--kinds",
        help="Where kinds come from: 'nearest' common super class of an entity's types, 'top' (the level-1 class "
        "below the root), 'one' kind for all, or a file of two columns: entity, kind.",
    ),
]
UntypedOption = Annotated[
    Untyped, typer.Option(help="Kind of an entity without a type: by the relations it takes part in, or Thing.")
]
SmallestOption = Annotated[int, typer.Option(min=1, help="Kinds with fewer entities become Thing.")]
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
    kinds: KindsOption = "nearest",
    labels: Annotated[list[Path], typer.Option(help="A file of two columns: name, label.")] = [],  # noqa: B006
    language: Annotated[str, typer.Option(help="The preferred language of labels.")] = "en",
    untyped: UntypedOption = Untyped.vote,
    smallest_kind: SmallestOption = 1,
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

    Example: halfgraph import people.ttl ontology.owl --kinds top --split 90/1/9 --out people
    """
    from halfgraph.graph.catalogue import CATALOGUE
    from halfgraph.graph.files import Reading
    from halfgraph.graph.importing import import_graph, import_named

    remote = any("://" in source for source in sources)
    with counting("statements", quiet or json) as progress:
        reading = Reading(format, skip_bad, header, blank_nodes.value, schema.value, base, remote, progress)
        choices = _choices(
            kinds,
            split,
            reading=reading,
            labels_files=tuple(labels),
            language=language,
            untyped=untyped.value,
            smallest_kind=smallest_kind,
            self_loops=self_loops.value,
            seed=seed,
        )
        if len(sources) == 1 and sources[0] in CATALOGUE:
            graph = import_named(CATALOGUE[sources[0]](), out, choices, sources[0])
        else:
            ask = {"page_size": page_size, "pause": pause, "graph": endpoint_graph, "progress": progress}
            paths = [path for source in sources for path in _paths(source, out, ask)]
            graph = import_graph(paths, out, choices)
            shutil.rmtree(_pages(out), ignore_errors=True)
    _show_import(graph, json, quiet)


def _choices(kinds: str, split: str | None, **others: Any) -> "Choices":
    """The choices of an import, with a kinds file where `kinds` is the name of one."""
    from halfgraph.graph.importing import Choices
    from halfgraph.graph.splitting import Shares

    shares = Shares.parse(split) if split else None
    if kinds in ("nearest", "top", "one"):
        return Choices(kinds=kinds, split=shares, **others)  # type: ignore[arg-type]
    if not Path(kinds).exists():
        raise SettingError(
            "--kinds", f'"{kinds}" is no file', advice="Pass nearest, top, one, or a file of two columns."
        )
    return Choices(kinds_file=Path(kinds), split=shares, **others)


def _pages(out: Path) -> Path:
    """Where the pages of an endpoint are kept until the graph is made of them, so that an import can go on."""
    return out.parent / f".{out.name}.pages"


def _paths(source: str, out: Path, ask: dict[str, Any]) -> list[Path]:
    """The files of a source; those of an endpoint are fetched first."""
    if "://" not in source:
        return [Path(source)]
    from halfgraph.graph.folder import refuse_existing
    from halfgraph.graph.remote import Endpoint, download

    refuse_existing(out, made_by="the graph")
    endpoint = Endpoint(source, page_size=ask["page_size"], pause=ask["pause"])
    return download(endpoint, _pages(out), graph=ask["graph"], progress=ask["progress"])


def _show_import(graph: "Graph", json: bool, quiet: bool) -> None:
    """Nothing; what was read and made is printed."""
    description = graph.description
    if json:
        print_json({**description["counts"], "fingerprint": graph.fingerprint, "report": description["report"]})
    elif not quiet:
        rows = [(row["what"], row["count"], row["fate"]) for row in description["report"]]
        print_table("What was read", ["", "", "what became of it"], rows)
        _show_kinds(description)
        counts = description["counts"]
        triples = ", ".join(f"{count:,} {name}" for name, count in counts["triples"].items() if count)
        note(
            f"\n{graph.path}: graph {graph.fingerprint}, {counts['entities']:,} entities of {counts['kinds']:,} kinds, "
            f"{counts['relations']:,} relations, triples: {triples}"
        )
        if attribution := description["provenance"].get("attribution"):
            note(f"\n{attribution}")


def _show_kinds(description: Any) -> None:
    """Nothing; how entities got their kinds is printed."""
    print_table("\nKinds", ["", "entities got theirs"], [(n, way) for way, n in description["kinds"]["ways"].items()])


def build(
    source: Annotated[str, typer.Argument(help="A graph folder, or the address of a SPARQL endpoint.")],
    out: Out,
    seeds: Annotated[Path | None, typer.Option(help="A file that names the seed entities, one on each line.")] = None,
    seeds_query: Annotated[str | None, typer.Option(help="A SPARQL SELECT query that gives the seed entities.")] = None,
    hops: Annotated[int, typer.Option(min=1, help="How many steps to go from the seeds, in either direction.")] = 2,
    namespace: Annotated[str | None, typer.Option(help="Only predicates whose IRI begins with this.")] = None,
    degree: Annotated[int, typer.Option(min=1, help="Remove entities of less degree, until all have it.")] = 1,
    kinds: KindsOption = "nearest",
    untyped: UntypedOption = Untyped.vote,
    smallest_kind: SmallestOption = 1,
    split: Annotated[str, typer.Option(help="Shares of train, valid and test.")] = "90/1/9",
    seed: SeedOption = 0,
    page_size: PageOption = 10_000,
    pause: PauseOption = 0.5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a data set by the paper's recipe: seeds, hops, a degree threshold, kinds and a split.

    Example: halfgraph build dbpedia --seeds cities.txt --namespace http://dbpedia.org/ontology/ --degree 10
    --kinds top --out db18
    """
    from halfgraph.graph.building import Recipe, build, query_seeds, read_seeds
    from halfgraph.graph.folder import Graph, refuse_existing

    refuse_existing(out, made_by="the graph")
    if seeds is not None and seeds_query is not None:
        raise SettingError("--seeds", "and --seeds-query are both given", advice="Give one of them.")
    choices = _choices(kinds, split, untyped=untyped.value, smallest_kind=smallest_kind, seed=seed)
    listed = read_seeds(seeds) if seeds is not None else None
    with counting("triples", quiet or json) as progress:
        if "://" in source:
            ask = {"page_size": page_size, "pause": pause, "progress": progress}
            found, listed = _fetch_neighbourhood(source, out, listed, seeds_query, hops, namespace, ask)
        else:
            found = Graph.open(source)
            listed = query_seeds(found, seeds_query) if seeds_query is not None else listed
        graph = build(found, out, Recipe(listed, hops, namespace, degree), choices)
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
    from halfgraph.graph.files import Reading
    from halfgraph.graph.importing import Choices, import_graph
    from halfgraph.graph.remote import Endpoint, neighbourhood, select

    endpoint = Endpoint(address, page_size=ask["page_size"], pause=ask["pause"])
    if query is not None:
        seeds = sorted({next(iter(row.values())).value for row in select(endpoint, query)})
    if seeds is None:
        raise SettingError(
            "--seeds", "is needed to build from an endpoint", advice="Give --seeds FILE or --seeds-query QUERY."
        )
    pages = neighbourhood(endpoint, seeds, _pages(out), hops=hops, namespace=namespace, progress=ask["progress"])
    shutil.rmtree(_pages(out) / "graph", ignore_errors=True)
    graph = import_graph(pages, _pages(out) / "graph", Choices(reading=Reading(one_document=True)))
    return graph, seeds


def stats(
    folder: Annotated[Path, typer.Argument(help="A graph folder.")],
    json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of degrees and kinds to this file.")] = None,
) -> None:
    """Show what a graph is like: counts, kinds, degrees, frequent relations, leakage.

    Example: halfgraph stats people --plot people.png
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.statistics import statistics

    graph = Graph.open(folder)
    figures = statistics(graph)
    if plot is not None:
        from halfgraph.graph.plots import plot_graph

        plot_graph(graph, plot)
    if json:
        print_json(figures)
    else:
        _show_stats(graph, figures)


def _show_stats(graph: "Graph", figures: dict[str, Any]) -> None:
    """Nothing; the figures of a graph are printed as tables."""
    from halfgraph.graph.vocabulary import local_name

    counts = [(name, figures[name]) for name in ("entities", "relations", "kinds", "literals")]
    splits = [(f"{name} triples", count) for name, count in figures["triples"].items()]
    print_table(f"{graph.path}, graph {graph.fingerprint}", ["", ""], [*counts, *splits])
    print_table("\nDegrees", ["", ""], list(figures["degrees"].items()))
    sizes = sorted(figures["kind_sizes"].items(), key=lambda item: -item[1])
    title = "\nKinds (the 15 largest)" if len(sizes) > 15 else "\nKinds"
    print_table(title, ["entities", ""], [(count, local_name(kind)) for kind, count in sizes[:15]])
    frequent = [(count, local_name(name)) for name, count in figures["frequent_relations"].items()]
    print_table("\nThe commonest relations", ["triples", ""], frequent)
    leaks = [(split, *found.values()) for split, found in figures["leakage"].items() if found]
    if leaks:
        columns = ["", "another relation", "reversed", "entities not in train"]
        title = "\nLeakage: the share of held-out pairs that train has under another relation, or reversed"
        print_table(title, columns, leaks)
