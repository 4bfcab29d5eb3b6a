"""What options ask readers for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nuptse._cli.dataset import Request
from nuptse._cli.errors import InputError, UsageError
from nuptse._cli.opening import STDIN
from nuptse._cli.reading import format_of, read

if TYPE_CHECKING:
    import argparse

    from nuptse._cli.dataset import Dataset
    from nuptse._cli.model import Model

_TABLES = {"csv", "tsv", "parquet"}
#: Formats whose labels are found by a name.
_LABELLED = {*_TABLES, "npz"}


def read_for_training(options: argparse.Namespace) -> tuple[Dataset, str]:
    """Read what a model is to be trained on; return its format too."""
    kind = format_of(options.data, options.format)
    return read(_request(options, kind, groups=options.groups)), kind


def read_for_model(options: argparse.Namespace, model: Model, *, labelled: bool) -> Dataset:
    """Read what a model is to be used on; what is not said is as it was in training."""
    kind = format_of(options.data, options.format, usual=model.text_of("format"))
    trained_on = model.text_of("format")
    alike = kind == trained_on or {kind, trained_on} <= _TABLES
    if options.label is None and getattr(options, "labels_path", None) is None and alike and kind in _LABELLED:
        options.label = model.text_of("label")
    if model.takes_text and options.text is None and kind in _TABLES:
        options.text = model.text_of("text")
        if options.text is None:
            raise UsageError("the model takes documents; say with --text which column has them")
    if options.text is not None and not model.takes_text:
        raise UsageError("the model takes numbers, not documents; leave out --text")
    first = model.trained_on.get("first_column")
    request = _request(
        options,
        kind,
        labelled=labelled,
        identifier=getattr(options, "identifier", None),
        columns=model.columns,
        n_columns=None if model.takes_text else model.classifier.n_features_in_,
        first_column=first if first in {0, 1} else None,
        known_labels=model.labels,
    )
    data = read(request)
    if model.takes_text != (data.kind == "text"):
        wanted, found = ("documents", "numbers") if model.takes_text else ("numbers", "documents")
        raise InputError(f"the model takes {wanted}, but {request.name} has {found}")
    return data


def _request(options: argparse.Namespace, kind: str, *, labelled: bool = True, **more: object) -> Request:
    labels_path = getattr(options, "labels_path", None)
    if labels_path is not None and options.label is not None:
        raise UsageError("labels are either in a column (--label) or in a file (--labels); give one of them")
    if labels_path == STDIN == options.data:
        raise UsageError("data and labels cannot both come from standard input")
    return Request(
        path=options.data,
        format=kind,
        labelled=labelled,
        label=options.label,
        labels_path=labels_path,
        text=options.text,
        weight=getattr(options, "weight", None),
        ignore=tuple(options.ignore),
        where=tuple(options.where),
        delimiter=options.delimiter,
        quotes=options.quotes,
        header=options.header,
        encoding=options.encoding,
        **more,  # type: ignore[arg-type]
    )
