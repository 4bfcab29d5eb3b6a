"""Where in a tree predictions go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nuptse._tree_errors import shares_and_errors
from nuptse.plots._figure import percent, pyplot, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from nuptse.hierarchy import Hierarchy

#: How much of a level its bars fill; the rest sets the levels apart.
_BAR_HEIGHT = 0.94
#: The width of the lines between bars in points, and the part of a narrow bar that its line may take.
_LINE_WIDTH, _LINE_SHARE = 0.8, 0.25
#: Bars narrower than this, in points, have no lines beside them.
_NARROW = 1.0
_FONT_SIZE = 8.0
#: The number of characters to which labels may be shortened for want of room.
_SHORTEST = 5
#: The space around a label, in points.
_PADDING = 1.5
#: Errors from which on the colour of a bar is dark.
_DARK = 0.6


def tree_errors(
    hierarchy: Hierarchy,
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    *,
    ax: Axes | None = None,
    max_label: int = 18,
    sample_weight: ArrayLike | None = None,
) -> Axes:
    """Show where in a tree of classes predictions go wrong.

    Every node is a bar below that of its parent, as wide as the share of the points that lie below it by their true
    class. Its colour tells how many of them were predicted to lie outside the node: a dark bar below a pale one is a
    node that is taken for its siblings. Nodes without points are left out.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    y_true : sequence of labels, of length n_samples
        The class of every point; a label or a path, as `Hierarchy.leaf_index` takes them.
    y_pred : sequence of labels, of length n_samples
        The class that was predicted for every point.
    ax : matplotlib Axes, default=None
        What to draw on; by default axes of a new figure. A colour bar is put beside it.
    max_label : int, default=18
        The number of characters to which labels are shortened; more where a bar has too little room. Where it has
        hardly any, the label is left out.
    sample_weight : array-like of shape (n_samples,), default=None
        How much every point counts; by default all count alike.

    Returns
    -------
    ax : matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from nuptse import Hierarchy
    >>> from nuptse.plots import tree_errors
    >>> tree = Hierarchy.parse({"animal": ["cat", "dog"], "plant": ["oak", "elm"]})
    >>> ax = tree_errors(tree, ["cat", "dog", "oak", "elm"], ["dog", "dog", "oak", "cat"])

    """
    plt = pyplot()
    shares, errors = shares_and_errors(hierarchy, y_true, y_pred, sample_weight)
    if ax is None:
        _, ax = plt.subplots(figsize=(10, 1.2 + 0.9 * (hierarchy.n_levels + 1)), layout="constrained")
    shown = np.flatnonzero(shares > 0)
    left, top = _left_edges(hierarchy, shares)[shown], hierarchy.depths[shown]
    boxes = np.stack([left, top, left + shares[shown], top + _BAR_HEIGHT], axis=1)

    _set_up_axes(ax, hierarchy)
    bars = _draw_bars(ax, boxes, errors[shown])
    ax.figure.colorbar(bars, ax=ax, label="share of points placed outside the node", format=percent)
    _run_layout(ax)
    _draw_lines(ax, boxes)
    labels = (hierarchy.labels[node] for node in shown)
    names = ["all points" if label is None else shorten(str(label), max_label) for label in labels]
    _write_labels(ax, boxes, names, errors[shown])
    return ax


def _left_edges(hierarchy: Hierarchy, widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where every node begins if children lie side by side below their parent."""
    left = np.zeros(len(widths))
    filled = left.copy()
    for node, parent in enumerate(hierarchy.parents.tolist()[1:], start=1):
        left[node] = filled[node] = filled[parent]
        filled[parent] += widths[node]
    return left


# Drawing; boxes are left, top, right and bottom of every bar, the root on top


