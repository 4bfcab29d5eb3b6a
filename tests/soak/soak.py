"""Tries for minutes what tests try for moments: strange inputs, damaged files, kills, forks and threads.

Run with `make soak`; it takes less than 20 minutes and writes docs/reliability.md. `--quick` tries a hundredth of it,
to try the script itself, and writes to target/soak.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import nuptse
from nuptse import KernelClassifier, _core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from test_inputs import check_input, inputs, labels  # noqa: E402

FORK = multiprocessing.get_context("fork")
#: What a child may take; more is a hang.
PATIENCE = 60


class Progress:
    """Tells how far a trial is, at most once a second."""

    def __init__(self, name, total):
        self.name, self.total, self.begun, self.told = name, total, time.monotonic(), 0.0

    def __call__(self, done):
        now = time.monotonic()
        if done == self.total or now - self.told > 1:
            self.told = now
            end = "\n" if done == self.total else "\r"
            print(f"{self.name}: {done} of {self.total}, {now - self.begun:.0f} s", end=end, flush=True)


# Inputs


def strange_inputs(total):
    """Draw inputs and labels of every kind: each gives a model, or one clear error."""
    outcome, progress = Counter(), Progress("inputs", total)

    @seed(0)
    @settings(
        max_examples=total,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        database=None,
    )
    @given(data=st.data(), X=inputs(), kernel=st.sampled_from(["rbf", "linear"]), scale=st.sampled_from([None, "auto"]),
           learn=st.booleans())  # fmt: skip
    def one(data, X, kernel, scale, learn):
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        y = data.draw(labels(rows))
        outcome["model" if check_input(X, y, kernel, scale, learn) else "error"] += 1
        progress(min(total, outcome.total()))

    while outcome.total() < total:  # hypothesis ends early where it has seen all it can think of
        one()
    return outcome.total(), f"{outcome['model']} models, {outcome['error']} errors that say what to do"


# Files


def example_models():
    """Return the bytes of small models of every kind, and where they were asked what they predict."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 4
    tree = {"a": ["0", "1"], "b": ["2", "3"]}
    models = [
        KernelClassifier(learn=False).fit(X, y),
        KernelClassifier("linear", learn=False, scale="auto").fit(scipy.sparse.csr_array(X), y),
        KernelClassifier("linear", hierarchy=tree, learn=False, scale="auto").fit(X, y.astype(str)),
    ]
    return [model._model.to_bytes("{}") for model in models]


