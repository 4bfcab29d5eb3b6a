"""Threads, the GIL, Ctrl-C and forks."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from conftest import make_blobs
from nuptse import KernelClassifier
from nuptse.kernels import RBF


def run(code, **environment):
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_results_are_the_same_to_the_bit_for_any_number_of_threads(rng, kernel):
    X, y = make_blobs(rng, 300)
    models = [KernelClassifier(kernel, n_threads=threads, learn=False).fit(X, y) for threads in (1, 2, 5)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


# By name: a thread that has been joined may be in /proc for a moment longer.
COUNT_THREADS = """
    from pathlib import Path
    import numpy as np
    from nuptse import KernelClassifier
    X = np.random.default_rng(0).normal(size=(50, 2))
    KernelClassifier(n_threads=N, learn=False).fit(X, np.arange(50) % 2)
    count = 0
    for task in Path("/proc/self/task").iterdir():
        try:
            count += (task / "comm").read_text().startswith("nuptse-")
        except OSError:
            pass
    print(count)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.parametrize(("argument", "environment", "threads"), [("3", "", 3), ("None", "4", 4), ("2", "4", 2)])
def test_number_of_threads_is_as_asked_for(argument, environment, threads):
    variables = {"NUPTSE_NUM_THREADS": environment} if environment else {}
    done = run(COUNT_THREADS.replace("N,", f"{argument},"), **variables)
    assert int(done.stdout) == threads, done.stderr


def test_a_wrong_number_of_threads_in_the_environment_is_an_error():
    done = run(COUNT_THREADS.replace("N,", "None,"), NUPTSE_NUM_THREADS="many")
    assert "ValueError: NUPTSE_NUM_THREADS" in done.stderr


def test_other_python_threads_go_on_during_a_fit(rng):
    X, y = rng.normal(size=(1500, 20)), rng.integers(0, 10, 1500)
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    KernelClassifier(RBF(1e3), tol=1e-10, solver_options={"max_products": 10_000}, learn=False).fit(X, y)
    end = time.perf_counter()
    stop.set()
    ticker.join()
    assert sum(start < t < end for t in ticks) > 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals work otherwise there")
@pytest.mark.parametrize("phase", ["building", "fitting", "learning", "predicting"])
def test_ctrl_c_ends_work_at_once_and_leaves_the_process_usable(rng, request, phase):
    many = rng.normal(size=(12_000, 200)), rng.integers(0, 4, 12_000)
    few = rng.normal(size=(400, 5)), rng.integers(0, 4, 400)
    if phase == "fitting":
        # Again and again, as no fit is sure to take long enough.
        def work():
            while True:
                KernelClassifier("linear", learn=False).fit(*many)
    elif phase == "learning":

        def work():
            KernelClassifier(share="class").fit(many[0][:3000], many[1][:3000])
    elif phase == "building":

        def work():
            KernelClassifier(learn=False).fit(*many)
    else:
        model = KernelClassifier(learn=False).fit(*few)
        points = rng.normal(size=(8_000_000, 5))

        def work():
            model.predict(points)

    # A process started in the background ignores Ctrl-C, and so would its tests.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.4, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    late = time.perf_counter() - sent[0]
    timer.join()
    assert late < 1
    assert KernelClassifier(learn=False).fit(*few).score(*few) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_starts_its_own_threads():
    done = run("""
        import os, sys
        import numpy as np
        from nuptse import KernelClassifier
        X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 3
        expected = KernelClassifier(learn=False).fit(X, y).dual_coef_
        child = os.fork()
        if child == 0:
            same = np.array_equal(KernelClassifier(learn=False).fit(X, y).dual_coef_, expected)
            os._exit(0 if same else 1)
        print(os.waitpid(child, 0)[1])
    """)
    assert done.stdout.strip() == "0", done.stderr


def test_an_error_in_the_progress_listener_stops_the_fit(rng, monkeypatch):
    def broken(*_):
        raise RuntimeError("the terminal is gone")

    monkeypatch.setattr("nuptse._progress.ProgressLine.__call__", broken)
    with pytest.raises(RuntimeError, match="the terminal is gone"):
        KernelClassifier(verbose=1, learn=False).fit(*make_blobs(rng))
