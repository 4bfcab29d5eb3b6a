"""What the tests share."""

import numpy as np
import pytest
from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("nuptse", deadline=None)
settings.load_profile("nuptse")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def make_blobs(rng, points=60, inputs=3, classes=3):
    """Return points of overlapping classes; every class occurs."""
    y = np.arange(points) % classes
    centres = 1.5 * rng.normal(size=(classes, inputs))
    return centres[y] + rng.normal(size=(points, inputs)), y
