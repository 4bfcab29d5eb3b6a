"""Hyperparameters learned by cross-validation."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from conftest import make_blobs
from nuptse import Hierarchy, KernelClassifier
from nuptse._folds import as_folds
from nuptse.datasets import make_taxonomy
from nuptse.kernels import RBF, Linear

TREE = Hierarchy.parse({"x": ["a", "b"], "y": ["c", "d"]})


def naive_criterion(model, X, y, folds, weights):
    """Return the criterion by fits of the estimator itself."""
    total = 0.0
    for held_out in folds:
        kept = np.setdiff1d(np.arange(len(y)), held_out)
        model.fit(X[kept], y[kept], weights[kept])
        proba = model.predict_log_proba(X[held_out])
        columns = np.searchsorted(model.classes_, y[held_out])
        total -= (weights[held_out] * proba[np.arange(len(held_out)), columns]).sum()
    return total


@pytest.mark.parametrize("hierarchy", [None, TREE])
def test_the_criterion_is_the_likelihood_of_points_held_out(rng, hierarchy):
    X, y = make_blobs(rng, 60, 3, 4)
    y = np.array(list("abcd"))[y]
    weights = rng.uniform(0.5, 2, 60)
    folds = [test for _, test in KFold(3).split(X)]
    options = {"hierarchy": hierarchy, "tol": 1e-10, "folds": folds, "learn": False}
    model = KernelClassifier(RBF(3.0, 1.5), **options)
    found = model.cv_criterion(X, y, weights)
    assert found.value == pytest.approx(naive_criterion(model, X, y, folds, weights), rel=1e-8)
    assert found.info["converged"]


def test_the_gradient_lines_up_with_names_and_values(rng):
    X, y = make_blobs(rng, 60, 2, 4)
    y = np.array(list("abcd"))[y]

    def criterion(variances, widths, intercept):
        kernels = {f"level {i + 1}": RBF(v, w) for i, (v, w) in enumerate(zip(variances, widths, strict=True))}
        model = KernelClassifier(
            kernels, hierarchy=TREE, share="level", intercept_variance=intercept, learn_intercept=True, tol=1e-11
        )
        return model.cv_criterion(X, y)

    start = np.log([2.0, 0.7, 1.1, 3.0, 0.5])
    at = lambda logs: criterion(np.exp(logs[:2]), np.exp(logs[2:4]), float(np.exp(logs[4])))  # noqa: E731
    found = at(start)
    assert found.names == [
        "variance[level 1]",
        "variance[level 2]",
        "inverse_width[level 1]",
        "inverse_width[level 2]",
        "intercept_variance",
    ]
    np.testing.assert_allclose(found.values, np.exp(start))
    for i in range(5):
        step = 1e-4 * np.eye(5)[i]
        difference = (at(start + step).value - at(start - step).value) / 2e-4
        assert found.gradient[i] == pytest.approx(difference, rel=1e-5, abs=1e-5)


def test_the_criterion_leaves_the_estimator_alone(rng):
    X, y = make_blobs(rng)
    model = KernelClassifier()
    before = dict(vars(model))
    assert model.cv_criterion(X, y, gradient=False).gradient is None
    assert vars(model) == before


def test_learning_lowers_the_criterion_and_keeps_an_account(rng):
    X, y = make_blobs(rng, 150, 2, 3)
    model = KernelClassifier(RBF(0.1, 20.0), learn=True, share="all").fit(X, y)
    assert model.cv_value_ < model.history_[0]["value"]
    assert model.history_[0]["hyperparameters"] == pytest.approx({"variance": 0.1, "inverse_width": 20.0})
    assert set(model.hyperparameters_) == {"variance", "inverse_width", "intercept_variance"}
    assert model.kernel_.variance == pytest.approx(model.hyperparameters_["variance"])
    assert model.kernel_.inverse_width == pytest.approx(model.hyperparameters_["inverse_width"])
    # Folds keep four fifths of the points, and have the width that suits so many.
    of_folds = RBF(model.kernel_.variance, model.kernel_.inverse_width * 0.8**0.25)
    again = KernelClassifier(of_folds).cv_criterion(X, y)
    assert again.value == pytest.approx(model.cv_value_, rel=1e-3)
    assert np.abs(again.gradient).max() < 1e-2 * again.value
    fixed = KernelClassifier(model.kernel_, learn=False).fit(X, y)
    np.testing.assert_allclose(fixed.predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_the_start_hardly_matters(rng):
    X, y = make_blobs(rng, 150, 2, 3)
    starts = [RBF(), RBF(10_000.0), RBF(0.01), RBF(10.0, 100.0), RBF(10.0, 0.01)]
    values = [KernelClassifier(kernel, learn=True, share="all").fit(X, y).cv_value_ for kernel in starts]
    assert max(values) < 1.01 * min(values)


def test_every_group_learns_its_own(rng):
    X, y = make_blobs(rng, 120, 2, 3)
    tied = KernelClassifier(RBF(), learn=True, share="all").fit(X, y)
    apart = KernelClassifier(RBF(), learn=True, share="class").fit(X, y)
    assert set(apart.hyperparameters_) == {
        *(f"{name}[{label}]" for name in ("variance", "inverse_width") for label in range(3)),
        "intercept_variance",
    }
    assert set(apart.kernel_) == {0, 1, 2}
    assert len({kernel.inverse_width for kernel in apart.kernel_.values()}) == 3
    assert apart.cv_value_ < 1.005 * tied.cv_value_


def test_an_input_without_meaning_is_switched_off(rng):
    X = rng.normal(size=(300, 3)) * [1, 3, 0.1]
    y = np.digitize(np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=300), [-0.5, 0.5])
    model = KernelClassifier(RBF(ard=True), share="all", scale="auto", random_state=0).fit(X, y)
    widths = model.kernel_.inverse_width
    assert widths[0] > 10 * widths[1:].max()


@pytest.mark.parametrize("sparse", [False, True])
def test_groups_of_inputs_learn_weights(rng, sparse):
    X, y = make_blobs(rng, 150, 4, 3)
    X = np.column_stack([X, rng.normal(size=(150, 12))])
    groups = {"useful": range(4), "useless": slice(4, None)}
    rows = scipy.sparse.csr_array(X) if sparse else X
    model = KernelClassifier(Linear(groups=groups), learn=True).fit(rows, y)
    useful, useless = model.kernel_.weights
    assert useful > 5 * useless
    plain = KernelClassifier(Linear(), learn=True).fit(rows, y)
    assert model.cv_value_ < plain.cv_value_


def test_groups_by_frequency_beat_plain_counts():
    made = make_taxonomy(600, n_classes=12, topic_share=0.15, random_state=0)
    options = {"learn": True, "scale": "auto", "folds": 3}
    plain = KernelClassifier(Linear(), **options).fit(made.data, made.target)
    weighted = KernelClassifier(Linear(groups="frequency"), **options).fit(made.data, made.target)
    assert weighted.cv_value_ < plain.cv_value_
    assert 2 <= len(weighted.kernel_.weights) <= 16


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], "for each of the 3 columns"),
        ({"a": [0, 1]}, "column 2 is in no group"),
        ({"a": [0, 1], "b": [1, 2]}, "another group"),
        ("length", "must be 'frequency'"),
    ],
)
def test_groups_that_make_no_sense(rng, groups, message):
    X, y = make_blobs(rng)
    with pytest.raises(ValueError, match=message):
        KernelClassifier(Linear(groups=groups)).fit(X, y)


def test_learning_with_a_tree(rng):
    X, y = make_blobs(rng, 120, 3, 4)
    y = np.array(list("abcd"))[y]
    model = KernelClassifier("rbf", hierarchy=TREE, learn=True).fit(X, y)
    assert {"variance[level 1]", "variance[level 2]", "inverse_width"} <= set(model.hyperparameters_)
    assert model.score(X, y) > 0.6


def test_folds_of_every_kind(rng):
    X, y = make_blobs(rng, 60, 2, 3)
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    lists = [test for _, test in splitter.split(X, y)]
    by_splitter = KernelClassifier(folds=splitter).cv_criterion(X, y)
    by_lists = KernelClassifier(folds=lists).cv_criterion(X, y)
    assert by_splitter.value == by_lists.value
    seeded = [KernelClassifier(folds=3, random_state=seed).cv_criterion(X, y).value for seed in (0, 0, 1)]
    assert seeded[0] == seeded[1] != seeded[2]


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, "at least 2"),
        (100, "100 fold"),
        ("five", "must be a number"),
        ([[0, 1], [1, 2]], "held out already"),
        ([[0], [1]], "point 2 is in no fold"),
        ([[0, 99]], "names point 99"),
        ([[0.5]], "numbers of points"),
    ],
)
def test_folds_that_make_no_sense(rng, folds, message):
    X, y = make_blobs(rng)
    with pytest.raises(ValueError, match=message):
        KernelClassifier(folds=folds, learn=True).fit(X, y)


def families(rng, count=60, size=4):
    """Draw points in families: members are next to each other and of one class, and say nothing of others."""
    centres = rng.normal(size=(count, 3))
    X = np.repeat(centres, size, axis=0) + 1e-3 * rng.normal(size=(count * size, 3))
    return X, np.repeat(rng.integers(0, 2, count), size), np.repeat(np.arange(count), size)


def test_groups_are_held_out_together(rng):
    X, y, groups = families(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trusting = KernelClassifier(random_state=0).fit(X, y)
        wary = KernelClassifier(random_state=0).fit(X, y, groups=groups)
    # Members of a family give each other away; other families are told nothing.
    assert trusting.cv_value_ < 0.2 * len(y)
    assert wary.cv_value_ > 0.6 * len(y)
    same = KernelClassifier(random_state=0, folds=GroupKFold(5))
    value = same.cv_criterion(X, y, groups=groups).value
    given = [test for _, test in GroupKFold(5).split(X, y, groups)]
    assert value == KernelClassifier(folds=given).cv_criterion(X, y).value


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=6, max_size=40).filter(
        lambda points: len({group for group, _ in points}) >= 3
    )
)
def test_no_fold_cuts_through_a_group(points):
    groups, y = np.array(points).T
    folds = as_folds(3, np.zeros((len(y), 1)), y, 0, groups)
    assert isinstance(folds, np.ndarray)
    assert set(folds.tolist()) == set(range(folds.max() + 1))
    for group in np.unique(groups):
        assert len(np.unique(folds[groups == group])) == 1


def test_groups_of_points_that_make_no_sense(rng):
    X, y, groups = families(rng, 6)
    with pytest.raises(ValueError, match="groups has 3 entries, but X has 24 rows"):
        KernelClassifier().fit(X, y, groups=groups[:3])
    with pytest.raises(ValueError, match="there are 2 groups, too few for 5 folds"):
        KernelClassifier().fit(X, y, groups=groups % 2)


def test_a_budget_that_is_too_small_is_told(rng):
    X, y = make_blobs(rng)
    with pytest.warns(ConvergenceWarning, match="after 2 evaluations"):
        model = KernelClassifier(RBF(1e-3), learn=True, max_evaluations=2).fit(X, y)
    assert len(model.history_) == 2
    with pytest.raises(ValueError, match="max_evaluations"):
        KernelClassifier(learn=True, max_evaluations=0).fit(X, y)


def test_the_number_of_threads_changes_nothing(rng):
    X, y = make_blobs(rng, 90, 2, 3)
    models = [KernelClassifier(learn=True, n_threads=threads).fit(X, y) for threads in (1, 3)]
    assert models[0].hyperparameters_ == models[1].hyperparameters_
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


def test_no_warning_where_all_went_well(rng, capsys):
    X, y = make_blobs(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelClassifier(learn=True, verbose=1).fit(X, y)
    assert "evaluation 1 on" in capsys.readouterr().err


def test_a_fit_without_learning_forgets_what_was_learned(rng):
    X, y = make_blobs(rng)
    model = KernelClassifier(learn=True).fit(X, y)
    model.set_params(learn=False).fit(X, y)
    assert not hasattr(model, "history_")
    assert not hasattr(model, "cv_value_")
    assert model.hyperparameters_["variance"] == 10.0


def test_equal_kernels_share_a_matrix_where_nothing_is_learned(rng):
    X, y = make_blobs(rng)
    model = KernelClassifier(RBF(), share="class", learn=False).fit(X, y)
    assert len(model.fit_info_["kernel_matrices"]) == 1
    assert isinstance(model.kernel_, RBF)


def test_learning_is_the_default(rng):
    X, y = make_blobs(rng)
    model = KernelClassifier(random_state=0).fit(X, y)
    assert model.cv_value_ < model.history_[0]["value"]
    assert not hasattr(KernelClassifier(learn=False).fit(X, y), "cv_value_")


def test_bounds_keep_hyperparameters_where_they_belong(rng):
    X, y = make_blobs(rng)
    bounds = {"variance": (2.0, 3.0), "inverse_width": (0.5, 0.6)}
    model = KernelClassifier(RBF(2.5), bounds=bounds, random_state=0).fit(X, y)
    values = model.hyperparameters_
    assert all(2 - 1e-9 <= value <= 3 + 1e-9 for name, value in values.items() if name.startswith("variance"))
    assert 0.5 - 1e-9 <= values["inverse_width"] <= 0.6 + 1e-9
    # A name with its group comes before one without.
    bounds = {"variance": (2.0, 3.0), "variance[1]": (50.0, 60.0)}
    share = {"variance": "class", "shape": "all"}
    values = KernelClassifier(RBF(2.5), share=share, bounds=bounds, random_state=0).fit(X, y).hyperparameters_
    assert 50 - 1e-9 <= values["variance[1]"] <= 60 + 1e-9
    assert 2 - 1e-9 <= values["variance[0]"] <= 3 + 1e-9


def test_priors_pull_hyperparameters(rng):
    X, y = make_blobs(rng)
    model = KernelClassifier(share="all", priors={"variance": (1000.0, 1e-3)}, random_state=0).fit(X, y)
    assert model.hyperparameters_["variance"] == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": {"width": (1, 2)}}, "unknown names"),
        ({"bounds": {"variance": (2, 1)}}, "in order"),
        ({"bounds": {"variance": (0, 1)}}, "positive"),
        ({"bounds": {"variance": 3.0}}, "pair"),
        ({"priors": {"variance": (1.0, -1.0)}}, "positive"),
        ({"priors": {"variance[9]": (1.0, 1.0)}}, "unknown names"),
    ],
)
def test_bounds_and_priors_that_make_no_sense(rng, options, message):
    X, y = make_blobs(rng)
    with pytest.raises(ValueError, match=message):
        KernelClassifier(**options).fit(X, y)


SLOW_FIT = """
import sys
import numpy as np
from nuptse import KernelClassifier
rng = np.random.default_rng(0)
y = np.arange(400) % 4
X = 1.5 * rng.normal(size=(4, 6))[y] + rng.normal(size=(400, 6))
def fit(**options):
    return KernelClassifier(share="class", random_state=0, **options).fit(X, y)
