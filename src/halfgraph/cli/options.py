"""Arguments and options that several commands share, and the values that they take.

The commands import heavy modules only when they run, so that help is quick. Values that a room lists (views, recipes)
are therefore written here again; tests/cli/test_options.py compares them with the rooms.
"""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

ViewName = Literal["whole", "known", "train"]
RecipeName = Literal["default", "paper"]

Json = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print no progress and no tables.")]
Out = Annotated[Path, Option("--out", "-o", help="Folder to create.")]
Seed = Annotated[int, Option(min=0, help="Seed of everything random.")]
GraphFolder = Annotated[Path, Argument(metavar="GRAPH", help="Graph folder.")]
RunFolder = Annotated[Path, Argument(metavar="RUN", help="Folder of a trained run.")]
GraphOption = Annotated[Path, Option("--graph", "-g", help="Graph folder.")]
RunGraph = Annotated[Path | None, Option("--graph", "-g", help="Graph folder, if it has moved since training.")]
Limit = Annotated[int | None, Option(min=1, help="Use at most this many questions of each query structure.")]
Threads = Annotated[int | None, Option(min=1, help="Number of threads (default: all cores).")]
View = Annotated[ViewName, Option(help="Triples that count as known: all, train and valid, or train only.")]
Missing = Annotated[
    float | None,
    Option(metavar="SHARE", help="Share of triples assumed missing, from 0 to 1 (default: as many as held out)."),
]
Recipe = Annotated[RecipeName, Option(help="Training recipe; 'paper' is the one of the paper.")]
Settings = Annotated[
    list[str], Option("--set", metavar="NAME=VALUE", help="Change a setting, for example dim=64; repeatable.")
]
