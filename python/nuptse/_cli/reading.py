"""Data of any format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nuptse._cli.arrays import read_npz
from nuptse._cli.documents import read_documents, read_labels
from nuptse._cli.errors import InputError, UsageError
from nuptse._cli.opening import STDIN, ending, name_of
from nuptse._cli.parquet import read_parquet
from nuptse._cli.svmlight import read_svmlight
from nuptse._cli.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from nuptse._cli.dataset import Dataset, Request

READERS: dict[str, Callable[[Request], Dataset]] = {
    "csv": read_table,
    "tsv": read_table,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
    "npz": read_npz,
    "text": read_documents,
}
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
    ".txt": "text",
    ".text": "text",
}


def format_of(path: str, given: str | None, usual: str | None = None) -> str:
    """Return the format that was given, or that the name of a file tells; `usual` is that of standard input."""
    if given is not None:
        return given
    if path == STDIN:
        if usual is None:
            raise UsageError(f"say with --format what comes from standard input: {', '.join(READERS)}")
        return usual
    found = _ENDINGS.get(ending(path))
    if found is None:
        raise UsageError(
            f"the name of {path} does not tell its format; say so with --format: {', '.join(READERS)}. Known endings "
            f"are {', '.join(_ENDINGS)}, also with .gz, .xz or .bz2"
        )
    return found


def read(request: Request) -> Dataset:
    """Read a file; all that can be wrong with it is an `InputError`."""
    data = READERS[request.format](request)
    if request.labels_path is None or not request.labelled:
        return data
    if request.where:
        raise UsageError("--where and --labels do not go together; put the labels into a column")
    labels = read_labels(request.labels_path, request.encoding)
    if len(labels) != len(data):
        raise InputError(
            f"{name_of(request.labels_path)} has {len(labels)} labels, but {request.name} has {len(data)} rows"
        )
    return replace(data, labels=labels)
