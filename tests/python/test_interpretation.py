"""Weights of inputs, and the training points behind predictions: they add up to what is predicted."""

from __future__ import annotations

import copy
import gc
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

import nuptse
from conftest import make_blobs
from nuptse import Hierarchy, KernelClassifier
from nuptse.kernels import RBF, Linear, Precomputed

TREE = {"ab": ["a", "b"], "cde": {"c": None, "de": ["d", "e"]}}
FIXTURES = Path(__file__).parent / "fixtures"


def problem(rng, sparse=False, classes=5, inputs=6):
    X, y = make_blobs(rng, 60, inputs, classes)
    X = X * np.linspace(0.2, 4, inputs) + np.linspace(-1, 2, inputs)
    labels = np.array(list("abcde"))[y]
    if not sparse:
        return X, labels
    X[np.abs(X) < 1] = 0
    return scipy.sparse.csr_array(X), labels


LINEAR = {
    "flat": KernelClassifier("linear", learn=False),
    "variances of classes": KernelClassifier(
        {label: Linear(0.5 + number) for number, label in enumerate("abcde")}, share="class", learn=False
    ),
    "learned": KernelClassifier("linear", random_state=0),
    "tree": KernelClassifier("linear", hierarchy=TREE, learn=False),
    "levels": KernelClassifier("linear", hierarchy=TREE, share="level", random_state=0),
    "groups": KernelClassifier(Linear(groups=[0, 0, 1, 1, 2, 2], weights=[0.5, 1.0, 2.0]), learn=False),
    "columns": KernelClassifier(Linear(columns=[4, 1]), learn=False),
    "columns and groups of levels": KernelClassifier(
        {"level 1": Linear(columns=[0, 1, 2]), "level 2": Linear(groups=[0] * 3 + [1] * 3), "level 3": Linear(2.0)},
        hierarchy=TREE,
        share="level",
        learn=False,
    ),
    "no intercept": KernelClassifier("linear", intercept_variance=0, learn=False),
}


# Coefficients


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize("name", LINEAR)
def test_coefficients_give_the_decision_function(rng, name, scale, sparse):
    X, y = problem(rng, sparse)
    clf = copy.deepcopy(LINEAR[name]).set_params(scale=scale).fit(X, y)
    assert clf.coef_.shape == (5, 6)
    seen = normalize(X) if sparse and scale else X
    np.testing.assert_allclose(seen @ clf.coef_.T + clf.intercept_, clf.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("scale", [None, "auto"])
def test_two_classes_have_a_row_each(rng, scale):
    X, y = problem(rng, classes=2)
    clf = KernelClassifier("linear", scale=scale, learn=False).fit(X, y)
    assert clf.coef_.shape == (2, 6)
    odds = X @ (clf.coef_[1] - clf.coef_[0]) + clf.intercept_[1] - clf.intercept_[0]
    np.testing.assert_allclose(odds, clf.decision_function(X), atol=1e-10)


def test_coefficients_are_those_of_logistic_regression(rng):
    X, y = problem(rng)
    ours = KernelClassifier(Linear(0.5), intercept_variance=0, tol=1e-9, learn=False).fit(X, y)
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-5)


def test_inputs_that_the_kernel_does_not_see_have_no_weight(rng):
    X, y = problem(rng)
    clf = KernelClassifier(Linear(columns=[4, 1]), learn=False).fit(X, y)
    assert np.flatnonzero(np.abs(clf.coef_).sum(axis=0)).tolist() == [1, 4]


@pytest.mark.parametrize("kernel", ["rbf", {"a": Linear(), "b": RBF(), "c": Linear(), "d": Linear(), "e": Linear()}])
def test_other_kernels_have_no_coefficients(rng, kernel):
    clf = KernelClassifier(kernel, learn=False)
    assert not hasattr(clf, "coef_")
    with pytest.raises(NotFittedError):
        clf.top_features()
    clf.fit(*problem(rng))
    assert not hasattr(clf, "coef_")
    with pytest.raises(AttributeError, match=r"coef_ needs the linear kernel.*use explain"):
        _ = clf.coef_
    with pytest.raises(ValueError, match=r"top_features needs the linear kernel"):
        clf.top_features()


