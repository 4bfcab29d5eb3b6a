"""What a fitted classifier does with points whose classes are known: the numbers behind a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from nuptse import metrics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from nuptse.hierarchy import Hierarchy

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

#: The decisions that a tree adds to that for the most probable class.
TREE_DECISIONS = ("taxonomic", "parent")
_BINS = 10


@dataclass(frozen=True)
class Evaluation:
    """Predictions, what is true, and scores of the one against the other; classes are numbers in the order of names."""

    estimator: Any
    hierarchy: Hierarchy | None
    #: what classes are called on the page
    names: list[str]
    truth: Integers
    predicted: Integers
    probabilities: Floats
    #: the logarithm of the probability of the true class
    log_likelihood: Floats
    weights: Floats
    #: whether points count differently
    weighted: bool
    documents: list[str] | None
    scores: dict[str, float]
    reliability: metrics.Reliability
    reject_curve: metrics.RejectCurve

    @property
    def noun(self) -> str:
        """What points are called, many of them."""
        return "points" if self.documents is None else "documents"

    @property
    def confidence(self) -> Floats:
        """The probability of the predicted class."""
        return self.probabilities[np.arange(len(self.truth)), self.predicted]


def evaluate(
    estimator: Any, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, documents: Any = None
) -> Evaluation:
    """Predict the classes of points, and compare them with the true ones."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"{type(estimator).__name__} gives no probabilities; a report needs a classifier that does")
    count = _num_samples(X)
    hierarchy = getattr(estimator, "hierarchy_", None)
    # All that may be wrong is found before any work.
    truth = _class_numbers(y, estimator.classes_, hierarchy)
    if len(truth) != count:
        raise ValueError(f"y has {len(truth)} labels, but X has {count} rows")
    weights = _weights(sample_weight, count)
    texts = None if documents is None else _texts(documents, count)

    probabilities = _log_probabilities(estimator, X)
    log_likelihood = probabilities[np.arange(count), truth]
    # In place, since with thousands of classes this is by far the largest array.
    np.exp(probabilities, out=probabilities)
    predicted = probabilities.argmax(axis=1)

    labels = estimator.classes_
    y_true, y_pred = labels[truth], labels[predicted]
    reliability = metrics.reliability(
        y_true, probabilities, labels=labels, bins=_BINS, sample_weight=None if sample_weight is None else weights
    )
    scores = _scores(y_true, y_pred, probabilities, labels, weights)
    scores["calibration_error"] = reliability.error
    if hierarchy is not None:
        scores |= _tree_scores(y_true, y_pred, probabilities, hierarchy, weights)
    confidence = probabilities.max(axis=1)
    return Evaluation(
        estimator=estimator,
        hierarchy=hierarchy,
        names=[label_text(label) for label in labels.tolist()],
        truth=truth,
        predicted=predicted,
        probabilities=probabilities,
        log_likelihood=log_likelihood,
        weights=weights,
        weighted=sample_weight is not None,
        documents=texts,
        scores=scores,
        reliability=reliability,
        reject_curve=metrics.reject_curve(y_true, y_pred, confidence, sample_weight=weights),
    )


def label_text(label: Any) -> str:
    """Return what a class is called; a path with its steps set apart."""
    return " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _log_probabilities(estimator: Any, X: Any) -> Floats:
    """Return an array that may be written to."""
    if hasattr(estimator, "predict_log_proba"):
        return np.require(estimator.predict_log_proba(X), np.float64, "W")
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(estimator.predict_proba(X), dtype=np.float64))


def _class_numbers(y: ArrayLike, classes: NDArray[Any], hierarchy: Hierarchy | None) -> Integers:
    """Return the number of the class of every label."""
    truth = metrics.as_labels(y)
    if hierarchy is None:
        place = {label: number for number, label in enumerate(classes.tolist())}
    else:
        place = {}
        for label in dict.fromkeys(truth):
            node = hierarchy.node_index(label)
            if hierarchy.children(node):
                raise ValueError(
                    f"y has the label {label!r}, which is an inner node of the hierarchy; a report compares classes, "
                    "so leave out the points whose class is not known"
                )
            place[label] = hierarchy.leaf_index(label)
    unknown = next((label for label in truth if label not in place), None)
    if unknown is not None:
        raise ValueError(
            f"y has the label {unknown!r}, which the classifier does not know; leave out points of classes that were "
            "not there when it was fitted"
        )
    return np.array([place[label] for label in truth], dtype=np.int64)


def _weights(sample_weight: ArrayLike | None, count: int) -> Floats:
    if sample_weight is None:
        return np.ones(count)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight has shape {weights.shape}, but X has {count} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight must be finite, not below 0 and not all 0")
    return weights


def _texts(documents: Any, count: int) -> list[str]:
    if isinstance(documents, str | bytes):
        raise TypeError("documents is one text, but must be a sequence of them, one for every row of X")
    texts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in documents]
    if len(texts) != count:
        raise ValueError(f"documents has {len(texts)} texts, but X has {count} rows")
    return texts


def _scores(y_true: Any, y_pred: Any, probabilities: Floats, labels: Any, weights: Floats) -> dict[str, float]:
    return {
        "accuracy": metrics.accuracy(y_true, y_pred, sample_weight=weights),
        "log_loss": metrics.log_loss(y_true, probabilities, labels=labels, sample_weight=weights),
        "reciprocal_rank": metrics.reciprocal_rank(y_true, probabilities, labels=labels, sample_weight=weights),
    }


def _tree_scores(
    y_true: Any, y_pred: Any, probabilities: Floats, hierarchy: Hierarchy, weights: Floats
) -> dict[str, float]:
    """Return the scores of trees for the most probable class, and then all scores for the decisions of trees."""
    in_tree: dict[str, Any] = {"hierarchy": hierarchy, "sample_weight": weights}
    scores = {
        "taxonomic_loss": metrics.taxonomic_loss(y_true, y_pred, **in_tree),
        "parent_accuracy": metrics.parent_accuracy(y_true, y_pred, **in_tree),
    }
    for loss in TREE_DECISIONS:
        decided = hierarchy.decide(probabilities, loss)
        scores[f"accuracy[{loss}]"] = metrics.accuracy(y_true, decided, sample_weight=weights)
        scores[f"taxonomic_loss[{loss}]"] = metrics.taxonomic_loss(y_true, decided, **in_tree)
        scores[f"parent_accuracy[{loss}]"] = metrics.parent_accuracy(y_true, decided, **in_tree)
    return scores
