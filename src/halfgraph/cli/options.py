"""Arguments and options that several commands share, and the values that they take.

The commands import heavy modules only when they run, so that help is quick. Values that a room lists (views, recipes)
are therefore written here again; tests/cli/test_options.py compares them with the rooms.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

ViewName = Literal["whole", "known", "train"]
RecipeName = Literal["default", "paper"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no tables.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to create.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
GraphFolder = Annotated[Path, typer.Argument(metavar="GRAPH", help="Graph folder.", show_default=False)]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run.", show_default=False)]
GraphOption = Annotated[Path, typer.Option("--graph", "-g", help="Graph folder.", show_default=False)]
RunGraph = Annotated[
    Path | None,
    typer.Option("--graph", "-g", help="Graph folder, if it has moved since training.", show_default=False),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Use at most this many questions of each query structure.", show_default=False),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads (default: all cores).", show_default=False)]
View = Annotated[ViewName, typer.Option(help="Triples that count as known: all, train and valid, or train only.")]
Recipe = Annotated[RecipeName, typer.Option(help="Training recipe; 'paper' is the one of the paper.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, for example dim=64; repeatable.")
]
