"""What readers are asked for, and what they return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nuptse._cli.errors import InputError
from nuptse._cli.opening import name_of

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    import numpy as np
    from numpy.typing import NDArray

Kind: TypeAlias = Literal["dense", "sparse", "text"]


@dataclass(frozen=True)
class Request:
    """What is to be read, from where, and what is known of it."""

    path: str
    format: str
    #: whether every point must have a label
    labelled: bool = True
    #: the column or array of the labels; None where that was not said
    label: str | None = None
    #: a file with one label a line
    labels_path: str | None = None
    text: str | None = None
    weight: str | None = None
    groups: str | None = None
    identifier: str | None = None
    ignore: tuple[str, ...] = ()
    #: pairs of a column and the value that it must have
    where: tuple[tuple[str, str], ...] = ()
    delimiter: str | None = None
    quotes: bool | None = None
    header: bool = True
    encoding: str = "utf-8"
    #: where a model says what its inputs are:
    columns: Sequence[str] | None = None
    n_columns: int | None = None
    first_column: int | None = None
    known_labels: Container[str] = field(default=())

    @property
    def name(self) -> str:
        """What messages call the file."""
        return name_of(self.path)

    def refuse(self, *options: str) -> None:
        """Raise where options were given that mean nothing for this format."""
        names = {"identifier": "id", "labels_path": "labels"}
        for option in options:
            if getattr(self, option):
                raise InputError(f"{self.name} is {self.format}, which has nothing for --{names.get(option, option)}")


@dataclass
class Dataset:
    """What was read."""

    #: rows of numbers, or documents
    X: Any
    kind: Kind
    labels: list[str] | None = None
    #: the names of the inputs
    columns: list[str] | None = None
    weights: NDArray[np.float64] | None = None
    groups: list[str] | None = None
    identifiers: list[str] | None = None
    #: where labels and documents came from
    label: str | None = None
    text: str | None = None
    #: the number that the first column has in the file
    first_column: int | None = None

    def __len__(self) -> int:
        return len(self.X) if self.kind == "text" else int(self.X.shape[0])

    def keep(self, rows: list[int]) -> Dataset:
        """Return the points with these numbers."""

        def chosen(values: Any) -> Any:
            return None if values is None else [values[row] for row in rows]

        return Dataset(
            chosen(self.X) if self.kind == "text" else self.X[rows],
            self.kind,
            chosen(self.labels),
            self.columns,
            None if self.weights is None else self.weights[rows],
            chosen(self.groups),
            chosen(self.identifiers),
            self.label,
            self.text,
            self.first_column,
        )


def label_text(value: Any) -> str:
    """Return a label as text: whole numbers without a point, as other formats have them."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
