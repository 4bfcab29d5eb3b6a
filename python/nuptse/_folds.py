"""Which points are held out together while hyperparameters are learned."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: the number of folds and a seed, or the fold of every point
Folds: TypeAlias = "tuple[int, int] | NDArray[np.int64]"


def as_folds(folds: Any, X: Any, y: Any, random_state: Any, groups: Any = None) -> Folds:
    """Return the folds that are meant: a number, a splitter of scikit-learn, or lists of the points held out.

    Points of one group are held out together, unless lists say otherwise.
    """
    if groups is not None:
        groups = column_or_1d(groups)
        if len(groups) != X.shape[0]:
            raise ValueError(f"groups has {len(groups)} entries, but X has {X.shape[0]} rows")
    if isinstance(folds, numbers.Integral) and not isinstance(folds, bool):
        if folds < 2:
            raise ValueError(f"folds is {folds}, but must be at least 2")
        # The same folds every time, unless somebody wants others.
        seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        return (int(folds), seed) if groups is None else _grouped(int(folds), y, groups, seed)
    if hasattr(folds, "split") and not isinstance(folds, str):
        return _assignment([test for _, test in folds.split(X, y, groups)], X.shape[0])
    if isinstance(folds, str) or not hasattr(folds, "__iter__"):
        raise ValueError(f"folds is {folds!r}, but must be a number, a splitter or lists of points")
    return _assignment([np.asarray(points) for points in folds], X.shape[0])


def _grouped(folds: int, y: NDArray[Any], groups: NDArray[Any], seed: int) -> NDArray[np.int64]:
    """Return folds that cut through no group, with the classes spread as evenly as that allows."""
    found, numbers_of_groups = np.unique(groups, return_inverse=True)
    if len(found) < folds:
        raise ValueError(f"there are {len(found)} groups, too few for {folds} folds; lower folds, or give finer groups")
    of_point = np.zeros(len(groups), dtype=np.int64)
    if y.ndim == 1:
        seen: dict[Any, int] = {}
        of_point = np.array([seen.setdefault(label, len(seen)) for label in y.tolist()])
    # Where no class has as many points as there are folds, there is nothing to be spread.
    kind = StratifiedGroupKFold if np.bincount(of_point).max() >= folds else GroupKFold
    splitter = kind(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that some classes have fewer points
        held_out = [test for _, test in splitter.split(of_point, of_point, numbers_of_groups)]
    return _assignment([points for points in held_out if points.size], len(groups))


def _assignment(held_out: list[NDArray[Any]], points: int) -> NDArray[np.int64]:
    fold = np.full(points, -1, dtype=np.int64)
    for number, chosen in enumerate(held_out):
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise ValueError(f"fold {number} must be a list of the numbers of points, not {chosen!r}")
        outside = chosen[(chosen < 0) | (chosen >= points)]
        if outside.size:
            raise ValueError(f"fold {number} names point {outside[0]}, but there are {points} points")
        twice = chosen[fold[chosen] >= 0]
        if twice.size or len(np.unique(chosen)) < len(chosen):
            raise ValueError(f"fold {number} names a point that is held out already; every point belongs to one fold")
        fold[chosen] = number
    missing = np.flatnonzero(fold < 0)
    if missing.size:
        raise ValueError(f"point {missing[0]} is in no fold; every point belongs to one")
    return fold