def test_coefficients_belong_to_the_last_fit_and_cannot_be_changed(rng):
    X, y = problem(rng)
    clf = KernelClassifier("linear", learn=False).fit(X, y)
    first = clf.coef_
    assert clf.coef_ is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0
    with pytest.raises(AttributeError):
        clf.coef_ = first
    size = len(pickle.dumps(clf))
    clf.fit(2 * X, y)
    assert not np.allclose(clf.coef_, first)
    assert len(pickle.dumps(clf)) == pytest.approx(size, rel=0.1)
    del clf
    gc.collect()
    assert not nuptse._interpretation._COEFFICIENTS


# Top features


def test_top_features_are_those_with_the_largest_weights(rng):
    X, y = problem(rng)
    clf = KernelClassifier("linear", learn=False).fit(X, y)
    top = clf.top_features(n=2)
    assert [one.label for one in top] == list("abcde")
    for row, one in zip(clf.coef_, top, strict=True):
        assert [feature.column for feature in one.supporting] == np.argsort(-row)[: min(2, (row > 0).sum())].tolist()
        assert [feature.column for feature in one.opposing] == np.argsort(row)[: min(2, (row < 0).sum())].tolist()
        assert all(feature.weight == pytest.approx(row[feature.column]) for feature in one.supporting + one.opposing)
        assert all(feature.name == f"x{feature.column}" for feature in one.supporting)
    assert clf.top_features("c", n=2) == top[2]


def test_every_node_has_its_own_features_and_paths_add_up(rng):
    X, y = problem(rng)
    clf = KernelClassifier("linear", hierarchy=TREE, learn=False).fit(X, y)
    top = clf.top_features(n=6)
    assert [(one.label, one.level) for one in top] == [
        ("ab", 1),
        ("a", 2),
        ("b", 2),
        ("cde", 1),
        ("c", 2),
        ("de", 2),
        ("d", 3),
        ("e", 3),
    ]

    def weights(one):
        found = np.zeros(6)
        for feature in one.supporting + one.opposing:
            found[feature.column] = feature.weight
        return found

    of_node = {one.label: weights(one) for one in top}
    along = of_node["cde"] + of_node["de"] + of_node["e"]
    np.testing.assert_allclose(along, clf.coef_[list("abcde").index("e")], atol=1e-12)
    np.testing.assert_allclose(weights(clf.top_features("e", n=6, along_path=True)), along, atol=1e-12)
    np.testing.assert_allclose(weights(clf.top_features(("cde", "de"), n=6)), of_node["de"])


def test_weights_of_scaled_inputs_compare(rng):
    X, y = problem(rng)
    scaled = KernelClassifier("linear", scale="auto", learn=False).fit(X, y)
    standardised = KernelClassifier("linear", learn=False).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    for one, other in zip(scaled.top_features(), standardised.top_features(), strict=True):
        pairs = zip(one.supporting + one.opposing, other.supporting + other.opposing, strict=True)
        assert all(a.column == b.column and a.weight == pytest.approx(b.weight, abs=1e-9) for a, b in pairs)


def test_names_of_features_come_from_wherever_they_are(rng):
    pandas = pytest.importorskip("pandas")
    texts = ["steam plough", "steam engine", "moss green", "green leaf"] * 3
    vectoriser = CountVectorizer()
    X = vectoriser.fit_transform(texts)
    clf = KernelClassifier("linear", learn=False).fit(X, ["machine", "machine", "plant", "plant"] * 3)
    assert clf.top_features("machine", n=1, feature_names=vectoriser).supporting[0].name == "steam"
    words = vectoriser.get_feature_names_out().tolist()
    assert clf.top_features("plant", n=1, feature_names=words).supporting[0].name == "green"
    with pytest.raises(ValueError, match="a name for each of the 6 inputs"):
        clf.top_features("plant", feature_names=words[1:])
    X, y = problem(rng)
    frame = pandas.DataFrame(X, columns=list("uvwxyz"))
    top = KernelClassifier("linear", learn=False).fit(frame, y).top_features("a")
    assert {feature.name for feature in top.supporting} <= set("uvwxyz")


