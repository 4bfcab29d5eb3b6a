"""How often predictions leave the nodes of a tree that points belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from nuptse.hierarchy import Hierarchy


def shares_and_errors(
    hierarchy: Hierarchy, y_true: Iterable[Any], y_pred: Iterable[Any], sample_weight: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for every node the share of points below it, and the part of them predicted outside (NaN without any)."""
    true, predicted = (hierarchy.leaves[[hierarchy.leaf_index(y) for y in labels]] for labels in (y_true, y_pred))
    weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_consistent_length(true, predicted, weights)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("there must be points, with weights that are finite, not below 0 and not all 0")
    total, outside = node_weights(hierarchy, true, predicted, weights)
    errors = np.full(len(total), np.nan)
    np.divide(outside, total, out=errors, where=total > 0)
    return total / total[0], errors.clip(0, 1)


def node_weights(
    hierarchy: Hierarchy, true: NDArray[np.int64], predicted: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for every node the weight of the points below it, and of those among them that are predicted outside.

    The true and the predicted class of every point are given as nodes of the tree.
    """
    common = _common_ancestors(hierarchy.parents, true, predicted)
    count = len(hierarchy.parents)
    # A point is within a node by its class if its leaf is below it, and by its prediction too if the ancestor is.
    sums = np.stack([np.bincount(nodes, weights, minlength=count) for nodes in (true, common)])
    for node in range(count - 1, 0, -1):
        sums[:, hierarchy.parents[node]] += sums[:, node]
    total, inside = sums
    return total, (total - inside).clip(0, total)


def _common_ancestors(
    parents: NDArray[np.int64], one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the lowest node that is above, or is, both of a pair, for many pairs."""
    while (one != other).any():
        # A node has a larger number than all above it, so the larger of two is not above the smaller.
        one, other = np.where(one > other, parents[one], one), np.where(other > one, parents[other], other)
    return one