def _set_up_axes(ax: Axes, hierarchy: Hierarchy) -> None:
    levels = range(hierarchy.n_levels + 1)
    ax.set_xlim(0, 1)
    ax.set_ylim(len(levels), 0)
    ax.set_yticks([level + _BAR_HEIGHT / 2 for level in levels], ["root", *(f"level {level}" for level in levels[1:])])
    ax.set_xlabel("share of points")
    ax.xaxis.set_major_formatter(percent)
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)


def _draw_bars(ax: Axes, boxes: NDArray[np.float64], errors: NDArray[np.float64]) -> Any:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    left, top, right, bottom = boxes.T
    corners = np.stack([[left, top], [right, top], [right, bottom], [left, bottom]]).transpose(2, 0, 1)
    # Without smoothing, which lets bars that are narrower than a pixel fade into the background.
    bars = PolyCollection(list(corners), array=errors, cmap="YlOrRd", linewidths=0, antialiaseds=False)
    # From 0 to 1 always, so that pictures of two models can be compared.
    bars.set_clim(0, 1)
    ax.add_collection(bars)
    return bars


def _run_layout(ax: Axes) -> None:
    """Give the axes their place, if that is left to the figure; what fits into a bar depends on it."""
    figure: Any = ax.figure.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def _points_per_unit(ax: Axes) -> NDArray[np.float64]:
    """Return the size of one unit of both axes in points."""
    (x0, y0), (x1, y1) = ax.transData.transform([(0, 0), (1, 1)])
    return np.abs([x1 - x0, y1 - y0]) * 72 / ax.figure.dpi


def _draw_lines(ax: Axes, boxes: NDArray[np.float64]) -> None:
    """Draw a line between every bar and the one before it, thin enough to leave both their colours."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415

    left, top, right, bottom = boxes.T
    points = (right - left) * _points_per_unit(ax)[0]
    narrower = np.minimum(points, np.roll(points, 1))
    ends = np.stack([[left, top], [left, bottom]]).transpose(2, 0, 1)
    drawn = (narrower >= _NARROW) & (left > 0)
    widths = np.minimum(_LINE_WIDTH, _LINE_SHARE * narrower)
    lines = LineCollection(list(ends[drawn]), linewidths=widths[drawn], colors="white", capstyle="butt")
    # Else even the thinnest line would be a pixel wide.
    lines.set_snap(False)
    ax.add_collection(lines)


def _write_labels(ax: Axes, boxes: NDArray[np.float64], names: list[str], errors: NDArray[np.float64]) -> None:
    """Write names into the bars that have room for them."""
    from matplotlib.transforms import Bbox, TransformedBbox  # noqa: PLC0415

    rooms = (boxes[:, 2:] - boxes[:, :2]) * _points_per_unit(ax) - 2 * _PADDING
    # Most bars of a large tree have no room for a single letter, and cost nothing.
    for bar in np.flatnonzero((rooms >= _FONT_SIZE).all(axis=1)):
        left, top, right, bottom = boxes[bar]
        text = ax.text(
            (left + right) / 2,
            (top + bottom) / 2,
            names[bar],
            fontsize=_FONT_SIZE,
            color="white" if errors[bar] > _DARK else "black",
            ha="center",
            va="center",
            parse_math=False,
            clip_on=True,
        )
        # Labels stay within their bars even if the figure is made smaller later.
        text.set_clip_box(TransformedBbox(Bbox([[left, top], [right, bottom]]), ax.transData))
        if not _fit_text(text, rooms[bar]):
            text.remove()


def _fit_text(text: Any, room: NDArray[np.float64]) -> bool:
    """Turn and shorten a text until it fits; tell whether it does, with some letters left."""
    name = text.get_text()
    for length in range(len(name), min(len(name), _SHORTEST) - 1, -1):
        text.set_text(shorten(name, length))
        extent = text.get_window_extent()
        size = np.array([extent.width, extent.height]) * 72 / text.figure.dpi
        for rotation, needed in ((0, size), (90, size[::-1])):
            if (needed <= room).all():
                text.set_rotation(rotation)
                return True
    return False
