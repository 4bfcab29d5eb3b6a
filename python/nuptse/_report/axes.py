"""Axes of charts: where values lie between their ends, and which of them are written beside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nuptse._report.markup import number, share

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Values that are this near to each other, on a logarithmic scale, are drawn as one.
_LEAST_LOG_RANGE = math.log(1.2)


@dataclass(frozen=True)
class Axis:
    """A scale from one value to another; places on it are in percent."""

    low: float
    high: float
    #: values that are written, and how
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies, from 0 to 100 between the ends."""
        if self.logarithmic:
            return 100 * math.log(value / self.low) / math.log(self.high / self.low)
        return 100 * (value - self.low) / (self.high - self.low)


def share_axis(highest: float = 1.0) -> Axis:
    """Return an axis of shares from 0 to the highest, or somewhat above."""
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
    step = next((one for one in steps if highest / one <= 5), steps[-1])
    count = max(math.ceil(highest / step - 1e-9), 1)
    return Axis(0.0, step * count, tuple((step * i, share(step * i, 0)) for i in range(count + 1)))


def linear_axis(values: ArrayLike, ticks: int = 4) -> Axis:
    """Return an axis on which all values lie, with about so many round numbers written beside it."""
    low, high = _ends(values)
    if high - low <= 1e-6 * abs(high):
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    rough = (high - low) / ticks
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(magnitude * one for one in (1, 2, 5, 10) if magnitude * one >= rough * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    values_at = [step * i for i in range(first, last + 1)]
    digits = max(3, 1 + math.floor(math.log10(max(abs(first), abs(last), 1))))
    return Axis(values_at[0], values_at[-1], tuple((one, number(one, digits)) for one in values_at))


def counting_axis(last: int) -> Axis:
    """Return an axis from 1 to a whole number."""
    if last <= 1:
        return Axis(0.5, 1.5, ((1, "1"),))
    step = max(math.ceil((last - 1) / 4), 1)
    ticks = [*range(1, last - step // 2, step), last]
    return Axis(1, last, tuple((one, str(one)) for one in ticks))


def log_axis(values: ArrayLike) -> Axis:
    """Return a logarithmic axis on which all values, which must be positive, lie with some room around them."""
    low, high = _ends(values)
    missing = max(_LEAST_LOG_RANGE - math.log(high / low), 0) / 2
    room = math.exp(missing + 0.06 * max(math.log(high / low), _LEAST_LOG_RANGE))
    low, high = low / room, high * room
    return Axis(low, high, tuple((one, number(one)) for one in _round_numbers(low, high)), logarithmic=True)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return two to five round numbers between two others, as even as may be on a logarithmic scale."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**i for i in range(first, last + 1) if low <= 10.0**i <= high]
    if len(decades) >= 3:
        step = math.ceil(len(decades) / 4)
        return decades[::step]
    for digits in ((1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        found = [digit * 10.0**i for i in range(first, last + 1) for digit in digits if low <= digit * 10.0**i <= high]
        if len(found) >= 2:
            return found
    inner = linear_axis([low, high], 3)
    return [value for value, _ in inner.ticks if low <= value <= high]


def _ends(values: ArrayLike) -> tuple[float, float]:
    array = np.asarray(values, dtype=np.float64)
    return float(array.min()), float(array.max())
