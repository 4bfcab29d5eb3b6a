"""The scores: the most wanted at a glance, and all of them with what they say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nuptse._report.evaluation import TREE_DECISIONS
from nuptse._report.markup import exact, number, scrolled, share

if TYPE_CHECKING:
    from nuptse._report.evaluation import Evaluation

_SHARES = {"accuracy", "parent_accuracy", "calibration_error"}
_SMALLER_IS_BETTER = {"taxonomic_loss"}
_DECISIONS = ("Most probable class", "Least taxonomic loss", "Most probable parent")


def glance(evaluation: Evaluation) -> str:
    """Return four scores to be seen first, each with something to compare it with."""
    scores = evaluation.scores
    sizes = np.bincount(evaluation.truth, evaluation.weights)
    largest = share(float(sizes.max() / sizes.sum()))
    count = len(evaluation.names)
    tiles = [
        ("Accuracy", "accuracy", f"{largest} by the largest class alone"),
        ("Log loss", "log_loss", f"{number(math.log(count))} by even odds"),
        ("Reciprocal rank", "reciprocal_rank", "1 where the true class is always first"),
    ]
    if evaluation.hierarchy is None:
        tiles.append(("Calibration error", "calibration_error", "0 where probabilities are right"))
    else:
        tiles.append(("Parent accuracy", "parent_accuracy", "right up to the level above the class"))
    content = "".join(
        f'<div class="tile"><dt>{name}</dt><dd class="value">{_value(key, scores[key])}</dd><dd>{note}</dd></div>'
        for name, key, note in tiles
    )
    return f'<dl class="tiles">{content}</dl>'


def scores_table(evaluation: Evaluation) -> str:
    """Return all scores; with a tree, for every decision that can be taken from the same probabilities."""
    noun, in_tree = evaluation.noun, evaluation.hierarchy is not None
    width = len(_DECISIONS) if in_tree else 1
    rows = [
        _decision_row("Accuracy", "accuracy", f"share of {noun} whose class is predicted", evaluation),
        _row("Log loss", "log_loss", "−log probability of the true class; 0 is best", evaluation, width),
        _row("Reciprocal rank", "reciprocal_rank", "1 / rank of the true class; 1 is best", evaluation, width),
        _row(
            "Calibration error",
            "calibration_error",
            "probabilities against what comes true; 0 is best",
            evaluation,
            width,
        ),
    ]
    if in_tree:
        rows[1:1] = [
            _decision_row(
                "Taxonomic loss",
                "taxonomic_loss",
                "half the path in the tree to the true class; 0 is best",
                evaluation,
            ),
            _decision_row(
                "Parent accuracy",
                "parent_accuracy",
                f"share of {noun} placed below the right parent",
                evaluation,
            ),
        ]
    heads = _DECISIONS if in_tree else ("Value",)
    head = "".join(f'<th scope="col" class="n">{one}</th>' for one in heads)
    table = (
        '<table class="scores"><caption class="hidden">Scores</caption>'
        f'<thead><tr><th scope="col">Score</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    note = (
        '<p class="note">From the same probabilities three decisions can be taken: the most probable class, the class '
        "of least expected taxonomic loss, and the most probable parent first. The best of each row is in bold.</p>"
    )
    return scrolled(table, "Scores") + (note if in_tree else "")


def _decision_row(name: str, key: str, meaning: str, evaluation: Evaluation) -> str:
    keys = [key] if evaluation.hierarchy is None else [key, *(f"{key}[{loss}]" for loss in TREE_DECISIONS)]
    values = [evaluation.scores[one] for one in keys]
    best = min(values) if key in _SMALLER_IS_BETTER else max(values)
    cells = "".join(
        f'<td class="n{" best" if value == best and len(set(values)) > 1 else ""}" data-score="{one}">'
        f"{_value(key, value)}</td>"
        for one, value in zip(keys, values, strict=True)
    )
    return f"<tr>{_named(name, meaning)}{cells}</tr>"


def _row(name: str, key: str, meaning: str, evaluation: Evaluation, width: int) -> str:
    rest = '<td class="n none">–</td>' * (width - 1)
    value = _value(key, evaluation.scores[key])
    return f'<tr>{_named(name, meaning)}<td class="n" data-score="{key}">{value}</td>{rest}</tr>'


def _named(name: str, meaning: str) -> str:
    return f'<th scope="row">{name}<span class="meaning">{meaning}</span></th>'


def _value(key: str, value: float) -> str:
    return exact(value, share(value) if key in _SHARES else f"{value:.3f}")
