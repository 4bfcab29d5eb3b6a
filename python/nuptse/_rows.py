"""Inputs as the compiled core takes them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse


def as_rows(X: Any) -> Any:
    """Return inputs as the compiled core takes them; it makes the one copy that is made."""
    if not scipy.sparse.issparse(X):
        return X
    X = cast("Any", X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float64), X.shape[1]


def is_one_point(X: Any) -> bool:
    """Tell whether X is one point and not an array of points."""
    return len(np.shape(X)) == 1


def as_one_row(x: Any) -> Any:
    """Return one point as an array of points; a row of a data frame keeps its names."""
    if hasattr(x, "to_frame") and hasattr(x, "index"):
        return x.to_frame().T.infer_objects()
    return (cast("Any", x) if scipy.sparse.issparse(x) else np.asarray(x)).reshape(1, -1)
