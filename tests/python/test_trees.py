"""Classes that are the leaves of a tree: decisions, masses of nodes, labels that are inner nodes, kernels by level."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from conftest import make_blobs
from nuptse import Hierarchy, KernelClassifier
from nuptse.kernels import RBF, Linear

TREE = Hierarchy.parse({"mammal": ["cat", "dog"], "bird": ["ara", "kea"], "fish": {"flat": ["ray"], "long": ["eel"]}})
NAMES = np.array(["ara", "cat", "dog", "eel", "kea", "ray"])


@pytest.fixture
def data(rng):
    X, y = make_blobs(rng, 120, 3, 6)
    return X, NAMES[y]


def test_the_mass_of_a_node_is_the_sum_of_its_classes(data):
    X, y = data
    model = KernelClassifier(RBF(2.0), hierarchy=TREE, learn=False).fit(X, y)
    masses, proba = model.node_proba(X), model.predict_proba(X)
    assert masses.shape == (120, len(model.hierarchy_.parents))
    for node in range(masses.shape[1]):
        below = model.hierarchy_.classes_below(node)
        np.testing.assert_allclose(masses[:, node], proba[:, below].sum(axis=1), atol=1e-12)
    column = model.hierarchy_.node_index("bird")
    np.testing.assert_allclose(masses[:, column], proba[:, [0, 4]].sum(axis=1))


def test_decisions_minimise_their_expected_loss(data):
    X, y = data
    model = KernelClassifier(RBF(0.3), hierarchy=TREE, learn=False).fit(X, y)
    proba = model.predict_proba(X)
    paths = [{TREE.paths[TREE.node_index(name)][:i] for i in range(1, 5)} for name in NAMES]
    half_path = np.array([[len(a ^ b) / 2 for b in paths] for a in paths])
    parent = [TREE.paths[TREE.node_index(name)][:-1] for name in NAMES]
    other_parent = np.array([[float(a != b) for b in parent] for a in parent])
    for loss, cost in (("zero_one", 1 - np.eye(6)), ("taxonomic", half_path), ("parent", other_parent)):
        expected = proba @ cost
        chosen = np.searchsorted(NAMES, model.predict(X, loss=loss))
        np.testing.assert_allclose(expected[np.arange(120), chosen], expected.min(axis=1), atol=1e-12)


def test_decisions_and_masses_need_a_tree(data):
    X, y = data
    model = KernelClassifier(learn=False).fit(X, y)
    with pytest.raises(ValueError, match="needs a hierarchy"):
        model.predict(X, loss="parent")
    with pytest.raises(ValueError, match="needs a hierarchy"):
        model.node_proba(X)


def test_a_label_may_be_an_inner_node(data):
    X, y = data
    vague = y.astype(object)
    vague[6:60:2] = [TREE.labels[TREE.parents[TREE.node_index(name)]] for name in y[6:60:2]]
    model = KernelClassifier(RBF(3.0), hierarchy=TREE, tol=1e-6, learn=False).fit(X, vague)
    assert model.classes_.tolist() == NAMES.tolist()
    objective = [step["objective"] for step in model.fit_info_["trace"]]
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))
    # α = q − π, where q is π within the node of the label.
    proba, masses = model.predict_proba(X), model.node_proba(X)
    q = np.zeros_like(proba)
    for i, label in enumerate(vague):
        node = model.hierarchy_.node_index(label)
        below = model.hierarchy_.classes_below(node)
        q[i, below] = proba[i, below] / masses[i, node]
    np.testing.assert_allclose(model.dual_coef_, q - proba, atol=1e-5)


def test_labels_of_leaves_give_the_ordinary_fit_whatever_they_are_called(data):
    X, y = data
    plain = KernelClassifier(RBF(3.0), hierarchy=TREE, learn=False).fit(X, y)
    # "flat" and "long" have one class below them each, so they are that class.
    other = np.array([{"ray": "flat", "eel": "long"}.get(name, name) for name in y])
    np.testing.assert_array_equal(
        KernelClassifier(RBF(3.0), hierarchy=TREE, learn=False).fit(X, other).dual_coef_, plain.dual_coef_
    )


def test_points_of_unknown_class_are_those_of_the_root(data):
    X, _ = data
    tree = Hierarchy.parse([("animal", "cat"), ("animal", "dog")])
    labels = np.where(np.arange(120) % 2, "cat", "dog").astype(object)
    labels[100:] = "animal"
    model = KernelClassifier(RBF(3.0), hierarchy=tree, tol=1e-8, learn=False).fit(X, labels)
    known = KernelClassifier(RBF(3.0, model.kernel_.inverse_width), hierarchy=tree, tol=1e-8, learn=False).fit(
        X[:100], labels[:100]
    )
    np.testing.assert_allclose(model.predict_proba(X), known.predict_proba(X), atol=1e-6)


def test_kernels_and_columns_may_differ_by_level(data):
    X, y = data
    tree = Hierarchy.parse({"mammal": ["cat", "dog"], "bird": ["ara", "kea"], "fish": ["ray", "eel"]})
    kernels = {"level 1": Linear(2.0, columns=[0, 1]), "level 2": RBF(1.0, 1.5, columns=[2])}
    model = KernelClassifier(kernels, hierarchy=tree, share="level", intercept_variance=0, tol=1e-8, learn=False).fit(
        X, y
    )
    by_level = {1: 2.0 * X[:, :2] @ X[:, :2].T, 2: np.exp(-0.75 * (X[:, 2:] - X[:, 2]) ** 2)}
    u = np.zeros((120, 6))
    for node, depth in enumerate(tree.depths.tolist()):
        if depth:
            below = [np.searchsorted(NAMES, tree.classes[c]) for c in tree.classes_below(node)]
            u[:, below] += (by_level[depth] @ model.dual_coef_[:, below].sum(axis=1))[:, None]
    np.testing.assert_allclose(model.decision_function(X), u, atol=1e-8)
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("columns", [[0, 2], [0, -1], [True, False, True], slice(0, 3, 2), ["a", "c"]], ids=str)
def test_columns_by_number_mask_slice_or_name(data, columns):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    chosen = KernelClassifier(RBF(2.0, columns=columns), learn=False).fit(frame, y)
    expected = KernelClassifier(RBF(2.0), learn=False).fit(X[:, [0, 2]], y)
    np.testing.assert_array_equal(chosen.predict_proba(frame), expected.predict_proba(X[:, [0, 2]]))


def test_columns_of_sparse_rows(data):
    X, y = data
    sparse = scipy.sparse.csr_array(np.where(X > 0, X, 0))
    chosen = KernelClassifier(Linear(columns=[2, 0]), learn=False).fit(sparse, y)
    expected = KernelClassifier(Linear(), learn=False).fit(sparse[:, [2, 0]], y)
    np.testing.assert_allclose(chosen.predict_proba(sparse), expected.predict_proba(sparse[:, [2, 0]]), atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "message"),
    [([0, 3], "X has 3 columns"), (["a"], "have no names"), ([True], "a mask of length 1"), ([], "must be a list")],
)
def test_columns_that_are_not_there(data, columns, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        KernelClassifier(RBF(columns=columns), learn=False).fit(X, y)


def test_the_score_of_an_inner_node_counts_all_classes_below(data):
    X, y = data
    model = KernelClassifier(RBF(2.0), hierarchy=TREE, learn=False).fit(X, y)
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))
    vague = [TREE.paths[TREE.node_index(name)][0] for name in y]
    guess = [TREE.paths[TREE.node_index(name)][0] for name in model.predict(X)]
    assert model.score(X, vague) == pytest.approx(np.mean(np.array(vague) == np.array(guess)))
    with pytest.raises(ValueError, match="unknown label 'cow'"):
        model.score(X, ["cow"] * 120)
    with pytest.raises(ValueError, match="119 labels"):
        model.score(X, y[1:])


def test_the_same_name_under_two_parents(rng):
    X, y = make_blobs(rng, 90, 3, 3)
    paths = [("food", "fruit"), ("food", "bread"), ("paint", "fruit")]
    labels = [paths[label] for label in y]
    model = KernelClassifier(RBF(3.0), hierarchy=Hierarchy.from_paths(paths), learn=False).fit(X, labels)
    assert set(model.classes_) == {("food", "fruit"), "bread", ("paint", "fruit")}
    assert model.score(X, labels) > 0.6
    guess = model.predict(X, loss="taxonomic")
    assert guess.shape == (90,)
    assert model.score(X, labels, sample_weight=np.ones(90)) == model.score(X, labels)
