"""How hyperparameters were learned, and what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nuptse._learned import history_of, hyperparameters_of, moved_most, others_in, variances_in
from nuptse._report.axes import counting_axis, linear_axis, log_axis
from nuptse._report.charts import chart, dot, dot_on_scale, line, scale
from nuptse._report.markup import exact, label, number, shortened, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nuptse._learned import Curve
    from nuptse._report.axes import Axis

#: How many small charts, and how many rows of a table, are shown at most.
_CHARTS, _ROWS = 12, 40
_CRITERION = (
    "<p>Ψ is the negative log likelihood of the training points, each predicted without its own fold. Learning makes "
    "it small by its gradient with respect to all hyperparameters at once. The large dots are what was kept.</p>"
)


def history_section(estimator: Any) -> str:
    """Return how the criterion and the hyperparameters went while they were learned."""
    history = history_of(estimator)
    if not history.criterion:
        return "<p>The hyperparameters of this model were given, not learned, so there is no history.</p>"
    parts = [_CRITERION]
    if len(history.criterion) == 1:
        parts.append(_history_chart(history.criterion[0], linear_axis, "tall"))
    else:
        parts.append(_small_charts(history.criterion, linear_axis))
    parts.append(_small_charts(history.hyperparameters, log_axis))
    return "".join(parts)


def _small_charts(curves: list[Curve], axis: Callable[..., Axis]) -> str:
    shown = moved_most(curves, _CHARTS)
    drawn = "".join(_history_chart(curve, axis, "small") for curve in shown)
    note = f'<p class="note">Shown are the {len(shown)} of {len(curves):,} that moved farthest.</p>'
    return f'<div class="small-charts">{drawn}</div>' + (note if len(shown) < len(curves) else "")


def _history_chart(curve: Curve, axis: Callable[..., Axis], size: str) -> str:
    usable = np.isfinite(curve.values) & ((curve.values > 0) | (axis is linear_axis))
    if not usable.any():
        return ""
    numbers, values = curve.evaluations[usable].tolist(), curve.values[usable].tolist()
    x, y = counting_axis(int(curve.evaluations[-1])), axis(values)
    points = list(zip(numbers, values, strict=True))
    kept = (int(curve.evaluations[curve.kept]), float(curve.values[curve.kept]))
    marks = [line(x, y, points, "line")]
    if size == "tall":
        marks += [dot(x, y, one, title=f"evaluation {one[0]}: {number(one[1], 5)}", radius=2.5) for one in points]
    marks.append(dot(x, y, kept, title=f"kept, evaluation {kept[0]}: {number(kept[1], 5)}", radius=5))
    name = shortened(curve.name, 60)
    return chart(
        x,
        y,
        marks,
        x_label="evaluation",
        y_label=f"{name}: {number(values[0])} → {number(kept[1])}",
        description=f"{name}: {number(values[0], 4)} at first, {number(kept[1], 4)} kept, {len(values)} evaluations",
        size=size,
    )


def variances_section(estimator: Any) -> str:
    """Return the variances of levels, classes or nodes on one scale, and all other hyperparameters."""
    hyperparameters = hyperparameters_of(estimator)
    variances, others = variances_in(hyperparameters), others_in(hyperparameters)
    if len(variances) < 2:
        return _values_table(hyperparameters) if hyperparameters else ""
    shown, note = _outermost(variances)
    axis = log_axis([value for value in variances.values() if value > 0] or [1.0])
    rows = [
        [label(name), dot_on_scale(axis, max(value, axis.low)), exact(value, number(value))]
        for name, value in shown.items()
    ]
    return (
        "<p>The prior variance of the functions of each: where it is large, more is told apart there. The scale is "
        "logarithmic.</p>"
        + table(["Variance of", scale(axis), "Value"], rows, caption="Variances", numeric=(2,), kind="on-scale")
        + note
        + (_values_table(others) if others else "")
    )


def _values_table(values: Mapping[str, float]) -> str:
    shown, note = _outermost(values)
    rows = [[label(name), exact(value, number(value, 4))] for name, value in shown.items()]
    return table(["Hyperparameter", "Value"], rows, caption="Hyperparameters", numeric=(1,), kind="narrow") + note


def _outermost(values: Mapping[str, float]) -> tuple[dict[str, float], str]:
    """Return all values where they are few, and else the largest and the smallest, with a note that says so."""
    if len(values) <= _ROWS:
        return dict(values), ""
    ranked = sorted(values.items(), key=lambda item: -item[1])
    note = f'<p class="note">The {_ROWS // 2} largest and the {_ROWS // 2} smallest of {len(values):,}.</p>'
    return dict(ranked[: _ROWS // 2] + ranked[-_ROWS // 2 :]), note
