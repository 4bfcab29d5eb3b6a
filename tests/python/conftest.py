"""What the tests share."""

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of the large data sets; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("NUPTSE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; set NUPTSE_DATA")
    return folder


def make_blobs(rng, points=60, inputs=3, classes=3):
    """Return points of overlapping classes; every class occurs."""
    y = np.arange(points) % classes
    centres = 1.5 * rng.normal(size=(classes, inputs))
    return centres[y] + rng.normal(size=(points, inputs)), y