def test_features_print_and_go_into_data_frames(rng):
    pandas = pytest.importorskip("pandas")
    X, y = problem(rng)
    top = KernelClassifier("linear", hierarchy=TREE, learn=False).fit(X, y).top_features(n=1)
    lines = str(top).splitlines()
    assert lines[0] == "ab"
    assert lines[1].startswith("  for      x")
    assert lines[2].startswith("  against  x")
    assert lines[3] == "  a"
    frame = pandas.DataFrame(top.to_rows())
    assert frame.columns.tolist() == ["label", "level", "direction", "rank", "name", "column", "weight"]
    assert ((frame["weight"] > 0) == (frame["direction"] == "for")).all()


@pytest.mark.parametrize("n", [0, -1, 2.5, "all"])
def test_rejects_numbers_that_are_none(rng, n):
    clf = KernelClassifier("linear", learn=False).fit(*problem(rng))
    with pytest.raises(ValueError, match=r"n is .* must be a whole number"):
        clf.top_features(n=n)
    with pytest.raises(ValueError, match=r"n is .* must be a whole number"):
        clf.explain(np.zeros(6), n=n)


def test_rejects_labels_that_are_none(rng):
    X, y = problem(rng)
    flat = KernelClassifier("linear", learn=False).fit(X, y)
    tree = KernelClassifier("linear", hierarchy=TREE, learn=False).fit(X, y)
    with pytest.raises(ValueError, match="unknown class 'z'; classes_ are 'a', 'b'"):
        flat.top_features("z")
    with pytest.raises(ValueError, match="unknown class 'ab'"):
        flat.explain(X, label="ab")
    with pytest.raises(ValueError, match="unknown label 'z'"):
        tree.top_features("z")
    with pytest.raises(ValueError, match="'ab' is no class"):
        tree.explain(X, label="ab")
    named = Hierarchy([-1, 0, 0, 0, 0, 0], ["all", *"abcde"])
    with pytest.raises(ValueError, match="'all' is the root"):
        KernelClassifier("linear", hierarchy=named, learn=False).fit(X, y).top_features("all")


@pytest.mark.parametrize(
    "tree",
    [
        TREE,
        ["A/01/B", "A/01/D", "A/02/B", "H/01/B"],
        [("A", "01", "B"), ("A", "01", "D"), ("A", "02", "B"), ("B", "01", "B")],
        {"x": {"x": ["a", "b"]}, "y": {"z": ["x"]}},
        Hierarchy.parse({"one": {"two": {"three": ["a", "b"]}}, "c": ["two", "d"]}).contract(),
        [-1, 0, 0, 1, 1],
    ],
)
def test_every_node_is_found_by_its_label(tree):
    hierarchy = Hierarchy.parse(tree)
    nodes = range(1, len(hierarchy.parents))
    assert [hierarchy.node_index(hierarchy.node_label(node)) for node in nodes] == list(nodes)
    assert [hierarchy.node_label(leaf) for leaf in hierarchy.leaves.tolist()] == list(hierarchy.classes)


# Explanations

