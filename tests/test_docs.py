"""The documentation names only what exists: links, files, functions, equations; and its main pages are short."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doc_pages import (
    DOCS,
    HOUSE,
    ROOT,
    code_blocks,
    every_page,
    inline_code,
    name_of,
    table_rows,
    text_of,
    without_code_blocks,
)

DECISIONS = sorted(DOCS.glob("decisions/0*.md"))
DEPARTS = "# Departs from the paper"
FILES = (".py", ".json", ".jsonl", ".npy", ".nq", ".safetensors")
README_LINES, RESULTS_LINES, DECISION_LINES = 110, 150, 40
TERMS = {
    *("entity", "relation", "triple", "type", "embedding", "query structure", "anchor", "variable", "answer"),
    *("negative", "hard negative", "projection", "intersection", "attention head", "link prediction", "ComplEx"),
    *("calibration", "confidence", "filtered rank", "run", "workload"),
}


# Links


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    counts: dict[str, int] = {}
    slugs = set()
    for title in re.findall(r"^#+ (.+)$", without_code_blocks(text), flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        slugs.add(f"{slug}-{counts[slug]}" if slug in counts else slug)
        counts[slug] = counts.get(slug, 0) + 1
    return slugs


def relative_links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the anchor of each link that stays in the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code_blocks(text_of(page))):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@every_page
def test_every_relative_link_and_anchor_resolves(page: Path) -> None:
    for path, anchor in relative_links(page):
        assert path.exists(), f"no file {path}"
        assert not anchor or anchor in anchors(text_of(path)), f"no heading #{anchor} in {name_of(path)}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page not in reached:
            reached.add(page)
            waiting += [path for path, _ in relative_links(page)]
    assert set(DOCS.rglob("*.md")) <= reached


# Files and functions


@every_page
def test_every_file_of_the_code_that_is_named_exists(page: Path) -> None:
    for code in inline_code(text_of(page)) + code_blocks(text_of(page), ""):
        for path in re.findall(r"(?<![\w./:])((?:\w+/)+\w+\.(?:py|rq|lark|ts))\b", code):
            assert (HOUSE / path).exists() or (ROOT / path).exists(), f"no file {path}"


def resolve(name: str) -> Any:
    """Return what a dotted name inside halfgraph stands for; ImportError or AttributeError if there is nothing."""
    parts = ["halfgraph", *name.removeprefix("halfgraph.").split(".")]
    length = next(n for n in range(len(parts), 0, -1) if is_module(".".join(parts[:n])))
    value: Any = importlib.import_module(".".join(parts[:length]))
    for part in parts[length:]:
        fields = getattr(value, "__dataclass_fields__", {})
        value = fields[part] if part in fields else getattr(value, part)
    return value


def is_module(name: str) -> bool:
    path = HOUSE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@every_page
def test_every_function_named_by_its_module_exists(page: Path) -> None:
    rooms = "|".join({path.stem for path in HOUSE.iterdir() if is_module(f"halfgraph.{path.stem}")})
    for code in inline_code(text_of(page)):
        dotted = re.fullmatch(rf"((?:halfgraph\.)?(?:{rooms})\.[a-z_]+(?:\.\w+)*)(\(.*\))?", code)
        if dotted and not dotted[1].endswith(FILES):
            resolve(dotted[1])


@every_page
def test_every_import_in_an_example_works(page: Path) -> None:
    for block in code_blocks(text_of(page), "python", "py"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("halfgraph"):
                for alias in node.names:
                    resolve(f"{node.module}.{alias.name}".removeprefix("halfgraph."))


def test_the_architecture_names_functions_on_both_walks() -> None:
    walks = text_of(DOCS / "architecture.md").split("\n## ")
    named = {walk.split("\n")[0]: re.findall(r"`(?:\w+\.){2,}\w+`", walk) for walk in walks}
    assert len(named["A triple to the loss"]) >= 8
    assert len(named["A SPARQL text to a predicted row"]) >= 8


# The paper


def names_in(path: Path) -> set[str]:
    """Return the functions, classes, methods (as Class.method) and constants of a file."""
    names: set[str] = set()
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def functions_of(cell: str) -> list[tuple[str, str]]:
    """Return the names of a cell with their files: "`a`, `B.c` (`room/file.py`), `d` (`room/other.py`)"."""
    pairs = re.findall(r"((?:`[\w.]+`(?:, )?)+) \(`([\w/]+\.py)`\)", cell)
    return [(name, file) for names, file in pairs for name in re.findall(r"`([\w.]+)`", names)]


def named_tests(cell: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cell)


def equations_in(text: str) -> set[int]:
    """Return the equations that a text cites: "eq. 5", "eqs. 10 and 12", "eqs. 4-8"."""
    numbers: set[int] = set()
    for first, link, last in re.findall(r"eqs?\. (\d+)(?:( and |-)(\d+))?", text):
        numbers |= set(range(int(first), int(last) + 1)) if link == "-" else {int(first), int(last or first)}
    return numbers


PAPER_ROWS = table_rows(text_of(DOCS / "paper.md"))


@pytest.mark.parametrize("row", PAPER_ROWS, ids=lambda row: row[0])
def test_every_function_and_test_that_the_page_on_the_paper_names_exists(row: list[str]) -> None:
    functions = functions_of(row[-1] if len(row) == 4 else row[1])
    assert functions, "a row without a function"
    for name, file in functions:
        assert name in names_in(HOUSE / file), f"no {name} in {file}"
    if len(row) == 3:
        assert named_tests(row[2]), "a row without a test"
        for file, name in named_tests(row[2]):
            assert name in names_in(ROOT / file), f"no {name} in {file}"


def test_every_equation_is_on_the_page() -> None:
    assert equations_in(" ".join(row[0] for row in PAPER_ROWS)) == set(range(1, 14))


def test_every_equation_is_cited_in_the_code() -> None:
    paths = [path for room in ("model", "training") for path in (HOUSE / room).glob("*.py")]
    assert equations_in(" ".join(map(text_of, paths))) == set(range(1, 14))


def test_every_departure_from_the_paper_is_in_its_table() -> None:
    departing = {str(path.relative_to(HOUSE)) for path in HOUSE.rglob("*.py") if DEPARTS in text_of(path)}
    assert departing
    assert departing <= {file for row in PAPER_ROWS if len(row) == 4 for _, file in functions_of(row[-1])}


# Size and form


def test_the_main_pages_are_short() -> None:
    assert len(text_of(ROOT / "README.md").splitlines()) <= README_LINES
    assert len(text_of(DOCS / "results.md").splitlines()) <= RESULTS_LINES


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_is_half_a_page_and_listed(page: Path) -> None:
    text = text_of(page)
    assert len(text.splitlines()) <= DECISION_LINES
    assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences"))
    assert f"({page.name})" in text_of(page.with_name("README.md"))


def test_the_glossary_is_sorted_and_has_every_term_of_the_field() -> None:
    terms = [row[0] for row in table_rows(text_of(DOCS / "glossary.md"))]
    assert terms == sorted(set(terms), key=str.lower)
    assert not TERMS - set(terms)


def test_the_readme_shows_the_query_of_the_demo() -> None:
    query = (ROOT / "examples" / "cy_young.rq").read_text(encoding="utf-8")
    assert query[query.index("SELECT") :] in code_blocks(text_of(ROOT / "README.md"), "sparql")
