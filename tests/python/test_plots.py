"""Plots: the numbers behind them are right, and so is what is drawn of them."""

import copy
import sys
import warnings

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # noqa: E402

from conftest import make_blobs  # noqa: E402
from nuptse import Hierarchy, KernelClassifier, OneVsRestKernelClassifier, metrics  # noqa: E402
from nuptse._tree_errors import shares_and_errors  # noqa: E402
from nuptse.datasets import make_taxonomy  # noqa: E402
from nuptse.plots import history, reject_curve, reliability, tree_errors, variances  # noqa: E402

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


# Confidence


def test_reliability_draws_the_bins_that_have_points(rng):
    proba = rng.dirichlet(np.ones(3), size=200)
    y = rng.integers(3, size=200)
    weights = rng.uniform(0.5, 2, 200)
    found = metrics.reliability(y, proba, bins=8, sample_weight=weights)
    ax = reliability(y, proba, bins=8, sample_weight=weights)
    filled = found.weight > 0
    np.testing.assert_allclose(ax.lines[1].get_xdata(), found.confidence[filled])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), found.accuracy[filled])
    assert ax.get_title() == f"calibration error {found.error:.1%}"
    areas = ax.collections[0].get_sizes()
    assert areas.argmax() == found.weight[filled].argmax()


def test_reject_curve_draws_the_curve_and_chance(rng):
    y, guess = rng.integers(3, size=(2, 50))
    sure = rng.uniform(size=50)
    curve = metrics.reject_curve(y, guess, sure)
    ax = reject_curve(y, guess, sure)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.column_stack(curve))
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0, 0], [1, curve.error[-1]]])


def test_curves_draw_on_given_axes():
    _, axes = plt.subplots(2)
    assert reliability([0, 1], [[0.6, 0.4], [0.2, 0.8]], ax=axes[0]) is axes[0]
    assert reject_curve([0, 1], [0, 1], [0.5, 0.6], ax=axes[1]) is axes[1]


# Learning


@pytest.fixture(scope="module")
def learned():
    X, y = make_blobs(np.random.default_rng(0), 60, 2, 3)
    clf = KernelClassifier(share={"variance": "class", "shape": "all"}, max_evaluations=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, y)


def test_history_draws_the_criterion_and_all_hyperparameters(learned):
    above, below = history(learned)
    np.testing.assert_allclose(above.lines[0].get_ydata(), [row["value"] for row in learned.history_])
    lines = {line.get_label(): line.get_ydata() for line in below.lines}
    for name in learned.history_[0]["hyperparameters"]:
        np.testing.assert_allclose(lines[name], [row["hyperparameters"][name] for row in learned.history_])
    assert below.get_yscale() == "log"


def test_the_dot_marks_what_was_kept(learned):
    above, below = history(learned)
    assert above.lines[1].get_ydata() == pytest.approx([learned.cv_value_])
    kept = [line.get_ydata()[0] for line in below.lines if line.get_label() == "_nolegend_"]
    names = [name for name in learned.hyperparameters_ if name != "intercept_variance"]
    assert kept == pytest.approx([learned.hyperparameters_[name] for name in names])


def test_few_lines_are_those_that_moved_farthest(learned):
    moves = {
        name: np.ptp(np.log([row["hyperparameters"][name] for row in learned.history_]))
        for name in learned.history_[0]["hyperparameters"]
    }
    _, below = history(learned, max_lines=1)
    assert below.lines[0].get_label() == max(moves, key=moves.get)


def test_variances_are_drawn_by_class(learned):
    ax = variances(learned)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    expected = [learned.hyperparameters_[f"variance[{number}]"] for number in range(3)]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), expected)


def test_of_many_variances_the_outermost_are_drawn(learned):
    values = sorted(learned.hyperparameters_[f"variance[{number}]"] for number in range(3))
    np.testing.assert_allclose(variances(learned, max_rows=2).lines[0].get_xdata(), [values[2], values[0]])


def test_models_of_classes_have_their_names(rng):
    X, y = make_blobs(rng, 40, 2, 2)
    model = OneVsRestKernelClassifier(KernelClassifier(max_evaluations=3, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, np.array(["no", "yes"])[y])
    above, _ = history(model)
    assert [line.get_label() for line in above.lines][::2] == ["Ψ[no]", "Ψ[yes]"]
    assert [label.get_text() for label in variances(model).get_yticklabels()] == ["no", "yes"]


def test_labels_of_classes_are_no_formulas(learned):
    renamed = copy.copy(learned)
    names = {name: name.replace("variance[1]", "variance[$\\frac$]") for name in learned.hyperparameters_}
    renamed.hyperparameters_ = {names[name]: value for name, value in learned.hyperparameters_.items()}
    renamed.history_ = [
        {**row, "hyperparameters": {names[name]: value for name, value in row["hyperparameters"].items()}}
        for row in learned.history_
    ]
    history(renamed)[0].figure.canvas.draw()
    variances(renamed).figure.canvas.draw()


def test_without_learning_there_is_no_history(rng):
    X, y = make_blobs(rng)
    clf = KernelClassifier(learn=False)
    with pytest.raises(NotFittedError):
        history(clf)
    with pytest.raises(ValueError, match="learn=True"):
        history(clf.fit(X, y))
