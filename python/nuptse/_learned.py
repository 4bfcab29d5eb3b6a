"""What learning leaves behind in a fitted estimator, in the form in which people look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_VARIANCE = "variance"


class Curve(NamedTuple):
    """The values that one quantity took while it was learned."""

    name: str
    #: the numbers of the evaluations, from 1
    evaluations: NDArray[np.int64]
    values: NDArray[np.float64]
    #: where in these the evaluation is whose hyperparameters were kept
    kept: int

    def movement(self) -> float:
        """Return how far the value went on a logarithmic scale, there and back counted once."""
        logarithms = np.log(self.values[self.values > 0])
        return float(np.ptp(logarithms)) if logarithms.size else 0.0


class History(NamedTuple):
    """How learning went."""

    #: Ψ; of an estimator that is made of several, that of each
    criterion: list[Curve]
    hyperparameters: list[Curve]


def history_of(estimator: Any) -> History:
    """Return how learning went; empty where nothing was learned."""
    criterion: list[Curve] = []
    hyperparameters: list[Curve] = []
    for name, part in _parts(estimator):
        rows = getattr(part, "history_", [])
        if not rows:
            continue
        numbers = np.array([row["evaluation"] for row in rows], dtype=np.int64)
        kept = _kept(rows, part.hyperparameters_)
        values = np.array([row["value"] for row in rows], dtype=np.float64)
        criterion.append(Curve(_of("Ψ", name), numbers, values, kept))
        for one in rows[0]["hyperparameters"]:
            values = np.array([row["hyperparameters"][one] for row in rows], dtype=np.float64)
            hyperparameters.append(Curve(_of(one, name), numbers, values, kept))
    return History(criterion, hyperparameters)


def moved_most(curves: list[Curve], limit: int) -> list[Curve]:
    """Return the curves that went farthest, in their order."""
    farthest = sorted(curves, key=Curve.movement, reverse=True)[:limit]
    return [curve for curve in curves if any(curve is one for one in farthest)]


def hyperparameters_of(estimator: Any) -> dict[str, float]:
    """Return every hyperparameter by name; those of an estimator that is made of several with the class of each."""
    return {
        _of(one, name): value
        for name, part in _parts(estimator)
        for one, value in getattr(part, "hyperparameters_", {}).items()
    }


def variances_in(hyperparameters: Mapping[str, float]) -> dict[str, float]:
    """Return the variances among hyperparameters by the level, class or node that each belongs to."""
    prefix = f"{_VARIANCE}["
    return {
        "all" if name == _VARIANCE else name[len(prefix) : -1]: value
        for name, value in hyperparameters.items()
        if name == _VARIANCE or name.startswith(prefix)
    }


def others_in(hyperparameters: Mapping[str, float]) -> dict[str, float]:
    """Return the hyperparameters that are no variances of levels, classes or nodes."""
    return {
        name: value
        for name, value in hyperparameters.items()
        if name != _VARIANCE and not name.startswith(f"{_VARIANCE}[")
    }


def _kept(rows: list[dict[str, Any]], learned: Mapping[str, float]) -> int:
    """Return the place of the evaluation whose hyperparameters are those of the model."""
    apart = [sum(abs(np.log(value / learned[name])) for name, value in row["hyperparameters"].items()) for row in rows]
    return int(np.argmin(apart))


def _parts(estimator: Any) -> list[tuple[str | None, Any]]:
    """Return the models within an estimator with their names; where it is one itself, it alone without a name."""
    parts = getattr(estimator, "estimators_", None)
    if parts is None:
        return [(None, estimator)]
    return [(str(label), part) for label, part in zip(estimator.classes_.tolist(), parts, strict=True)]


def _of(name: str, part: str | None) -> str:
    """Name something of a part, as hyperparameters of groups are named."""
    if part is None:
        return name
    return f"{name[:-1]}, {part}]" if name.endswith("]") else f"{name}[{part}]"
