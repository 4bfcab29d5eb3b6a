"""What a fitted classifier says in terms of its inputs and of its training points."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from nuptse import _core
from nuptse._rows import as_one_row, as_rows, is_one_point
from nuptse.explanation import Explanation
from nuptse.top_features import TopFeatures, TopFeaturesList, names_of_features, top_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from nuptse.hierarchy import Hierarchy

#: The coefficients of models that somebody has asked for, as long as these live. They are no attribute of estimators,
#: since they follow from the others and would only make pickles large.
_COEFFICIENTS: WeakKeyDictionary[_core.FittedModel, NDArray[np.float64]] = WeakKeyDictionary()
_NEEDS_LINEAR = (
    "needs the linear kernel, in which inputs have weights: KernelClassifier('linear'). For other kernels use "
    "explain(X), which names the training points behind a prediction, or sklearn.inspection.permutation_importance"
)
#: Points that are explained at a time, so that memory does not grow with their number.
_BLOCK = 64


class InterpretationMixin:
    """Weights of inputs, and the training points behind a prediction."""

    classes_: NDArray[Any]
    hierarchy_: Hierarchy | None
    n_features_in_: int
    n_threads: int | None
    _model: _core.FittedModel

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weight of every input in the function of every class, for the linear kernel.

        A read-only array of shape (n_classes, n_features), with a row for every class also where there are two: the
        function that :meth:`decision_function` returns then has the weights ``coef_[1] - coef_[0]``. What the kernel
        does to the inputs is in the weights: variances, `groups`, `columns`, and the sum along the path of a class.

        ``X @ coef_.T + intercept_`` are the class functions at `X`. That holds with ``scale="auto"`` too where the
        inputs are dense: the weights are then divided by the standard deviations, and `intercept_` is that of inputs as
        they come. Sparse rows are brought to unit norm instead, for which no weights can make up: `coef_` belongs to
        rows of unit norm then, ``sklearn.preprocessing.normalize(X)``.

        Computed when it is first asked for. Other kernels than the linear one have none.
        """
        check_is_fitted(self)
        if not _core.is_linear(self._model):
            raise AttributeError(f"coef_ {_NEEDS_LINEAR}")
        if self._model not in _COEFFICIENTS:
            weights = _core.class_weights(self._model, self.n_threads).T
            weights.flags.writeable = False
            _COEFFICIENTS[self._model] = weights
        return _COEFFICIENTS[self._model]

    @overload
    def top_features(
        self, node_or_class: None = None, n: int = 10, feature_names: Any = None, *, along_path: bool = False
    ) -> TopFeaturesList: ...

    @overload
    def top_features(
        self, node_or_class: Any, n: int = 10, feature_names: Any = None, *, along_path: bool = False
    ) -> TopFeatures: ...

    def top_features(
        self, node_or_class: Any = None, n: int = 10, feature_names: Any = None, *, along_path: bool = False
    ) -> TopFeatures | TopFeaturesList:
        """Return the inputs that pull hardest for and against a class, for the linear kernel.

        With a hierarchy, every node has a function of its own, and that of a class is the sum of those on its path:
        what belongs to a whole branch is found at its node, and a class has what tells it apart there.

        Parameters
        ----------
        node_or_class : label, default=None
            A class or, with a hierarchy, a node by its label or path; by default all of them.
        n : int, default=10
            How many inputs to return for either side.
        feature_names : array-like of shape (n_features,), or a transformer, default=None
            The names of the inputs, or something that has the method `get_feature_names_out`, such as a vectoriser. By
            default those of the data frame that was fitted, or x0, x1, ...
        along_path : bool, default=False
            Take the sum of the functions from the root of the hierarchy down to a node in place of its own.

        Returns
        -------
        top : TopFeatures, or TopFeaturesList where all are asked for
            All nodes of a hierarchy come each before those below it. They print well, and `to_rows` turns them into
            rows of a data frame. Weights are those of the inputs as the
            kernel has them: with ``scale="auto"``, of one standard deviation each, so that they compare.

        """
        check_is_fitted(self)
        if not _core.is_linear(self._model):
            raise ValueError(f"top_features {_NEEDS_LINEAR}")
        _check_count("n", n)
        names = _names(self, feature_names)
        tree = self.hierarchy_
        wanted = [self._function(node_or_class)] if node_or_class is not None else self._functions()
        weights = _core.function_weights(self._model, self.n_threads)
        found = TopFeaturesList()
        for function in wanted:
            path = _path(tree, function) if tree is not None and along_path else [function]
            supporting, opposing = top_of(weights[:, path].sum(axis=1), names, n)
            label = self.classes_.tolist()[function] if tree is None else tree.node_label(function + 1)
            level = 1 if tree is None else int(tree.depths[function + 1])
            found.append(TopFeatures(label, level, supporting, opposing))
        return found if node_or_class is None else found[0]

    def explain(self, X: ArrayLike, n: int | None = 5, *, label: Any = None) -> Explanation | list[Explanation]:
        """Return the training points that pull hardest for and against the predicted class, for any kernel.

        A class function is a sum over the training points, and an intercept. A point adds much if it is like `X` in the
        eyes of the kernel, and if the model needed it to get its own label right; it adds to its own class and takes
        from the others. With a hierarchy it adds to the classes of its own branch as well.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or array-like of shape (n_features,)
            Points, or one of them.
        n : int or None, default=5
            How many training points to return for either side; None for all that add anything.
        label : label, default=None
            The class to explain; by default the most probable one of every point.

        Returns
        -------
        explanation : Explanation, or a list of them
            One where `X` is one point, else one for every row. They print well, and `to_rows` turns each into rows of
            a data frame.

        """
        check_is_fitted(self)
        if n is not None:
            _check_count("n", n)
        one = is_one_point(X)
        points: Any = validate_data(
            self,
            as_one_row(X) if one else X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=False,
        )
        place = None if label is None else self._class_place(label)
        logarithms = self._model.predict_log_proba(as_rows(points), self.n_threads)
        places = logarithms.argmax(axis=1) if place is None else np.full(len(logarithms), place)
        probabilities = np.exp(logarithms[np.arange(len(places)), places])
        found: list[Explanation] = []
        for start in range(0, len(places), _BLOCK):
            block = slice(start, start + _BLOCK)
            found += self._explained(points[block], places[block], probabilities[block], n)
        return found[0] if one else found

    def _explained(
        self, points: Any, places: NDArray[np.intp], probabilities: NDArray[np.float64], n: int | None
    ) -> list[Explanation]:
        """Explain the classes in the given places, one for every point."""
        # Two classes are explained by the difference of their functions, as decision_function has it.
        others = -1.0 if len(self.classes_) == 2 else 0.0
        directions = np.full((len(places), len(self.classes_)), others)
        directions[np.arange(len(places)), places] = 1.0
        of_points, intercepts = _core.contributions(self._model, as_rows(points), directions, self.n_threads)
        labels = getattr(self, "training_labels_", None)
        rows = zip(places.tolist(), probabilities.tolist(), intercepts.tolist(), of_points, strict=True)
        of_class = self.classes_.tolist()
        return [
            Explanation.of_point(of_class[place], probability, intercept, contributions, labels, n)
            for place, probability, intercept, contributions in rows
        ]

    def _class_place(self, label: Any) -> int:
        """Return the place of a class in `classes_`."""
        if self.hierarchy_ is not None:
            return self.hierarchy_.leaf_index(label)
        found = [place for place, one in enumerate(self.classes_.tolist()) if one == label]
        if not found:
            raise ValueError(f"unknown class {label!r}; classes_ are {_shortened(self.classes_.tolist())}")
        return found[0]

    def _functions(self) -> list[int]:
        """Return the functions of all classes, or of all nodes, each before those below it."""
        if self.hierarchy_ is None:
            return list(range(len(self.classes_)))
        functions = []
        waiting = list(reversed(self.hierarchy_.children(0)))
        while waiting:
            node = waiting.pop()
            functions.append(node - 1)
            waiting.extend(reversed(self.hierarchy_.children(node)))
        return functions

    def _function(self, label: Any) -> int:
        """Return the number of the function of a class or node."""
        if self.hierarchy_ is None:
            return self._class_place(label)
        node = self.hierarchy_.node_index(label)
        if node == 0:
            raise ValueError(
                f"{label!r} is the root of the hierarchy, which has no function of its own; take a node below"
            )
        return node - 1


def training_labels(y: NDArray[Any], targets: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of training points; of distributions, the class that has most of it."""
    if isinstance(targets, np.ndarray) and targets.ndim == 2:
        likeliest: NDArray[Any] = classes[targets.argmax(axis=1)]
        return likeliest
    if y.ndim == 2 and y.shape[1] > 1:
        paths = np.empty(len(y), dtype=object)
        paths[:] = [tuple(row) for row in y.tolist()]
        return paths
    return y.reshape(-1).copy()


def _names(estimator: Any, given: Any) -> Sequence[Any] | NDArray[Any] | None:
    return names_of_features(given, getattr(estimator, "feature_names_in_", None), estimator.n_features_in_)


def _path(tree: Hierarchy, function: int) -> list[int]:
    """Return the functions from below the root down to one."""
    path = []
    node = function + 1
    while node > 0:
        path.append(node - 1)
        node = int(tree.parents[node])
    return path[::-1]


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least 1")


def _shortened(labels: list[Any], limit: int = 6) -> str:
    shown = ", ".join(map(repr, labels[:limit]))
    return shown if len(labels) <= limit else f"{shown}, ... ({len(labels)} in all)"
