"""Where errors happen: in which branches of a tree, or between which classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nuptse._report.confusions import class_weights, confused_branches, confused_classes, right_by_level
from nuptse._report.icicle import icicle, legend, shade
from nuptse._report.markup import exact, label, scrolled, share, table, text, weight

if TYPE_CHECKING:
    from nuptse._report.evaluation import Evaluation
    from nuptse.hierarchy import Hierarchy

#: How many classes a matrix may have before it is no longer read.
_MATRIX = 25
_ROWS = 12


def errors_section(evaluation: Evaluation) -> str:
    """Return where errors happen."""
    if evaluation.hierarchy is not None:
        return _in_tree(evaluation, evaluation.hierarchy)
    confusions = ("Most frequent confusions", _confusions_table(evaluation))
    if len(evaluation.names) <= _MATRIX:
        matrix = ("Confusion matrix", _matrix(evaluation))
        # A wide matrix takes the whole width.
        return _beside(matrix, confusions, even=len(evaluation.names) <= _MATRIX // 2)
    return _beside(("Classes with most errors", _hardest_classes(evaluation)), confusions, even=True)


def _in_tree(evaluation: Evaluation, hierarchy: Hierarchy) -> str:
    branches = confused_branches(evaluation, hierarchy)
    rows = [
        [f"Level&nbsp;{level}", f"{nodes:,}", exact(right, share(right))]
        for level, nodes, right in right_by_level(hierarchy, branches)
    ]
    levels = table(
        ["Level", f"Nodes with {evaluation.noun}", "Placed in the right node"],
        rows,
        caption="Right predictions by level",
        numeric=(1, 2),
    )
    return icicle(hierarchy, branches, evaluation.noun) + _beside(
        ("Level by level", levels), ("Most frequent confusions", _confusions_table(evaluation))
    )


def _beside(*parts: tuple[str, str], even: bool | None = None) -> str:
    """Set parts side by side where there is room: alike, the first one narrower, or (False) below each other."""
    cards = "".join(f"<div><h3>{heading}</h3>{content}</div>" for heading, content in parts)
    return f'<div class="{ {None: "columns", True: "columns even", False: "stacked"}[even] }">{cards}</div>'


def _confusions_table(evaluation: Evaluation) -> str:
    pairs = confused_classes(evaluation)
    if not len(pairs.weight):
        return "<p>There are none: every prediction is right.</p>"
    sizes, _ = class_weights(evaluation)
    rows = [
        [
            label(evaluation.names[true]),
            label(evaluation.names[predicted]),
            exact(count, weight(count)),
            share(count / sizes[true]),
        ]
        for true, predicted, count in zip(*(column[:_ROWS].tolist() for column in pairs), strict=True)
    ]
    more = len(pairs.weight) - len(rows)
    note = f'<p class="note">{more:,} more pairs of classes are confused, none of them more often.</p>' if more else ""
    header = ["True class", "Predicted", evaluation.noun.capitalize(), "Of the class"]
    return table(header, rows, caption="Most frequent confusions", numeric=(2, 3)) + note


def _hardest_classes(evaluation: Evaluation) -> str:
    """Return the classes that lose most points to others."""
    sizes, wrong = class_weights(evaluation)
    order = np.argsort(-wrong, kind="stable")[:_ROWS]
    rows = [
        [
            label(evaluation.names[one]),
            weight(sizes[one]),
            exact(wrong[one], weight(wrong[one])),
            f'<span class="chip e{shade(wrong[one] / sizes[one])}">{share(wrong[one] / sizes[one])}</span>',
        ]
        for one in order.tolist()
        if wrong[one] > 0
    ]
    if not rows:
        return "<p>There are none: every prediction is right.</p>"
    header = ["Class", evaluation.noun.capitalize(), "Wrong", "Of the class"]
    return table(header, rows, caption="Classes with most errors", numeric=(1, 2, 3))


def _matrix(evaluation: Evaluation) -> str:
    count = len(evaluation.names)
    sums = np.bincount(
        evaluation.truth * count + evaluation.predicted, evaluation.weights, minlength=count * count
    ).reshape(count, count)
    sizes = sums.sum(axis=1)
    head = "".join(f'<th scope="col">{label(name, 12)}</th>' for name in evaluation.names)
    body = []
    for true, name in enumerate(evaluation.names):
        cells = "".join(
            _cell(float(sums[true, predicted]), float(sizes[true]), right=true == predicted)
            for predicted in range(count)
        )
        body.append(f'<tr><th scope="row" title="{text(name)}">{label(name, 24)}</th>{cells}</tr>')
    matrix = (
        '<table class="matrix"><caption class="hidden">Confusion matrix, true classes in rows</caption>'
        f'<thead><tr><th scope="col" class="corner">true ↓ predicted →</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )
    return (
        f"<p>Rows are true classes, columns predicted ones; numbers are {evaluation.noun}. The colour of an error is "
        f"its share of the row.</p>{legend()}{scrolled(matrix, 'Confusion matrix')}"
    )


def _cell(value: float, size: float, *, right: bool) -> str:
    if right:
        return f'<td class="right">{weight(value)}</td>'
    return '<td class="none">·</td>' if value == 0 else f'<td class="e{shade(value / size)}">{weight(value)}</td>'
