"""Scores: agreement with scikit-learn where it has them, with the definitions where it has not."""

import pickle

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, cross_val_score

from conftest import make_blobs
from nuptse import Hierarchy, KernelClassifier, metrics
from nuptse.kernels import RBF

PETS = Hierarchy.parse({"mammal": ["cat", "dog"], "bird": {"parrot": ["ara", "kea"], "finch": None}})


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30, deadline=None)
def test_scores_agree_with_scikit_learn(seed, weighted):
    rng = np.random.default_rng(seed)
    labels = np.array(["a", "b", "c", "d"])
    y, guess = labels[rng.integers(4, size=30)], labels[rng.integers(4, size=30)]
    proba = rng.dirichlet(np.ones(4), size=30)
    weight = rng.uniform(0.1, 2, 30) if weighted else None
    assert metrics.accuracy(y, guess, sample_weight=weight) == pytest.approx(
        sklearn.metrics.accuracy_score(y, guess, sample_weight=weight)
    )
    assert metrics.log_loss(y, proba, labels=labels, sample_weight=weight) == pytest.approx(
        sklearn.metrics.log_loss(y, proba, labels=labels, sample_weight=weight)
    )
    ranks = (y[:, None] == labels).astype(int)
    assert metrics.reciprocal_rank(y, proba, labels=labels, sample_weight=weight) == pytest.approx(
        sklearn.metrics.label_ranking_average_precision_score(ranks, proba, sample_weight=weight)
    )


def test_scores_of_trees_by_hand():
    truth, guess = ["cat", "cat", "kea", "kea", "finch"], ["cat", "dog", "ara", "cat", "kea"]
    # Half paths: 0, 1, 1, (3 + 2) / 2, (2 + 3 - 2) / 2.
    assert metrics.taxonomic_loss(truth, guess, hierarchy=PETS) == pytest.approx((0 + 1 + 1 + 2.5 + 1.5) / 5)
    assert metrics.parent_accuracy(truth, guess, hierarchy=PETS) == pytest.approx(3 / 5)
    weighted = metrics.parent_accuracy(truth, guess, hierarchy=PETS, sample_weight=[1, 1, 1, 1, 6])
    assert weighted == pytest.approx(0.3)


def test_a_tree_in_any_form_will_do():
    assert metrics.taxonomic_loss([1, 2], [2, 2], hierarchy=[-1, 0, 0]) == pytest.approx(0.5)


def test_rejecting_the_unsure_leaves_the_sure():
    curve = metrics.reject_curve(["a", "b", "a"], ["a", "a", "a"], [0.9, 0.2, 0.5])
    np.testing.assert_allclose(curve.answered, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve.error, [0, 0, 0, 1 / 3])


def test_reliability_of_a_model_that_knows_itself(rng):
    sure = rng.uniform(0.5, 1, 20_000)
    proba = np.column_stack([sure, 1 - sure])
    y = (rng.uniform(size=20_000) > sure).astype(int)
    found = metrics.reliability(y, proba, bins=10)
    assert found.error < 0.01
    assert np.isnan(found.accuracy[:5]).all()
    np.testing.assert_allclose(found.confidence[5:], np.arange(0.55, 1, 0.1), atol=0.01)
    assert found.weight.sum() == 20_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy(["a"], ["a", "b"]), "prediction for every point"),
        (lambda: metrics.log_loss(["a", "b"], [[0.5, 0.3, 0.2]] * 2), "there are 2 labels"),
        (lambda: metrics.log_loss(["a", "z"], [[0.5, 0.5]] * 2, labels=["a", "b"]), "'z'"),
        (lambda: metrics.log_loss([0, 1], [[0.5, np.nan]] * 2), "not a probability"),
        (lambda: metrics.taxonomic_loss(["cat"], ["cow"], hierarchy=PETS), "'cow'"),
        (lambda: metrics.taxonomic_loss(["cat"], ["bird"], hierarchy=PETS), "is no class"),
        (lambda: metrics.reject_curve(["a"], ["a"], [np.nan]), "confidence"),
        (lambda: metrics.reliability([0, 1], [[0.5, 0.5]] * 2, bins=0), "bins"),
        (lambda: metrics.accuracy(["a"], ["a"], sample_weight=[-1.0]), "sample weight"),
        (lambda: metrics.scorer("auc"), "'neg_log_loss'"),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_scorers_serve_cross_validation(rng):
    X, y = make_blobs(rng, 90, 3, 4)
    labels = np.array(["ara", "cat", "dog", "kea"])[y]
    tree = Hierarchy.parse({"mammal": ["cat", "dog"], "bird": ["ara", "kea"]})
    model = KernelClassifier(RBF(3.0), hierarchy=tree, learn=False)
    for name in ("accuracy", "reciprocal_rank", "neg_log_loss", "neg_taxonomic_loss", "parent_accuracy"):
        scores = cross_val_score(model, X, labels, scoring=metrics.scorer(name), cv=3, error_score="raise")
        assert np.isfinite(scores).all()
        assert (scores <= 1).all()
    search = GridSearchCV(model, {"kernel__variance": [1e-6, 3.0]}, scoring=metrics.scorer("neg_taxonomic_loss"), cv=3)
    assert search.fit(X, labels).best_params_ == {"kernel__variance": 3.0}


def test_scorers_take_the_decision_of_their_loss(rng):
    X, y = make_blobs(rng, 90, 3, 4)
    labels = np.array(["ara", "cat", "dog", "kea"])[y]
    tree = Hierarchy.parse({"mammal": ["cat", "dog"], "bird": ["ara", "kea"]})
    model = KernelClassifier(RBF(0.5), hierarchy=tree, learn=False).fit(X, labels)
    expected = metrics.taxonomic_loss(labels, model.predict(X, loss="taxonomic"), hierarchy=tree)
    score = pickle.loads(pickle.dumps(metrics.scorer("neg_taxonomic_loss")))  # noqa: S301
    assert score(model, X, labels) == pytest.approx(-expected)
    flat = KernelClassifier(RBF(0.5), learn=False).fit(X, labels)
    with pytest.raises(ValueError, match="needs a hierarchy"):
        score(flat, X, labels)
    plain = metrics.taxonomic_loss(labels, flat.predict(X), hierarchy=tree)
    assert metrics.scorer("neg_taxonomic_loss", hierarchy=tree)(flat, X, labels) == pytest.approx(-plain)
