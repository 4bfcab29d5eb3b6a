"""All solvers find the same model, keep to their budgets, and say how they went."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from nuptse import Hierarchy, KernelClassifier
from nuptse.kernels import RBF, Linear

SOLVERS = ("auto", "newton-cg", "newton-cg-symmetric", "lbfgs")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def test_all_solvers_find_the_same_model(digits):
    exact = KernelClassifier(RBF(3.0), scale="auto", solver="exact", tol=1e-9, learn=False).fit(*digits)
    for solver in SOLVERS:
        for preconditioner in ("on", "off"):
            model = KernelClassifier(
                RBF(3.0),
                scale="auto",
                solver=solver,
                tol=1e-7,
                solver_options={"preconditioner": preconditioner},
                learn=False,
            ).fit(*digits)
            np.testing.assert_allclose(model.dual_coef_, exact.dual_coef_, atol=1e-6)


def test_a_fit_says_what_was_done_and_why(digits):
    info = KernelClassifier(RBF(3.0), scale="auto", learn=False).fit(*digits).fit_info_
    assert (info["solver"], info["reason"]) == ("newton-cg", "few classes")
    assert info["steps"] == info["newton_steps"] == len(info["trace"]) - 1
    last = info["trace"][-1]
    assert last["residual"] <= 1e-3
    assert last["products"] <= info["products"]
    assert last["seconds"] <= info["seconds"]
    objectives = [point["objective"] for point in info["trace"]]
    assert objectives == sorted(objectives, reverse=True)


def test_many_classes_are_fitted_by_lbfgs(rng):
    X, y = rng.normal(size=(200, 5)), np.arange(200) % 40
    info = KernelClassifier(learn=False).fit(X, y).fit_info_
    assert (info["solver"], info["reason"]) == ("lbfgs", "many classes")


def test_a_preconditioner_saves_products(digits):
    def products(preconditioner):
        options = {"preconditioner": preconditioner}
        return (
            KernelClassifier(RBF(100.0, 0.01), tol=1e-6, solver_options=options, learn=False)
            .fit(*digits)
            .fit_info_["products"]
        )

    assert products("on") < 0.5 * products("off")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_budget_is_kept_and_its_end_is_told(digits, solver):
    model = KernelClassifier(RBF(1e3), solver=solver, tol=1e-9, solver_options={"max_products": 20}, learn=False)
    with pytest.warns(ConvergenceWarning, match=r"max\|alpha \+ g\| = .* above tol"):
        model.fit(*digits)
    assert model.fit_info_["products"] <= 20
    assert not model.fit_info_["converged"]


def test_newton_steps_and_cg_steps_may_be_fixed(digits):
    model = KernelClassifier(RBF(1e3), tol=1e-9, solver_options={"max_steps": 3, "max_cg_steps": 5}, learn=False)
    with pytest.warns(ConvergenceWarning):
        model.fit(*digits)
    assert model.fit_info_["steps"] == 3
    assert model.fit_info_["cg_steps"] <= 15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 3}, r"unknown solver_options \['steps'\]"),
        ({"pairs": 0}, "at least 1"),
        ({"max_products": 2.5}, "whole number"),
        ({"preconditioner": "maybe"}, "unknown preconditioner"),
    ],
)
def test_bad_options_are_refused(digits, options, message):
    with pytest.raises(ValueError, match=message):
        KernelClassifier(solver_options=options, learn=False).fit(*digits)


def test_a_warm_start_saves_products(digits):
    model = KernelClassifier(RBF(30.0), scale="auto", tol=1e-5, warm_start=True, learn=False).fit(*digits)
    first = model.fit_info_["products"]
    before = model.predict_proba(digits[0])
    model.set_params(kernel=RBF(31.0)).fit(*digits)
    assert model.fit_info_["products"] < first
    np.testing.assert_allclose(model.predict_proba(digits[0]), before, atol=0.01)


TREE = {"animal": {"cat": {}, "dog": {}}, "plant": {"tree": {}, "herb": {"mint": {}, "basil": {}}}}


@pytest.fixture
def garden(rng):
    labels = np.array(["cat", "dog", "tree", "mint", "basil"])
    y = labels[rng.integers(0, 4, 120)]
    centres = {"cat": (0, 0), "dog": (0, 1), "tree": (3, 0), "mint": (3, 2), "basil": (3, 3)}
    return np.array([centres[label] for label in y]) + 0.3 * rng.normal(size=(120, 2)), y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kernel", [RBF(4.0), Linear(2.0)])
def test_classes_may_be_the_leaves_of_a_tree(garden, solver, kernel):
    X, y = garden
    model = KernelClassifier(kernel, hierarchy=TREE, solver=solver, tol=1e-6, learn=False).fit(X, y)
    assert isinstance(model.hierarchy_, Hierarchy)
    # A leaf without training data has a probability too.
    assert model.classes_.tolist() == ["basil", "cat", "dog", "mint", "tree"]
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_tree_of_one_level_is_flat(garden):
    X, y = garden
    keep = y != "basil"
    flat = KernelClassifier("linear", learn=False).fit(X[keep], y[keep])
    tree = KernelClassifier("linear", hierarchy=[(label,) for label in flat.classes_], learn=False).fit(
        X[keep], y[keep]
    )
    np.testing.assert_allclose(tree.predict_proba(X), flat.predict_proba(X), atol=1e-12)


def test_nodes_share_hyperparameters_as_told(garden):
    X, y = garden
    by_level = {"level 1": RBF(1.0), "level 2": RBF(2.0), "level 3": RBF(3.0)}
    model = KernelClassifier(by_level, hierarchy=TREE, learn=False).fit(X, y)
    assert model.hyperparameters_["variance[level 2]"] == 2.0
    model = KernelClassifier(RBF(2.0), hierarchy=TREE, share={"variance": "node", "shape": "all"}, learn=False).fit(
        X, y
    )
    assert "variance[herb]" in model.hyperparameters_
    with pytest.raises(ValueError, match="unknown share 'class'"):
        KernelClassifier(hierarchy=TREE, share="class", learn=False).fit(X, y)


def test_labels_that_are_not_in_the_tree_are_refused(garden):
    X, y = garden
    y = y.astype(object)
    y[0] = "stone"
    with pytest.raises(ValueError, match="stone"):
        KernelClassifier(hierarchy=TREE, learn=False).fit(X, y)
