"""Whether probabilities mean what they say, and what is gained by leaving out what is unsure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nuptse._report.axes import share_axis
from nuptse._report.charts import chart, dot, histogram, interval, line
from nuptse._report.markup import exact, number, share, table, weight

if TYPE_CHECKING:
    from nuptse._report.evaluation import Evaluation

#: The share of points that get an answer, in the rows of the table.
_ANSWERED = (1.0, 0.95, 0.9, 0.8, 0.6)
#: A line of more points than this looks the same and takes more room.
_CURVE_POINTS = 240
#: Of the normal distribution, for intervals that hold 95 of 100 times.
_DEVIATIONS = 1.96


def reliability_card(evaluation: Evaluation) -> str:
    """Return the share of right predictions against their probability."""
    found = evaluation.reliability
    x = y = share_axis()
    filled = [i for i, one in enumerate(found.weight.tolist()) if one > 0]
    titles = [
        f"{number(low)} to {number(high)}: {weight(one)} {evaluation.noun}"
        for low, high, one in zip(found.edges[:-1], found.edges[1:], found.weight, strict=True)
    ]
    points = [(float(found.confidence[i]), float(found.accuracy[i])) for i in filled]
    marks = [line(x, y, [(0, 0), (1, 1)], "reference")]
    if not evaluation.weighted:
        marks += [
            interval(x, y, at, _wilson(right, float(found.weight[i])))
            for i, (at, right) in zip(filled, points, strict=True)
        ]
    marks.append(line(x, y, points, "line"))
    marks += [
        dot(x, y, point, title=f"{titles[i]}, mean probability {number(point[0])}, {share(point[1])} right")
        for i, point in zip(filled, points, strict=True)
    ]
    drawn = chart(
        x,
        y,
        marks,
        x_label="probability of the predicted class",
        y_label="share that is right",
        description=f"Reliability diagram, calibration error {share(found.error)}",
    )
    strip = histogram(x, found.edges.tolist(), found.weight.tolist(), titles)
    upright = "" if evaluation.weighted else " Upright lines hold the true share 95 of 100 times."
    return (
        '<section class="card" aria-labelledby="reliability"><h3 id="reliability">Reliability</h3>'
        f"<p>Honest probabilities lie on the dashed line. Calibration error "
        f'<strong data-score="calibration_error">{exact(found.error, share(found.error))}</strong>.{upright}</p>{drawn}'
        f'<div class="strip"><svg role="img" aria-label="Number of {evaluation.noun} by probability">{strip}</svg>'
        f'<p class="axis x">number of {evaluation.noun}</p></div></section>'
    )


def reject_card(evaluation: Evaluation) -> str:
    """Return the errors that are left when only the surest predictions are made."""
    curve = evaluation.reject_curve
    total = float(curve.error[-1])
    x, y = share_axis(), share_axis(max(total, 0.01))
    keep = np.unique(np.linspace(0, len(curve.answered) - 1, _CURVE_POINTS).round().astype(np.int64))
    marks = [
        line(x, y, [(0, 0), (1, total)], "reference"),
        line(x, y, zip(curve.answered[keep].tolist(), curve.error[keep].tolist(), strict=True), "line"),
    ]
    drawn = chart(
        x,
        y,
        marks,
        x_label="share that gets an answer, the surest first",
        y_label=f"errors, as a share of all {evaluation.noun}",
        description=f"Reject curve, from no errors to {share(total)} where all {evaluation.noun} get an answer",
    )
    thresholds = _thresholds(evaluation)
    rows = []
    for answered, threshold in zip(_ANSWERED, thresholds, strict=True):
        errors = float(np.interp(answered, curve.answered, curve.error)) / answered
        rows.append([share(answered, 0), exact(errors, share(errors)), number(threshold)])
    return (
        '<section class="card" aria-labelledby="reject"><h3 id="reject">Reject curve</h3>'
        "<p>How errors fall when the least sure predictions are left to people. The dashed line is chance: leaving out "
        f"{evaluation.noun} at random.</p>{drawn}"
        + table(["Answered", "Errors among these", "From probability"], rows, caption="Reject curve", numeric=(0, 1, 2))
        + "</section>"
    )


def _wilson(rate: float, count: float) -> tuple[float, float]:
    """Return the score interval of Wilson for a share that was seen in so many points."""
    square = _DEVIATIONS**2
    middle = (rate + square / (2 * count)) / (1 + square / count)
    half = _DEVIATIONS / (1 + square / count) * math.sqrt(rate * (1 - rate) / count + square / (4 * count**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _thresholds(evaluation: Evaluation) -> list[float]:
    """Return the lowest probability of a prediction that is made, for every row of the table."""
    confidence = evaluation.confidence
    order = np.argsort(-confidence, kind="stable")
    answered = np.cumsum(evaluation.weights[order])
    places = np.searchsorted(answered, np.array(_ANSWERED) * answered[-1] * (1 - 1e-12))
    return [float(confidence[order[min(place, len(order) - 1)]]) for place in places.tolist()]
