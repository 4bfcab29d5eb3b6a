"""Which classes, and which branches of a tree, are taken for which others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nuptse._tree_errors import node_weights

if TYPE_CHECKING:
    from nuptse._report.evaluation import Evaluation, Floats, Integers
    from nuptse.hierarchy import Hierarchy

#: How many of the places that the points of a node are put into by mistake are named.
_DESTINATIONS = 3


class Pairs(NamedTuple):
    """How much was taken for what, most first."""

    true: Integers
    predicted: Integers
    weight: Floats


class Branches(NamedTuple):
    """What happens to the points of every node of a tree."""

    #: the weight of the points whose class lies below the node
    total: Floats
    #: that of those among them which were placed outside the node
    outside: Floats
    #: where these were placed, among nodes on the same level: (node, weight), most first
    destinations: list[list[tuple[int, float]]]


def confused_classes(evaluation: Evaluation) -> Pairs:
    """Return all pairs of a class and another one that was predicted for points of it."""
    wrong = (evaluation.truth != evaluation.predicted) & (evaluation.weights > 0)
    return _summed(
        evaluation.truth[wrong], evaluation.predicted[wrong], evaluation.weights[wrong], len(evaluation.names)
    )


def class_weights(evaluation: Evaluation) -> tuple[Floats, Floats]:
    """Return for every class the weight of its points, and of those that were taken for others."""
    count = len(evaluation.names)
    wrong = evaluation.truth != evaluation.predicted
    sizes = np.bincount(evaluation.truth, evaluation.weights, minlength=count)
    lost = np.bincount(evaluation.truth[wrong], evaluation.weights[wrong], minlength=count)
    return sizes.astype(np.float64), lost.astype(np.float64)


def confused_branches(evaluation: Evaluation, hierarchy: Hierarchy) -> Branches:
    """Return where in the tree predictions go wrong."""
    leaves = hierarchy.leaves
    total, outside = node_weights(hierarchy, leaves[evaluation.truth], leaves[evaluation.predicted], evaluation.weights)
    destinations: list[list[tuple[int, float]]] = [[] for _ in total]
    wrong = (evaluation.truth != evaluation.predicted) & (evaluation.weights > 0)
    truth, predicted, weights = (one[wrong] for one in (evaluation.truth, evaluation.predicted, evaluation.weights))
    for level, above in enumerate(_ancestors(hierarchy), start=1):
        node, placed = above[truth], above[predicted]
        outside_of = (hierarchy.depths[node] == level) & (node != placed)
        pairs = _summed(node[outside_of], placed[outside_of], weights[outside_of], len(total))
        for one, other, weight in zip(*(column.tolist() for column in pairs), strict=True):
            if len(destinations[one]) < _DESTINATIONS:
                destinations[one].append((other, weight))
    return Branches(total, outside, destinations)


def right_by_level(hierarchy: Hierarchy, branches: Branches) -> list[tuple[int, int, float]]:
    """Return for every level below the root its number, how many nodes have points, and the share that is placed right.

    Points whose class lies above a level do not count there.
    """
    rows = []
    for level in range(1, hierarchy.n_levels + 1):
        here = (hierarchy.depths == level) & (branches.total > 0)
        if here.any():
            right = 1 - branches.outside[here].sum() / branches.total[here].sum()
            rows.append((level, int(here.sum()), float(right)))
    return rows


def _ancestors(hierarchy: Hierarchy) -> list[Integers]:
    """Return for every level below the root the node above every class on that level; its leaf where that is higher."""
    rows = []
    nodes = hierarchy.leaves
    for level in range(hierarchy.n_levels, 0, -1):
        nodes = np.where(hierarchy.depths[nodes] > level, hierarchy.parents[nodes], nodes)
        rows.append(nodes)
    return rows[::-1]


def _summed(true: Integers, predicted: Integers, weights: Floats, count: int) -> Pairs:
    """Sum weights over equal pairs of numbers below `count`."""
    codes, place = np.unique(true * count + predicted, return_inverse=True)
    sums = np.bincount(place.ravel(), weights, minlength=len(codes)).astype(np.float64)
    order = np.argsort(-sums, kind="stable")
    return Pairs(codes[order] // count, codes[order] % count, sums[order])
