"""The format of svmlight and libsvm: a label, then `column:value` for every entry that is not zero."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from nuptse._cli.dataset import Dataset, label_text
from nuptse._cli.errors import InputError
from nuptse._cli.opening import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nuptse._cli.dataset import Request

#: Lines that are turned into numbers at a time; texts of numbers take ten times their memory.
_CHUNK = 2000
#: Columns are kept as 32-bit numbers.
_MOST_COLUMNS = 2**31 - 1
_EXAMPLE = "3 7:0.5 12:1"


def read_svmlight(request: Request) -> Dataset:
    """Read labels, which may be any text without blanks, and sparse rows."""
    request.refuse("text", "weight", "groups", "identifier", "ignore", "where", "label")
    labels: list[str] = []
    lines: list[int] = []
    lengths: list[int] = []
    blocks: list[NDArray[np.float64]] = []
    parsed = _parsed(request)
    while chunk := list(islice(parsed, _CHUNK)):
        labels += [label for _, label, _ in chunk]
        lines += [line for line, _, _ in chunk]
        lengths += [len(fields) for _, _, fields in chunk]
        blocks.append(_pairs(request, chunk))
    if not labels:
        raise InputError(f"{request.name} has no lines with data")
    pairs = np.concatenate(blocks)
    rows = np.repeat(np.arange(len(lines)), lengths)
    columns, first = _columns(request, pairs, rows, lines)
    _check_values(request, pairs[:, 1], rows, lines)
    width = request.n_columns or int(columns.max(initial=0)) + 1
    X = scipy.sparse.csr_array((pairs[:, 1], (rows, columns)), shape=(len(lines), width))
    if X.nnz < len(columns):
        twice = next(row for row in range(len(lines)) if X.indptr[row + 1] - X.indptr[row] < lengths[row])
        raise InputError(f"{request.name}, line {lines[twice]}: a column is there twice")
    return Dataset(X, "sparse", labels if request.labelled else None, first_column=first)


def _parsed(request: Request) -> Iterator[tuple[int, str, list[str]]]:
    """Return number, label and entries of every line with data."""
    for number, line in enumerate(read_text(request.path, request.encoding), start=1):
        label, *fields = line.partition("#")[0].split() or [""]
        if not label:
            continue
        if ":" in label:
            raise InputError(
                f"{request.name}, line {number}: it begins with {label!r}, not with a label, as {_EXAMPLE!r}"
            )
        if fields and fields[0].startswith("qid:"):
            fields = fields[1:]
        odd = [field for field in fields if field.count(":") != 1]
        if odd:
            raise InputError(f"{request.name}, line {number}: {odd[0]!r} is no entry column:value, as in {_EXAMPLE!r}")
        yield number, _label(label), fields


def _pairs(request: Request, chunk: list[tuple[int, str, list[str]]]) -> NDArray[np.float64]:
    """Return columns and values of all entries; raise with the line where one is no number."""
    texts = [text for _, _, fields in chunk for field in fields for text in field.split(":")]
    try:
        return np.array(texts, dtype=np.float64).reshape(-1, 2)
    except ValueError as error:
        for line, _, fields in chunk:
            odd = [text for field in fields for text in field.split(":") if not _is_number(text)]
            if odd:
                raise InputError(
                    f"{request.name}, line {line}: {odd[0]!r} is no number; entries are column:value, as {_EXAMPLE!r}"
                ) from error
        raise


def _label(text: str) -> str:
    try:
        return label_text(float(text))
    except (ValueError, OverflowError):
        return text


def _columns(request: Request, pairs: np.ndarray, rows: np.ndarray, lines: list[int]) -> tuple[np.ndarray, int]:
    """Return columns from 0, and the number that the first one has in the file."""
    given = pairs[:, 0]
    wrong = np.flatnonzero(~((given >= 0) & (given < _MOST_COLUMNS) & (given == np.floor(given))))
    if wrong.size:
        line = lines[rows[wrong[0]]]
        raise InputError(f"{request.name}, line {line}: {given[wrong[0]]:g} cannot be the number of a column")
    # Columns are numbered from 1 by the standard, and from 0 by many programs.
    first = request.first_column
    if first is None:
        first = 0 if given.size and given.min() == 0 else 1
    columns = given.astype(np.int64) - first
    limit = request.n_columns or _MOST_COLUMNS
    outside = np.flatnonzero((columns < 0) | (columns >= limit))
    if outside.size:
        line = lines[rows[outside[0]]]
        raise InputError(
            f"{request.name}, line {line}: there is a column {given[outside[0]]:.0f}, but those of the model go from "
            f"{first} to {first + limit - 1}"
        )
    return columns, first


def _check_values(request: Request, values: np.ndarray, rows: np.ndarray, lines: list[int]) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise InputError(
            f"{request.name}, line {lines[rows[wrong[0]]]}: a value is {values[wrong[0]]}, not a finite number"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
