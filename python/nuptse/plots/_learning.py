"""How hyperparameters were learned, and what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nuptse._learned import history_of, hyperparameters_of, moved_most, variances_in
from nuptse.plots._figure import pyplot, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

#: The number of characters to which names are shortened.
_LABEL = 24


def history(estimator: Any, *, axes: Sequence[Axes] | None = None, max_lines: int = 10) -> NDArray[Any]:
    """Show how the criterion Ψ and the hyperparameters went while they were learned.

    Ψ is above, the hyperparameters below, on a logarithmic scale. A dot marks what was kept.

    Parameters
    ----------
    estimator : KernelClassifier or OneVsRestKernelClassifier
        A fitted estimator that has learned its hyperparameters.
    axes : two matplotlib Axes, default=None
        What to draw on; by default axes of a new figure.
    max_lines : int, default=10
        The number of lines; where there are more, those that moved farthest are drawn.

    Returns
    -------
    axes : ndarray of two matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nuptse import KernelClassifier
    >>> from nuptse.plots import history
    >>> clf = KernelClassifier(scale="auto", random_state=0).fit(*load_iris(return_X_y=True))
    >>> above, below = history(clf)

    """
    plt = pyplot()
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    check_is_fitted(estimator)
    found = history_of(estimator)
    if not found.criterion:
        raise ValueError("this estimator has learned nothing; fit it with learn=True")
    if axes is None:
        _, axes = plt.subplots(2, figsize=(7, 6), sharex=True, layout="constrained")
    above, below = axes
    for ax, curves in ((above, found.criterion), (below, found.hyperparameters)):
        for curve in moved_most(curves, max_lines):
            (line,) = ax.plot(curve.evaluations, curve.values, linewidth=1.5, label=shorten(curve.name, _LABEL))
            at = curve.evaluations[curve.kept], curve.values[curve.kept]
            ax.plot(*at, marker="o", color=line.get_color(), label="_nolegend_")
        if len(curves) > 1:
            for text in ax.legend(fontsize="small", frameon=False).get_texts():
                text.set_parse_math(False)
        ax.spines[["top", "right"]].set_visible(False)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    above.set_ylabel("Ψ")
    below.set(yscale="log", xlabel="evaluation", ylabel=_common_name([curve.name for curve in found.hyperparameters]))
    return np.array([above, below])


def variances(estimator: Any, *, ax: Axes | None = None, max_rows: int = 40) -> Axes:
    """Show the learned variances of levels, classes or nodes on a logarithmic scale.

    Parameters
    ----------
    estimator : KernelClassifier or OneVsRestKernelClassifier
        A fitted estimator.
    ax : matplotlib Axes, default=None
        What to draw on; by default axes of a new figure.
    max_rows : int, default=40
        The number of rows; where there are more, half of them are the largest and half the smallest.

    Returns
    -------
    ax : matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from nuptse import KernelClassifier
    >>> from nuptse.datasets import make_taxonomy
    >>> from nuptse.plots import variances
    >>> documents = make_taxonomy(60, n_classes=6, random_state=0)
    >>> clf = KernelClassifier("linear", hierarchy=documents.hierarchy, scale="auto", learn=False)
    >>> ax = variances(clf.fit(documents.data, documents.target))

    """
    plt = pyplot()
    check_is_fitted(estimator)
    if max_rows < 2:
        raise ValueError(f"max_rows is {max_rows!r}, but must be at least 2")
    found = variances_in(hyperparameters_of(estimator))
    if not found:
        raise ValueError(f"{type(estimator).__name__} has no variances")
    shown = list(found.items())
    if len(shown) > max_rows:
        ranked = sorted(shown, key=lambda item: -item[1])
        shown = ranked[: max_rows - max_rows // 2] + ranked[len(ranked) - max_rows // 2 :]
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 1.1 + 0.25 * len(shown)), layout="constrained")
    rows = range(len(shown))
    values = [value for _, value in shown]
    ax.hlines(rows, min(values) / 1.3, values, color="0.8", linewidth=1)
    ax.plot(values, rows, linestyle="none", marker="o")
    ax.set_yticks(list(rows), [shorten(name, _LABEL) for name, _ in shown], parse_math=False)
    ax.set(xscale="log", xlabel="variance", ylim=(len(shown) - 0.5, -0.5))
    ax.tick_params(left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _common_name(names: list[str]) -> str:
    """Return what all have in common before their groups, or what they all are."""
    found = {name.split("[")[0] for name in names}
    return found.pop() if len(found) == 1 else "hyperparameters"
