"""Numpy's .npz files: arrays by name, with a dense X or the parts of a sparse one."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from nuptse._cli.dataset import Dataset, label_text
from nuptse._cli.errors import InputError
from nuptse._cli.opening import read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from nuptse._cli.dataset import Request

#: What numpy, zipfile and zlib raise for files that are not what they seem.
_DAMAGED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OSError,
    EOFError,
    SyntaxError,
    RuntimeError,
    OverflowError,
    MemoryError,
    UnicodeError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
_LAYOUTS = (
    "X (n × d) and y (n); or data, indices, indptr and shape of a sparse X (as scipy.sparse.save_npz writes them) "
    "and y (n)"
)
_LABELS = "y"
_SPARSE = ("data", "indices", "indptr", "shape")


def read_npz(request: Request) -> Dataset:
    """Read inputs, and labels, weights and groups by the names of their arrays."""
    request.refuse("text", "ignore")
    arrays = _arrays(request)
    X = _inputs(request, arrays)
    n = X.shape[0]
    name = request.label or _LABELS
    has_labels = request.labels_path is None and (request.labelled or name in arrays)
    labels = [label_text(value) for value in _column(request, arrays, name, n).tolist()] if has_labels else None
    weights = None
    if request.weight is not None:
        weights = _numbers(request, _column(request, arrays, request.weight, n), request.weight)
    texts = {
        name: [label_text(value) for value in _column(request, arrays, name, n).tolist()]
        for name in (request.groups, request.identifier, *(column for column, _ in request.where))
        if name is not None
    }
    data = Dataset(
        X,
        "sparse" if scipy.sparse.issparse(X) else "dense",
        labels if request.labelled else None,
        _names(request, arrays, X.shape[1]),
        weights,
        texts.get(request.groups or ""),
        texts.get(request.identifier or ""),
        name if has_labels else None,
    )
    if not request.where:
        return data
    rows = [row for row in range(n) if all(texts[column][row] == value for column, value in request.where)]
    if not rows:
        raise InputError(f"{request.name} has no rows that --where allows")
    return data.keep(rows)


def _arrays(request: Request) -> dict[str, NDArray[Any]]:
    try:
        file = np.load(io.BytesIO(read_bytes(request.path)), allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise InputError(f"{request.name} holds one array without a name; save it with numpy.savez(path, X=...)")
        with file:
            return {name: file[name] for name in file.files}
    except _DAMAGED as error:
        raise InputError(f"{request.name} cannot be read as .npz: {error}") from error


def _inputs(request: Request, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise InputError(f"{request.name}: X has shape {X.shape}, but must have a row for every point")
        return _numbers(request, X, "X")
    if not all(name in arrays for name in _SPARSE):
        found = ", ".join(arrays) or "none"
        raise InputError(f"{request.name} must have the arrays {_LAYOUTS}; it has {found}")
    try:
        kind = arrays["format"].item() if "format" in arrays else "csr"
        kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
        makers = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}
        if kind not in makers:
            raise InputError(f"{request.name} is sparse in the format {kind!r}; save it as X.tocsr()")
        values = _numbers(request, arrays["data"], "data")
        shape = tuple(int(size) for size in arrays["shape"].tolist())
        X = makers[kind]((values, arrays["indices"], arrays["indptr"]), shape=shape)
        X.check_format(full_check=True)
        return X.tocsr()
    except _DAMAGED as error:
        raise InputError(f"{request.name}: the parts of the sparse matrix do not fit together: {error}") from error


def _numbers(request: Request, values: NDArray[Any], name: str) -> NDArray[np.float64]:
    if values.dtype.kind not in "biuf":
        raise InputError(f"{request.name}: {name} holds {values.dtype}, not numbers")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        places = np.argwhere(~np.isfinite(numbers))[0]
        where = ", ".join(
            f"{what} {place + 1}" for what, place in zip(("row", "column"), places.tolist(), strict=False)
        )
        raise InputError(f"{request.name}: {name} has a value that is missing or not finite, in {where}")
    return numbers


def _column(request: Request, arrays: Mapping[str, NDArray[Any]], name: str, n: int) -> NDArray[Any]:
    if name not in arrays:
        hint = "; say with --label which array has the labels, or give a file with --labels" if name == _LABELS else ""
        raise InputError(f"{request.name} has no array {name!r}, but {', '.join(arrays)}{hint}")
    if arrays[name].shape != (n,):
        raise InputError(f"{request.name}: {name} has shape {arrays[name].shape}, but there are {n} rows")
    return arrays[name]


def _names(request: Request, arrays: Mapping[str, NDArray[Any]], columns: int) -> list[str] | None:
    if "feature_names" not in arrays:
        return None
    names = [label_text(value) for value in arrays["feature_names"].ravel().tolist()]
    if len(names) != columns or len(set(names)) != columns:
        raise InputError(f"{request.name}: feature_names must have a name of its own for each of {columns} columns")
    return names