"""


def test_a_fit_that_is_killed_goes_on_where_it_was(tmp_path):
    path = tmp_path / "checkpoint"
    code = SLOW_FIT + f"fit(verbose=1, checkpoint={str(path)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("evaluation 3 on"):
                process.kill()
    assert path.exists()
    names = {}
    exec(SLOW_FIT, names)  # noqa: S102
    whole, resumed = names["fit"](), names["fit"](checkpoint=path)
    assert not path.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, whole.dual_coef_)
    assert [row["value"] for row in resumed.history_] == [row["value"] for row in whole.history_]


def test_a_disk_that_fills_up_does_not_end_learning(tmp_path):
    path = tmp_path / "checkpoint"
    code = f"""{SLOW_FIT}
import os, resource, signal, threading, time, warnings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill():
    while not os.path.exists({str(path)!r}):
        time.sleep(0.001)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
threading.Thread(target=fill, daemon=True).start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fit(checkpoint={str(path)!r})
print([str(one.message) for one in caught if "without its last checkpoints" in str(one.message)])
try:
    fit(checkpoint={str(tmp_path / "other")!r})
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    first, second = done.stdout.strip().splitlines()[-2:]
    assert "could not be written" in first
    assert "could not be written" in second
    assert not list(tmp_path.glob(".nuptse-*"))


