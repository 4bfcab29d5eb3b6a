"""One model for every class against the rest."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import make_blobs
from nuptse import KernelClassifier, OneVsRestKernelClassifier

FIXED = KernelClassifier(learn=False)


@parametrize_with_checks([OneVsRestKernelClassifier(KernelClassifier(learn=False, tol=1e-10))])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_classes_are_voted_by_log_probability(rng):
    X, y = make_blobs(rng)
    labels = np.array(["a", "b", "c"])[y]
    model = OneVsRestKernelClassifier(FIXED).fit(X, labels)
    votes = np.stack(
        [clone(FIXED).fit(X, labels == label).predict_log_proba(X)[:, 1] for label in model.classes_], axis=1
    )
    np.testing.assert_array_equal(model.predict(X), model.classes_[votes.argmax(axis=1)])
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(proba, np.exp(votes) / np.exp(votes).sum(axis=1, keepdims=True))


def test_every_class_learns_hyperparameters_of_its_own(rng):
    X, y = make_blobs(rng)
    model = OneVsRestKernelClassifier(KernelClassifier(share="all", random_state=0)).fit(X, y)
    learned = [one.hyperparameters_["variance"] for one in model.estimators_]
    assert len(set(learned)) == 3
    assert model.score(X, y) > 0.7


def test_sparse_inputs_and_weights(rng):
    X, y = make_blobs(rng)
    weights = rng.uniform(0.5, 2, len(y))
    dense = OneVsRestKernelClassifier(FIXED).fit(X, y, weights)
    sparse = OneVsRestKernelClassifier(FIXED).fit(scipy.sparse.csr_array(X), y, weights)
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(scipy.sparse.csr_array(X)), atol=1e-6)


def test_a_failed_fit_leaves_the_last_one(rng):
    X, y = make_blobs(rng)
    model = OneVsRestKernelClassifier(FIXED).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.zeros(len(y)))
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match="hierarchy"):
        OneVsRestKernelClassifier(KernelClassifier(hierarchy={"x": [0, 1], "y": [2]})).fit(X, y)
