"""Plots: the numbers behind them are right, and so is what is drawn of them."""

import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from nuptse import Hierarchy  # noqa: E402
from nuptse._tree_errors import shares_and_errors  # noqa: E402
from nuptse.datasets import make_taxonomy  # noqa: E402
from nuptse.plots import tree_errors  # noqa: E402

TREE = Hierarchy.parse({"animal": ["cat", "dog"], "plant": {"tree": ["oak", "elm"], "moss": None}, "stone": None})
Y_TRUE = ["cat", "cat", "cat", "dog", "oak", "elm", "moss", "moss"]
Y_PRED = ["cat", "dog", "oak", "dog", "elm", "elm", "oak", "cat"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def by_label(values):
    return {label: value for label, value in zip(TREE.labels, values, strict=True) if label is not None}


def boxes(ax):
    """Return left, top, right and bottom of every bar."""
    corners = np.array([path.vertices[:4] for path in ax.collections[0].get_paths()])
    return np.hstack([corners.min(axis=1), corners.max(axis=1)])


def written(ax):
    return [text.get_text() for text in ax.texts]


# Numbers


def test_shares_and_errors_of_a_small_tree():
    shares, errors = shares_and_errors(TREE, Y_TRUE, Y_PRED, None)
    assert shares[0] == 1
    assert errors[0] == 0
    assert by_label(shares) == {
        "animal": 4 / 8,
        "plant": 4 / 8,
        "stone": 0,
        "cat": 3 / 8,
        "dog": 1 / 8,
        "tree": 2 / 8,
        "moss": 2 / 8,
        "oak": 1 / 8,
        "elm": 1 / 8,
    }
    assert by_label(errors) == pytest.approx(
        {
            "animal": 1 / 4,
            "plant": 1 / 4,
            "stone": np.nan,
            "cat": 2 / 3,
            "dog": 0,
            "tree": 0,
            "moss": 1,
            "oak": 1,
            "elm": 0,
        },
        nan_ok=True,
    )


def test_a_weight_counts_as_so_many_points():
    weights = [3, 1, 0, 2, 1, 1, 2, 1]
    repeated = [np.repeat(y, weights) for y in (Y_TRUE, Y_PRED)]
    for weighted, counted in zip(
        shares_and_errors(TREE, Y_TRUE, Y_PRED, weights), shares_and_errors(TREE, *repeated, None), strict=True
    ):
        np.testing.assert_allclose(weighted, counted)


def test_errors_agree_with_the_classes_below_every_node():
    documents = make_taxonomy(300, n_classes=40, random_state=0)
    tree, y_true = documents.hierarchy, documents.target
    y_pred = np.random.default_rng(0).permutation(y_true)
    _, errors = shares_and_errors(tree, y_true, y_pred, None)
    for node in range(1, len(tree.labels)):
        below = {tree.classes[number] for number in tree.classes_below(node)}
        inside, predicted_inside = (np.isin(y, list(below)) for y in (y_true, y_pred))
        assert errors[node] == pytest.approx(1 - predicted_inside[inside].mean())


def test_order_of_classes_does_not_matter():
    other = TREE.with_classes(["moss", "dog"])
    for one, same in zip(
        shares_and_errors(TREE, Y_TRUE, Y_PRED, None), shares_and_errors(other, Y_TRUE, Y_PRED, None), strict=True
    ):
        np.testing.assert_array_equal(one, same)


# Drawing


def test_bars_fill_every_level_of_an_even_tree():
    documents = make_taxonomy(400, n_classes=60, random_state=0)
    ax = tree_errors(documents.hierarchy, documents.target, documents.target)
    left, top, right, _ = boxes(ax).T
    for level in range(4):
        assert (right - left)[top == level].sum() == pytest.approx(1)
        np.testing.assert_allclose(left[top == level][1:], right[top == level][:-1], atol=1e-12)


def test_children_are_drawn_below_their_parents():
    ax = tree_errors(TREE, Y_TRUE, Y_PRED)
    shown = [node for node in range(len(TREE.labels)) if TREE.labels[node] != "stone"]
    places = dict(zip(shown, boxes(ax), strict=True))
    for node in shown[1:]:
        parent = places[TREE.parents[node]]
        assert parent[0] <= places[node][0] < places[node][2] <= parent[2]
        assert places[node][1] == parent[1] + 1 == TREE.depths[node]


def test_colours_are_errors_from_none_to_all():
    ax = tree_errors(TREE, Y_TRUE, Y_PRED)
    bars = ax.collections[0]
    _, errors = shares_and_errors(TREE, Y_TRUE, Y_PRED, None)
    np.testing.assert_allclose(bars.get_array(), errors[~np.isnan(errors)])
    assert bars.get_clim() == (0, 1)
    assert bars.colorbar.ax.get_ylabel() == "share of points placed outside the node"


def test_weights_change_the_picture():
    ax = tree_errors(TREE, Y_TRUE, Y_PRED, sample_weight=[1, 0, 0, 0, 0, 0, 0, 3])
    widths = boxes(ax)[:, 2] - boxes(ax)[:, 0]
    assert widths.tolist() == [1, 0.25, 0.75, 0.25, 0.75]
    assert ax.collections[0].get_array().tolist() == [0, 0, 1, 0, 1]


def test_given_axes_are_drawn_on():
    figure, (one, other) = plt.subplots(2)
    assert tree_errors(TREE, Y_TRUE, Y_PRED, ax=other) is other
    assert other.collections
    assert not one.collections
    assert plt.get_fignums() == [figure.number]


def test_axes_of_a_subfigure_will_do():
    part = plt.figure(layout="constrained").subfigures(1, 2)[0]
    assert tree_errors(TREE, Y_TRUE, Y_PRED, ax=part.subplots()).texts


# Labels


def test_labels_are_written_where_there_is_room():
    ax = tree_errors(TREE, Y_TRUE, Y_PRED)
    assert written(ax) == ["all points", "animal", "plant", "cat", "dog", "tree", "moss", "oak", "elm"]


def test_labels_do_not_leave_their_bars():
    documents = make_taxonomy(3000, n_classes=500, random_state=0)
    ax = tree_errors(documents.hierarchy, documents.target, documents.target)
    ax.figure.canvas.draw()
    assert 10 < len(ax.texts) < 80
    for text in ax.texts:
        extent, bar = text.get_window_extent(), text.get_clip_box()
        assert bar.x0 <= extent.x0 < extent.x1 <= bar.x1
        assert bar.y0 <= extent.y0 < extent.y1 <= bar.y1


def test_long_labels_are_shortened():
    tree = Hierarchy.parse(["a label of many words", "costs $1 or $2"])
    ax = tree_errors(tree, tree.classes, tree.classes, max_label=14)
    assert written(ax)[1:] == ["a label of ma…", "costs $1 or $2"]
    ax = tree_errors(tree, tree.classes, tree.classes, max_label=3)
    assert written(ax)[1:] == ["a…", "co…"]


def test_labels_shrink_with_their_bars():
    tree = Hierarchy.parse([("a long label", f"class number {i}") for i in range(12)])
    _, ax = plt.subplots(figsize=(4, 2))
    *_, last = written(tree_errors(tree, tree.classes, tree.classes, ax=ax))
    assert len(last) < len("class number 11")
    assert last.startswith("clas")
    assert last.endswith("…")


# What cannot be drawn


def test_unknown_labels_are_refused_by_name():
    with pytest.raises(ValueError, match="unknown label 'fish'; the hierarchy has"):
        tree_errors(TREE, Y_TRUE, [*Y_PRED[:-1], "fish"])
    with pytest.raises(ValueError, match="'plant' is no class"):
        tree_errors(TREE, ["plant"], ["oak"])


@pytest.mark.parametrize(
    ("y_true", "y_pred", "weights", "message"),
    [
        (["cat", "dog"], ["cat"], None, "inconsistent numbers of samples"),
        (["cat"], ["cat"], [1, 2], "inconsistent numbers of samples"),
        ([], [], None, "there must be points"),
        (["cat", "dog"], ["cat", "dog"], [1, -1], "not below 0"),
        (["cat", "dog"], ["cat", "dog"], [0, 0], "not all 0"),
        (["cat", "dog"], ["cat", "dog"], [1, np.nan], "finite"),
    ],
)
def test_points_that_do_not_fit_are_refused(y_true, y_pred, weights, message):
    with pytest.raises(ValueError, match=message):
        tree_errors(TREE, y_true, y_pred, sample_weight=weights)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install nuptse\[plots\]"):
        tree_errors(TREE, Y_TRUE, Y_PRED)
