"""Models as files: they come back as they were, and nothing else does."""

from __future__ import annotations

import copy
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold

import nuptse
from nuptse import KernelClassifier
from nuptse.kernels import RBF, Linear

FIXTURES = Path(__file__).parent / "fixtures"
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "Jungfrau-Iris 🏔"])[Y]
TREE = {"a": {"x": ["setosa"], "y": ["versicolor"]}, "b": ["Jungfrau-Iris 🏔"]}

ESTIMATORS = {
    "default": (KernelClassifier(scale="auto", random_state=0), X, Y),
    "names": (KernelClassifier(RBF(ard=True), learn=False), X, NAMES),
    "sparse": (KernelClassifier("linear", learn=False), scipy.sparse.csr_array(X), Y),
    "groups": (KernelClassifier(Linear(groups=[0, 0, 1, 1]), random_state=0), X, Y),
    "tree": (KernelClassifier("linear", hierarchy=TREE, share="level", random_state=0), X, NAMES),
    "kernels": (
        KernelClassifier({0: RBF(columns=[0, 1]), 1: Linear(), 2: RBF(variance=3.0)}, learn=False),
        X,
        Y,
    ),
    "precomputed": (KernelClassifier("precomputed", learn=False), X @ X.T, Y),
    "two classes": (KernelClassifier(learn=False), X[:100], Y[:100]),
    "booleans": (KernelClassifier(learn=False), X[:100], Y[:100] == 1),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request):
    estimator, inputs, targets = ESTIMATORS[request.param]
    return estimator.fit(inputs, targets), inputs


def assert_same(back, before, inputs):
    np.testing.assert_array_equal(back.predict_proba(inputs), before.predict_proba(inputs))
    np.testing.assert_array_equal(back.predict(inputs), before.predict(inputs))
    assert back.classes_.dtype == before.classes_.dtype
    assert back.hyperparameters_ == before.hyperparameters_
    assert repr(back.kernel_) == repr(before.kernel_)
    assert back.fit_info_ == before.fit_info_
    assert getattr(back, "history_", None) == getattr(before, "history_", None)
    assert back.n_features_in_ == before.n_features_in_


def test_a_model_comes_back_as_it_was(fitted, tmp_path):
    estimator, inputs = fitted
    estimator.save(tmp_path / "model")
    back = nuptse.load(tmp_path / "model")
    assert repr(back) == repr(estimator)
    assert_same(back, estimator, inputs)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_pickle_and_copy_take_the_same_bytes(fitted):
    estimator, inputs = fitted
    assert_same(pickle.loads(pickle.dumps(estimator)), estimator, inputs)  # noqa: S301
    assert_same(copy.deepcopy(estimator), estimator, inputs)
    assert b"safetensors" not in pickle.dumps(estimator)
    assert estimator._model.to_bytes("") in pickle.dumps(estimator)


def test_a_hierarchy_comes_back(tmp_path):
    estimator = KernelClassifier("linear", hierarchy=TREE, learn=False).fit(X, NAMES)
    estimator.save(tmp_path / "model")
    back = nuptse.load(tmp_path / "model")
    assert back.hierarchy_.to_json() == estimator.hierarchy_.to_json()
    np.testing.assert_array_equal(back.predict(X, loss="taxonomic"), estimator.predict(X, loss="taxonomic"))
    np.testing.assert_array_equal(back.node_proba(X), estimator.node_proba(X))


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    KernelClassifier(RBF(variance=3.0), learn=False).fit(X, Y).save(tmp_path / "model")
    back = nuptse.load(tmp_path / "model")
    fresh = KernelClassifier(RBF(variance=3.0), learn=False).fit(X[::2], Y[::2])
    np.testing.assert_array_equal(back.fit(X[::2], Y[::2]).predict_proba(X), fresh.predict_proba(X))


