"""How well confidences hold, for the report: a table of errors, and a chart of what was right by confidence."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from halfgraph.evaluation.charts import COLOURS
from halfgraph.evaluation.comparing import Row
from halfgraph.evaluation.questions import ORDER
from halfgraph.evaluation.report import Table

SIZE, EDGE, NAMES = 300, 36, 90  # pixels: the square, the room beside it, and the room for names
TITLE = "Expected calibration error: how far confidences are from what is right"


def error_table(rows: Sequence[Row]) -> Table:
    """The expected calibration error of each structure, and the mean; no rows where none was measured."""
    own = [row for row in rows if "calibration" in row.figures]
    names = [name for name in ORDER if any(row.get("calibration", "ece", name) is not None for row in own)]
    lines = [[name, *(row.get("calibration", "ece", name) for row in own)] for name in names]
    return Table(TITLE, ["", *(row.name for row in own)], lines, digits=3)


def reliability_charts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """A title and a chart for each row whose confidences were measured."""
    return [
        (f"Confidence and what is right, {row.name}", chart(row.figures["calibration"]["bins"]))
        for row in rows
        if "calibration" in row.figures
    ]


def chart(bins: Mapping[str, Mapping[str, Any]]) -> str:
    """The share of right answers by confidence as SVG, a line for each structure; the diagonal is as it should be."""
    wide, high = SIZE + 2 * EDGE + NAMES, SIZE + 2 * EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" style="max-width:{wide}px" '
        'aria-label="The share of right answers by confidence" font-family="system-ui, sans-serif" font-size="11">',
        *(part for tenth in range(0, 11, 2) for part in _grid(tenth / 10)),
        f'<line x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}" stroke="currentColor" stroke-dasharray="4 4"/>',
    ]
    for number, (name, own) in enumerate(bins.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = list(zip(own["confidence"], own["right"], own["answers"], strict=True))
        line = " ".join(f"{_x(sure):.1f},{_y(right):.1f}" for sure, right, _ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [_dot(sure, right, count, name, colour) for sure, right, count in points]
        y = EDGE + 16 * number
        parts.append(f'<text x="{SIZE + EDGE + 16}" y="{y + 4}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"])


def _dot(sure: float, right: float, count: int, name: str, colour: str) -> str:
    """A point with its numbers."""
    said = f"{name}: {count:,} answers, {sure:.0%} sure, {right:.0%} right"
    return (
        f'<circle cx="{_x(sure):.1f}" cy="{_y(right):.1f}" r="3" fill="{colour}"><title>{escape(said)}</title></circle>'
    )


def _grid(value: float) -> list[str]:
    """The lines of a value, with the value beside and below."""
    lines = f"M{_x(0)} {_y(value)}H{_x(1)}M{_x(value)} {_y(0)}V{_y(1)}"
    return [
        f'<path d="{lines}" stroke="currentColor" stroke-opacity="0.14"/>',
        f'<text x="{_x(0) - 5}" y="{_y(value) + 4}" text-anchor="end" fill="currentColor">{value:.1f}</text>',
        f'<text x="{_x(value)}" y="{_y(0) + 15}" text-anchor="middle" fill="currentColor">{value:.1f}</text>',
    ]


def _x(value: float) -> float:
    return EDGE + SIZE * value


def _y(value: float) -> float:
    return EDGE + SIZE * (1 - value)
