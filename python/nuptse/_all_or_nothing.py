"""Fits that change nothing when they fail."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sklearn.base import BaseEstimator


@contextmanager
def all_or_nothing(estimator: BaseEstimator, *, always: bool = False) -> Iterator[None]:
    """Leave an estimator as it was if anything goes wrong; `validate_data` changes it before all is known.

    `always`: leave it as it was in any case.
    """
    before = dict(vars(estimator))
    done = False
    try:
        yield
        done = not always
    finally:
        if not done:
            vars(estimator).clear()
            vars(estimator).update(before)
