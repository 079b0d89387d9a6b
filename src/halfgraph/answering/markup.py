"""HTML for notebooks."""

from collections.abc import Sequence
from html import escape


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an HTML table."""
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def paragraphs(texts: Sequence[str]) -> str:
    """Return texts as HTML paragraphs."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)
