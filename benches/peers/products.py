"""Kernel products side by side with numpy (OpenBLAS) and scipy, all in one run; writes benches/results/products.md.

Run with `make bench-products`. Every pair is measured in turns. Two ratios are given: of the fastest calls, which tells
what the code can do, and of the medians, which also tells what else the machine was doing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_info, threadpool_limits

from nuptse._core import KernelMatrix

THREADS = 2
RBF = {"name": "rbf", "parameters": [1.0], "per_input": False, "columns": None, "groups": None}
LINEAR = RBF | {"name": "linear", "parameters": []}
ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("NUPTSE_DATA", ROOT.parent / "shared" / "data"))


def in_turns(ours, peer, rounds=5):
    """Return the seconds of all calls of two functions that return the seconds of so many calls.

    They take turns of about a quarter of a second, as in a fit, where products follow each other. Threads of OpenBLAS
    wait for work with a core of their own for a while after a call, so there is a pause before every turn; the first
    call of a turn does not count.
    """
    times = ([], [])
    calls = [max(3, int(0.25 / function(2)[1])) for function in (ours, peer)]
    for _ in range(rounds):
        for function, count, seconds in zip((ours, peer), calls, times, strict=True):
            time.sleep(0.3)
            seconds.extend(function(count + 1)[1:])
    return times


def timed(function):
    def call(repeats):
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - start)
        return seconds

    return call


def line(rows, name, columns, times, goal, note=""):
    (ours, peer), (our_median, peer_median) = map(min, times), map(statistics.median, times)
    ratios = f"**{peer / ours:.2f}** | {peer_median / our_median:.2f}"
    rows.append(f"| {name} | {columns} | {1e3 * ours:.2f} | {1e3 * peer:.2f} | {ratios} | {goal} | {note} |")
    print(rows[-1], flush=True)


def dense(rows, rng, n=4435, d=36):
    X = rng.normal(size=(n, d))
    matrix = np.exp(-0.5 / d * cdist(X, X, "sqeuclidean"))
    goals = {"double": {1: 1.8, 5: 2.0, 10: 1.7, 30: 1.2, 60: ""}, "single": {1: 3.0, 5: 2.5, 10: 1.7, 30: 1.2, 60: ""}}
    for precision, of_columns in goals.items():
        ours = KernelMatrix(X, RBF, precision, THREADS, None)
        for k, goal in of_columns.items():
            S = rng.normal(size=(n, k))
            error = np.abs(ours.multiply(S) - matrix @ S).max() / np.abs(matrix @ S).max()
            seconds = in_turns(partial(ours.seconds, S), timed(lambda S=S: matrix @ S))
            line(rows, f"symmetric, {precision}, n = {n}, against `K @ S`", k, seconds, goal, f"difference {error:.0e}")


def building(rows, rng, n=4435, d=36):
    X = rng.normal(size=(n, d))

    def peer():
        return np.exp(-0.5 / d * cdist(X, X, "sqeuclidean"))

    def ours(calls):
        return [KernelMatrix(X, RBF, "double", THREADS, None).build_seconds for _ in range(calls)]

    seconds = in_turns(ours, timed(peer))
    line(rows, f"RBF matrix, n = {n}, d = {d}, against `cdist` and `np.exp`", "", seconds, 3.0)


def sparse(rows, rng):
    folder = DATA / "patents_ipc"
    if not folder.is_dir():
        print(f"no data at {folder}: the sparse products are left out; set NUPTSE_DATA", file=sys.stderr)
        return
    z = np.load(folder / "counts.npz")
    X = scipy.sparse.csr_array((z["data"].astype(float), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    X = X[~z["is_test"]]
    X = scipy.sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    X.sum_duplicates()
    transpose = X.T.tocsr()
    parts = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1])
    ours = KernelMatrix(parts, LINEAR, "double", THREADS, None)
    for k, goal in {1: "", 10: "", 60: "", 521: 3.0}.items():
        S = rng.normal(size=(X.shape[0], k))
        error = np.abs(ours.multiply(S) - X @ (transpose @ S)).max()
        seconds = in_turns(partial(ours.seconds, S), timed(lambda S=S: X @ (X.T @ S)))
        line(rows, "linear, sparse, 7710 patents, against `X @ (X.T @ S)`", k, seconds, goal, f"difference {error:.0e}")


MATRIX_FREE = f"""
import numpy as np
from pathlib import Path
from nuptse._core import KernelMatrix

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

rng = np.random.default_rng(0)
X, S = rng.normal(size=(20_000, 36)), rng.normal(size=(20_000, 10))
before = resident("VmRSS")
matrix = KernelMatrix(X, {RBF}, "double", {THREADS}, 200_000_000)
matrix.multiply(S)
used = (resident("VmHWM") - before) / 1e6
print(f"A {{matrix.representation}} product, n = 20000, d = 36, k = 10, takes {{used:.0f}} MB")
"""


def matrix_free():
    """Return a sentence on the memory that a product without a stored matrix takes, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", MATRIX_FREE], capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()} (goal: below 200)."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limits", type=Path, help="the table of `cargo bench --bench kernel_products`")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results" / "products.md")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = []
    with threadpool_limits(THREADS):
        blas = ", ".join(f"{pool['internal_api']} {pool.get('version')}" for pool in threadpool_info())
        dense(rows, rng)
        building(rows, rng)
        sparse(rows, rng)
        memory = matrix_free()
    text = f"""# Kernel products

`make bench-products`, one run.

## Against numpy and scipy

{THREADS} threads each; numpy {np.__version__}, scipy {scipy.__version__} ({blas}). Milliseconds of the fastest call,
the ratio of these, and the ratio of the medians of all calls. Symmetric matrices take half the memory of numpy's in
double precision, a quarter in single. {memory}

| product | columns | ours | theirs | faster by | by medians | goal | |
|---|---|---|---|---|---|---|---|
"""
    text += "\n".join(rows) + "\n"
    if arguments.limits is not None:
        text += "\n" + arguments.limits.read_text()
    arguments.out.write_text(text)
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
