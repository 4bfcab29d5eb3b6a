"""Tables as text: CSV, TSV and the like."""

from __future__ import annotations

import csv
import math
import sys
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nuptse._cli import columns as of_table
from nuptse._cli.dataset import Dataset
from nuptse._cli.errors import InputError
from nuptse._cli.opening import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from nuptse._cli.dataset import Request

#: Rows that are turned into numbers at a time; texts of numbers take ten times their memory.
_CHUNK = 2000
_MISSING = {"", "na", "nan", "n/a", "null", "none", "?", "-"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " "}


def read_table(request: Request) -> Dataset:
    """Read a table with a column of labels and columns of numbers or of documents."""
    with _long_fields():
        rows = _rows(request)
        try:
            _, header = next(rows)
        except StopIteration:
            raise InputError(f"{request.name} is empty") from None
        if not request.header:
            rows, header = _unread(header, rows), [str(number) for number in range(1, len(header) + 1)]
        plan = of_table.plan(header, request)
        return _collect(request, plan, header, rows)


def delimited_rows(path: str, delimiter: str, *, quotes: bool, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Return the fields of every line that is not empty, with its number."""
    reader: Any = csv.reader(
        read_text(path, encoding), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    )
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}") from error
        if row:
            yield reader.line_num, [field.strip() for field in row]


def _rows(request: Request) -> Iterator[tuple[int, list[str]]]:
    delimiter = request.delimiter or _DELIMITERS[request.format]
    delimiter = _NAMED_DELIMITERS.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '\n\r"':
        raise InputError(f"{delimiter!r} cannot be a delimiter; use one character, or 'tab'")
    # Tab-separated files have no quotes by their standard, and documents in them often begin with one.
    quotes = delimiter != "\t" if request.quotes is None else request.quotes
    return delimited_rows(request.path, delimiter, quotes=quotes, encoding=request.encoding)


def _unread(first: list[str], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield 1, first
    yield from rows


def _collect(
    request: Request, plan: of_table.Columns, header: list[str], rows: Iterator[tuple[int, list[str]]]
) -> Dataset:
    """Read all rows: inputs as numbers, chunk by chunk, and the other columns that matter as texts."""
    place = {name: number for number, name in enumerate(header)}
    inputs = [place[name] for name in plan.inputs]
    texts: dict[str, list[str]] = {name: [] for name in plan.special}
    blocks: list[NDArray[np.float64]] = []
    lines: list[int] = []
    while chunk := list(islice(rows, _CHUNK)):
        for line, row in chunk:
            if len(row) != len(header):
                _refuse_row(request, line, row, header)
        kept = [one for one in chunk if all(one[1][place[name]] == value for name, value in request.where)]
        lines += [line for line, _ in kept]
        for name, values in texts.items():
            values += [row[place[name]] for _, row in kept]
        if inputs:
            blocks.append(_numbers(request, [(line, [row[i] for i in inputs]) for line, row in kept], plan.inputs))
    if not lines:
        raise InputError(
            f"{request.name} has no rows{' that --where allows' if request.where else ' below its header'}"
        )
    return assemble(request, plan, np.concatenate(blocks) if inputs else None, texts, [f"line {n}" for n in lines])


def assemble(
    request: Request,
    plan: of_table.Columns,
    numbers: NDArray[np.float64] | None,
    texts: dict[str, list[str]],
    places: Sequence[str],
) -> Dataset:
    """Put the parts of a table together; `places` says where every row came from."""
    labels = None if plan.label is None else texts[plan.label]
    if labels is not None and request.labelled:
        for place, label in zip(places, labels, strict=True):
            if not label:
                raise InputError(f"{request.name}, {place}, column {plan.label!r}: the label is missing")
    weights = None
    if request.weight is not None:
        rows = [(place, [text]) for place, text in zip(places, texts[request.weight], strict=True)]
        weights = _numbers(request, rows, [request.weight])[:, 0]
    return Dataset(
        texts[plan.text] if plan.text is not None else numbers,
        "text" if plan.text is not None else "dense",
        labels if request.labelled else None,
        plan.inputs if plan.text is None and request.header else None,
        weights,
        None if request.groups is None else texts[request.groups],
        None if request.identifier is None else texts[request.identifier],
        plan.label,
        plan.text,
    )


def _numbers(request: Request, rows: Sequence[tuple[Any, list[str]]], names: Sequence[str]) -> NDArray[np.float64]:
    """Return fields as numbers; raise with column and line where one is none."""
    fields = [row for _, row in rows]
    try:
        block = np.array(fields, dtype=np.float64).reshape(len(rows), len(names))
    except ValueError:
        block = np.full((1, 1), np.nan)
    # Python reads 1_000 as a number, which is more likely to be a name.
    if np.isfinite(block).all() and not any("_" in "".join(row) for row in fields):
        return block
    for place, row in rows:
        for name, text in zip(names, row, strict=True):
            problem = _problem(text, name)
            if problem:
                where = f"line {place}" if isinstance(place, int) else place
                raise InputError(f"{request.name}, {where}, column {name!r}: {problem}")
    return block


def _problem(text: str, name: str) -> str | None:
    """Return why a text is no number that can be used; None where it is one."""
    if text.lower() in _MISSING:
        return f"the value is missing; fill it in, drop the line, or leave the column out with --ignore {name!r}"
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        shown = text if len(text) <= 30 else text[:27] + "..."
        return (
            f"{shown!r} is no number; leave the column out with --ignore {name!r}, or name it with --label, --text, "
            "--weight or --groups if it is one of these"
        )
    return f"{text!r} is too large" if math.isinf(value) else None


def _refuse_row(request: Request, line: int, row: list[str], header: list[str]) -> NoReturn:
    hint = ""
    if any('"' in field for field in row):
        hint = "; the line has quotes: say with --quotes or --no-quotes what they are"
    raise InputError(f"{request.name}, line {line}: {len(row)} fields, but line 1 has {len(header)}{hint}")


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let fields be as long as documents are."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)
