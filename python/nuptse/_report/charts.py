"""Charts as SVG, in percent of their plot area: they stretch with the page, and letters and dots do not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nuptse._report.markup import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nuptse._report.axes import Axis

#: What a letter beside an axis needs, in em of the chart.
_LETTER = 0.58


def chart(
    x: Axis, y: Axis, marks: Iterable[str], *, x_label: str, y_label: str, description: str, size: str = "tall"
) -> str:
    """Return a chart with its axes; marks come from the functions below."""
    gutter = max((len(written) for _, written in y.ticks), default=0) * _LETTER + 0.8
    return (
        f'<div class="chart"><p class="axis">{text(y_label)}</p>'
        f'<div class="plot {size}" style="padding-left:{gutter:.2f}em">'
        f'<svg role="img" aria-label="{text(description)}">{_grid(x, y)}{"".join(marks)}</svg></div>'
        f'<p class="axis x">{text(x_label)}</p></div>'
    )


def _grid(x: Axis, y: Axis) -> str:
    parts = []
    for value, written in y.ticks:
        at = _percent(100 - y.place(value))
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>')
        parts.append(
            f'<text class="tick" x="0" y="{at}" dx="-.6em" dy=".32em" text-anchor="end">{text(written)}</text>'
        )
    for value, written in x.ticks:
        at = _percent(x.place(value))
        parts.append(f'<text class="tick" x="{at}" y="100%" dy="1.5em" text-anchor="middle">{text(written)}</text>')
    return "".join(parts)


def line(x: Axis, y: Axis, points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points, broken where a value is not finite."""
    path = []
    command = "M"
    for one, other in points:
        if not math.isfinite(other):
            command = "M"
            continue
        path.append(f"{command}{x.place(one):.2f} {100 - y.place(other):.2f}")
        command = "L"
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%" overflow="visible">'
        f'<path class="{kind}" d="{"".join(path)}"/></svg>'
    )


def dot(x: Axis, y: Axis, at: tuple[float, float], *, title: str, radius: float = 3.5) -> str:
    """Return a dot that says what it is when pointed at."""
    return (
        f'<circle class="dot" cx="{_percent(x.place(at[0]))}" cy="{_percent(100 - y.place(at[1]))}" r="{radius:.1f}">'
        f"<title>{text(title)}</title></circle>"
    )


def interval(x: Axis, y: Axis, at: float, ends: tuple[float, float]) -> str:
    """Return an upright line from one value to another."""
    place = _percent(x.place(at))
    low, high = (_percent(100 - y.place(end)) for end in ends)
    return f'<line class="interval" x1="{place}" x2="{place}" y1="{low}" y2="{high}"/>'


def histogram(x: Axis, edges: Sequence[float], heights: Sequence[float], titles: Sequence[str]) -> str:
    """Return a strip of bars without a scale of their own, to be put below a chart."""
    highest = max(heights) or 1.0
    bars = []
    for i, (height, title) in enumerate(zip(heights, titles, strict=True)):
        left, right = x.place(edges[i]), x.place(edges[i + 1])
        tall = 100 * height / highest
        bars.append(
            f'<rect class="bar" x="{_percent(left + 0.4)}" width="{_percent(right - left - 0.8)}" '
            f'y="{_percent(100 - tall)}" height="{_percent(tall)}"><title>{text(title)}</title></rect>'
        )
    return "".join(bars)


def scale(axis: Axis) -> str:
    """Return what is written on the scale of :func:`dot_on_scale`, to be put above it."""
    written = "".join(
        f'<text class="tick" x="{_percent(axis.place(value))}" y="70%" text-anchor="middle">{text(name)}</text>'
        for value, name in axis.ticks
    )
    return f'<svg class="scale" role="img" aria-label="logarithmic scale">{written}</svg>'


def dot_on_scale(axis: Axis, value: float) -> str:
    """Return one value on a scale that is as wide as it may be, for the cell of a table."""
    place = _percent(axis.place(value))
    ticks = "".join(
        f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="100%"/>'
        for at in (_percent(axis.place(one)) for one, _ in axis.ticks)
    )
    return (
        f'<svg class="scale" aria-hidden="true">{ticks}<line class="stem" x1="0" x2="{place}" y1="50%" y2="50%"/>'
        f'<circle class="dot" cx="{place}" cy="50%" r="4.5"/></svg>'
    )


def _percent(value: float) -> str:
    return f"{value:.2f}%"
