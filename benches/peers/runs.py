"""Runs fits, each in a process of its own (`one_fit.py`), and writes tables of what they measured."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from one_fit import ROOT, THREADS

BAR = "\\|"  # within a cell


def seconds_or_more(found, seconds="seconds"):
    """Return the seconds of a fit, or infinity where it failed."""
    return found.get(seconds, math.inf)


class Bench:
    """Runs fits and remembers them, so that tables share what they have in common."""

    def __init__(self, limit, quick, *, twice):
        self.limit, self.quick, self.twice = limit, quick, twice
        self.remembered = cache(self.measure)

    def fit(self, data, method, options, **more):
        description = {"data": data, "method": method, "options": options} | more
        if self.quick and data not in {"synthetic", "clusters", "digits"}:
            description.setdefault("rows", 300)
        return self.remembered(json.dumps(description))

    def measure(self, description):
        """Return what a fit measured. Peers are tried with one and, where `twice`, with two threads of BLAS.

        Their many short calls can be slower with two, ten times so where something else wants a core for a moment. Ours
        takes no BLAS, and the Gaussian process takes long calls only.
        """
        method = json.loads(description)["method"]
        once = method in {"KernelClassifier", "Criterion", "GaussianProcessClassifier"}
        found = self.process(description, THREADS if once else 1)
        # What is too slow with one thread is hardly ever faster with two.
        if once or not self.twice or "seconds" not in found:
            return found
        return min(found, self.process(description, THREADS), key=seconds_or_more)

    def process(self, description, blas_threads):
        print(f"  {description}, {blas_threads} threads of BLAS", flush=True)
        command = [sys.executable, str(Path(__file__).with_name("one_fit.py")), description]
        threads = {"OMP_NUM_THREADS": THREADS, "OPENBLAS_NUM_THREADS": blas_threads, "MKL_NUM_THREADS": blas_threads}
        env = os.environ | {name: str(count) for name, count in threads.items()}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.limit, env=env, check=False)
        except subprocess.TimeoutExpired:
            return {"note": f"stopped after {self.limit:g} s"}
        if done.returncode != 0:
            last = [f"ended with {done.returncode}", *done.stderr.strip().splitlines()][-1]
            print(f"    left out: {last}", flush=True)
            return {"note": last}
        return json.loads(done.stdout.splitlines()[-1])


def fastest_in_turns(fit, kinds, turns, seconds="seconds"):
    """Return the fastest of some fits of every kind, from `fit(kind, turn)`.

    Kinds take turns: what else the machine does for a while must not look like a cost of one of them.
    """
    rounds = [{kind: fit(kind, turn) for kind in kinds} for turn in range(turns)]
    return {
        kind: min((found[kind] for found in rounds), key=lambda one: seconds_or_more(one, seconds)) for kind in kinds
    }


def cell(value, form=""):
    return "" if value is None else format(value, form)


def table(columns, rows):
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', BAR) for text in line)} |" for line in lines) + "\n"


def report(rows, cells):
    rows.append(cells)
    print(f"| {' | '.join(cells)} |", flush=True)


def memory(result):
    """Return the peak of the fit above what was there before it, and the whole."""
    return result["peak"] - result["baseline"], result["peak"]


def heading(title, command, *, twice):
    once = "the peers with one thread of BLAS"
    both = f"the peers are fitted twice, with one and with {THREADS} threads of BLAS, and the faster fit counts"
    versions = ", ".join(f"{name} {version(name)}" for name in ("nuptse", "scikit-learn", "hiclass", "numpy", "scipy"))
    return f"""# {title}

`make {command}`, every table of one run. {THREADS} threads for everybody; {both if twice else once}.
{versions}, Python {platform.python_version()}.
"""


def replace_section(text, section):
    """Return the text with a section in place of the one that has its heading, or at the end."""
    first, *sections = text.split("\n## ")
    new = section.removeprefix("## ")
    found = {one.splitlines()[0]: one for one in sections} | {new.splitlines()[0]: new.rstrip("\n") + "\n"}
    return "\n## ".join([first, *found.values()])


def main(title, name, tables, *, limit, twice):
    """Make the tables asked for, and write them as they come."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=tables, help="make one table")
    parser.add_argument("--replace", action="store_true", help="put that table into the results that are there")
    parser.add_argument("--quick", action="store_true", help="small parts of the data, to try the script")
    parser.add_argument("--limit", type=float, default=limit, help="seconds that a fit may take")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    part = (arguments.only is not None and not arguments.replace) or arguments.quick
    out = arguments.out or ROOT / ("target/bench" if part else "benches/results") / f"{name}.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.limit, arguments.quick, twice=twice)
    text = heading(title, f"bench-{name}", twice=twice)
    if arguments.only and arguments.replace and out.exists():
        text = out.read_text(encoding="utf-8")
    for one in [arguments.only] if arguments.only else tables:
        print(f"{one}:", flush=True)
        text = replace_section(text, tables[one](bench))
        out.write_text(text, encoding="utf-8")
    print(f"written to {out}")
