"""Rules of the code that a machine can check: the order of imports, the length of files, docstrings, lazy imports."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "halfgraph"
ORDER = [
    *("errors", "graph", "query", "workload", "sparql", "model", "training", "prediction"),
    *("evaluation", "answering", "serving", "settings", "api", "cli"),
]
FILES = sorted(path for path in HOUSE.rglob("*.py") if path != HOUSE / "__init__.py")
PAGE = sorted(path for path in (ROOT / "web" / "src").rglob("*") if path.suffix in (".ts", ".css"))
OUTSIDE = {"web"}  # the page's source, which is tested in a browser
LONGEST = 300  # lines of a file
HEAVY = ("torch", "numba", "numpy", "pyoxigraph", "rdflib", "rich", "matplotlib", "fastapi", "uvicorn")


def room_of(path: Path) -> str:
    """Return the room of a file: its folder, or its own name."""
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def rank(room: str) -> int:
    """Return the position of a room; settings, api and cli share the last one."""
    return min(ORDER.index(room), ORDER.index("settings"))


def imported(path: Path) -> Iterator[str]:
    """Yield every module that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}, line {node.lineno}: a relative import"
            yield str(node.module)
            if node.module == "halfgraph":
                yield from (f"halfgraph.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_file_imports_from_its_own_room_and_those_before_it(path: Path) -> None:
    here = room_of(path)
    for module in imported(path):
        parts = module.split(".")
        if parts[0] == "halfgraph" and len(parts) > 1 and parts[1] != "__version__":
            assert parts[1] in ORDER, f"{here} imports {module} through the front door"
            assert parts[1] == here or rank(parts[1]) <= rank(here), f"{here} imports {module}, which comes later"


def test_every_room_has_its_place_in_the_order() -> None:
    assert {room_of(path) for path in FILES} <= set(ORDER)


@pytest.mark.parametrize("path", [*FILES, *PAGE], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_enough_to_be_read_at_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_file_begins_by_saying_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_of_the_page_begins_by_saying_what_it_is(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("/*")


def test_tests_mirror_the_rooms() -> None:
    rooms = {path.parent for path in FILES if path.parent != HOUSE}
    tests = ROOT / "tests"
    mirrored = {room.name for room in rooms} | OUTSIDE
    assert mirrored == {path.name for path in tests.iterdir() if any(path.glob("test_*.py"))}
    for room in rooms:
        nouns = {path.stem for path in room.glob("*.py")}
        for test in (tests / room.name).glob("test_*.py"):
            named = test.stem.removeprefix("test_")
            assert any(named == noun or named.startswith(f"{noun}_") for noun in nouns), f"{test} mirrors no file"


@pytest.mark.parametrize("module", ["halfgraph", "halfgraph.cli"])
def test_nothing_heavy_is_loaded_before_it_is_needed(module: str) -> None:
    script = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not loaded


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_docstrings_say_what_is_there_and_not_that_nothing_is_returned(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            assert not (ast.get_docstring(node) or "").startswith("Nothing"), (
                f"{path}, line {getattr(node, 'lineno', 1)}"
            )


def test_every_public_class_has_a_name_of_its_own() -> None:
    names = Counter(
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_evaluation_supplies_nothing_to_the_rooms() -> None:
    users = {room_of(path) for path in FILES for module in imported(path) if module.startswith("halfgraph.evaluation")}
    assert users <= {"evaluation", "api", "cli"}
