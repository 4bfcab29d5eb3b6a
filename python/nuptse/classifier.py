"""The kernel classifier."""

from __future__ import annotations

import numbers
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
from nuptse._sharing import Units, hyperparameter_names, plan_kernels
from nuptse.hierarchy import Hierarchy
from nuptse.kernels import Kernel, Precomputed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags
    from typing_extensions import Self

__all__ = ["KernelClassifier"]

Floats: TypeAlias = "NDArray[np.float64]"

_SOLVERS = ("auto", "newton-cg", "newton-cg-symmetric", "lbfgs", "exact")
_SOLVER_OPTIONS: dict[str, Any] = {
    "max_steps": 1000,
    "max_cg_steps": 500,
    "max_products": 300,
    "pairs": 10,
    "preconditioner": "auto",
}


class KernelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Penalised multinomial kernel logistic regression over all classes jointly.

    Every class c has a function u_c with a Gaussian process prior of covariance v_c M; the probability of class c at x
    is softmax(u(x))_c. The functions of all classes are fitted together by Newton's method.

    Parameters
    ----------
    kernel : {"rbf", "linear", "precomputed"}, kernel object, or dict of group to either, default="rbf"
        The covariance function; see :mod:`nuptse.kernels`. A dict gives every group of `share` a kernel of its own.
    hierarchy : None, Hierarchy, or anything that `Hierarchy.parse` takes, default=None
        A tree whose leaves are the classes. The function of a class is then the sum of those of the nodes on the path
        from the root to its leaf, so that classes near each other in the tree learn from each other.
    share : {"auto", "all", "class", "level", "subtree", "node"} or dict of class or node to group, default="auto"
        Which classes or, with a hierarchy, nodes share hyperparameters. {"variance": ..., "shape": ...} sets variances
        and shape parameters apart. "auto": one kernel for all classes where it is linear or precomputed, else a
        variance for every class and one shape; with a hierarchy a variance for every level and one shape.
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
    solver : {"auto", "newton-cg", "lbfgs", "newton-cg-symmetric", "exact"}, default="auto"
        "newton-cg" is Newton's method with conjugate gradients, preconditioned where that pays; "lbfgs" takes less for
        many classes; "newton-cg-symmetric" is kept as a reference. All three take products with the kernel matrix only.
        "exact" factorises it, which takes O(C n³), for classes without a hierarchy. "auto" is "lbfgs" from 16 classes
        on and else "newton-cg"; `fit_info_` says which it was.
    solver_options : dict, default=None
        Budgets and details: max_steps (1000), max_cg_steps for one linear system (500), max_products with the kernel
        matrix (300), pairs that "lbfgs" keeps (10), preconditioner ("auto", "on", "off").
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
    warm_start : bool, default=False
        Start from the coefficients of the last fit, where there was one of the same shape.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds with which hyperparameters are learned.
    verbose : int, default=0
        1 prints a line for every step.

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
    hierarchy_ : Hierarchy or None
        The tree over the classes.
    n_iter_ : int
        Number of steps of the solver.
    fit_info_ : dict
        How the fit went: solver, reason (why this solver), converged, steps, newton_steps, cg_steps, products,
        objective, residual (max|α + g|), preconditioner_rank, kernel_matrices, kernel_seconds, seconds, and trace, with
        seconds, products, objective and residual after every step.

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
        hierarchy: Any = None,
        share: str | Mapping[Any, Any] = "auto",
        learn: bool = False,
        folds: Any = 5,
        intercept_variance: float = 1.0,
        learn_intercept: bool = False,
        scale: str | None = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-3,
        max_evaluations: int = 60,
        precision: str = "double",
        memory_limit: int | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
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
        self.solver_options = solver_options
        self.tol = tol
        self.max_evaluations = max_evaluations
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_threads = n_threads
        self.warm_start = warm_start
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
        hierarchy = None if self.hierarchy is None else _sorted(Hierarchy.parse(self.hierarchy))
        classes, targets = _encode(y) if hierarchy is None else _encode_leaves(y, hierarchy)
        units = Units.of_classes(classes.tolist()) if hierarchy is None else Units.of_nodes(hierarchy)
        plan = plan_kernels(self.kernel, self.share, units)
        if self.scale is not None and any(isinstance(kernel, Precomputed) for kernel in plan.kernels):
            raise ValueError("scale='auto' changes inputs, but a precomputed kernel has none; use scale=None")
        model, info = _core.fit(
            _as_rows(X),
            targets,
            _as_weights(sample_weight),
            len(classes),
            None if hierarchy is None else (hierarchy.parents.tolist(), hierarchy.leaves.tolist()),
            plan.specs,
            plan.blocks,
            float(self.intercept_variance),
            self.scale == "auto",
            self._start(X.shape[0], len(classes)),
            self._solver_options(),
            self.n_threads,
            self.memory_limit,
            _print_step if self.verbose else None,
        )
        fitted = [kernel._fitted(shape) for kernel, shape in zip(plan.kernels, model.parameters, strict=True)]  # noqa: SLF001
        self.classes_ = classes
        self.hierarchy_ = hierarchy
        self.kernel_ = self._kernel_of_group(plan, fitted)
        self.hyperparameters_ = hyperparameter_names(plan, model.parameters)
        self.hyperparameters_["intercept_variance"] = float(self.intercept_variance)
        self.dual_coef_ = model.alpha
        self.intercept_ = model.intercepts
        self.fit_info_ = info
        self.n_iter_ = info["steps"]
        self._model = model
        if not info["converged"]:
            warnings.warn(
                f"{info['solver']!r} stopped after {info['steps']} steps and {info['products']} products with "
                f"max|alpha + g| = {info['residual']:.3g}, above tol = {self.tol:.3g}; raise tol, scale the inputs, "
                "reduce the variance, or raise max_products in solver_options",
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
            if loss in {"taxonomic", "parent"} and self.hierarchy is not None:
                raise NotImplementedError(f"loss={loss!r} is not available yet; use 'zero_one'")
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
        for name, value, known in (
            ("solver", self.solver, _SOLVERS),
            ("scale", self.scale, (None, "auto")),
            ("precision", self.precision, ("double", "single")),
        ):
            if value not in known:
                raise ValueError(f"unknown {name} {value!r}; use one of {', '.join(map(repr, known))}")

    def _solver_options(self) -> Any:
        options = dict(self.solver_options or {})
        unknown = [name for name in options if name not in _SOLVER_OPTIONS]
        if unknown:
            raise ValueError(f"unknown solver_options {unknown}; use some of {', '.join(_SOLVER_OPTIONS)}")
        for name in ("max_steps", "max_cg_steps", "max_products", "pairs"):
            value = options.get(name, 1)
            if not isinstance(value, numbers.Integral) or value < 1:
                raise ValueError(f"solver_options[{name!r}] is {value!r}, but must be a whole number of at least 1")
        given = {"solver": self.solver, "tol": float(self.tol), "precision": self.precision}
        return _SOLVER_OPTIONS | options | given

    def _start(self, points: int, classes: int) -> Floats | None:
        """Return the coefficients to start from."""
        last: Floats | None = getattr(self, "dual_coef_", None)
        return last if self.warm_start and last is not None and last.shape == (points, classes) else None

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


def _sorted(hierarchy: Hierarchy) -> Hierarchy:
    """Put the classes in order, as scikit-learn has them; paths stay as they are beside plain labels."""
    if len({isinstance(label, tuple) for label in hierarchy.classes}) > 1:
        return hierarchy
    return hierarchy.with_classes(sorted(hierarchy.classes))


def _encode_leaves(y: NDArray[Any], hierarchy: Hierarchy) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the classes of a tree, and labels from 0 or distributions in their order."""
    classes = np.empty(len(hierarchy.classes), dtype=object)
    classes[:] = hierarchy.classes
    if not any(isinstance(label, tuple) for label in hierarchy.classes):
        classes = np.asarray(hierarchy.classes)
    if y.ndim == 2 and y.shape[1] == len(classes) and np.issubdtype(y.dtype, np.floating):
        return classes, np.ascontiguousarray(y, dtype=np.float64)
    rows = [tuple(row) for row in y.tolist()] if y.ndim == 2 and y.shape[1] > 1 else column_or_1d(y, warn=True).tolist()
    index = {label: hierarchy.leaf_index(label) for label in dict.fromkeys(rows)}
    return classes, np.array([index[label] for label in rows], dtype=np.int64)


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
    print(f"step {step:3}: {products:5} products, objective {objective:.8g}, max|alpha + g| {residual:.2e}")  # noqa: T201
