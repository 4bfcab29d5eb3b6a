"""What is known of hyperparameters before they are learned: bounds, and log-normal priors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How far a logarithm goes where no bounds are given: a factor of a million.
_RANGE = math.log(1e6)


def as_bounds(given: Mapping[str, Any], starts: Mapping[str, float]) -> list[tuple[float, float]]:
    """Return the bounds of every logarithm, in the order of the hyperparameters with their starting values."""
    found = _by_name("bounds", given, starts)
    for name, (low, high) in found.items():
        if not 0 < low < high < math.inf:
            raise ValueError(f"the bounds of {name!r} are {low!r} and {high!r}, but must be positive and in order")

    def usual(start: float) -> tuple[float, float]:
        return math.log(start) - _RANGE, math.log(start) + _RANGE

    logarithms = {name: (math.log(low), math.log(high)) for name, (low, high) in found.items()}
    return [logarithms.get(name) or usual(start) for name, start in starts.items()]


def as_priors(given: Mapping[str, Any], starts: Mapping[str, float]) -> list[tuple[float, float]]:
    """Return mean and deviation of the prior of every logarithm; an infinite deviation is none."""
    found = _by_name("priors", given, starts)
    for name, (median, deviation) in found.items():
        if not (0 < median < math.inf and deviation > 0):
            raise ValueError(
                f"the prior of {name!r} has median {median!r} and deviation {deviation!r}, but both must be positive"
            )
    logarithms = {name: (math.log(median), float(deviation)) for name, (median, deviation) in found.items()}
    return [logarithms.get(name, (0.0, math.inf)) for name in starts]


def _by_name(what: str, given: Mapping[str, Any], starts: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return pairs by hyperparameter: by its own name or, failing that, by the name before its group."""
    families = {name: name.split("[", 1)[0] for name in starts}
    unknown = [name for name in given if name not in families and name not in families.values()]
    if unknown:
        raise ValueError(f"{what} has unknown names {unknown}; use some of {sorted({*families, *families.values()})}")
    found = {}
    for name, family in families.items():
        pair = given.get(name, given.get(family))
        if pair is None:
            continue
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ValueError(f"{what}[{name!r}] is {pair!r}, but must be a pair of numbers")
        found[name] = (float(pair[0]), float(pair[1]))
    return found
