"""Inputs of every kind that arrays come in: each gives a model, or one clear error and no change."""

from __future__ import annotations

import tempfile
import warnings

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nuptse import KernelClassifier

DTYPES = ["f8", "f4", "i8", "i4", "u1", "?", ">f8", "f2"]
VALUES = [0.0, 1.0, -1.0, 1e-300, 1e300, np.nan, np.inf, 1e6]
EXPECTED = (ValueError, TypeError, FloatingPointError, MemoryError)


def mapped(X):
    """Return the same array as a file has it; the file has no name any more."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return np.memmap(file.name, dtype=X.dtype, mode="r", shape=X.shape)


@st.composite
def inputs(draw):
    """Draw rows: small, some empty, of any type, order and stride, with values of any size, dense or sparse."""
    rows, columns = draw(st.integers(0, 12)), draw(st.integers(0, 5))
    seed, dtype = draw(st.integers(0, 10_000)), draw(st.sampled_from(DTYPES))
    values = np.random.default_rng(seed).normal(size=(2 * rows, 2 * columns)) * draw(st.sampled_from([1.0, 1e3, 0.0]))
    kind = draw(st.sampled_from(["plain", "plain", "duplicates", "constant", "special"]))
    if kind == "duplicates" and rows:
        values[:] = values[0]
    elif kind == "constant":
        values[:, : draw(st.integers(0, 5))] = 3.0
    elif kind == "special" and values.size:
        values.flat[draw(st.integers(0, values.size - 1))] = draw(st.sampled_from(VALUES))
    with np.errstate(all="ignore"):
        X = values.astype(dtype)
    form = draw(st.sampled_from(["C", "F", "strided", "read-only", "mapped", "list", "csr", "csc", "coo", "matrix"]))
    X = X[::2, ::2] if form == "strided" else np.ascontiguousarray(X[:rows, :columns])
    if form == "F":
        X = np.asfortranarray(X)
    elif form == "read-only":
        X.setflags(write=False)
    elif form == "mapped" and X.size:
        X = mapped(X)
    elif form == "list":
        X = X.tolist()
    elif form in {"csr", "csc", "coo"} and X.dtype.kind != "?" and X.dtype != np.dtype("f2"):
        X = scipy.sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0).astype(X.dtype.newbyteorder("="))).asformat(form)
    return X


@st.composite
def labels(draw, rows):
    """Draw labels of any type; few or many classes, too few or too many of them."""
    count = max(0, rows + draw(st.sampled_from([0, 0, 0, 0, 1, -1])))
    numbers = draw(st.lists(st.integers(0, draw(st.integers(0, 6))), min_size=count, max_size=count))
    kind = draw(st.sampled_from(["int", "str", "unicode", "object", "bool", "float", "nan", "negative", "tuple"]))
    if kind == "int":
        return np.array(numbers, dtype=draw(st.sampled_from(["i8", "u1", "i2"])))
    if kind == "str":
        return [f"class {number}" for number in numbers]
    if kind == "unicode":
        return np.array([["ä", "日本", "🏔", "", " ", "e\u0301", "\x00x"][number] for number in numbers])
    if kind == "object":
        return np.array([["a", 1, None, 2.5, "b", (1,), "c"][number] for number in numbers], dtype=object)
    if kind == "bool":
        return np.array(numbers) > 2
    if kind == "float":
        return np.array(numbers) + draw(st.sampled_from([0.0, 0.5]))
    if kind == "nan":
        return np.array([np.nan if number == 3 else number for number in numbers])
    if kind == "negative":
        return -np.array(numbers, dtype=int)
    return [(number, "x") for number in numbers]


def check_input(X, y, kernel, scale, learn):
    """Return whether there was a model; whatever was wrong must have been told in one of the expected ways."""
    estimator = KernelClassifier(kernel, scale=scale, learn=learn, max_evaluations=3, folds=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X, y)
        except EXPECTED as error:
            assert str(error)  # noqa: PT017
            assert not hasattr(estimator, "classes_")
            return False
        assert np.isfinite(estimator.dual_coef_).all()
        probabilities = estimator.predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert set(estimator.predict(X).tolist()) <= set(estimator.classes_.tolist())
    return True


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    X=inputs(),
    kernel=st.sampled_from(["rbf", "linear"]),
    scale=st.sampled_from([None, "auto"]),
    learn=st.booleans(),
)
def test_any_input_gives_a_model_or_an_error(data, X, kernel, scale, learn):
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    check_input(X, data.draw(labels(rows)), kernel, scale, learn)