KERNELS = {
    **LINEAR,
    "rbf": KernelClassifier("rbf", learn=False),
    "widths of inputs": KernelClassifier(RBF(ard=True, columns=[0, 2, 3]), learn=False),
    "rbf on a tree": KernelClassifier("rbf", hierarchy=TREE, share="level", learn=False),
    "many kernels": KernelClassifier(
        {"a": Linear(), "b": RBF(3.0), "c": RBF(ard=True), "d": Linear(groups=[0, 1] * 3), "e": RBF(columns=[1])},
        share="class",
        learn=False,
    ),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize("name", KERNELS)
def test_contributions_add_up_to_the_decision(rng, name, scale, sparse):
    X, y = problem(rng, sparse)
    clf = copy.deepcopy(KERNELS[name]).set_params(scale=scale).fit(X, y)
    decisions, probabilities, predicted = clf.decision_function(X), clf.predict_proba(X), clf.predict(X)
    for i, one in enumerate(clf.explain(X, n=3)):
        assert one.label == predicted[i]
        place = clf.classes_.tolist().index(one.label)
        assert one.probability == pytest.approx(probabilities[i, place])
        assert one.decision == pytest.approx(decisions[i, place], abs=1e-9)
        assert one.contributions.sum() + one.rest + one.intercept == pytest.approx(one.decision, abs=1e-12)
        assert len(one.supporting) <= 3
        assert len(one.opposing) <= 3
        assert one.labels.tolist() == y[one.indices].tolist()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 4), kernel=st.sampled_from(["rbf", "linear"]))
def test_every_training_point_counts_once_and_the_hardest_come_first(seed, classes, kernel):
    rng = np.random.default_rng(seed)
    X, y = make_blobs(rng, 25, 3, classes)
    clf = KernelClassifier(kernel, learn=False).fit(X, y)
    label = int(rng.integers(classes))
    whole = clf.explain(X[0], n=None, label=label)
    assert whole.label == label
    assert whole.rest == 0.0
    assert len(np.unique(whole.indices)) == len(whole.indices)
    decision = clf.decision_function(X[:1])[0]
    expected = decision[label] if classes > 2 else (1 if label else -1) * decision
    assert whole.decision == pytest.approx(expected, abs=1e-9)
    few = clf.explain(X[0], n=4, label=label)
    assert few.supporting == whole.supporting[:4]
    assert few.opposing == whole.opposing[:4]
    pulls = [pull.contribution for pull in few.supporting]
    assert pulls == sorted(pulls, reverse=True)


def test_a_contribution_is_the_kernel_times_the_coefficient(rng):
    X, y = problem(rng)
    clf = KernelClassifier(RBF(3.0, 0.8), learn=False).fit(X, y)
    whole = clf.explain(X[7], n=None, label="b")
    kernel = 3.0 * np.exp(-0.8 / 12 * ((X - X[7]) ** 2).sum(axis=1))
    expected = kernel * clf.dual_coef_[:, 1]
    np.testing.assert_allclose(whole.contributions, expected[whole.indices], atol=1e-12)
    assert whole.intercept == clf.intercept_[1]


def test_on_a_tree_points_of_the_branch_count_too(rng):
    X, y = problem(rng)
    clf = KernelClassifier(RBF(3.0, 0.8), hierarchy=TREE, learn=False).fit(X, y)
    whole = clf.explain(X[7], n=None, label="d")
    kernel = 3.0 * np.exp(-0.8 / 12 * ((X - X[7]) ** 2).sum(axis=1))
    a = clf.dual_coef_  # the path of d is cde, de, d
    expected = kernel * (a[:, 2:].sum(axis=1) + a[:, 3:].sum(axis=1) + a[:, 3])
    np.testing.assert_allclose(whole.contributions, expected[whole.indices], atol=1e-12)


def test_given_kernel_matrices_can_be_explained(rng):
    X, y = problem(rng)
    clf = KernelClassifier(Precomputed(2.0), learn=False).fit(X @ X.T, y)
    same = KernelClassifier(Linear(2.0), learn=False).fit(X, y)
    one, other = clf.explain(X[:3] @ X.T, n=4), same.explain(X[:3], n=4)
    assert [a.indices.tolist() for a in one] == [b.indices.tolist() for b in other]
    np.testing.assert_allclose(one[0].contributions, other[0].contributions, rtol=1e-2)


