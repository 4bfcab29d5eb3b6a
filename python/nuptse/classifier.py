"""The kernel classifier."""

from __future__ import annotations

import logging
import numbers
import warnings
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from nuptse import _core
from nuptse._all_or_nothing import all_or_nothing
from nuptse._columns import InputColumns
from nuptse._files import kept_in_files, load_model, save_model
from nuptse._folds import as_folds
from nuptse._interpretation import InterpretationMixin, training_labels
from nuptse._limits import as_bounds, as_priors
from nuptse._progress import ProgressLine
from nuptse._rows import as_rows
from nuptse._sharing import KernelPlan, Units, hyperparameter_names, numbered, plan_kernels
from nuptse.hierarchy import Hierarchy, class_array
from nuptse.kernels import Kernel, Precomputed, with_kernel_object
from nuptse.metrics import accuracy, as_labels
from nuptse.report import make_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags
    from typing_extensions import Self

    from nuptse.report import Report
    from nuptse.text import TextClassifier

__all__ = ["KernelClassifier", "load"]

Floats: TypeAlias = "NDArray[np.float64]"

_LOG = logging.getLogger("nuptse")
_SOLVERS = ("auto", "newton-cg", "newton-cg-symmetric", "lbfgs", "exact")
_LOSSES = ("zero_one", "taxonomic", "parent")
_SOLVER_OPTIONS: dict[str, Any] = {
    "max_steps": 1000,
    "max_cg_steps": 500,
    "max_products": 300,
    "pairs": 4,
    "preconditioner": "auto",
    "fold_method": "auto",
}


