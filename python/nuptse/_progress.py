"""What is shown of long work: one line that changes on a terminal and in a notebook, else a line for every report."""

from __future__ import annotations

import sys
import time
from typing import TextIO

#: Seconds between two changes of the line.
_PAUSE = 0.1


class ProgressLine:
    """Takes the reports of a fit, and of learning, and shows them.

    Parameters
    ----------
    max_evaluations : int or None
        How often the criterion may be evaluated, where hyperparameters are learned.
    stream : file object, default=None
        Where to write; by default standard error.

    """

    def __init__(self, max_evaluations: int | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._one_line = _changes_lines(self._stream)
        self._max_evaluations = max_evaluations
        self._begun = self._heard = self._stage_begun = time.monotonic()
        self._points: int | None = None
        self._shown = -float("inf")
        self._width = 0

    def __call__(self, step: int, products: int | None, value: float, slope: float, points: int | None = None) -> None:
        """Show a step of a fit or, without products, an evaluation of the criterion on so many points."""
        if products is None:
            if points != self._points:
                self._points, self._stage_begun = points, self._heard
            of = "" if points is None else f" on {points} points"
            text = f"evaluation {step}{of}: criterion {value:.7g}, largest slope {slope:.1e}{self._time_left(step)}"
        else:
            text = f"step {step}: {products} products, objective {value:.8g}, max|alpha + g| {slope:.1e}"
        self._heard = now = time.monotonic()
        if not self._one_line:
            self._stream.write(text + "\n")
        elif now - self._shown >= _PAUSE:
            self._write(text)
            self._shown = now
        self._stream.flush()

    def close(self) -> None:
        """Leave the line as it is, and go to the next."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._width = len(text)

    def _time_left(self, evaluation: int) -> str:
        """Return the time that learning took so far, and the longest that it may still take."""
        now = time.monotonic()
        spent = now - self._begun
        if self._max_evaluations is None:
            return ""
        left = (now - self._stage_begun) / evaluation * max(self._max_evaluations - evaluation, 0)
        return f", {_duration(spent)} so far, at most about {_duration(left)} to go"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 60 else f"{minutes / 60:.1f} h"


def _changes_lines(stream: TextIO) -> bool:
    """Tell whether a line can be written over: on a terminal, or in a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")