def test_what_cannot_be_kept_is_told(tmp_path):
    estimator = KernelClassifier(folds=KFold(3), random_state=np.random.RandomState(0), max_evaluations=2)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(X, Y)
    with pytest.warns(UserWarning, match="folds, random_state cannot be kept"):
        estimator.save(tmp_path / "model")
    assert nuptse.load(tmp_path / "model").folds == KernelClassifier().folds
    with pytest.raises(NotFittedError):
        KernelClassifier().save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def saved(folder):
    path = folder / "model"
    KernelClassifier(learn=False).fit(X[::3], Y[::3]).save(path)
    return path


with tempfile.TemporaryDirectory() as _folder:
    MODEL = saved(Path(_folder)).read_bytes()
EXPECTED = KernelClassifier(learn=False).fit(X[::3], Y[::3]).predict_proba(X)


@pytest.mark.skipif(sys.platform == "win32", reason="other permissions there")
def test_a_file_can_be_read_by_whom_the_mask_says(tmp_path):
    before = os.umask(0o027)
    try:
        assert saved(tmp_path).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_every_kind_of_wrong_file_is_told_apart(tmp_path):
    path = saved(tmp_path)
    whole = path.read_bytes()

    def refused(content, match, error=ValueError):
        path.write_bytes(content)
        with pytest.raises(error, match=match):
            nuptse.load(path)

    refused(whole[:-1], "its end is missing")
    refused(whole[:-1] + bytes([whole[-1] ^ 1]), "damaged")
    refused(pickle.dumps({"a": 1}), "no file of nuptse")
    refused(b"", "no file of nuptse")
    with pytest.raises(OSError, match="could not be read"):
        nuptse.load(tmp_path / "missing")
    with pytest.raises(OSError, match="could not be read"):
        nuptse.load(tmp_path)


@settings(max_examples=300)
@given(changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=5), end=st.integers(0))
def test_a_file_with_changes_is_refused_or_says_the_same(tmp_path_factory, changes, end):
    path = tmp_path_factory.getbasetemp() / "changed"
    whole = bytearray(MODEL)
    for place, value in changes:
        whole[place % len(whole)] = value
    for content in (whole, whole[: end % len(whole)]):
        path.write_bytes(content)
        try:
            back = nuptse.load(path)
        except ValueError as error:
            assert any(reason in str(error) for reason in ("damaged", "its end", "no file of", "holds a", "format"))  # noqa: PT017
        else:
            np.testing.assert_array_equal(back.predict_proba(X), EXPECTED)


def test_notes_that_make_no_sense_are_refused(tmp_path):
    model = KernelClassifier(learn=False).fit(X, Y)._model
    path = tmp_path / "model"
    for notes in ("", "[]", "{}", '{"estimator": "os.system", "parameters": {}, "fitted": {}}', "null"):
        model.save(str(path), notes)
        with pytest.raises(ValueError, match="damaged"):
            nuptse.load(path)
    hidden = '{"estimator": "KernelClassifier", "parameters": {}, "fitted": {"__class__": 1}}'
    model.save(str(path), hidden)
    with pytest.raises(ValueError, match="no attribute"):
        nuptse.load(path)


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = saved(tmp_path)
    before = path.read_bytes()
    script = f"""
import resource, signal
import nuptse
clf = nuptse.load({str(path)!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    clf.save({str(path)!r})
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "could not be written" in done.stdout
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("model-*.nuptse")), ids=lambda path: path.name)
def test_files_of_all_formats_are_loaded(path):
    """A file of every format that was ever written; `fixtures/make.py` wrote them."""
    back = nuptse.load(path)
    expected = np.load(path.with_suffix(".npz"), allow_pickle=False)
    np.testing.assert_allclose(back.predict_proba(expected["X"]), expected["probabilities"], rtol=1e-12)
    assert back.predict(expected["X"]).tolist() == expected["labels"].tolist()


def test_there_is_a_fixture_of_the_latest_format():
    assert (FIXTURES / "model-1.nuptse").exists()
