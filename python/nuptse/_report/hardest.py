"""The points whose true class was thought least probable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nuptse._report.markup import exact, label, share, text

if TYPE_CHECKING:
    from nuptse._report.evaluation import Evaluation, Integers

#: How many are shown, and how many of them before anything is unfolded.
_COUNT, _FIRST = 20, 6
_TOP = 5
#: The length in characters of what is seen of a document at once, and when it is unfolded.
_EXCERPT, _WHOLE = 320, 4000


def hardest_points(evaluation: Evaluation, count: int = _COUNT) -> Integers:
    """Return the points whose true class is least probable, the hardest first."""
    order = np.argsort(evaluation.log_likelihood, kind="stable")
    return order[evaluation.weights[order] > 0][:count]


def hardest_section(evaluation: Evaluation) -> str:
    """Return the hardest points with the classes that were thought most probable."""
    points = hardest_points(evaluation).tolist()
    items = [f"<li>{_card(evaluation, point)}</li>" for point in points]
    first, rest = "".join(items[:_FIRST]), "".join(items[_FIRST:])
    more = len(items) - _FIRST
    folded = f'<details class="more"><summary>{more} more</summary><ol class="hardest">{rest}</ol></details>'
    what = "Rows of X are counted from 0." if evaluation.documents is None else "Rows are counted from 0."
    return (
        f"<p>The {len(points)} {evaluation.noun} whose true class was thought least probable, with their five most "
        f"probable classes. Look here for wrong labels. {what}</p>"
        f'<ol class="hardest">{first}</ol>{folded if rest else ""}'
    )


def _card(evaluation: Evaluation, point: int) -> str:
    probabilities = evaluation.probabilities[point]
    truth = int(evaluation.truth[point])
    top = np.argsort(-probabilities, kind="stable")[:_TOP].tolist()
    rank = 1 + int((probabilities > probabilities[truth]).sum())
    shown = top if truth in top else [*top, truth]
    chances = "".join(_chance(evaluation, one, float(probabilities[one]), true=one == truth) for one in shown)
    right = truth == evaluation.predicted[point]
    verdict = "predicted, yet unsure" if right else f"true class ranked {rank:,} of {len(probabilities):,}"
    return (
        f'<article><h3>Row {point} <span class="muted">{verdict}</span></h3>{_document(evaluation, point)}'
        f'<table class="chances"><caption class="hidden">Most probable classes of row {point}</caption>'
        f"<tbody>{chances}</tbody></table></article>"
    )


def _document(evaluation: Evaluation, point: int) -> str:
    if evaluation.documents is None:
        return ""
    whole = " ".join(evaluation.documents[point].split())
    if len(whole) <= _EXCERPT:
        return f'<p class="document" dir="auto">{text(whole) or "(empty)"}</p>'
    return (
        f'<details class="document" dir="auto"><summary>{text(whole, _EXCERPT)}</summary>'
        f"<p>{text(whole, _WHOLE)}</p></details>"
    )


def _chance(evaluation: Evaluation, number_of_class: int, probability: float, *, true: bool) -> str:
    mark = ' <span class="true">true</span>' if true else ""
    shown = exact(probability, share(probability) if probability >= 0.001 else "&lt; 0.1%")
    return (
        f'<tr{" class=is-true" if true else ""}><th scope="row">{label(evaluation.names[number_of_class])}{mark}</th>'
        f'<td class="track"><span style="width:{100 * probability:.2f}%"></span></td><td class="n">{shown}</td></tr>'
    )
