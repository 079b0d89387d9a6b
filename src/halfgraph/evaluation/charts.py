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
COLOURS_OF_PAGE = (
    "<style>svg{color:#222;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#ddd;background:#16181c}}</style>"
)
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
        base = [0.0] * len(self.groups)
        if self.relative:
            columns = zip(*(values for _, values in self.series), strict=True)
            base = [min((value for value in column if value is not None), default=0.0) for column in columns]
        return [
            [None if value is None else value - least for value, least in zip(values, base, strict=True)]
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
    power = 10.0 ** floor(log10(top / 5))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= top / 5)  # about five grid lines
    top = step * (floor(top / step - 1e-9) + 1)
    legend, lines = _legend([name for name, _ in bars.series])
    parts = [f"<title>{escape(bars.title)}</title>", *_axis(top, step), *_groups(bars, heights, top), *legend]
    return _svg(WIDTH, HEIGHT + LEGEND * lines, bars.title, [COLOURS_OF_PAGE, *parts] if standalone else parts)


def _svg(width: int, height: int, label: str, parts: Sequence[str], *, font: int = 12, style: str = "") -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"{style} '
        f'aria-label="{escape(label)}" font-family="system-ui, sans-serif" font-size="{font}">'
    )
    return "\n".join([opening, *parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str = "start", fill: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _axis(top: float, step: float) -> list[str]:
    digits = max(0, -floor(log10(step) + 1e-9))
    parts = []
    for position in range(round(top / step) + 1):
        y, opacity = _y(position * step, top), 0.14 if position else 0.5
        line = f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity="{opacity}"/>'
        parts += [line, _text(LEFT - 6, y + 4, f"{position * step:.{digits}f}", "end")]
    return parts


def _groups(bars: Bars, heights: Sequence[Sequence[float | None]], top: float) -> list[str]:
    wide = (WIDTH - LEFT - RIGHT) / len(bars.groups)
    bar = min(34.0, wide * 0.84 / len(bars.series))
    parts = []
    for position, group in enumerate(bars.groups):
        middle = LEFT + wide * (position + 0.5)
        for number, (name, values) in enumerate(bars.series):
            height, value = heights[number][position], values[position]
            if height is None or value is None:
                continue
            x, y = middle + bar * (number - len(bars.series) / 2), _y(height, top)
            tooltip = f"{name}, {group}: {value:.3g}" if value < 1 else f"{name}, {group}: {value:.2f}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(bar - 1, 1):.1f}" '
                f'height="{max(_y(0, top) - y, 0.8):.1f}" fill="{_colour(number)}">'
                f"<title>{escape(tooltip)}</title></rect>"
            )
        if group in bars.boxed:
            parts.append(
                f'<rect x="{middle - wide * 0.47:.1f}" y="{TOP - 8}" width="{wide * 0.94:.1f}" '
                f'height="{HEIGHT - TOP - 8}" rx="4" fill="none" stroke="#c0392b" stroke-opacity="0.7"/>'
            )
        parts.append(_text(middle, HEIGHT - BOTTOM + 18, group, "middle"))
    return parts


def _legend(names: Sequence[str]) -> tuple[list[str], int]:
    """Draw the legend below the chart; return its number of lines too."""
    parts, x, line = [], LEFT, 0
    for number, name in enumerate(names):
        wide = 30 + 8 * len(name)
        if x + wide > WIDTH - RIGHT and x > LEFT:
            x, line = LEFT, line + 1
        y = HEIGHT + LEGEND * line
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{_colour(number)}"/>')
        parts.append(_text(x + 16, y + 10, name))
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
    parts = [part for tenth in range(0, 11, 2) for part in _grid(tenth / 10)]
    ideal = f"M{_px(0)} {_py(0)}L{_px(1)} {_py(1)}"
    parts.append(f'<path d="{ideal}" stroke="currentColor" stroke-dasharray="4 4"/>')
    for number, (name, own) in enumerate(bins.items()):
        points = list(zip(own["confidence"], own["right"], own["answers"], strict=True))
        line = " ".join(f"{_px(sure):.1f},{_py(right):.1f}" for sure, right, _ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{_colour(number)}" stroke-width="1.5"/>')
        for sure, right, count in points:
            at = f'cx="{_px(sure):.1f}" cy="{_py(right):.1f}" r="3" fill="{_colour(number)}"'
            tooltip = f"{name}: {count:,} answers, {sure:.0%} sure, {right:.0%} right"
            parts.append(f"<circle {at}><title>{escape(tooltip)}</title></circle>")
        parts.append(_text(_px(1) + 16, _py(1) + 16 * number + 4, name, fill=_colour(number)))
    wide, high = SQUARE + 2 * SQUARE_EDGE + SQUARE_LEGEND, SQUARE + 2 * SQUARE_EDGE
    label, style = "The share of right answers by confidence", f' style="max-width:{wide}px"'
    return _svg(wide, high, label, parts, font=11, style=style)


def _grid(value: float) -> list[str]:
    """Draw the grid lines of a value with their labels."""
    lines = f"M{_px(0)} {_py(value)}H{_px(1)}M{_px(value)} {_py(0)}V{_py(1)}"
    return [
        f'<path d="{lines}" stroke="currentColor" stroke-opacity="0.14"/>',
        _text(_px(0) - 5, _py(value) + 4, f"{value:.1f}", "end"),
        _text(_px(value), _py(0) + 15, f"{value:.1f}", "middle"),
    ]


def _px(value: float) -> float:
    return SQUARE_EDGE + SQUARE * value


def _py(value: float) -> float:
    return SQUARE_EDGE + SQUARE * (1 - value)
