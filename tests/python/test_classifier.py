"""The classifier: agreement with other people's code, input of every kind, and errors."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as peer_kernels
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

import nuptse
from conftest import make_blobs
from nuptse import KernelClassifier
from nuptse.kernels import RBF, Linear, Precomputed

# Agreement with other people's code


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("variance", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_linear_kernel_is_logistic_regression(rng, classes, variance, sparse):
    X, y = make_blobs(rng, 90, 4, classes)
    weights = rng.uniform(0.5, 2, len(y))
    given = scipy.sparse.csr_array(X) if sparse else X
    ours = KernelClassifier(Linear(variance), intercept_variance=0, tol=1e-9, learn=False).fit(given, y, weights)
    coefficients = variance * X.T @ ours.dual_coef_
    # scikit-learn fits two classes with one function f = u_1 - u_0, whose penalty is that of u_1 = -u_0 = f/2.
    strength = 2 * variance if classes == 2 else variance
    peer = LogisticRegression(C=strength, fit_intercept=False, tol=1e-10, max_iter=10000).fit(X, y, weights)
    if classes == 2:
        np.testing.assert_allclose(coefficients[:, 1] - coefficients[:, 0], peer.coef_[0], atol=1e-5)
    else:
        np.testing.assert_allclose(coefficients.T, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(given), peer.predict_proba(X), atol=1e-5)


def test_two_half_kernels_give_the_mode_of_gaussian_process_classification(rng):
    X, y = make_blobs(rng, 80, 2, 2)
    length = 0.8
    peer = GaussianProcessClassifier(peer_kernels.RBF(length), optimizer=None).fit(X, y)
    kernel = RBF(variance=0.5, inverse_width=X.shape[1] / length**2)
    ours = KernelClassifier(kernel, intercept_variance=0, tol=1e-9, learn=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], peer.base_estimator_.pi_, atol=1e-6)


def test_extreme_variance_converges():
    X, y = load_digits(return_X_y=True)
    info = KernelClassifier(RBF(variance=1e4), tol=1e-6, learn=False).fit(X, y).fit_info_
    assert info["converged"]
    assert info["residual"] <= 1e-6


def test_exact_and_iterative_solver_agree(rng):
    X, y = make_blobs(rng)
    fits = [KernelClassifier(solver=solver, tol=1e-10, learn=False).fit(X, y) for solver in ("exact", "newton-cg")]
    np.testing.assert_allclose(fits[0].dual_coef_, fits[1].dual_coef_, atol=1e-8)
    assert [fit.fit_info_["solver"] for fit in fits] == ["exact", "newton-cg"]


def test_precomputed_kernel_is_the_kernel(rng):
    X, y = make_blobs(rng)
    squares = ((X[:, None] - X[None]) ** 2).sum(-1)
    gram = np.exp(-squares / (2 * X.shape[1]))
    rbf = KernelClassifier(RBF(3.0, inverse_width=1.0), tol=1e-9, learn=False).fit(X, y)
    ours = KernelClassifier(Precomputed(3.0), tol=1e-9, learn=False).fit(gram, y)
    np.testing.assert_allclose(ours.predict_proba(gram[:7]), rbf.predict_proba(X[:7]), atol=1e-8)
    assert cross_val_score(KernelClassifier("precomputed", learn=False), gram, y, cv=3).min() > 0.5


# Input of every kind


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_memory_order_type_and_sparse_format_do_not_matter(rng, kernel):
    X, y = make_blobs(rng)
    X[np.abs(X) < 1] = 0
    X = X.astype(np.float32).astype(np.float64)
    expected = KernelClassifier(kernel, tol=1e-9, learn=False).fit(X, y).predict_proba(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    coo = scipy.sparse.coo_array(X)
    doubled = scipy.sparse.coo_array(
        (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=X.shape
    )
    forms = [np.asfortranarray(X), X.astype(np.float32), X[::-1][::-1], read_only, X.tolist(), doubled]
    forms += [scipy.sparse.csr_matrix(X), scipy.sparse.csc_array(X), coo, scipy.sparse.lil_array(X)]
    for form in forms:
        model = KernelClassifier(kernel, tol=1e-9, learn=False).fit(form, y)
        np.testing.assert_allclose(model.predict_proba(form), expected, atol=1e-7)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-7)


@pytest.mark.parametrize("labels", [[3, 1, 7], ["b", "ä", "c"], [True, False], np.array(["x", "why"], dtype=object)])
def test_labels_keep_their_type(rng, labels):
    X, y = make_blobs(rng, classes=len(labels))
    y = np.asarray(labels)[y]
    model = KernelClassifier(learn=False).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert set(model.predict(X)) <= set(labels)
    assert model.score(X, y) > 0.5


def test_label_order_does_not_matter(rng):
    X, y = make_blobs(rng)
    renamed = np.array([2, 0, 1])[y]
    p, q = (KernelClassifier(tol=1e-9, learn=False).fit(X, labels).predict_proba(X) for labels in (y, renamed))
    np.testing.assert_allclose(p, q[:, [2, 0, 1]], atol=1e-8)


def test_distributions_as_targets(rng):
    X, y = make_blobs(rng)
    hard = KernelClassifier(tol=1e-9, learn=False).fit(X, y)
    soft = KernelClassifier(tol=1e-9, learn=False).fit(X, np.eye(3)[y])
    np.testing.assert_allclose(soft.predict_proba(X), hard.predict_proba(X), atol=1e-8)
    assert soft.classes_.tolist() == [0, 1, 2]
    # Half of each of two labels is what both points together, at half weight, are.
    half = KernelClassifier(tol=1e-9, learn=False).fit(X, (np.eye(3)[y] + np.eye(3)[(y + 1) % 3]) / 2)
    both = KernelClassifier(inverse := RBF(10, 2 / X.var(axis=0).mean()), tol=1e-9, learn=False)
    both.fit(np.vstack([X, X]), np.concatenate([y, (y + 1) % 3]), np.full(2 * len(y), 0.5))
    assert inverse.inverse_width == pytest.approx(half.kernel_.inverse_width)
    np.testing.assert_allclose(half.predict_proba(X), both.predict_proba(X), atol=1e-8)


def test_pandas_keeps_feature_names(rng):
    pandas = pytest.importorskip("pandas")
    X, y = make_blobs(rng)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = KernelClassifier(learn=False).fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    points=st.integers(4, 30),
    inputs=st.integers(1, 5),
    classes=st.integers(2, 4),
    kernel=st.sampled_from(["rbf", "linear"]),
    scale=st.sampled_from([None, "auto"]),
    sparse=st.booleans(),
)
def test_probabilities_are_probabilities(seed, points, inputs, classes, kernel, scale, sparse):
    rng = np.random.default_rng(seed)
    X, y = make_blobs(rng, points, inputs, classes)
    X = scipy.sparse.csr_array(X) if sparse else X
    model = KernelClassifier(kernel, scale=scale, learn=False).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (points, classes)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0, atol=1e-10)
    assert model.fit_info_["residual"] <= model.tol


# Kernels and sharing


def test_every_class_may_have_a_kernel_of_its_own(rng):
    X, y = make_blobs(rng)
    kernels = {0: RBF(2.0, 0.5), 1: Linear(1.0), 2: RBF(4.0, 0.5)}
    model = KernelClassifier(kernels, share="class", tol=1e-10, learn=False).fit(X, y)
    exact = KernelClassifier(kernels, share="class", tol=1e-10, solver="exact", learn=False).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, exact.dual_coef_, atol=1e-8)
    assert model.hyperparameters_ == {
        "variance[0]": 2.0,
        "variance[1]": 1.0,
        "variance[2]": 4.0,
        "inverse_width[0]": 0.5,
        "inverse_width[2]": 0.5,
        "intercept_variance": 1.0,
    }
    assert {group: kernel.variance for group, kernel in model.kernel_.items()} == {0: 2.0, 1: 1.0, 2: 4.0}


def test_groups_of_classes_may_share_a_kernel(rng):
    X, y = make_blobs(rng)
    y = np.array(["a", "b", "c"])[y]
    share = {"a": "first", "b": "rest", "c": "rest"}
    model = KernelClassifier({"first": RBF(2.0, 1.0), "rest": RBF(3.0, 2.0)}, share=share, learn=False).fit(X, y)
    assert model.hyperparameters_["variance[rest]"] == 3.0
    assert model.hyperparameters_["inverse_width[first]"] == 1.0


def test_widths_of_every_input(rng):
    X, y = make_blobs(rng)
    one = KernelClassifier(RBF(2.0, 0.7), tol=1e-9, learn=False).fit(X, y)
    many = KernelClassifier(RBF(2.0, 0.7, ard=True), tol=1e-9, learn=False).fit(X, y)
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-8)
    assert many.hyperparameters_["inverse_width[2]"] == 0.7
    np.testing.assert_array_equal(many.kernel_.inverse_width, [0.7] * 3)
    # An input of width zero in the limit is no input at all.
    without = KernelClassifier(RBF(2.0, [0.7, 0.7, 1e-300]), learn=False).fit(X, y)
    moved = X.copy()
    moved[:, 2] += 100
    np.testing.assert_allclose(without.predict_proba(X), without.predict_proba(moved), atol=1e-12)


def test_automatic_width_follows_the_scale_of_the_inputs(rng):
    X, y = make_blobs(rng)
    model, scaled = (
        KernelClassifier(tol=1e-9, learn=False).fit(X, y),
        KernelClassifier(tol=1e-9, learn=False).fit(1000 * X, y),
    )
    assert model.kernel_.inverse_width == pytest.approx(2 / X.var(axis=0).mean())
    np.testing.assert_allclose(model.predict_proba(X), scaled.predict_proba(1000 * X), atol=1e-7)


def test_grid_search_reaches_into_the_kernel(rng):
    X, y = make_blobs(rng)
    search = GridSearchCV(
        KernelClassifier(RBF(), learn=False), {"kernel__variance": [0.1, 10.0]}, scoring="neg_log_loss", cv=3
    )
    assert search.fit(X, y).best_params_["kernel__variance"] in {0.1, 10.0}


# Fitted models


@pytest.mark.parametrize("kernel", [RBF(), RBF(ard=True), Linear(), {0: Linear(), 1: RBF(), 2: RBF(3.0)}])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [None, "auto"])
def test_pickle_keeps_predictions_to_the_bit(rng, kernel, sparse, scale):
    X, y = make_blobs(rng)
    X = scipy.sparse.csr_array(X) if sparse else X
    model = KernelClassifier(kernel, scale=scale, learn=False).fit(X, y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_single_precision_is_close_to_double(rng):
    X, y = make_blobs(rng)
    double, single = (KernelClassifier(precision=p, tol=1e-6, learn=False).fit(X, y) for p in ("double", "single"))
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-5)
    assert not np.array_equal(single.dual_coef_, double.dual_coef_)


def test_scaling_is_kept_for_prediction(rng):
    X, y = make_blobs(rng)
    X = X * [1, 100, 0.01] + [5, 0, -3]
    model = KernelClassifier(scale="auto", tol=1e-9, learn=False).fit(X, y)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = KernelClassifier(tol=1e-9, learn=False).fit(standardised, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(standardised), atol=1e-8)


def test_a_fit_that_cannot_reach_its_goal_warns_with_figures(rng):
    X, y = make_blobs(rng)
    with pytest.warns(ConvergenceWarning, match=r"max\|alpha \+ g\| = .* above tol = 1e-30"):
        model = KernelClassifier(tol=1e-30, learn=False).fit(X, y)
    assert model.fit_info_["residual"] < 1e-12
    assert not model.fit_info_["converged"]


def test_verbose_prints_the_steps(rng, capsys):
    X, y = make_blobs(rng)
    KernelClassifier(verbose=1, learn=False).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("step 0:")
    KernelClassifier(learn=False).fit(X, y)
    assert capsys.readouterr() == ("", "")


# Bad input


def bad_inputs():
    X, y = make_blobs(np.random.default_rng(1))
    with_nan, with_infinity = X.copy(), X.copy()
    with_nan[3, 1], with_infinity[3, 1] = np.nan, np.inf
    sparse_nan = scipy.sparse.csr_array(with_nan)
    soft = np.full((60, 3), 1 / 3)
    negative, short = soft.copy(), soft.copy()
    negative[4] = [1.2, -0.2, 0.0]
    short[4] = [0.3, 0.3, 0.3]
    ones = np.ones(60)
    return [
        ("nan", {}, (with_nan, y), "NaN"),
        ("infinity", {}, (with_infinity, y), "infinity"),
        ("sparse nan", {"kernel": "linear"}, (sparse_nan, y), "NaN"),
        ("one class", {}, (X, ones), "at least 2 classes"),
        ("no points", {}, (X[:0], y[:0]), "0 sample"),
        ("X is flat", {}, (X[:, 0], y), "2D array"),
        ("y is short", {}, (X, y[:-1]), "inconsistent numbers of samples"),
        ("y is a number that goes on", {}, (X, X[:, 0]), "continuous"),
        ("weights are short", {}, (X, y, ones[:-1]), "expected 60, found 59"),
        ("weights are square", {}, (X, y, np.ones((60, 2))), "2 dimensions"),
        ("a weight is negative", {}, (X, y, -ones), "sample weight -1 of point 0"),
        ("a weight is nan", {}, (X, y, np.nan * ones), "sample weight NaN of point 0"),
        ("no weight counts", {}, (X, y, 0 * ones), "all sample weights are zero"),
        ("a target is negative", {}, (X, negative), "of point 4"),
        ("a target does not sum to one", {}, (X, short), "targets of point 4 sum to 0.[89]"),
        ("variance is zero", {"kernel": RBF(0.0)}, (X, y), "variance is 0, but must be positive"),
        ("variance is negative", {"kernel": Linear(-1.0)}, (X, y), "variance is -1, but must be positive"),
        ("variance is nan", {"kernel": RBF(np.nan)}, (X, y), "variance is NaN"),
        ("width is zero", {"kernel": RBF(inverse_width=0.0)}, (X, y), "inverse_width is 0"),
        ("width is unknown", {"kernel": RBF(inverse_width="wide")}, (X, y), "must be 'auto'"),
        ("widths are short", {"kernel": RBF(inverse_width=[1.0, 2.0])}, (X, y), "expected 3, found 2"),
        ("intercept variance is negative", {"intercept_variance": -1}, (X, y), "intercept_variance is -1"),
        ("tol is zero", {"tol": 0}, (X, y), "tol is 0"),
        ("unknown kernel", {"kernel": "gaussian"}, (X, y), "unknown kernel 'gaussian'; use one of 'rbf', 'linear'"),
        ("unknown solver", {"solver": "sgd"}, (X, y), "unknown solver 'sgd'; use one of 'auto', 'newton-cg'"),
        ("unknown scale", {"scale": "minmax"}, (X, y), "unknown scale 'minmax'"),
        ("unknown precision", {"precision": "half"}, (X, y), "unknown precision 'half'"),
        ("unknown share", {"share": "some"}, (X, y), "unknown share 'some'"),
        ("share needs a tree", {"share": "level"}, (X, y), "needs a hierarchy"),
        ("share misses a class", {"share": {0: "a", 1: "a", 7: "b"}}, (X, y), r"missing are \[2\], unknown are \[7\]"),
        ("kernel misses a group", {"kernel": {0: "rbf", 1: "rbf"}}, (X, y), r"missing are \[2\]"),
        ("gram is not square", {"kernel": "precomputed"}, (X, y), "must be square"),
        ("gram is not symmetric", {"kernel": "precomputed"}, (np.triu(np.ones((60, 60))), y), "not symmetric"),
        ("gram is sparse", {"kernel": "precomputed"}, (scipy.sparse.eye_array(60).tocsr(), y), "must be dense"),
        ("gram cannot be scaled", {"kernel": "precomputed", "scale": "auto"}, (np.eye(60), y), "scale=None"),
        (
            "gram has negative eigenvalues",
            {"kernel": "precomputed", "solver": "exact"},
            (-np.eye(60) * 9, y),
            "semidefinite",
        ),
        ("no threads", {"n_threads": 0}, (X, y), "n_threads is 0"),
    ]


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"), [case[1:] for case in bad_inputs()], ids=[case[0] for case in bad_inputs()]
)
def test_bad_input_gets_one_clear_error_and_leaves_no_partial_state(rng, parameters, arguments, message):
    model = KernelClassifier(**parameters, learn=False)
    with pytest.raises(ValueError, match=message):
        model.fit(*arguments)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "dual_coef_")
    # A model that was good before is as good after.
    X, y = make_blobs(rng)
    good = KernelClassifier(learn=False).fit(X, y)
    before = good.predict_proba(X)
    good.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        good.fit(*arguments)
    good.set_params(**KernelClassifier(learn=False).get_params())
    np.testing.assert_array_equal(good.predict_proba(X), before)


def test_a_matrix_that_does_not_fit_is_not_stored(rng, caplog):
    X, y = rng.normal(size=(3000, 2)), rng.integers(0, 3, 3000)
    stored = KernelClassifier(learn=False).fit(X, y)
    single = KernelClassifier(memory_limit=30_000_000, learn=False).fit(X, y)
    with caplog.at_level("INFO", "nuptse"):
        free = KernelClassifier(memory_limit=17_000_000, learn=False).fit(X, y)
    assert stored.fit_info_["kernel_matrices"] == ["stored in double precision"]
    assert single.fit_info_["kernel_matrices"] == ["stored in single precision"]
    assert free.fit_info_["kernel_matrices"] == ["matrix-free"]
    assert "kernel matrices: matrix-free" in caplog.text
    np.testing.assert_array_equal(free.dual_coef_, stored.dual_coef_)
    np.testing.assert_allclose(single.dual_coef_, stored.dual_coef_, atol=1e-3)


def test_what_does_not_fit_at_all_says_how_large_it_is(rng):
    X, y = make_blobs(rng)
    message = r"the arrays of the fit needs \d+ bytes .* only 1000 bytes"
    with pytest.raises(nuptse.MemoryLimitError, match=message) as caught:
        KernelClassifier(memory_limit=1000, learn=False).fit(X, y)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.bytes_needed > caught.value.bytes_allowed == 1000
    assert "linear kernel" in str(caught.value)
    with pytest.raises(nuptse.MemoryLimitError, match=r"the kernel matrix needs 32768 bytes .* only \d+ bytes"):
        KernelClassifier("precomputed", memory_limit=40_000, learn=False).fit(np.eye(60), y)
    with pytest.raises(nuptse.MemoryLimitError, match="the exact solver needs"):
        KernelClassifier(solver="exact", memory_limit=100_000, learn=False).fit(X, y)


def test_decisions_that_need_a_tree_say_so(rng):
    X, y = make_blobs(rng)
    model = KernelClassifier(learn=False).fit(X, y)
    with pytest.raises(ValueError, match="needs a hierarchy"):
        model.predict(X, loss="taxonomic")
    with pytest.raises(ValueError, match="unknown loss"):
        model.predict(X, loss="hinge")


def test_no_warning_and_no_output_in_ordinary_use(rng, capfd):
    X, y = make_blobs(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(KernelClassifier(scale="auto", learn=False)).fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")