def test_one_point_or_many(rng):
    pandas = pytest.importorskip("pandas")
    X, y = problem(rng)
    clf = KernelClassifier(learn=False).fit(X, y)
    one = clf.explain(X[3])
    for form in (
        X[3].tolist(),
        X[3].astype(np.float32).astype(float),
        scipy.sparse.csr_array(X[3:4]),
        scipy.sparse.coo_array(X[3]),
    ):
        found = clf.explain(form)
        found = found[0] if isinstance(found, list) else found
        assert found.indices.tolist() == one.indices.tolist()
    assert [found.decision for found in clf.explain(np.vstack([X, X, X]))[3::60]] == pytest.approx([one.decision] * 3)
    frame = pandas.DataFrame(X, columns=list("uvwxyz"))
    named = KernelClassifier(learn=False).fit(frame, y)
    assert named.explain(frame.iloc[3]).indices.tolist() == one.indices.tolist()
    with pytest.raises(ValueError, match="feature names"):
        named.explain(frame.iloc[3][::-1])
    with pytest.raises(ValueError, match="6 features"):
        clf.explain(X[3, :4])
    with pytest.raises(NotFittedError):
        KernelClassifier().explain(X)


def test_labels_are_those_of_the_fit(rng):
    X, y = problem(rng)
    assert KernelClassifier(learn=False).fit(X, y).training_labels_.tolist() == y.tolist()
    distributions = 0.9 * np.eye(5)[(y[:, None] == np.array(list("abcde"))).argmax(axis=1)] + 0.02
    assert KernelClassifier(learn=False).fit(X, distributions).training_labels_.tolist() == [
        "abcde".index(label) for label in y
    ]
    coarse = np.where(y == "d", "de", y)
    tree = KernelClassifier("linear", hierarchy=TREE, learn=False).fit(X, coarse)
    assert tree.training_labels_.tolist() == coarse.tolist()
    paths = [("ab" if label in "ab" else "cde", label) for label in y]
    by_path = KernelClassifier("linear", hierarchy=paths, learn=False).fit(X, np.array(paths))
    assert by_path.training_labels_.tolist() == paths
    y_changed = y.copy()
    clf = KernelClassifier(learn=False).fit(X, y_changed)
    y_changed[:] = "a"
    assert clf.training_labels_.tolist() == y.tolist()


def test_explanations_print_and_go_into_data_frames():
    pandas = pytest.importorskip("pandas")
    data = load_iris()
    clf = KernelClassifier(scale="auto", learn=False).fit(data.data, data.target_names[data.target])
    one = clf.explain(data.data[100], n=2)
    lines = str(one).splitlines()
    assert lines[0] == f"virginica, probability {one.probability:.3f}"
    assert lines[1].startswith("decision +")
    assert len(lines) == 6
    frame = pandas.DataFrame(one.to_rows())
    assert frame.columns.tolist() == ["explained", "direction", "point", "label", "contribution"]
    assert frame["direction"].tolist() == ["for", "for", "against", "against"]


@pytest.mark.parametrize("name", ["groups", "levels", "rbf"])
def test_models_that_were_kept_explain_the_same(rng, tmp_path, name):
    X, y = problem(rng)
    clf = copy.deepcopy(KERNELS[name]).set_params(scale="auto").fit(X, y)
    clf.save(tmp_path / "model")
    for back in (nuptse.load(tmp_path / "model"), pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):  # noqa: S301
        for one, other in zip(back.explain(X[:4]), clf.explain(X[:4]), strict=True):
            assert str(one) == str(other)
            np.testing.assert_array_equal(one.contributions, other.contributions)
        np.testing.assert_array_equal(back.intercept_, clf.intercept_)
        assert hasattr(back, "coef_") == hasattr(clf, "coef_")
        if name != "rbf":
            np.testing.assert_array_equal(back.coef_, clf.coef_)
            assert str(back.top_features()) == str(clf.top_features())


def test_files_from_before_labels_were_kept_explain_without_them():
    back = nuptse.load(FIXTURES / "model-1.nuptse")
    inputs = np.load(FIXTURES / "model-1.npz", allow_pickle=False)["X"]
    one = back.explain(inputs[0])
    assert one.labels is None
    assert one.decision == pytest.approx(np.max(back.decision_function(inputs[:1])), abs=1e-9)
    assert "point" in str(one)
    assert one.supporting[0].label is None
