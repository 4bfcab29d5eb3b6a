"""Whether probabilities mean what they say, and what is gained by leaving out what is unsure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nuptse import metrics
from nuptse.plots._figure import percent, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

_SIZE = (5, 4.5)
#: The area of the dot of a bin that has all points, in square points, and that of the smallest dot.
_LARGEST, _SMALLEST = 400.0, 12.0


def reliability(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    bins: int = 10,
    ax: Axes | None = None,
    sample_weight: ArrayLike | None = None,
) -> Axes:
    """Show how often predictions are right against how probable they were said to be.

    Honest probabilities lie on the diagonal. The area of a dot is the number of its points.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true labels.
    y_proba : array-like of shape (n_samples, n_classes)
        The probabilities of the classes.
    labels : array-like of shape (n_classes,), default=None
        The label of every column, `classes_` of an estimator; by default the sorted labels in `y_true`.
    bins : int, default=10
        The number of bins of equal width.
    ax : matplotlib Axes, default=None
        What to draw on; by default axes of a new figure.
    sample_weight : array-like of shape (n_samples,), default=None
        How much every point counts; by default all count alike.

    Returns
    -------
    ax : matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from nuptse.plots import reliability
    >>> ax = reliability(["a", "b", "b"], [[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])

    """
    plt = pyplot()
    found = metrics.reliability(y_true, y_proba, labels=labels, bins=bins, sample_weight=sample_weight)
    if ax is None:
        _, ax = plt.subplots(figsize=_SIZE, layout="constrained")
    filled = found.weight > 0
    areas = np.maximum(_LARGEST * found.weight[filled] / found.weight.sum(), _SMALLEST)
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle="--")
    (line,) = ax.plot(found.confidence[filled], found.accuracy[filled], linewidth=1.5)
    ax.scatter(found.confidence[filled], found.accuracy[filled], areas, color=line.get_color(), zorder=3)
    ax.set(
        xlim=(0, 1.02),
        ylim=(0, 1.02),
        xlabel="probability of the predicted class",
        ylabel="share that is right",
        title=f"calibration error {found.error:.1%}",
    )
    _tidy(ax)
    return ax


def reject_curve(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    confidence: ArrayLike,
    *,
    ax: Axes | None = None,
    sample_weight: ArrayLike | None = None,
) -> Axes:
    """Show the errors that are left when only the surest predictions are made.

    The dashed line is what leaving out points at random would give.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        The true and the predicted labels.
    confidence : array-like of shape (n_samples,)
        How sure every prediction is, as ``predict_proba(X).max(axis=1)``.
    ax : matplotlib Axes, default=None
        What to draw on; by default axes of a new figure.
    sample_weight : array-like of shape (n_samples,), default=None
        How much every point counts; by default all count alike.

    Returns
    -------
    ax : matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from nuptse.plots import reject_curve
    >>> ax = reject_curve(["a", "b", "b"], ["a", "b", "a"], [0.9, 0.8, 0.6])

    """
    plt = pyplot()
    curve = metrics.reject_curve(y_true, y_pred, confidence, sample_weight=sample_weight)
    if ax is None:
        _, ax = plt.subplots(figsize=_SIZE, layout="constrained")
    ax.plot([0, 1], [0, curve.error[-1]], color="0.5", linewidth=1, linestyle="--")
    ax.plot(curve.answered, curve.error, linewidth=1.5)
    ax.set(
        xlim=(0, 1),
        ylim=(0, max(1.05 * float(curve.error[-1]), 0.01)),
        xlabel="share of points that get an answer, the surest first",
        ylabel="errors, as a share of all points",
    )
    _tidy(ax)
    return ax


def _tidy(ax: Axes) -> None:
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(percent)
    ax.spines[["top", "right"]].set_visible(False)
