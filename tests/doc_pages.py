"""The pages of the documentation, and the parts of a page that tests look at."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "halfgraph"
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_blocks(text: str, *languages: str) -> list[str]:
    """Return the fenced blocks in one of the languages; "" stands for a block without one."""
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for language, block in blocks if language in languages]


def run_examples(page: Path, names: dict[str, Any], **changes: str) -> None:
    """Run the Python blocks of a page in order, with some of their words changed; `names` keeps what they define."""
    for block in code_blocks(text_of(page), "python"):
        for before, after in changes.items():
            block = block.replace(before, after)
        exec(compile(block, name_of(page), "exec"), names)


def without_code_blocks(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def inline_code(text: str) -> list[str]:
    """Return each piece of code inside the text, which may be wrapped."""
    pieces = re.findall(r"`((?:[^`\n]|\n(?!\n))+)`", without_code_blocks(text))
    return [" ".join(piece.split()) for piece in pieces]


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of each row of the tables of a page, without the header rows."""
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line, after in zip(lines, [*lines[1:], ""], strict=True) if not after.startswith("|--")]
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows if row.startswith("|") and not row.startswith("|--")]
    return [[cell.strip() for cell in row] for row in cells]


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
