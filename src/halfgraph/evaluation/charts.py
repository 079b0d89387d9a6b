"""SVG charts: bars by query type relative to the weakest model, as in the paper's Figure 4, and reliability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from typing import Any

from halfgraph.evaluation.measures import HARD, TYPES
from halfgraph.evaluation.questions import ORDER
from halfgraph.evaluation.report import short_name
from halfgraph.evaluation.results import Row

# Distinguishable by colour-blind readers (Wong's palette and shades of it), on light and dark backgrounds.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
    *("#8c7a00", "#7a5fb5", "#4d9078", "#b0566b", "#7f8c9b", "#a3a3a3"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 330, 46, 8, 14, 40
LEGEND = 20  # pixels for a line of the legend
SQUARE, SQUARE_EDGE, SQUARE_LEGEND = 300, 36, 90  # of the reliability chart


@dataclass(frozen=True)
class Bars:
    """Data of a bar chart: a value for each series in each group, None if there is none."""

    title: str
    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    relative: bool  # bars start at the weakest value of each group
    boxed: Sequence[str] = ()  # groups drawn in a box, as the paper marks hard negatives

    def heights(self) -> list[list[float | None]]:
        """Return the height of each bar, by series and group."""
        least = [
            min((values[group] or 0.0 for _, values in self.series if values[group] is not None), default=0.0)
            for group in range(len(self.groups))
        ]
        return [
            [
                None if value is None else value - (least[group] if self.relative else 0.0)
                for group, value in enumerate(values)
            ]
            for _, values in self.series
        ]


def charts(rows: Sequence[Row]) -> list[Bars]:
    """Return charts of AUC and APR by query type and of MRR by structure; several rows relative to the weakest."""
    trained = [row for row in rows if not row.is_baseline]
    relative = len(trained) > 1
    paper = trained if relative else rows
    suffix = ", above the weakest" if relative else ""
    every = [
        _chart(paper, f"ROC AUC by query type, %{suffix}", "auc", TYPES, 100.0, relative),
        _chart(paper, f"Average percentile rank by query type, %{suffix}", "apr", TYPES, 100.0, relative),
        _chart(rows, "Filtered MRR of hard answers by structure", "mrr", ORDER, 1.0, relative=False),
    ]
    return [chart for chart in every if chart.groups and chart.series]


def _chart(rows: Sequence[Row], title: str, measure: str, order: Sequence[str], scale: float, relative: bool) -> Bars:
    names = [name for name in order if any(row.get(measure, name) is not None for row in rows)]
    series = []
    for row in rows:
        values = [row.get(measure, name) for name in names]
        series.append((row.name, [None if value is None else scale * value for value in values]))
    boxed = [short_name(name) for name in names if name.endswith(HARD)]
    return Bars(title, [short_name(name) for name in names], series, relative, boxed)


def svg(bars: Bars, *, standalone: bool = False) -> str:
    """Draw a chart as SVG; a standalone one brings its own text and background colours."""
    heights = bars.heights()
    top = max((height for own in heights for height in own if height is not None), default=0.0) or 1.0
    step = _step(top)
    top = step * (floor(top / step - 1e-9) + 1)
    legend, rows = _legend([name for name, _ in bars.series])
    height = HEIGHT + LEGEND * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(bars.title)}" font-family="system-ui, sans-serif" font-size="12">'
    ]
    if standalone:
        parts.append(
            "<style>svg{color:#222;background:#fff}@media(prefers-color-scheme:dark){svg{color:#ddd;background:#16181c}}"
            "</style>"
        )
    parts += [f"<title>{escape(bars.title)}</title>", *_axis(top, step), *_groups(bars, heights, top), *legend]
    return "\n".join([*parts, "</svg>"])


def _step(top: float) -> float:
    """Return the distance of grid lines: 1, 2 or 5 times a power of ten, for about five lines."""
    power = 10.0 ** floor(log10(top / 5))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= top / 5)


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _axis(top: float, step: float) -> list[str]:
    digits = max(0, -floor(log10(step) + 1e-9))
    parts = []
    for position in range(round(top / step) + 1):
        y = _y(position * step, top)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity="{0.5 if position == 0 else 0.14}"/>'
        )
        value = f"{position * step:.{digits}f}"
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="currentColor">{value}</text>')
    return parts


def _groups(bars: Bars, heights: Sequence[Sequence[float | None]], top: float) -> list[str]:
    wide = (WIDTH - LEFT - RIGHT) / len(bars.groups)
    bar = min(34.0, wide * 0.84 / len(bars.series))
    parts = []
    for position, group in enumerate(bars.groups):
        middle = LEFT + wide * (position + 0.5)
        first = middle - bar * len(bars.series) / 2
        for number, (name, values) in enumerate(bars.series):
            height, value = heights[number][position], values[position]
            if height is None or value is None:
                continue
            y = _y(height, top)
            tooltip = f"{name}, {group}: {value:.3g}" if value < 1 else f"{name}, {group}: {value:.2f}"
            parts.append(
                f'<rect x="{first + bar * number:.1f}" y="{y:.1f}" width="{max(bar - 1, 1):.1f}" '
                f'height="{max(_y(0, top) - y, 0.8):.1f}" fill="{COLOURS[number % len(COLOURS)]}">'
                f"<title>{escape(tooltip)}</title></rect>"
            )
        if group in bars.boxed:
            parts.append(
                f'<rect x="{middle - wide * 0.47:.1f}" y="{TOP - 8}" width="{wide * 0.94:.1f}" '
                f'height="{HEIGHT - TOP - 8}" rx="4" fill="none" stroke="#c0392b" stroke-opacity="0.7"/>'
            )
        parts.append(
            f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="currentColor">'
            f"{escape(group)}</text>"
        )
    return parts


def _legend(names: Sequence[str]) -> tuple[list[str], int]:
    """Draw the legend below the chart; return its number of lines too."""
    parts, x, line = [], LEFT, 0
    for number, name in enumerate(names):
        wide = 30 + 8 * len(name)
        if x + wide > WIDTH - RIGHT and x > LEFT:
            x, line = LEFT, line + 1
        y = HEIGHT + LEGEND * line
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 10}" fill="currentColor">{escape(name)}</text>')
        x += wide
    return parts, line + 1


def reliability_charts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return a title and an SVG for each row with measured confidences."""
    return [
        (f"Reliability of confidences, {row.name}", reliability_svg(row.figures["calibration"]["bins"]))
        for row in rows
        if "calibration" in row.figures
    ]


