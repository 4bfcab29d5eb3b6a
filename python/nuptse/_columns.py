"""Which columns of the inputs a kernel sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class InputColumns:
    """The columns of the inputs of a fit."""

    count: int
    #: their names, where the inputs have any
    names: Sequence[str] | None = None
    #: the number of rows in which every column is not zero
    frequencies: Callable[[], NDArray[np.int64]] | None = None

    def resolve(self, columns: Any) -> list[int] | None:
        """Return the numbers of the columns that are meant: by number, name, mask or slice; None for all of them."""
        if columns is None:
            return None
        if isinstance(columns, slice):
            return list(range(self.count))[columns]
        given = np.asarray(columns)
        if given.ndim != 1 or not given.size:
            raise ValueError(f"columns is {columns!r}, but must be a list of numbers or names, a mask or a slice")
        if given.dtype == bool:
            if len(given) != self.count:
                raise ValueError(f"columns is a mask of length {len(given)}, but X has {self.count} columns")
            return np.flatnonzero(given).tolist()
        if given.dtype.kind in "iu":
            return self._numbers(given.tolist())
        return self._named(list(columns))

    def _numbers(self, numbers: list[int]) -> list[int]:
        unknown = [number for number in numbers if not -self.count <= number < self.count]
        if unknown:
            raise ValueError(f"columns names column {unknown[0]}, but X has {self.count} columns")
        return [number % self.count for number in numbers]

    def _named(self, names: list[Any]) -> list[int]:
        if self.names is None:
            raise ValueError(f"columns names {names[0]!r}, but the columns of X have no names; give X as a DataFrame")
        place = {name: number for number, name in enumerate(self.names)}
        unknown = [name for name in names if name not in place]
        if unknown:
            raise ValueError(f"columns names {unknown[0]!r}, which is no column of X")
        return [place[name] for name in names]

    def groups(self, groups: Any, columns: list[int] | None) -> tuple[list[Any], list[int]]:
        """Return the names of groups of columns, and the number of the group of every column that a kernel sees."""
        seen = list(range(self.count)) if columns is None else columns
        if isinstance(groups, str):
            if groups != "frequency" or self.frequencies is None:
                raise ValueError(f"groups is {groups!r}, but must be 'frequency', numbers, or a dict of columns")
            return _by_frequency(self.frequencies()[seen])
        if hasattr(groups, "items"):
            return self._by_name(groups, seen)
        numbers = np.asarray(groups)
        if numbers.shape != (len(seen),) or numbers.dtype.kind not in "iu":
            raise ValueError(f"groups must have a whole number for each of the {len(seen)} columns")
        names, places = np.unique(numbers, return_inverse=True)
        return names.tolist(), places.tolist()

    def _by_name(self, groups: Mapping[Any, Any], seen: list[int]) -> tuple[list[Any], list[int]]:
        group: dict[int, int] = {}
        for number, (name, chosen) in enumerate(groups.items()):
            for column in self.resolve(chosen) or []:
                if group.setdefault(column, number) != number:
                    raise ValueError(f"group {name!r} has column {column}, which is in another group too")
        missing = [column for column in seen if column not in group]
        if missing:
            raise ValueError(f"column {missing[0]} is in no group; every column that the kernel sees needs one")
        return list(groups), [group[column] for column in seen]


def _by_frequency(frequencies: NDArray[np.int64], bins: int = 16) -> tuple[list[Any], list[int]]:
    """Return bins of about equal width in the logarithm of the frequency; small bins join their neighbours."""
    logarithms = np.log2(np.maximum(frequencies, 1))
    width = max(logarithms.max() / bins, 1e-12)
    _, places = np.unique(np.minimum((logarithms / width).astype(int), bins - 1), return_inverse=True)
    lowest = [int(frequencies[places == place].min()) for place in range(places.max() + 1)]
    return [f"df >= {low}" for low in lowest], places.tolist()
