"""Fits where memory is short: they say so, and nothing is ever killed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are set as on Linux")

SCRIPT = """
    import resource, sys, warnings
    import numpy as np
    import scipy.sparse
    from nuptse import KernelClassifier, MemoryLimitError

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    rows, classes, megabytes, kind = {rows}, {classes}, {megabytes}, {kind!r}
    X, y = rng.normal(size=(rows, 5)), np.arange(rows) % classes
    if kind == "sparse":
        X = scipy.sparse.csr_array(np.where(X > 1, X, 0.0))
    KernelClassifier(learn=False, n_threads=2).fit(X[:50], y[:50])  # threads are there from now on
    mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + megabytes * 2**20, resource.RLIM_INFINITY))
    kernel = "linear" if kind == "sparse" else "rbf"
    model = KernelClassifier(kernel, learn=kind == "learn", n_threads=2, max_evaluations=1)
    try:
        model.fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
        print("fitted:", model.fit_info_["kernel_matrices"][0])
    except MemoryLimitError as error:
        assert error.bytes_needed > error.bytes_allowed
        print("refused:", error)
    except MemoryError as error:
        print("refused by Python:", error)
    except RuntimeError as error:  # threads need memory too
        assert "could not start" in str(error)
        print("refused:", error)
"""


def outcome(**values):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT.format(**values))],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["dense", "sparse", "learn"])
@pytest.mark.parametrize("megabytes", [1, 10, 40, 100, 400])
def test_a_limit_of_the_address_space_is_kept(kind, megabytes):
    assert outcome(rows=2500, classes=5, megabytes=megabytes, kind=kind).startswith(("fitted", "refused"))


@pytest.mark.parametrize("megabytes", [30, 150, 600])
def test_many_classes_are_kept_too(megabytes):
    assert outcome(rows=1500, classes=300, megabytes=megabytes, kind="sparse").startswith(("fitted", "refused"))


def test_the_kernel_matrix_is_kept_as_there_is_room():
    kept = {size: outcome(rows=5000, classes=3, megabytes=size, kind="dense") for size in (10, 60, 100, 400)}
    assert kept[400] == "fitted: stored in double precision"
    assert kept[100] == "fitted: stored in single precision"
    assert kept[60] == "fitted: matrix-free"
    assert kept[10].startswith(("fitted: matrix-free", "refused"))
