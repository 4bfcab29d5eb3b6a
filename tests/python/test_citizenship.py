"""The estimator among others: what scikit-learn, pandas and polars offer around a classifier works with it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import DecisionBoundaryDisplay, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    LearningCurveDisplay,
    RandomizedSearchCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from conftest import make_blobs
from nuptse import Hierarchy, KernelClassifier, OneVsRestKernelClassifier
from nuptse.kernels import RBF, Linear, Precomputed

TREE = {"left": ["a", "b"], "right": ["c"]}
NUMBERED = {10: [0, 1], 20: [2]}


@pytest.fixture
def blobs(rng):
    X, y = make_blobs(rng)
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def quick(kernel="rbf", **options):
    return KernelClassifier(kernel, learn=False, **options)


# Pipelines


def test_pipelines_hand_on_weights_and_names(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    weights = np.arange(len(y)) % 3 + 0.5
    pipe = make_pipeline(StandardScaler(), quick()).fit(X, y, kernelclassifier__sample_weight=weights)
    peer = quick().fit(StandardScaler().fit_transform(X), y, weights)
    np.testing.assert_array_equal(pipe.predict_proba(X), peer.predict_proba(StandardScaler().fit_transform(X)))
    assert pipe.score(X, y) > 0.7
    assert pipe.set_params(kernelclassifier__kernel__variance=3.0)[-1].kernel == RBF(3.0)
    frame = pandas.DataFrame(X, columns=["height", "width", "depth"])
    named = make_pipeline(StandardScaler(), quick("linear")).set_output(transform="pandas").fit(frame, y)
    assert named[-1].feature_names_in_.tolist() == ["height", "width", "depth"]
    assert named[-1].top_features("a", n=1).supporting[0].name in {"height", "width", "depth"}


def test_texts_go_through_a_pipeline_with_a_tree():
    texts = ["steam engine wheel", "steam plough field", "green moss leaf"] * 5
    labels = ["a", "b", "c"] * 5
    pipe = make_pipeline(TfidfVectorizer(), quick("linear", hierarchy=TREE)).fit(texts, labels)
    assert pipe.predict(["a steam plough in a field"]).tolist() == ["b"]
    top = pipe[-1].top_features("left", n=1, feature_names=pipe[0])
    assert top.supporting[0].name == "steam"
    assert pipe[-1].explain(pipe[:-1].transform(["moss"]))[0].label == "c"


def test_columns_of_any_kind_through_a_column_transformer(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    frame = pandas.DataFrame(X, columns=list("uvw")).assign(colour=np.where(X[:, 0] > 0, "red", "blue"))
    columns = make_column_transformer((StandardScaler(), list("uvw")), (OneHotEncoder(), ["colour"]))
    pipe = make_pipeline(columns, quick("linear")).fit(frame, y)
    names = pipe[-1].top_features("a", n=5, feature_names=columns)
    assert {one.name for one in names.supporting + names.opposing} <= set(columns.get_feature_names_out())


def test_a_classifier_has_nothing_to_set_the_output_of(blobs):
    """Only transformers have set_output; in a pipeline it is about the steps before."""
    X, y = blobs
    assert not hasattr(quick(), "transform")
    assert not hasattr(quick(), "set_output")
    pandas = pytest.importorskip("pandas")
    select = SelectFromModel(quick("linear"), threshold=-np.inf, max_features=2).set_output(transform="pandas")
    assert select.fit_transform(pandas.DataFrame(X, columns=list("uvw")), y).shape == (len(y), 2)


def test_inputs_are_chosen_by_their_coefficients(rng):
    X, y = make_blobs(rng, 90, 3)
    X = np.column_stack([X[:, 0], 0.01 * rng.normal(size=90), X[:, 1:]])
    assert SelectFromModel(quick("linear"), threshold=0.05).fit(X, y).get_support().tolist() == [
        True,
        False,
        True,
        True,
    ]
    assert RFE(quick("linear"), n_features_to_select=3).fit(X, y).support_.tolist() == [True, False, True, True]


# Model selection


@pytest.mark.parametrize("sparse", [False, True])
def test_cross_validate_with_several_scores(blobs, sparse):
    X, y = blobs
    X = scipy.sparse.csr_array(X) if sparse else X
    found = cross_validate(
        quick("linear"), X, y, cv=3, scoring=["accuracy", "neg_log_loss", "roc_auc_ovr"], return_estimator=True
    )
    assert found["test_accuracy"].mean() > 0.7
    assert np.isfinite(found["test_neg_log_loss"]).all()
    assert all(one.coef_.shape == (3, 3) for one in found["estimator"])
    assert cross_val_predict(quick(), X, y, cv=3, method="predict_proba").shape == (60, 3)


def test_cross_validate_of_a_model_that_learns_with_jobs(blobs):
    X, y = blobs
    estimator = KernelClassifier(scale="auto", random_state=0, n_threads=1)
    alone, together = (cross_validate(estimator, X, y, cv=2, n_jobs=jobs)["test_score"] for jobs in (1, 2))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelClassifier(),
        KernelClassifier(RBF(inverse_width=[1.0, 2.0]), bounds={"variance": (0.1, 10)}),
        KernelClassifier(Linear(groups={"a": [0], "b": [1, 2]}, columns=slice(0, 3))),
        KernelClassifier({"left": RBF(2.0), "right": Linear(columns=np.array([0, 1]))}, share={"a": "left"}),
        KernelClassifier("linear", hierarchy=Hierarchy.parse(TREE), random_state=0),
        OneVsRestKernelClassifier(KernelClassifier(Linear(3.0))),
    ],
    ids=lambda estimator: repr(estimator)[:40],
)
def test_clones_are_equal_and_independent(estimator):
    copy = clone(estimator)
    assert repr(copy) == repr(estimator)
    for name, value in estimator.get_params(deep=False).items():
        other = copy.get_params(deep=False)[name]
        assert type(other) is type(value)
        if name in {"kernel", "hierarchy"}:
            assert other == value
            assert other is not value or isinstance(value, str | type(None))


def test_kernels_compare_by_what_they_are():
    assert RBF(2.0) == RBF(2.0)
    assert RBF(2.0) != RBF(3.0)
    assert RBF(2.0) != Linear(2.0)
    assert RBF() != "rbf"
    assert RBF(inverse_width=np.array([1.0, 2.0])) == RBF(inverse_width=[1.0, 2.0])
    assert RBF(inverse_width=np.array([1.0, 2.0])) != RBF(inverse_width=np.array([1.0, 2.0, 3.0]))
    assert RBF(inverse_width="auto") != RBF(inverse_width=np.array([1.0, 2.0]))
    assert Linear(groups={"a": np.array([0, 1])}) == Linear(groups={"a": [0, 1]})
    assert Linear(columns=slice(0, 2)) == clone(Linear(columns=slice(0, 2)))
    assert len({RBF(2.0), RBF(2.0), Linear(2.0), Precomputed()}) == 3
    assert repr(RBF(variance=3.0, ard=True)) == "RBF(ard=True, variance=3.0)"
    changed = RBF(2.0)
    seen = {changed}
    assert changed.set_params(variance=3.0) in seen
    assert eval(repr(Linear(0.5)), {"Linear": Linear}) == Linear(0.5)  # noqa: S307
    assert pickle.loads(pickle.dumps(RBF(2.0, columns=[1]))) == RBF(2.0, columns=[1])  # noqa: S301


@pytest.mark.parametrize("kernel", ["rbf", RBF()])
def test_a_grid_reaches_into_the_kernel_by_name_or_object(blobs, kernel):
    X, y = blobs
    estimator = quick(kernel)
    search = GridSearchCV(estimator, {"kernel__variance": [0.01, 10.0], "kernel__ard": [False, True]}, cv=3)
    search.fit(X, y)
    assert search.best_estimator_.kernel == RBF(**{name[8:]: one for name, one in search.best_params_.items()})
    assert estimator.kernel is kernel
    assert "kernel__variance" in KernelClassifier(RBF()).get_params()


def test_a_grid_of_kernels(blobs):
    X, y = blobs
    kernels = ["rbf", RBF(3.0), Linear(), Linear(groups=[0, 0, 1])]
    search = GridSearchCV(quick(), {"kernel": kernels}, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["kernel"] in kernels
    assert list(search.cv_results_["param_kernel"]) == kernels
    both = {"kernel": ["linear", "rbf"], "kernel__variance": [0.5, 5.0]}
    assert len(GridSearchCV(quick(), both, cv=2).fit(X, y).cv_results_["params"]) == 4


def test_parameters_of_kernels_that_are_not_there_are_told():
    with pytest.raises(ValueError, match=r"Invalid parameter 'inverse_width' for estimator Linear"):
        KernelClassifier("linear").set_params(kernel__inverse_width=1.0)
    with pytest.raises(ValueError, match="kernel for every group; set kernel to a dict"):
        KernelClassifier({"a": RBF(), "b": RBF()}).set_params(kernel__variance=1.0)
    with pytest.raises(ValueError, match="unknown kernel 'gaussian'"):
        KernelClassifier("gaussian").set_params(kernel__variance=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'width'"):
        KernelClassifier().set_params(width=1.0)
    assert KernelClassifier("rbf").set_params(tol=0.1).kernel == "rbf"


def test_random_and_halving_searches(blobs):
    X, y = blobs
    random = RandomizedSearchCV(
        quick(RBF()), {"kernel__variance": loguniform(0.1, 10)}, n_iter=3, cv=2, random_state=0
    ).fit(X, y)
    assert 0.1 <= random.best_params_["kernel__variance"] <= 10
    halving = HalvingGridSearchCV(
        quick("linear"), {"kernel__variance": [0.01, 0.1, 1.0, 10.0]}, cv=2, random_state=0
    ).fit(X, y)
    assert halving.score(X, y) > 0.7


def test_a_search_over_precomputed_kernels_cuts_both_sides(blobs):
    X, y = blobs
    gram = X @ X.T
    search = GridSearchCV(quick("precomputed"), {"kernel__variance": [0.1, 1.0]}, cv=3).fit(gram, y)
    same = GridSearchCV(quick("linear"), {"kernel__variance": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])


# Metadata


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_fit_and_score(blobs):
    X, y = blobs
    weights = (np.arange(len(y)) % 4 > 0).astype(float)
    estimator = quick().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    routed = cross_validate(
        estimator, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True, return_indices=True
    )
    for model, train, test, score in zip(
        routed["estimator"], routed["indices"]["train"], routed["indices"]["test"], routed["test_score"], strict=True
    ):
        peer = quick().fit(X[train], y[train], weights[train])
        np.testing.assert_array_equal(model.predict_proba(X), peer.predict_proba(X))
        assert score == peer.score(X[test], y[test], weights[test])


@pytest.mark.usefixtures("routing")
def test_what_nobody_has_asked_for_is_not_guessed(blobs):
    X, y = blobs
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(quick(), X, y, params={"sample_weight": np.ones(len(y))})
    ignored = quick().set_fit_request(sample_weight=False).set_score_request(sample_weight=False)
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    search = GridSearchCV(ignored, {"kernel__variance": [1.0, 2.0]}, cv=2, scoring=scorer)
    search.fit(X, y, sample_weight=np.arange(len(y)))
    peer = GridSearchCV(quick(), {"kernel__variance": [1.0, 2.0]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(search.best_estimator_.dual_coef_, peer.best_estimator_.dual_coef_)


@pytest.mark.usefixtures("routing")
def test_groups_are_routed_to_the_folds_of_learning_and_to_splitters(blobs):
    X, y = blobs
    groups = np.arange(len(y)) // 6
    estimator = KernelClassifier(random_state=0, folds=3, max_evaluations=5).set_fit_request(groups=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five evaluations may be too few
        found = cross_validate(
            estimator, X, y, cv=GroupKFold(2), params={"groups": groups}, return_estimator=True, return_indices=True
        )
        for model, train in zip(found["estimator"], found["indices"]["train"], strict=True):
            assert not set(groups[train]) & set(np.delete(groups, train))
            peer = clone(estimator).fit(X[train], y[train], groups=groups[train])
            alone = clone(estimator).fit(X[train], y[train])
            assert model.hyperparameters_ == peer.hyperparameters_ != alone.hyperparameters_


@pytest.mark.usefixtures("routing")
def test_pipelines_route_metadata(blobs):
    X, y = blobs
    weights = np.arange(len(y)) % 3 + 0.5
    last = quick(hierarchy=TREE).set_fit_request(sample_weight=True).set_predict_request(loss=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = Pipeline([("scale", scaler), ("classify", last)]).fit(X, y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    peer = quick(hierarchy=TREE).fit(scaled, y, weights)
    expected = peer.predict(scaled, loss="taxonomic").tolist()
    assert pipe.predict(X, loss="taxonomic").tolist() == expected


# Data frames


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_keep_their_names(blobs, library):
    frames = pytest.importorskip(library)
    X, y = blobs
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate(["height", "width", "depth"])})
    model = quick(Linear(columns=["width", "depth"]), scale="auto").fit(frame, frames.Series(y.tolist()))
    assert model.feature_names_in_.tolist() == ["height", "width", "depth"]
    plain = quick(Linear(columns=[1, 2]), scale="auto").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(X))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(frame, frames.Series(y.tolist())) == plain.score(X, y)
    assert model.top_features("a", n=1).supporting[0].name in {"width", "depth"}
    assert model.explain(frame[:2])[1].indices.tolist() == plain.explain(X[1]).indices.tolist()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["width", "height", "depth"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename({"width": "length"} if library == "polars" else str.upper, **_axis(library)))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def _axis(library):
    return {} if library == "polars" else {"axis": "columns"}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_of_paths_and_weights(blobs, library):
    frames = pytest.importorskip(library)
    X, y = blobs
    weights = np.arange(len(y)) % 3 + 0.5
    frame = frames.DataFrame({f"input {i}": X[:, i].astype(np.float32) for i in range(3)})
    categories = frames.Series(y.tolist(), dtype="category" if library == "pandas" else frames.Categorical)
    model = quick(hierarchy=TREE).fit(frame, categories, sample_weight=frames.Series(weights.tolist()))
    plain = quick(hierarchy=TREE).fit(X.astype(np.float32), y, weights)
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(X.astype(np.float32)))
    proba = cross_val_predict(quick(), frame, frames.Series(y.tolist()), cv=2, method="predict_proba")
    assert proba.shape == (60, 3)


def test_a_hierarchy_from_a_data_frame(blobs):
    X, y = blobs
    rows = [("left", "a"), ("left", "b"), ("right", "c")]
    expected = quick("linear", hierarchy=rows).fit(X, y).predict_proba(X)
    for library in ("pandas", "polars"):
        frames = pytest.importorskip(library)
        frame = frames.DataFrame({"branch": [row[0] for row in rows], "leaf": [row[1] for row in rows]})
        np.testing.assert_array_equal(quick("linear", hierarchy=frame).fit(X, y).predict_proba(X), expected)


# Around the classifier


@pytest.mark.parametrize("hierarchy", [None, TREE])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
def test_calibration(blobs, method, hierarchy):
    X, y = blobs
    if method == "temperature" and not _has_temperature():
        pytest.skip("this scikit-learn has no temperature scaling")
    if method == "temperature" and hierarchy is not None:
        y, hierarchy = np.searchsorted(["a", "b", "c"], y), NUMBERED  # there, scikit-learn numbers labels that are text
    model = CalibratedClassifierCV(quick(hierarchy=hierarchy), method=method, cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.predict(X) == y).mean() > 0.7
    weighted = CalibratedClassifierCV(quick(hierarchy=hierarchy), method=method, cv=3)
    assert weighted.fit(X, y, sample_weight=np.ones(len(y))).predict(X).shape == y.shape


def _has_temperature():
    return tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


def test_a_fitted_tree_can_be_calibrated(blobs):
    X, y = blobs
    fitted = quick(hierarchy=TREE).fit(X[::2], y[::2])
    model = CalibratedClassifierCV(FrozenEstimator(fitted), method="sigmoid").fit(X[1::2], y[1::2])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert (model.predict(X) == y).mean() > 0.7


def test_a_tree_under_estimators_that_number_labels(blobs):
    X, y = blobs
    members = [("tree", quick(hierarchy=NUMBERED)), ("flat", quick())]
    assert VotingClassifier(members, voting="soft").fit(X, y).score(X, y) > 0.7
    named = VotingClassifier([("tree", quick(hierarchy=TREE))])
    with pytest.raises(ValueError, match=r"unknown label .* give it a hierarchy whose classes are 0, 1, "):
        named.fit(X, y)


def test_permutation_importance(rng):
    X, y = make_blobs(rng, 90)
    X = np.column_stack([X, rng.normal(size=90)])
    model = quick(scale="auto").fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0, scoring="neg_log_loss")
    assert found.importances_mean[:3].min() > found.importances_mean[3]


def test_ensembles(blobs):
    X, y = blobs
    members = [("rbf", quick()), ("linear", quick("linear")), ("peer", LogisticRegression())]
    for ensemble in (
        VotingClassifier(members, voting="soft"),
        VotingClassifier(members, voting="hard"),
        StackingClassifier(members, cv=2),
        BaggingClassifier(quick(), n_estimators=3, random_state=0),
    ):
        assert ensemble.fit(X, y).score(X, y) > 0.7


def test_displays(blobs):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = blobs
    display = DecisionBoundaryDisplay.from_estimator(
        quick().fit(X[:, :2], y), X[:, :2], response_method="predict_proba"
    )
    assert display.response.shape[-1] == 3
    curve = LearningCurveDisplay.from_estimator(quick(), X, y, cv=2, train_sizes=[0.5, 1.0])
    assert curve.test_scores.shape == (2, 2)
    matplotlib.pyplot.close("all")


def test_estimators_show_themselves(blobs):
    X, y = blobs
    estimator = KernelClassifier(RBF(3.0), tol=0.01, learn=False)
    assert repr(estimator) == "KernelClassifier(kernel=RBF(variance=3.0), learn=False, tol=0.01)"
    assert "KernelClassifier" in estimator._repr_html_()
    assert "RBF" in estimator.fit(X, y)._repr_html_()
