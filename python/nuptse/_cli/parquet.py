"""Parquet files, where pyarrow is there."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from nuptse._cli import columns as of_table
from nuptse._cli.dataset import label_text
from nuptse._cli.errors import InputError
from nuptse._cli.opening import read_bytes
from nuptse._cli.tables import assemble

if TYPE_CHECKING:
    from nuptse._cli.dataset import Dataset, Request


def read_parquet(request: Request) -> Dataset:
    """Read a table with a column of labels and columns of numbers or of documents."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"{request.name} is Parquet, for which pyarrow is needed: pip install 'nuptse[parquet]'"
        ) from error
    try:
        table = pq.read_table(io.BytesIO(read_bytes(request.path)))
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError) as error:
        raise InputError(f"{request.name} cannot be read as Parquet: {error}") from error
    plan = of_table.plan(table.column_names, request)
    texts = {name: [_text(value) for value in table[name].to_pylist()] for name in plan.special}
    rows = [row for row in range(table.num_rows) if all(texts[name][row] == value for name, value in request.where)]
    if not rows:
        raise InputError(f"{request.name} has no rows{' that --where allows' if request.where else ''}")
    texts = {name: [values[row] for row in rows] for name, values in texts.items()}
    numbers = None
    if plan.text is None:
        numbers = np.column_stack([_numbers(request, table[name], name)[rows] for name in plan.inputs])
    return assemble(request, plan, numbers, texts, [f"row {row + 1}" for row in rows])


def _numbers(request: Request, column: Any, name: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InputError(
            f"{request.name}, column {name!r}: it holds {kind}, not numbers; leave it out with --ignore {name!r}, or "
            "name it with --label, --text, --weight or --groups if it is one of these"
        )
    values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    missing = np.flatnonzero(~np.isfinite(values))  # nulls are NaN here
    if missing.size:
        raise InputError(
            f"{request.name}, row {missing[0] + 1}, column {name!r}: the value is missing or not finite; fill it in, "
            f"drop the row, or leave the column out with --ignore {name!r}"
        )
    return values


def _text(value: Any) -> str:
    return "" if value is None else label_text(value)
