"""What the documentation names is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "halfgraph"
PAPER = ROOT / "docs" / "paper.md"
DEPARTS = "# Departs from the paper"


def names_in(path: Path) -> set[str]:
    """The functions, classes, methods and constants of a file, methods as Class.method."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables of a page, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] not in ("in the paper", "what")]


def functions_of(cell: str) -> list[tuple[str, str]]:
    """The names of a cell with their files: "`a`, `B.c` (`room/file.py`), `d` (`room/other.py`)"."""
    pairs = re.findall(r"((?:`[\w.]+`(?:, )?)+) \(`([\w/]+\.py)`\)", cell)
    return [(name, file) for names, file in pairs for name in re.findall(r"`([\w.]+)`", names)]


def named_tests(cell: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cell)


ROWS = rows(PAPER.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_function_and_test_that_the_page_on_the_paper_names_is_there(row: list[str]) -> None:
    functions = functions_of(row[-1] if len(row) == 4 else row[1])
    assert functions, "a row that names no function"
    for name, file in functions:
        assert name in names_in(HOUSE / file), f"no {name} in {file}"
    if len(row) == 3:
        assert named_tests(row[2]), "a row that names no test"
        for file, name in named_tests(row[2]):
            assert name in names_in(ROOT / file), f"no {name} in {file}"


def numbers_in(text: str) -> set[int]:
    """The equations that a text cites: "eq. 5", "eqs. 10 and 12", "eqs. 4-8"."""
    found: set[int] = set()
    for first, link, last in re.findall(r"eqs?\. (\d+)(?:( and |-)(\d+))?", text):
        found |= set(range(int(first), int(last) + 1)) if link == "-" else {int(first), int(last or first)}
    return found


def test_every_equation_is_on_the_page() -> None:
    assert numbers_in(" ".join(row[0] for row in ROWS)) == set(range(1, 14))


def test_every_equation_is_cited_in_the_code() -> None:
    paths = [path for room in ("model", "training") for path in (HOUSE / room).glob("*.py")]
    assert numbers_in(" ".join(path.read_text(encoding="utf-8") for path in paths)) == set(range(1, 14))


def test_every_departure_is_on_the_page() -> None:
    """A file that departs from the paper is in the last table."""
    departing = {
        str(path.relative_to(HOUSE)) for path in HOUSE.rglob("*.py") if DEPARTS in path.read_text(encoding="utf-8")
    }
    assert departing
    told = {file for row in ROWS if len(row) == 4 for _, file in functions_of(row[-1])}
    assert departing <= told
