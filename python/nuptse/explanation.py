"""The training points that pull hardest for and against what is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nuptse.top_features import largest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Explanation", "Pull"]


class Pull(NamedTuple):
    """A training point with what it adds to a decision."""

    #: its row in the inputs of the fit
    point: int
    #: its label; None where the model does not have it
    label: Any
    #: what it adds
    contribution: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a class has the value that it has at one point.

    The value is the sum of what all training points add to it, and of the intercept:
    ``decision == contributions.sum() + rest + intercept``.
    """

    #: the class that is explained
    label: Any
    #: its probability
    probability: float
    #: the value of its function; of two classes, its log odds
    decision: float
    #: what is there without any training point
    intercept: float
    #: the training points that pull for the class, the hardest first, and then those that pull against it
    indices: NDArray[np.intp]
    #: what each of them adds to the decision
    contributions: NDArray[np.float64]
    #: their labels; None where the model does not have them
    labels: NDArray[Any] | None
    #: what all other training points add
    rest: float

    @property
    def supporting(self) -> list[Pull]:
        """The training points that pull for the class, the hardest first."""
        return [pull for pull in self._pulls() if pull.contribution > 0]

    @property
    def opposing(self) -> list[Pull]:
        """The training points that pull against the class, the hardest first."""
        return [pull for pull in self._pulls() if pull.contribution < 0]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict for every training point, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return [
            {"explained": self.label, "direction": "for" if pull.contribution > 0 else "against", **pull._asdict()}
            for pull in self._pulls()
        ]

    def __str__(self) -> str:
        """Return the decision, and a line for every training point."""
        parts = f"{self.contributions.sum():+.3f} (points below) {self.rest:+.3f} (all others)"
        lines = [
            f"{self.label}, probability {self.probability:.3f}",
            f"decision {self.decision:+.3f} = {parts} {self.intercept:+.3f} (intercept)",
        ]
        width = max((len(str(index)) for index in self.indices.tolist()), default=0)
        for direction, pulls in (("for    ", self.supporting), ("against", self.opposing)):
            for place, pull in enumerate(pulls):
                label = "" if pull.label is None else f"  {pull.label}"
                start = direction if place == 0 else " " * len(direction)
                lines.append(f"  {start}  {pull.contribution:+.3f}  point {pull.point:>{width}}{label}")
        return "\n".join(lines)

    def _pulls(self) -> list[Pull]:
        labels = [None] * len(self.indices) if self.labels is None else self.labels.tolist()
        return list(map(Pull, self.indices.tolist(), labels, self.contributions.tolist()))

    @classmethod
    def of_point(
        cls,
        label: Any,
        probability: float,
        intercept: float,
        contributions: NDArray[np.float64],
        labels: NDArray[Any] | None,
        n: int | None,
    ) -> Explanation:
        """Choose the n hardest of either side from the contributions of all training points; None for all of them."""
        places = np.concatenate([largest(contributions, n), largest(-contributions, n)])
        others = contributions.copy()
        others[places] = 0.0
        return cls(
            label=label,
            probability=probability,
            decision=float(contributions.sum() + intercept),
            intercept=intercept,
            indices=places,
            contributions=contributions[places],
            labels=None if labels is None else labels[places],
            rest=float(others.sum()),
        )