def test_a_checkpoint_of_other_data_is_refused_and_kept(tmp_path, rng):
    X, y = make_blobs(rng)
    path = tmp_path / "checkpoint"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="no file of nuptse"):
        KernelClassifier(checkpoint=path).fit(X, y)
    assert path.read_bytes() == b"something else"
    with pytest.raises(OSError, match="could not be written"):
        KernelClassifier(checkpoint=tmp_path / "nowhere" / "file").fit(X, y)


def test_the_automatic_variance_makes_the_scale_of_inputs_irrelevant(rng):
    X, y = make_blobs(rng)
    small = KernelClassifier("linear", learn=False).fit(X, y)
    large = KernelClassifier("linear", learn=False).fit(1000 * X, y)
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(1000 * X), atol=1e-2)
    assert small.kernel_.variance == pytest.approx(5 / (X**2).sum(axis=1).mean())
    assert small.kernel_.variance == pytest.approx(1e6 * large.kernel_.variance)
    with pytest.raises(ValueError, match="must be 'auto' or a number"):
        KernelClassifier(Linear("automatic")).fit(X, y)
    with pytest.raises(ValueError, match="must be a number"):
        KernelClassifier(RBF("auto")).fit(X, y)


@pytest.mark.parametrize("classes", [5, 20])
def test_the_last_fit_is_as_accurate_as_those_that_were_judged(classes):
    """Easy texts have large learned variances, with which a fit at the default tol stops far from its end."""
    made = make_taxonomy(600, n_classes=classes, random_state=0)
    X, y = made.data[::2], made.target[::2]
    options = {"scale": "auto", "intercept_variance": 0.0, "folds": 3, "solver_options": {"max_products": 3000}}
    model = KernelClassifier("linear", **options).fit(X, y)
    assert model.fit_info_["residual"] <= model.fit_info_["tol"] < 1e-5

    def objective(tol):
        found = KernelClassifier(Linear(model.hyperparameters_["variance"]), learn=False, tol=tol, **options).fit(X, y)
        return found.fit_info_["objective"]

    lowest = objective(1e-9)
    assert model.fit_info_["objective"] == pytest.approx(lowest, rel=1e-5)
    assert objective(1e-3) > 1.01 * lowest
