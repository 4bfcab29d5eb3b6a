"""What all pictures need."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 (everything else works without it)
    except ImportError as error:
        raise ImportError("plots need matplotlib, which is not installed; run: pip install nuptse[plots]") from error
    return plt


def percent(value: float, _: float = 0) -> str:
    """Write a share, as matplotlib's formatters do."""
    return f"{value:.0%}"


def shorten(name: str, limit: int) -> str:
    """Return a label of at most so many characters."""
    name = " ".join(name.split())
    return name if len(name) <= limit else name[: max(limit - 1, 0)].rstrip() + "…"