@kept_in_files
class KernelClassifier(InterpretationMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Penalised multinomial kernel logistic regression over all classes jointly.

    Every class c has a function u_c with a Gaussian process prior of covariance v_c M; the probability of class c at x
    is softmax(u(x))_c. The functions of all classes are fitted together by Newton's method.

    Parameters
    ----------
    kernel : {"rbf", "linear", "precomputed"}, kernel object, or dict of group to either, default="rbf"
        The covariance function; see `nuptse.kernels`. A dict gives every group of `share` a kernel of its own.
    hierarchy : None, Hierarchy, or anything that `Hierarchy.parse` takes, default=None
        A tree whose leaves are the classes. The function of a class is then the sum of those of the nodes on the path
        from the root to its leaf, so that classes near each other in the tree learn from each other.
    share : {"auto", "all", "class", "level", "subtree", "node"} or dict of class or node to group, default="auto"
        Which classes or, with a hierarchy, nodes share hyperparameters. {"variance": ..., "shape": ...} sets variances
        and shape parameters apart. "auto": one kernel for all classes; with a hierarchy a variance for every level and
        one shape. More hyperparameters take longer to learn, and with few points of a class they overfit.
    learn : bool, default=True
        Learn the hyperparameters by minimising the cross-validated negative log likelihood, starting from those of
        `kernel`; else these are kept. From 2000 points on learning begins with a part of them, which takes little
        time, and then with twice as many, until it goes on with all.
    folds : int, splitter or list of index arrays, default=5
        The folds of the cross-validation with which hyperparameters are learned: their number, a splitter of
        scikit-learn, or the points that are held out in each, every point in one.
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
        matrix (300), pairs that "lbfgs" keeps (4), preconditioner ("auto", "on", "off"), fold_method ("auto",
        "batched": all folds at once, "shuffled": one after the other).
    tol : float, default=1e-3
        The fit stops when no entry of the gradient α + g is larger; it has the scale of a probability. Where
        hyperparameters are learned, fits are carried on until what is left changes the criterion by no more than a
        thousandth; with large variances that is at far smaller entries.
    max_evaluations : int, default=60
        How often the cross-validation criterion may be evaluated while hyperparameters are learned.
    bounds : dict of str to (float, float), default=None
        How far hyperparameters may go, as {name: (lowest, highest)}, by the names of `hyperparameters_`; "variance"
        stands for every "variance[...]". By default a factor of a million to either side of where they start.
    priors : dict of str to (float, float), default=None
        Log-normal priors on hyperparameters, as {name: (median, deviation of the natural logarithm)}, by the same
        names: what is minimised is then the criterion minus the logarithm of their density.
    keep_on_interrupt : bool, default=False
        Let Ctrl-C end learning, not the fit: the best hyperparameters so far are kept.
    checkpoint : path, default=None
        A file in which learning keeps its state. A fit of the same data with the same settings that finds the file goes
        on where the last one was stopped, however that happened, and ends as if nothing had; then the file is removed.
    precision : {"double", "single"}, default="double"
        How a stored kernel matrix is kept; sums are always taken in double precision.
    memory_limit : int, default=None
        Bytes that a fit may take for kernel matrices and its own arrays; by default a safe share of what the machine,
        its control group and the address space of the process have left. Kernel matrices that would not fit are stored
        in single precision, or made anew for every product; `fit_info_` says which, and so does the logger "nuptse".
        What cannot be done within the limit raises `MemoryLimitError` before any work.
    n_threads : int, default=None
        Number of threads; by default the environment variable NUPTSE_NUM_THREADS, or all cores. Results do not depend
        on it.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, where there was one of the same shape.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds with which hyperparameters are learned.
    verbose : int, default=0
        1 shows how learning and the fit go on, on standard error: a line that changes on a terminal and in notebooks,
        elsewhere a line for every step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; 0, 1, ... where `y` was an array of distributions.
    kernel_ : kernel object, or dict of group to kernel object
        The kernel with its values.
    hyperparameters_ : dict
        Every hyperparameter by name.
    cv_value_ : float
        The cross-validation criterion at the learned hyperparameters, the folds with the slightly wider kernels that
        suit the points that they keep; nan where learning was interrupted before it was evaluated on all points.
    history_ : list of dict
        Every evaluation of the criterion on all points while learning: value, hyperparameters, gradient, products,
        seconds.
    dual_coef_ : ndarray of shape (n_samples, n_classes)
        α, the coefficients of the training points.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts; with the linear kernel those of the inputs as they come, also where `scale` moves them.
    coef_ : ndarray of shape (n_classes, n_features)
        The weights of the inputs; for the linear kernel only.
    training_labels_ : ndarray of shape (n_samples,)
        The labels of the training points, for :meth:`explain`; where `y` held distributions, the most probable ones.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where `X` had any.
    hierarchy_ : Hierarchy or None
        The tree over the classes.
    n_iter_ : int
        Number of steps of the solver.
    fit_info_ : dict
        How the fit went: solver, reason (why this solver), tol (what was asked of it), converged, steps, newton_steps,
        cg_steps, products, objective, residual (max|α + g|), preconditioner_rank, kernel_matrices, kernel_seconds,
        mixing_seconds (on the way between the nodes of a tree and the classes), seconds, and trace, with seconds,
        products, objective and residual after every step.

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
        learn: bool = True,
        folds: Any = 5,
        intercept_variance: float = 1.0,
        learn_intercept: bool = False,
        scale: str | None = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-3,
        max_evaluations: int = 60,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        priors: Mapping[str, tuple[float, float]] | None = None,
        keep_on_interrupt: bool = False,
        checkpoint: str | PathLike[str] | None = None,
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
        self.bounds = bounds
        self.priors = priors
        self.keep_on_interrupt = keep_on_interrupt
        self.checkpoint = checkpoint
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

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : dict
            The parameters; those of the kernel as kernel__variance and so on, also where it was given by its name.

        Returns
        -------
        self : object
            The estimator.

        """
        estimator: Self = super().set_params(**with_kernel_object(self.kernel, params))
        return estimator

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs; with a precomputed kernel the kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or a distribution over the classes for every point. With a hierarchy, a label may also be that of an
            inner node, where all that is known is that the class lies somewhere below it. What is fitted then is the
            likelihood of that, which has more than one maximum; the one found from equal probabilities is taken.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every point counts.
        groups : array-like of shape (n_samples,), default=None
            What belongs together: points of one group are held out together while hyperparameters are learned. Give it
            where points come in families (pages of a book, reviews of a product, samples of a patient) and those to be
            predicted are of others; else what is learned trusts likenesses that will not be there.

        Returns
        -------
        self : object
            The fitted estimator.

        """
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight, groups)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> Self:
        self._check_options()
        task = self._task(X, y, sample_weight, learn=self.learn)
        learning = self._learning(task, groups) if self.learn else None
        progress = ProgressLine(self.max_evaluations if self.learn else None) if self.verbose else None
        try:
            model, info, learned = _core.fit(
                task.problem,
                self._start(task),
                self._solver_options(),
                learning,
                self.n_threads,
                self.memory_limit,
                progress,
            )
        finally:
            if progress is not None:
                progress.close()
        self.classes_ = task.classes
        self.hierarchy_ = task.hierarchy
        self.kernel_ = _fitted_kernel(task.plan, model, learned=self.learn)
        self.hyperparameters_ = hyperparameter_names(task.plan, model.parameters, model.variances)
        self.hyperparameters_["intercept_variance"] = model.intercept_variance
        self.dual_coef_ = model.alpha
        self.intercept_ = model.intercepts
        self.training_labels_ = training_labels(task.y, task.problem["targets"], task.classes)
        self.fit_info_ = info
        _LOG.info(
            "kernel matrices: %s; solver %s: %s", ", ".join(info["kernel_matrices"]), info["solver"], info["reason"]
        )
        self.n_iter_ = info["steps"]
        self._model = model
        for name in ("cv_value_", "history_"):
            if hasattr(self, name):  # of a fit before this one
                delattr(self, name)
        if learned is not None:
            self._keep_learned(learned)
        if not info["converged"]:
            asked = f"tol = {self.tol:.3g}" if info["tol"] == self.tol else f"the {info['tol']:.3g} that folds needed"
            warnings.warn(
                f"{info['solver']!r} stopped after {info['steps']} steps and {info['products']} products with "
                f"max|alpha + g| = {info['residual']:.3g}, above {asked}; raise tol, scale the inputs, "
                "reduce the variance, or raise max_products in solver_options",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _keep_learned(self, learned: dict[str, Any]) -> None:
        """Set what learning leaves behind, and warn where it did not end by itself."""
        names = self._learned_names(self.hyperparameters_)
        self.cv_value_ = learned["value"]
        self.history_ = []
        for number, row in enumerate(learned["history"], start=1):
            values = dict(zip(names, np.exp(row.pop("logarithms")).tolist(), strict=True))
            gradient = dict(zip(names, row.pop("gradient"), strict=True))
            self.history_.append({"evaluation": number, **row, "hyperparameters": values, "gradient": gradient})
        if learned["checkpoint_problem"] is not None:
            warnings.warn(
                f"learning went on without its last checkpoints: {learned['checkpoint_problem']}",
                UserWarning,
                stacklevel=4,
            )
        if learned["interrupted"]:
            warnings.warn(
                f"learning was interrupted after {len(self.history_)} evaluations; the best hyperparameters so far are "
                "kept",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not learned["converged"]:
            warnings.warn(
                f"learning stopped after {len(self.history_)} evaluations of the cross-validation criterion, which was "
                f"still falling; it is {self.cv_value_:.6g} now. Raise max_evaluations to go on",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _learned_names(self, hyperparameters: Mapping[str, float]) -> list[str]:
        """Return the names of what is learned, in the order of the compiled core."""
        learns_intercept = self.learn_intercept and self.intercept_variance > 0
        return [name for name in hyperparameters if learns_intercept or name != "intercept_variance"]

    def _to_be_learned(
        self, task: _Task, parameters: list[list[tuple[str, float]]], variances: list[float]
    ) -> dict[str, float]:
        """Return what is learned by name, with its values before that."""
        named = hyperparameter_names(task.plan, parameters, variances)
        named["intercept_variance"] = float(self.intercept_variance)
        return {name: named[name] for name in self._learned_names(named)}

    def _task(self, X: Any, y: Any, sample_weight: ArrayLike | None, *, learn: bool) -> _Task:
        """Check the inputs, and put together what is to be fitted to what, with what is to be learned kept apart."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True, ensure_min_samples=2
        )
        hierarchy = None if self.hierarchy is None else _sorted(Hierarchy.parse(self.hierarchy))
        classes, targets = _encode(y) if hierarchy is None else _encode_nodes(y, hierarchy)
        units = Units.of_classes(classes.tolist()) if hierarchy is None else Units.of_nodes(hierarchy)
        inputs = InputColumns(
            self.n_features_in_,
            getattr(self, "feature_names_in_", None),
            lambda: np.asarray((X != 0).sum(axis=0)).ravel(),  # that of a sparse matrix is a matrix of one row
        )
        plan = plan_kernels(self.kernel, self.share, units, inputs, separate=learn)
        if self.scale is not None and any(isinstance(kernel, Precomputed) for kernel in plan.kernels):
            raise ValueError("scale='auto' changes inputs, but a precomputed kernel has none; use scale=None")
        problem: dict[str, Any] = {
            "x": as_rows(X),
            "targets": targets,
            "weights": _as_weights(sample_weight),
            "classes": len(classes),
            "tree": None if hierarchy is None else (hierarchy.parents.tolist(), hierarchy.leaves.tolist()),
            "kernels": plan.specs,
            "blocks": plan.blocks,
            "intercept_variance": float(self.intercept_variance),
            "scale": self.scale == "auto",
        }
        return _Task(X, y, classes, hierarchy, plan, problem)

    def _learning(self, task: _Task, groups: ArrayLike | None) -> Any:
        """Return how hyperparameters are learned, as the compiled core takes it."""
        if not isinstance(self.max_evaluations, numbers.Integral) or self.max_evaluations < 1:
            raise ValueError(f"max_evaluations is {self.max_evaluations!r}, but must be a whole number of at least 1")
        bounds: list[tuple[float, float]] = []
        priors: list[tuple[float, float]] = []
        if self.bounds or self.priors:
            starts = self._to_be_learned(task, *_core.hyperparameters(task.problem))
            bounds, priors = as_bounds(self.bounds or {}, starts), as_priors(self.priors or {}, starts)
        return {
            "folds": as_folds(self.folds, task.X, task.y, self.random_state, groups),
            "fold_method": (self.solver_options or {}).get("fold_method", "auto"),
            "variance_groups": numbered(task.plan.variance_groups),
            "learn_intercept": bool(self.learn_intercept),
            "max_evaluations": int(self.max_evaluations),
            "tolerance": 1e-4,
            "bounds": bounds,
            "priors": priors,
            "keep_on_interrupt": bool(self.keep_on_interrupt),
            "checkpoint": None if self.checkpoint is None else fspath(self.checkpoint),
        }

    def cv_criterion(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        gradient: bool = True,
    ) -> CvCriterion:
        """Return the cross-validation criterion at the hyperparameters of `kernel`, without learning or fitting.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.
        gradient : bool, default=True
            Compute the gradient too.

        Returns
        -------
        criterion : CvCriterion
            The negative log likelihood of all points, each from the other folds; its gradient with respect to the
            natural logarithms of the hyperparameters, in the order of `names`; their values; and how it went.

        """
        with all_or_nothing(self, always=True):
            self._check_options()
            task = self._task(X, y, sample_weight, learn=True)
            value, slopes, parameters, variances, info = _core.cv_criterion(
                cast("Any", task.problem),
                self._solver_options(),
                self._learning(task, groups),
                gradient,
                self.n_threads,
                self.memory_limit,
            )
        values = self._to_be_learned(task, parameters, variances)
        at = np.array(list(values.values()))
        return CvCriterion(value, None if slopes is None else np.array(slopes), list(values), at, info)

    def predict(self, X: ArrayLike, loss: str = "zero_one") -> NDArray[Any]:
        """Predict the label of every point.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.
        loss : {"zero_one", "taxonomic", "parent"}, default="zero_one"
            The loss whose expectation is made smallest. "zero_one" takes the most probable class. With a hierarchy,
            "taxonomic" is half the length of the path in the tree from the predicted to the true class; "parent" is
            zero where both lie directly below the same node, and else one.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.

        """
        if loss not in _LOSSES:
            raise ValueError(f"unknown loss {loss!r}; use one of {', '.join(map(repr, _LOSSES))}")
        rows = self._rows(X)
        if loss != "zero_one" and self.hierarchy_ is None:
            raise ValueError(f"loss={loss!r} needs a hierarchy; without one use 'zero_one'")
        labels: NDArray[Any] = self.classes_[self._model.decide(rows, loss, self.n_threads)]
        return labels

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of points whose label is predicted.

        With a hierarchy, a label that is an inner node is predicted by every class below it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The true labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every point counts.

        Returns
        -------
        score : float
            The accuracy.

        """
        predicted = self.predict(X)
        if self.hierarchy_ is None:
            return accuracy(y, predicted, sample_weight=sample_weight)
        return accuracy(_as_predicted(y, predicted, self.hierarchy_), predicted, sample_weight=sample_weight)

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

    def node_proba(self, X: ArrayLike) -> Floats:
        """Return the probability that the class lies below a node of the hierarchy, for every node, one row a point.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_nodes)
            In the order of the nodes of `hierarchy_`, leaves included: that of a label is
            ``hierarchy_.node_index(label)``. The root comes first, with probability one.

        """
        rows = self._rows(X)
        if self.hierarchy_ is None:
            raise ValueError("node_proba needs a hierarchy; without one use predict_proba")
        return self._model.node_proba(rows, self.n_threads)

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
        rows = self._rows(X)
        scores = self._model.decision_function(rows, self.n_threads)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file, for `nuptse.load`.

        The file is written aside and then put in its place: whatever happens, there is either what was there before, or
        all of the new one. It holds arrays and text in a documented format (safetensors), and no code.

        Parameters
        ----------
        path : path-like
            Where to.

        """
        check_is_fitted(self)
        save_model(self, path)

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
        """Report how the model does on points whose classes are known, as one page to look at.

        The page has the scores, a reliability diagram, a reject curve, where in the tree or between which classes
        errors happen, the hardest points, and what was learned and how. It is one file that needs no network.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The inputs; best those of points that were not fitted.
        y : array-like of shape (n_samples,)
            Their labels, all of them of classes.
        path : path-like, default=None
            Where to write the page, whole or not at all.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every point counts.
        documents : iterable of str, default=None
            The text of every point, shown beside the hardest of them.
        title : str, default=None
            The title of the page.

        Returns
        -------
        report : Report
            The page and the scores; a notebook shows the page.

        """
        return make_report(self, X, y, path, sample_weight=sample_weight, documents=documents, title=title)

    def _rows(self, X: ArrayLike) -> Any:
        """Return checked inputs in the form that the compiled core takes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return as_rows(X)

    def _check_options(self) -> None:
        """Raise for options that are unknown, or not there yet."""
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

    def _start(self, task: _Task) -> Floats | None:
        """Return the coefficients to start from."""
        last: Floats | None = getattr(self, "dual_coef_", None)
        shape = (task.X.shape[0], len(task.classes))
        return last if self.warm_start and last is not None and last.shape == shape else None


def load(path: str | PathLike[str]) -> KernelClassifier | TextClassifier:
    """Return the fitted estimator that a file holds.

    Nothing in the file is executed. A file that is damaged, incomplete, from a later release or from another program
    is refused, each with its reason; what was saved by this release will be loaded by later ones.

    Parameters
    ----------
    path : path-like
        A file that `save` has written.

    Returns
    -------
    estimator : KernelClassifier or TextClassifier
        What was saved, ready to predict.

    """
    estimator: KernelClassifier | TextClassifier = load_model(path)
    return estimator


class CvCriterion(NamedTuple):
    """The cross-validation criterion at some hyperparameters."""

    #: the negative log likelihood of all points, each from the other folds
    value: float
    #: with respect to the natural logarithms of the hyperparameters; None where it was not asked for
    gradient: Floats | None
    #: the hyperparameters
    names: list[str]
    #: their values
    values: Floats
    #: products, converged, fold_method, fold_seconds, gradient_seconds
    info: dict[str, Any]


class _Task(NamedTuple):
    """What is to be fitted to what."""

    X: Any
    y: Any
    classes: NDArray[Any]
    hierarchy: Hierarchy | None
    plan: KernelPlan
    #: as the compiled core takes it
    problem: Any


def _fitted_kernel(plan: KernelPlan, model: _core.FittedModel, *, learned: bool) -> Kernel | dict[Any, Kernel]:
    """Return the kernel with its values; by group where it was given so, or where groups have learned their own."""
    fitted = [kernel._fitted(shape) for kernel, shape in zip(plan.kernels, model.parameters, strict=True)]  # noqa: SLF001
    if not plan.by_group and not learned:
        return type(fitted[0])(**{**fitted[0].get_params(), "variance": model.variances[0]})
    one_shape = len(set(plan.shape_groups)) == 1
    groups = plan.variance_groups if one_shape and not plan.by_group else plan.shape_groups
    blocks = zip(groups, plan.blocks, model.variances, strict=True)
    kernels = {group: type(fitted[i])(**{**fitted[i].get_params(), "variance": v}) for group, (i, _), v in blocks}
    return kernels if plan.by_group or len(kernels) > 1 else next(iter(kernels.values()))


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


def _encode_nodes(y: NDArray[Any], hierarchy: Hierarchy) -> tuple[NDArray[Any], Any]:
    """Return the classes of a tree, and labels from 0 or distributions in their order.

    Where some labels are those of inner nodes: for every point the number of a set, and the sets of classes.
    """
    classes = class_array(hierarchy.classes)
    if y.ndim == 2 and y.shape[1] == len(classes) and np.issubdtype(y.dtype, np.floating):
        return classes, np.ascontiguousarray(y, dtype=np.float64)
    rows = [tuple(row) for row in y.tolist()] if y.ndim == 2 and y.shape[1] > 1 else column_or_1d(y, warn=True).tolist()
    nodes = {label: _node_of(label, hierarchy) for label in dict.fromkeys(rows)}
    below = {node: hierarchy.classes_below(node).tolist() for node in dict.fromkeys(nodes.values())}
    if all(len(numbers) == 1 for numbers in below.values()):
        return classes, np.array([below[nodes[label]][0] for label in rows], dtype=np.int64)
    place = {node: number for number, node in enumerate(below)}
    return classes, (np.array([place[nodes[label]] for label in rows], dtype=np.int64), list(below.values()))


def _node_of(label: Any, hierarchy: Hierarchy) -> int:
    """Return the node of a label of `y`, or say what may have happened to it."""
    try:
        return hierarchy.node_index(label)
    except ValueError as error:
        only_y_has_numbers = isinstance(label, numbers.Integral) and not isinstance(
            hierarchy.classes[0], numbers.Number
        )
        if not only_y_has_numbers:
            raise
        raise ValueError(
            f"{error}. If a meta-estimator, such as VotingClassifier, has put numbers in place of your labels, give it "
            "a hierarchy whose classes are 0, 1, ... in the order of the sorted labels"
        ) from None


def _as_predicted(y: ArrayLike, predicted: NDArray[Any], hierarchy: Hierarchy) -> NDArray[Any]:
    """Return the predicted label for every point whose label is that class or lies above it, else another."""
    truth = as_labels(y)
    if len(truth) != len(predicted):
        raise ValueError(f"y has {len(truth)} labels, but X has {len(predicted)} rows")
    below = {
        label: set(hierarchy.classes_below(hierarchy.node_index(label)).tolist()) for label in dict.fromkeys(truth)
    }
    number = {label: number for number, label in enumerate(hierarchy.classes)}
    right = [number[guess] in below[label] for label, guess in zip(truth, predicted.tolist(), strict=True)]
    other = np.empty(len(truth), dtype=object)
    other[:] = [guess if hit else None for hit, guess in zip(right, predicted.tolist(), strict=True)]
    return other


def _as_weights(sample_weight: ArrayLike | None) -> Floats | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight has {weights.ndim} dimensions, but must have one weight for every point")
    return weights
