"""One model against the rest for every class, on the same engine: the baseline of Seeger (2006), section 8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from nuptse._all_or_nothing import all_or_nothing
from nuptse.classifier import KernelClassifier
from nuptse.report import make_report

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags
    from typing_extensions import Self

    from nuptse.report import Report

__all__ = ["OneVsRestKernelClassifier"]


class OneVsRestKernelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A binary `KernelClassifier` for every class against all others; the class of highest log probability wins.

    Every model learns hyperparameters of its own. A joint model (`KernelClassifier`) has better probabilities and takes
    less time; this is here to compare with, and for those who know their classes to have nothing in common.

    Parameters
    ----------
    estimator : KernelClassifier, default=None
        The model of every class; by default a `KernelClassifier` with its default options. It takes no hierarchy.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of KernelClassifier
        The fitted models, in the order of `classes_`; the second class of each is that of the model.
    n_features_in_ : int
        The number of inputs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nuptse import KernelClassifier, OneVsRestKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = OneVsRestKernelClassifier(KernelClassifier(scale="auto", random_state=0)).fit(X, y)
    >>> clf.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])

    """

    def __init__(self, estimator: KernelClassifier | None = None) -> None:
        self.estimator = estimator

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn what this estimator takes."""
        tags = super().__sklearn_tags__()
        of_one = self._template().__sklearn_tags__()
        tags.input_tags.sparse = of_one.input_tags.sparse
        tags.input_tags.pairwise = of_one.input_tags.pairwise
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the models of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every point counts.

        Returns
        -------
        self : object
            The fitted estimator.

        """
        template = self._template()
        if template.hierarchy is not None:
            raise ValueError("one model for every class cannot use a hierarchy; use KernelClassifier")
        with all_or_nothing(self):
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            classes = np.unique(y)
            if len(classes) < 2:
                raise ValueError(f"y has one class only, {classes.tolist()}; a classifier needs at least 2 classes")
            self.estimators_ = [clone(template).fit(X, y == label, sample_weight) for label in classes]
            self.classes_ = classes
        return self

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of the probability of every class: those of the models, made to sum to one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.

        """
        votes = self._votes(X)
        votes -= np.logaddexp.reduce(votes, axis=1, keepdims=True)
        return votes

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of every class: those of the models, made to sum to one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.

        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class whose model gives it the highest log probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.

        """
        votes = self._votes(X)
        labels: NDArray[Any] = self.classes_[votes.argmax(axis=1)]
        return labels

    def report(
        self,
        X: ArrayLike,
        y: ArrayLike,
        path: str | PathLike[str] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        documents: Iterable[Any] | None = None,
        title: str | None = None,
    ) -> Report:
        """Report how the models do on points whose classes are known, as :meth:`KernelClassifier.report` does."""
        return make_report(self, X, y, path, sample_weight=sample_weight, documents=documents, title=title)

    def _votes(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log probability that every model gives its class."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.stack([model.predict_log_proba(X)[:, 1] for model in self.estimators_], axis=1)

    def _template(self) -> KernelClassifier:
        return KernelClassifier() if self.estimator is None else self.estimator