def mutated(rng, content):
    """Return the bytes with some change: bits, bytes, runs, lengths, or parts of it elsewhere."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        place, kind = rng.randrange(len(content)), rng.randrange(7)
        if kind == 0:
            content[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            content[place] = rng.randrange(256)
        elif kind == 2:
            del content[place : place + rng.randrange(1, 32)]
        elif kind == 3:
            content[place:place] = rng.randbytes(rng.randrange(1, 16))
        elif kind == 4:
            content = content[: place + 1]
        elif kind == 5:
            other = rng.randrange(len(content))
            content[place : place + 8] = content[other : other + 8]
        else:  # the numbers of a header
            content[place : place + 1] = str(rng.choice((0, -1, 2**31, 2**63, 2**64 - 1, 10**30))).encode()
        if not content:
            content = bytearray(b"\0")
    return bytes(content)


def damaged_files(total):
    """Hand mutated model files to the loader: each is refused, or says what the file said."""
    rng, outcome, progress = random.Random(0), Counter(), Progress("files", total)
    models = example_models()
    for done in range(1, total + 1):
        before = rng.choice(models)
        content = mutated(rng, before)
        try:
            model = _core.restore(content)
        except (ValueError, MemoryError) as error:
            outcome[str(error).split(":", 2)[1].strip().split(";", maxsplit=1)[0][:30]] += 1
        else:
            assert model.to_bytes("{}") == _core.restore(before).to_bytes("{}"), "a changed file was taken"
            outcome["accepted, unchanged in all that counts"] += 1
        progress(done)
    refused = total - outcome["accepted, unchanged in all that counts"]
    return total, f"{refused} refused, {total - refused} changed in spaces only and read as they were"


# Kills


def learn_with_checkpoint(path, queue):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(250, 4)), rng.integers(0, 3, 250)
    model = KernelClassifier(share="class", checkpoint=path, random_state=0, n_threads=1, max_evaluations=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    queue.put((model.dual_coef_.tobytes(), tuple(model.hyperparameters_.values())))


def in_child(target, *arguments):
    queue = FORK.Queue()
    child = FORK.Process(target=target, args=(*arguments, queue))
    child.start()
    return child, queue


def kills(total):
    """Kill learning at any moment, again and again, and let it go on from its checkpoint: the same model comes out."""
    rng, progress, killed = random.Random(0), Progress("kills", total), 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "checkpoint")
        begun = time.monotonic()
        child, queue = in_child(learn_with_checkpoint, path)
        expected = queue.get(timeout=PATIENCE)
        child.join()
        takes = time.monotonic() - begun
        while killed < total:
            child, queue = in_child(learn_with_checkpoint, path)
            if rng.random() < 0.9 and killed < total:
                time.sleep(rng.uniform(0, takes))
                if child.is_alive():
                    os.kill(child.pid, signal.SIGKILL)
                    child.join()
                    killed += 1
                    progress(killed)
                    continue
            assert queue.get(timeout=PATIENCE) == expected, "another model after a kill"
            child.join()
        child, queue = in_child(learn_with_checkpoint, path)
        assert queue.get(timeout=PATIENCE) == expected, "another model after a kill"
        child.join()
        left = [one.name for one in Path(folder).iterdir() if not one.name.startswith(".nuptse-")]
        assert not left, f"{left} was left behind"
    return killed, "the same model to the bit, every time"


# Forks and threads


def fitted_bytes(_=None):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 3, 120)
    return KernelClassifier(learn=False).fit(X, y).dual_coef_.tobytes()


def fit_into(queue):
    queue.put(fitted_bytes())


def forks_and_threads(total):
    """Fit in threads and in forked processes at once, as servers and test runners do."""
    progress, expected = Progress("forks and threads", total), fitted_bytes()
    for done in range(1, total + 1):
        found = []
        threads = [threading.Thread(target=lambda found=found: found.append(fitted_bytes())) for _ in range(2)]
        for thread in threads:
            thread.start()
        child, queue = in_child(fit_into)  # while the threads are at work
        found.append(queue.get(timeout=PATIENCE))
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a thread hangs"
        child.join(PATIENCE)
        assert child.exitcode == 0, "a child hangs or has failed"
        assert found == [expected] * 3, "another model"
        progress(done)
    return total, "the same model to the bit, every time"


# Faults


def save_onto_full_disk(path, limit, queue):
    import resource  # noqa: PLC0415

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    model = nuptse.load(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        model.save(path)
    except OSError:
        queue.put("refused")
    else:
        queue.put("saved")


def full_disks(total):
    """Save where the disk is full after some bytes: the file that was there before stays."""
    rng, progress, outcome = random.Random(0), Progress("full disks", total), Counter()
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(60, 4)), np.arange(60) % 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        KernelClassifier(learn=False).fit(X, y).save(path)
        before = path.read_bytes()
        for done in range(1, total + 1):
            child, queue = in_child(save_onto_full_disk, str(path), rng.randrange(2 * len(before)))
            outcome[queue.get(timeout=PATIENCE)] += 1
            child.join()
            assert path.read_bytes() == before, "a file was lost"
            assert [one.name for one in path.parent.iterdir()] == ["model"], "something was left behind"
            progress(done)
    return total, f"{outcome['refused']} told, {outcome['saved']} with enough room; the file was there every time"


TRIALS = {
    "inputs to the estimator": (strange_inputs, 10_000),
    "mutated model files": (damaged_files, 1_000_000),
    "kills while learning, each with a resume": (kills, 200),
    "forks during fits in threads": (forks_and_threads, 500),
    "full disks while saving": (full_disks, 200),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a hundredth of it")
    quick = parser.parse_args().quick
    rows, begun = [], time.monotonic()
    for name, (trial, total) in TRIALS.items():
        start = time.monotonic()
        done, outcome = trial(max(2, total // 100) if quick else total)
        rows.append(f"| {name} | {done:,} | {outcome} | none | {time.monotonic() - start:.0f} s |")
    minutes = (time.monotonic() - begun) / 60
    out = ROOT / ("target/soak" if quick else "docs") / "reliability.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(TEXT.format(rows="\n".join(rows), minutes=minutes, version=nuptse.__version__, **VERSIONS), "utf-8")
    print(f"written to {out}")


VERSIONS = {"python": platform.python_version(), "numpy": np.__version__}
TEXT = """# Reliability

`make soak`, one run of {minutes:.0f} minutes: nuptse {version}, Python {python}, numpy {numpy}. A crash, a hang or
anything lost ends it with an error, so that there is no table.

| tried | times | came out | lost | took |
| --- | --- | --- | --- | --- |
{rows}

What the trials are, and what else is tested, is in `tests/soak/soak.py`, and `tests/`.
"""


if __name__ == "__main__":
    main()