def reliability_svg(bins: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw the share of right answers by confidence as SVG, one line for each structure; the diagonal is the ideal."""
    wide, high = SQUARE + 2 * SQUARE_EDGE + SQUARE_LEGEND, SQUARE + 2 * SQUARE_EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" style="max-width:{wide}px" '
        'aria-label="The share of right answers by confidence" font-family="system-ui, sans-serif" font-size="11">',
        *(part for tenth in range(0, 11, 2) for part in _grid(tenth / 10)),
        f'<line x1="{_px(0)}" y1="{_py(0)}" x2="{_px(1)}" y2="{_py(1)}" stroke="currentColor" stroke-dasharray="4 4"/>',
    ]
    for number, (name, own) in enumerate(bins.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = list(zip(own["confidence"], own["right"], own["answers"], strict=True))
        line = " ".join(f"{_px(sure):.1f},{_py(right):.1f}" for sure, right, _ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [_dot(sure, right, count, name, colour) for sure, right, count in points]
        y = SQUARE_EDGE + 16 * number
        parts.append(f'<text x="{SQUARE + SQUARE_EDGE + 16}" y="{y + 4}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"])


def _dot(sure: float, right: float, count: int, name: str, colour: str) -> str:
    """Draw a point with its values as the tooltip."""
    tooltip = f"{name}: {count:,} answers, {sure:.0%} sure, {right:.0%} right"
    at = f'cx="{_px(sure):.1f}" cy="{_py(right):.1f}" r="3"'
    return f'<circle {at} fill="{colour}"><title>{escape(tooltip)}</title></circle>'


def _grid(value: float) -> list[str]:
    """Draw the grid lines of a value with their labels."""
    lines = f"M{_px(0)} {_py(value)}H{_px(1)}M{_px(value)} {_py(0)}V{_py(1)}"
    return [
        f'<path d="{lines}" stroke="currentColor" stroke-opacity="0.14"/>',
        f'<text x="{_px(0) - 5}" y="{_py(value) + 4}" text-anchor="end" fill="currentColor">{value:.1f}</text>',
        f'<text x="{_px(value)}" y="{_py(0) + 15}" text-anchor="middle" fill="currentColor">{value:.1f}</text>',
    ]


def _px(value: float) -> float:
    return SQUARE_EDGE + SQUARE * value


def _py(value: float) -> float:
    return SQUARE_EDGE + SQUARE * (1 - value)
