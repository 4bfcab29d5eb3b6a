"""Fits side by side: in threads, in processes that were forked or spawned, in the workers of joblib."""

from __future__ import annotations

import multiprocessing
import sys
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from conftest import make_blobs
from nuptse import KernelClassifier

POINTS = make_blobs(np.random.default_rng(0), 150)


def coefficients(seed=0):
    return KernelClassifier(random_state=seed).fit(*POINTS).dual_coef_


@pytest.fixture(scope="module")
def expected():
    return coefficients()


def test_threads_that_fit_at_once(expected):
    found = [None] * 6

    def work(place):
        found[place] = coefficients()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_processes_that_fit_at_once(expected, method):
    # The threads of this process have been started by now, and do not live on in a forked one.
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(coefficients, [0, 0, 0, 0]).get(timeout=120)
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib(expected, backend):
    found = Parallel(n_jobs=2, backend=backend, timeout=120)(delayed(coefficients)(0) for _ in range(4))
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_forks_of_forks(expected):
    context = multiprocessing.get_context("fork")

    def inner(queue):
        queue.put(coefficients())

    def outer(queue):
        coefficients()
        child = context.Process(target=inner, args=(queue,))
        child.start()
        child.join(60)

    queue = context.Queue()
    process = context.Process(target=outer, args=(queue,))
    process.start()
    np.testing.assert_array_equal(queue.get(timeout=120), expected)
    process.join(60)
    assert process.exitcode == 0


def test_limits_of_other_libraries_stay_as_they_are(expected):
    before = threadpool_info()
    np.testing.assert_array_equal(coefficients(), expected)
    assert threadpool_info() == before
    with threadpool_limits(1):
        inside = threadpool_info()
        np.testing.assert_array_equal(coefficients(), expected)
        assert threadpool_info() == inside


def test_arrays_that_change_during_a_fit():
    """What comes out is of the values before or some of those after; nothing breaks."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 10)), rng.integers(0, 5, 1500)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            X[rng.integers(0, 1500), :] = rng.normal(size=10)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(3):
            model = KernelClassifier(learn=False).fit(X, y)
            assert np.isfinite(model.dual_coef_).all()
            assert np.isfinite(model.predict_proba(X)).all()
    finally:
        stop.set()
        thread.join()
