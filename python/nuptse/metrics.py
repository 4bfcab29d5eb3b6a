"""How good predictions are: with and without a tree, with and without probabilities.

Scores take the true labels first, as those of scikit-learn do, and `sample_weight` last. `scorer` makes them
scorers for `cross_validate` and `GridSearchCV`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils.validation import column_or_1d

from nuptse import _core
from nuptse.hierarchy import Hierarchy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "RejectCurve",
    "Reliability",
    "accuracy",
    "log_loss",
    "parent_accuracy",
    "reciprocal_rank",
    "reject_curve",
    "reliability",
    "scorer",
    "taxonomic_loss",
]

Floats: TypeAlias = "NDArray[np.float64]"


def accuracy(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Return the share of points whose label was predicted."""
    _, (truth, predicted) = _numbers(y_true, y_pred)
    return _core.accuracy(truth, predicted, _weights(sample_weight))


def reciprocal_rank(
    y_true: ArrayLike, y_proba: ArrayLike, *, labels: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of one over the rank of the true class among all classes, the most probable first.

    Seeger (2006) calls it precision. Classes that are exactly as probable as the true one rank before it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true labels.
    y_proba : array-like of shape (n_samples, n_classes)
        The probabilities of the classes.
    labels : array-like of shape (n_classes,), default=None
        The label of every column, `classes_` of an estimator; by default the sorted labels in `y_true`.
    sample_weight : array-like of shape (n_samples,), default=None
        How often every point counts.

    """
    return _core.reciprocal_rank(*_columns(y_true, y_proba, labels), _weights(sample_weight))


def log_loss(
    y_true: ArrayLike, y_proba: ArrayLike, *, labels: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of minus the logarithm of the probability of the true class.

    Probabilities below 2⁻⁵² count as that, as in scikit-learn. Parameters as in `reciprocal_rank`.
    """
    return _core.log_loss(*_columns(y_true, y_proba, labels), _weights(sample_weight))


def taxonomic_loss(
    y_true: ArrayLike, y_pred: ArrayLike, *, hierarchy: Any, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of half the length of the path in the tree from the predicted to the true class.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        The true and the predicted labels, classes of the hierarchy.
    hierarchy : Hierarchy, or anything that `Hierarchy.parse` takes
        The tree over the classes.
    sample_weight : array-like of shape (n_samples,), default=None
        How often every point counts.

    """
    tree, truth, predicted = _leaves(hierarchy, y_true, y_pred)
    return _core.taxonomic_loss(tree, truth, predicted, _weights(sample_weight))


def parent_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, hierarchy: Any, sample_weight: ArrayLike | None = None
) -> float:
    """Return the share of points whose predicted and true class lie directly below the same node.

    Parameters as in `taxonomic_loss`.
    """
    tree, truth, predicted = _leaves(hierarchy, y_true, y_pred)
    return _core.parent_accuracy(tree, truth, predicted, _weights(sample_weight))


class RejectCurve(NamedTuple):
    """Errors left when only the surest predictions are made."""

    #: the share of all points that get a prediction, from 0 to 1
    answered: Floats
    #: the errors among these, as a share of all points
    error: Floats


def reject_curve(
    y_true: ArrayLike, y_pred: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> RejectCurve:
    """Return the errors that are left when only the surest predictions are made.

    Among equally sure predictions errors are spread evenly, so that the order of the points does not matter.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        The true and the predicted labels.
    confidence : array-like of shape (n_samples,)
        How sure every prediction is, as ``predict_proba(X).max(axis=1)``.
    sample_weight : array-like of shape (n_samples,), default=None
        How often every point counts.

    """
    _, (truth, predicted) = _numbers(y_true, y_pred)
    sure = np.asarray(confidence, dtype=np.float64)
    return RejectCurve(*_core.reject_curve(truth == predicted, sure, _weights(sample_weight)))


class Reliability(NamedTuple):
    """How often predictions are right, by how sure they are."""

    #: where the bins begin and end, one entry more than there are bins
    edges: Floats
    #: the mean probability of the predicted class in every bin; NaN where it is empty
    confidence: Floats
    #: the share of right predictions in every bin; NaN where it is empty
    accuracy: Floats
    #: the number, or the weight, of the points in every bin
    weight: Floats
    #: the expected calibration error, the mean over the points of how far the two are apart in their bin
    error: float


def reliability(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> Reliability:
    """Return how often the most probable class is the true one, in bins of its probability.

    Parameters as in `reciprocal_rank`; `bins` is the number of bins of equal width.
    """
    truth, probabilities = _columns(y_true, y_proba, labels)
    right = truth == probabilities.argmax(axis=1)
    return Reliability(*_core.reliability(right, probabilities.max(axis=1), bins, _weights(sample_weight)))


def scorer(name: str, *, hierarchy: Any = None) -> Callable[..., float]:
    """Return a scorer for `cross_validate`, `GridSearchCV` and the like; larger is better.

    Parameters
    ----------
    name : {"accuracy", "reciprocal_rank", "neg_log_loss", "neg_taxonomic_loss", "parent_accuracy"}
        The score. Those of trees take the decision with the smallest expected loss where the estimator's `predict` has
        an argument `loss`.
    hierarchy : Hierarchy, or anything that `Hierarchy.parse` takes, default=None
        The tree over the classes; by default that of the estimator, `hierarchy_`.

    """
    if name not in _SCORES:
        raise ValueError(f"unknown score {name!r}; use one of {', '.join(map(repr, _SCORES))}")
    return _Scorer(name, hierarchy)


class _Scorer:
    """A class, not a function within a function, so that it can be pickled and sent to other processes."""

    def __init__(self, name: str, hierarchy: Any) -> None:
        self.name = name
        self.hierarchy = hierarchy

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        score, loss, sign = _SCORES[self.name]
        if loss is None:
            proba = estimator.predict_proba(X)
            return sign * score(y, proba, labels=estimator.classes_, sample_weight=sample_weight)
        more: dict[str, Any] = {}
        if loss != "zero_one":
            more["hierarchy"] = getattr(estimator, "hierarchy_", None) if self.hierarchy is None else self.hierarchy
            if more["hierarchy"] is None:
                raise ValueError(f"the score {self.name!r} needs a hierarchy; give one to scorer, or to the estimator")
        return sign * score(y, _decide(estimator, X, loss), sample_weight=sample_weight, **more)

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"


#: for every name the score, the loss of the decisions (None: it takes probabilities), and its sign
_SCORES: dict[str, tuple[Callable[..., float], str | None, float]] = {
    "accuracy": (accuracy, "zero_one", 1.0),
    "reciprocal_rank": (reciprocal_rank, None, 1.0),
    "neg_log_loss": (log_loss, None, -1.0),
    "neg_taxonomic_loss": (taxonomic_loss, "taxonomic", -1.0),
    "parent_accuracy": (parent_accuracy, "parent", 1.0),
}


def _decide(estimator: Any, X: Any, loss: str) -> Any:
    knows_trees = getattr(estimator, "hierarchy_", None) is not None and hasattr(estimator, "node_proba")
    return estimator.predict(X, loss=loss) if knows_trees else estimator.predict(X)


def as_labels(y: ArrayLike) -> list[Any]:
    """Return labels as a list; rows of paths as tuples."""
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] > 1:
        return [tuple(row) for row in array.tolist()]
    labels: list[Any] = column_or_1d(array, warn=True).tolist()
    return labels


def _numbers(*labels: ArrayLike) -> tuple[dict[Any, int], list[NDArray[np.int64]]]:
    """Return a number for every label, and the labels as numbers."""
    number: dict[Any, int] = {}
    found = [[number.setdefault(label, len(number)) for label in as_labels(one)] for one in labels]
    return number, [np.array(one, dtype=np.int64) for one in found]


def _columns(y_true: ArrayLike, y_proba: ArrayLike, labels: ArrayLike | None) -> tuple[NDArray[np.int64], Floats]:
    """Return the column of every true label, and the probabilities."""
    truth = as_labels(y_true)
    names = sorted(set(truth)) if labels is None else as_labels(labels)
    probabilities = np.asarray(y_proba, dtype=np.float64)
    if probabilities.ndim != 2 or probabilities.shape[1] != len(names):
        raise ValueError(
            f"y_proba has shape {probabilities.shape}, but there are {len(names)} labels; give those of its columns as "
            "labels, as estimator.classes_"
        )
    place = {name: column for column, name in enumerate(names)}
    unknown = [label for label in truth if label not in place]
    if unknown:
        raise ValueError(f"y_true has the label {unknown[0]!r}, which is not among labels")
    return np.array([place[label] for label in truth], dtype=np.int64), probabilities


def _leaves(
    hierarchy: Any, y_true: ArrayLike, y_pred: ArrayLike
) -> tuple[tuple[list[int], list[int]], NDArray[np.int64], NDArray[np.int64]]:
    """Return the tree as the compiled core takes it, and the numbers of the classes."""
    tree = Hierarchy.parse(hierarchy)
    number, (truth, predicted) = _numbers(y_true, y_pred)
    classes = np.array([tree.leaf_index(label) for label in number], dtype=np.int64)
    return (tree.parents.tolist(), tree.leaves.tolist()), classes[truth], classes[predicted]


def _weights(sample_weight: ArrayLike | None) -> Floats | None:
    return None if sample_weight is None else column_or_1d(np.asarray(sample_weight, dtype=np.float64))
