"""Numbers at the edge: whatever comes, results are finite, and what was not reached is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from conftest import make_blobs
from nuptse import KernelClassifier
from nuptse.kernels import RBF, Linear

SOLVERS = ["auto", "newton-cg", "lbfgs", "newton-cg-symmetric"]


def fit_and_check(estimator, X, y, sample_weight=None):
    """Fit; results must be finite, and a residual above tol must have been told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y, sample_weight)
    told = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    unexpected = [one for one in caught if not issubclass(one.category, ConvergenceWarning)]
    assert not unexpected, [str(one.message) for one in unexpected]
    residual = estimator.fit_info_["residual"]
    assert np.isfinite(residual)
    assert np.isfinite(estimator.fit_info_["objective"])
    assert told or residual <= estimator.tol
    assert np.isfinite(estimator.dual_coef_).all()
    probabilities = estimator.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    assert np.isfinite(estimator.predict_log_proba(X)).all()
    return estimator


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("variance", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_variances_from_tiny_to_huge(rng, solver, variance, kernel):
    X, y = make_blobs(rng, 90)
    chosen = RBF(variance) if kernel == "rbf" else Linear(variance)
    fit_and_check(KernelClassifier(chosen, solver=solver, learn=False), X, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("inverse_width", [1e-12, 1e-6, 1e6, 1e12])
def test_kernels_that_are_the_identity_or_all_ones(rng, solver, inverse_width):
    X, y = make_blobs(rng, 90)
    model = fit_and_check(KernelClassifier(RBF(10.0, inverse_width), solver=solver, learn=False), X, y)
    if inverse_width > 1:
        assert model.score(X, y) == 1.0  # every point for itself


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("learn", [False, True])
def test_points_that_are_there_many_times(rng, solver, learn):
    X, y = make_blobs(rng, 30)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    y[::7] = rng.integers(0, 3, len(y[::7]))  # and contradict each other
    fit_and_check(KernelClassifier(RBF(100.0), solver=solver, learn=learn, random_state=0), X, y)


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e100])
@pytest.mark.parametrize("learn", [False, True])
def test_inputs_of_any_scale(rng, scale, learn):
    X, y = make_blobs(rng, 90)
    model = KernelClassifier(learn=learn, random_state=0)
    fit_and_check(model, scale * X, y)
    np.testing.assert_allclose(
        model.predict_proba(scale * X), model.fit(X, y).predict_proba(X), atol=1e-3 if learn else 1e-6
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_inputs_far_from_the_origin(rng, kernel):
    X, y = make_blobs(rng, 90)
    fit_and_check(KernelClassifier(kernel, learn=False), X + 1e6, y)
    fit_and_check(KernelClassifier(kernel, learn=False, scale="auto"), X + 1e6, y)


@pytest.mark.parametrize("learn", [False, True])
def test_classes_with_one_member(rng, learn):
    X, _ = make_blobs(rng, 40)
    y = np.arange(40)
    y[20:] = 0
    fit_and_check(KernelClassifier(learn=learn, random_state=0, folds=3), X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_over_twelve_orders(rng, solver):
    X, y = make_blobs(rng, 90)
    weights = 10.0 ** rng.uniform(-6, 6, 90)
    weights[:5] = 0.0
    fit_and_check(KernelClassifier(solver=solver, learn=False), X, y, weights)


def test_inputs_without_variation(rng):
    X, y = make_blobs(rng, 60)
    constant = np.ones_like(X)
    for inputs in (constant, np.zeros_like(X), np.c_[X, np.full(60, 1e9)], scipy.sparse.csr_array(X.shape)):
        for kernel in ("rbf", "linear"):
            fit_and_check(KernelClassifier(kernel, learn=False), inputs, y)
            fit_and_check(KernelClassifier(kernel, scale="auto", random_state=0), inputs, y)


def test_the_same_seed_gives_the_same_bits(rng):
    X, y = make_blobs(rng, 120)
    models = [KernelClassifier(random_state=7, n_threads=threads).fit(X, y) for threads in (1, 2, 3, 1)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)
        assert model.hyperparameters_ == models[0].hyperparameters_
