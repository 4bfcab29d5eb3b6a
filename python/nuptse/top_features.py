"""The inputs that pull hardest for and against classes, or nodes of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["FeatureWeight", "TopFeatures", "TopFeaturesList"]


class FeatureWeight(NamedTuple):
    """An input with its weight in a function."""

    #: its name; "x3" for the fourth one where there are no names
    name: str
    #: its place in `X`
    column: int
    #: how much the function grows with it
    weight: float


@dataclass(frozen=True)
class TopFeatures:
    """The inputs that pull hardest for and against one class, or one node of a tree."""

    #: the class, or the node as `Hierarchy.node_label` has it
    label: Any
    #: how deep it lies in the tree; 1 for classes without a tree
    level: int
    #: the inputs with the largest weights above zero, the largest first
    supporting: tuple[FeatureWeight, ...]
    #: the inputs with the smallest weights below zero, the smallest first
    opposing: tuple[FeatureWeight, ...]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict for every input, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        sides = (("for", self.supporting), ("against", self.opposing))
        return [
            {"label": self.label, "level": self.level, "direction": direction, "rank": rank, **one._asdict()}
            for direction, features in sides
            for rank, one in enumerate(features, start=1)
        ]

    def __str__(self) -> str:
        """Return a line for the label and one for each direction."""
        return "\n".join([str(self.label), *self._sides()])

    def _sides(self) -> list[str]:
        sides = (("for    ", self.supporting), ("against", self.opposing))
        return [
            f"  {direction}  " + ", ".join(f"{one.name} {one.weight:+.3g}" for one in features)
            for direction, features in sides
            if features
        ]


class TopFeaturesList(list[TopFeatures]):
    """What pulls for and against every class, or every node of a tree, each before those below it."""

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict for every input of every class or node, for a data frame."""
        return [row for one in self for row in one.to_rows()]

    def __str__(self) -> str:
        """Return the text of all; nodes of a tree are set in by their level."""
        lines = [("  " * (one.level - 1) + line) for one in self for line in str(one).splitlines()]
        return "\n".join(lines)


def top_of(
    weights: NDArray[np.float64], names: Sequence[Any] | NDArray[Any] | None, n: int
) -> tuple[tuple[FeatureWeight, ...], tuple[FeatureWeight, ...]]:
    """Return the n inputs with the largest weights above zero, and the n with the smallest below."""

    def chosen(values: NDArray[np.float64]) -> tuple[FeatureWeight, ...]:
        return tuple(
            FeatureWeight(f"x{i}" if names is None else str(names[i]), i, float(weights[i]))
            for i in largest(values, n).tolist()
        )

    return chosen(weights), chosen(-weights)


def largest(values: NDArray[np.float64], n: int | None) -> NDArray[np.intp]:
    """Return the places of the n largest values above zero (None: of all of them), the largest first."""
    above = np.flatnonzero(values > 0)
    if n is not None and n < len(above):
        above = np.sort(above[np.argpartition(-values[above], n - 1)[:n]])
    return above[np.argsort(-values[above], kind="stable")]


def names_of_features(given: Any, of_fit: NDArray[Any] | None, count: int) -> Sequence[Any] | NDArray[Any] | None:
    """Return the names of the inputs: as given, by a list or something that has them; or those of the fit."""
    if given is None:
        return of_fit
    if hasattr(given, "get_feature_names_out"):
        given = given.get_feature_names_out()
    names: NDArray[Any] = np.asarray(given)
    if names.shape != (count,):
        raise ValueError(f"feature_names has shape {names.shape}, but must have a name for each of the {count} inputs")
    return names
