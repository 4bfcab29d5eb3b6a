"""How a classifier does on points whose classes are known, as one page to look at."""

from __future__ import annotations

import html
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nuptse._report.evaluation import evaluate
from nuptse._report.page import page

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from numpy.typing import ArrayLike

__all__ = ["Report", "make_report"]

#: The height of a report in a notebook, in pixels.
_HEIGHT = 900


class Report:
    """How a classifier does, as one HTML page that needs nothing else, and as numbers.

    Attributes
    ----------
    html : str
        The page.
    scores : dict of str to float
        The scores by name: accuracy, log_loss, reciprocal_rank, calibration_error; with a hierarchy also taxonomic_loss
        and parent_accuracy. "taxonomic_loss[taxonomic]" and the like are those of the decisions that
        ``predict(X, loss="taxonomic")`` takes.
    title : str
        The title of the page.

    """

    def __init__(self, html: str, scores: dict[str, float], title: str) -> None:
        self.html = html
        self.scores = scores
        self.title = title

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file; whatever happens, there is either what was there before, or all of the new one.

        Parameters
        ----------
        path : path-like
            Where to; a name that ends in ".html" is opened by a browser.

        """
        _write(_checked(path), self.html)

    def __repr__(self) -> str:
        """Describe the report in one line."""
        scores = ", ".join(f"{name} {self.scores[name]:.4g}" for name in ("accuracy", "log_loss"))
        return f"<Report {self.title!r}: {scores}>"

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of the page and those of the notebook apart.
        return (
            f'<iframe srcdoc="{html.escape(self.html, quote=True)}" sandbox="allow-scripts" '
            f'style="width:100%;height:{_HEIGHT}px;border:0" title="{html.escape(self.title, quote=True)}"></iframe>'
        )


def make_report(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    path: str | PathLike[str] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    documents: Iterable[Any] | None = None,
    title: str | None = None,
) -> Report:
    """Report how a fitted classifier does on points whose classes are known.

    Parameters
    ----------
    estimator : fitted classifier
        One that gives probabilities: `KernelClassifier`, `OneVsRestKernelClassifier`, or another one with `classes_`
        and `predict_proba`.
    X, y, path, sample_weight, documents, title
        As in :meth:`KernelClassifier.report`.

    Returns
    -------
    report : Report
        The page and the scores.

    """
    # Before any work, which would be lost if the page could not be written.
    target = None if path is None else _checked(path)
    evaluation = evaluate(estimator, X, y, sample_weight=sample_weight, documents=documents)
    heading = "Classification report" if title is None else str(title)
    report = Report(page(evaluation, heading), evaluation.scores, heading)
    if target is not None:
        _write(target, report.html)
    return report


def _checked(path: str | PathLike[str]) -> Path:
    """Return where a file is to be written; raise if that is no place for one."""
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file, as {target / 'report.html'}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; make it first")
    return target


def _write(target: Path, content: str) -> None:
    """Write a file aside and put it in its place."""
    aside = target.with_name(f".nuptse-{secrets.token_hex(8)}.tmp")
    try:
        with aside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(content)
        if target.exists():
            shutil.copymode(target, aside)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
