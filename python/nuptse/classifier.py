"""The kernel classifier."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from nuptse import _core
from nuptse._sharing import hyperparameter_names, plan_kernels
from nuptse.kernels import Kernel, Precomputed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags
    from typing_extensions import Self

__all__ = ["KernelClassifier"]

Floats: TypeAlias = "NDArray[np.float64]"

_SOLVERS = ("auto", "newton-cg", "exact")
_LATER_SOLVERS = ("newton-cg-symmetric", "lbfgs")


class KernelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Penalised multinomial kernel logistic regression over all classes jointly.

    Every class c has a function u_c with a Gaussian process prior of covariance v_c M; the probability of class c at x
    is softmax(u(x))_c. The functions of all classes are fitted together by Newton's method.

    Parameters
    ----------
    kernel : {"rbf", "linear", "precomputed"}, kernel object, or dict of group to either, default="rbf"
        The covariance function; see :mod:`nuptse.kernels`. A dict gives every group of `share` a kernel of its own.
    hierarchy : None
        A tree over the classes; not yet available.
    share : {"auto", "all", "class"} or dict of class to group, default="auto"
        Which classes share hyperparameters. {"variance": ..., "shape": ...} sets variances and shape parameters apart.
        "auto": one kernel for all classes where it is linear or precomputed, else a variance for every class and one
        shape.
    learn : bool, default=False
        Learn the hyperparameters by cross-validation; not yet available: those of `kernel` are kept.
    folds : int, splitter or list of index arrays, default=5
        The folds of the cross-validation with which hyperparameters are learned.
    intercept_variance : float, default=1.0
        The prior variance of the intercepts; 0 for none.
    learn_intercept : bool, default=False
        Learn the intercept variance too.
    scale : {None, "auto"}, default=None
        "auto" standardises dense columns and gives sparse rows unit norm, in `fit` and in `predict`.
    solver : {"auto", "newton-cg", "exact"}, default="auto"
        "newton-cg" takes products with the kernel matrix only; "exact" factorises it, which takes O(C n³). "auto" is
        "newton-cg".
    tol : float, default=1e-3
        The fit stops when no entry of the gradient α + g is larger; it has the scale of a probability.
    max_evaluations : int, default=60
        How often the cross-validation criterion may be evaluated while hyperparameters are learned.
    precision : {"double", "single"}, default="double"
        How a stored kernel matrix is kept; sums are always taken in double precision.
    memory_limit : int, default=None
        Bytes that kernel matrices may take; by default a safe share of the free memory.
    n_threads : int, default=None
        Number of threads; by default the environment variable NUPTSE_NUM_THREADS, or all cores. Results do not depend
        on it.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds with which hyperparameters are learned.
    verbose : int, default=0
        1 prints a line for every Newton step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; 0, 1, ... where `y` was an array of distributions.
    kernel_ : kernel object, or dict of group to kernel object
        The kernel with its values.
    hyperparameters_ : dict
        Every hyperparameter by name.
    dual_coef_ : ndarray of shape (n_samples, n_classes)
        α, the coefficients of the training points.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where `X` had any.
    n_iter_ : int
        Number of Newton steps.
    fit_info_ : dict
        How the fit went: solver, converged, newton_steps, cg_steps, products, objective, residual, seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nuptse import KernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelClassifier(scale="auto").fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])

    """

    def __init__(
        self,
        kernel: str | Kernel | Mapping[Any, str | Kernel] = "rbf",
        *,
        hierarchy: None = None,
        share: str | Mapping[Any, Any] = "auto",
        learn: bool = False,
        folds: Any = 5,
        intercept_variance: float = 1.0,
        learn_intercept: bool = False,
        scale: str | None = None,
        solver: str = "auto",
        tol: float = 1e-3,
        max_evaluations: int = 60,
        precision: str = "double",
        memory_limit: int | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.hierarchy = hierarchy
        self.share = share
        self.learn = learn
        self.folds = folds
        self.intercept_variance = intercept_variance
        self.learn_intercept = learn_intercept
        self.scale = scale
        self.solver = solver
        self.tol = tol
        self.max_evaluations = max_evaluations
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn what this estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs; with a precomputed kernel the kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or a distribution over the classes for every point.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every point counts.

        Returns
        -------
        self : object
            The fitted estimator.

        """
        with _all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Self:
        self._check_options()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True, ensure_min_samples=2
        )
        classes, targets = _encode(y)
        labels = classes.tolist()
        plan = plan_kernels(self.kernel, self.share, labels)
        if self.scale is not None and any(isinstance(kernel, Precomputed) for kernel in plan.kernels):
            raise ValueError("scale='auto' changes inputs, but a precomputed kernel has none; use scale=None")
        model, info = _core.fit(
            _as_rows(X),
            targets,
            _as_weights(sample_weight),
            len(labels),
            plan.specs,
            plan.blocks,
            float(self.intercept_variance),
            self.scale == "auto",
            {
                "solver": "newton-cg" if self.solver == "auto" else self.solver,
                "tol": float(self.tol),
                "precision": self.precision,
            },
            self.n_threads,
            self.memory_limit,
            _print_step if self.verbose else None,
        )
        fitted = [kernel._fitted(shape) for kernel, shape in zip(plan.kernels, model.parameters, strict=True)]  # noqa: SLF001
        self.classes_ = classes
        self.kernel_ = self._kernel_of_group(plan, fitted)
        self.hyperparameters_ = hyperparameter_names(plan, model.parameters)
        self.hyperparameters_["intercept_variance"] = float(self.intercept_variance)
        self.dual_coef_ = model.alpha
        self.intercept_ = model.intercepts
        self.fit_info_ = info
        self.n_iter_ = info["newton_steps"]
        self._model = model
        if not info["converged"]:
            warnings.warn(
                f"the fit stopped after {info['newton_steps']} Newton steps and {info['products']} products with "
                f"max|alpha + g| = {info['residual']:.3g}, above tol = {self.tol:.3g}; raise tol, scale the inputs, or "
                "reduce the variance",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def predict(self, X: ArrayLike, loss: str = "zero_one") -> NDArray[Any]:
        """Predict the label of every point.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.
        loss : {"zero_one"}, default="zero_one"
            The loss whose expectation is made smallest; "zero_one" takes the most probable class.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.

        """
        if loss != "zero_one":
            if loss in {"taxonomic", "parent"}:
                raise ValueError(f"loss={loss!r} needs a hierarchy; without one use 'zero_one'")
            raise ValueError(f"unknown loss {loss!r}; use 'zero_one'")
        scores = self._functions(X)
        labels: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of every class, one row a point.

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

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the logarithm of the probability of every class, one row a point.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.

        """
        rows = self._rows(X)
        return self._model.predict_log_proba(rows, self.n_threads)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the class functions u, one row a point; for two classes their difference, the log odds of the second.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            In the order of `classes_`.

        """
        scores = self._functions(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _functions(self, X: ArrayLike) -> Floats:
        rows = self._rows(X)
        return self._model.decision_function(rows, self.n_threads)

    def _rows(self, X: ArrayLike) -> Any:
        """Return checked inputs in the form that the compiled core takes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return _as_rows(X)

    def _check_options(self) -> None:
        """Raise for options that are unknown, or not there yet."""
        if self.learn:
            raise NotImplementedError(
                "learn=True is not available yet; use learn=False, which keeps the kernel's values"
            )
        if self.hierarchy is not None:
            raise NotImplementedError("hierarchy is not available yet; use hierarchy=None")
        if self.solver in _LATER_SOLVERS:
            raise NotImplementedError(f"solver={self.solver!r} is not available yet; use 'auto'")
        for name, value, known in (
            ("solver", self.solver, _SOLVERS),
            ("scale", self.scale, (None, "auto")),
            ("precision", self.precision, ("double", "single")),
        ):
            if value not in known:
                raise ValueError(f"unknown {name} {value!r}; use one of {', '.join(map(repr, known))}")

    @staticmethod
    def _kernel_of_group(plan: Any, fitted: list[Kernel]) -> Kernel | dict[Any, Kernel]:
        if not plan.by_group:
            return fitted[0]
        blocks = zip(plan.shape_groups, plan.blocks, strict=True)
        return {group: type(fitted[i])(**{**fitted[i].get_params(), "variance": v}) for group, (i, v) in blocks}


@contextmanager
def _all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Leave an estimator as it was if anything goes wrong; `validate_data` changes it before all is known."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _encode(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the classes, and labels from 0 or distributions in their order."""
    if y.ndim == 2 and y.shape[1] > 1:
        return np.arange(y.shape[1]), np.ascontiguousarray(y, dtype=np.float64)
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()}; a classifier needs at least 2 classes")
    return classes, labels.astype(np.int64)


def _as_rows(X: Any) -> Any:
    """Return inputs as the compiled core takes them; it makes the one copy that is made."""
    if not scipy.sparse.issparse(X):
        return X
    X = cast("Any", X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float64), X.shape[1]


def _as_weights(sample_weight: ArrayLike | None) -> Floats | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight has {weights.ndim} dimensions, but must have one weight for every point")
    return weights


def _print_step(step: int, products: int, objective: float, residual: float) -> None:
    print(f"Newton step {step:3}: {products:5} products, objective {objective:.8g}, max|alpha + g| {residual:.2e}")  # noqa: T201
