"""Every example runs, and so do the examples in docstrings."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("example", sorted((PROJECT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_example_runs(example):
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "nuptse.classifier",
        "nuptse.datasets",
        "nuptse.hierarchy",
        "nuptse.kernels",
        "nuptse.plots._confidence",
        "nuptse.plots._learning",
        "nuptse.plots._tree",
        "nuptse.text",
    ],
)
def test_docstrings_tell_the_truth(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0
