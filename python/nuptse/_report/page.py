"""The whole page: one file, with its styles and scripts inside, that asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from nuptse import _core
from nuptse._report.confidence import reject_card, reliability_card
from nuptse._report.errors import errors_section
from nuptse._report.hardest import hardest_section
from nuptse._report.learning import history_section, variances_section
from nuptse._report.markup import text, weight
from nuptse._report.scores import glance, scores_table

if TYPE_CHECKING:
    from nuptse._report.evaluation import Evaluation


def page(evaluation: Evaluation, title: str) -> str:
    """Return the report as HTML."""
    estimator = evaluation.estimator
    sections = [
        ("scores", "Scores", scores_table(evaluation)),
        (
            "confidence",
            "Confidence",
            f'<div class="cards">{reliability_card(evaluation)}{reject_card(evaluation)}</div>',
        ),
        ("errors", "Where errors happen", errors_section(evaluation)),
        ("hardest", f"Hardest {evaluation.noun}", hardest_section(evaluation)),
        ("history", "Learning", history_section(estimator)),
        ("variances", "Hyperparameters", variances_section(estimator)),
    ]
    shown = [one for one in sections if one[2]]
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in shown)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-heading"><h2 id="{name}-heading">{heading}</h2>'
        f"{content}</section>"
        for name, heading, content in shown
    )
    script = _resource("icicle.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="generator" content="nuptse {_core.__version__}">'
        f"<title>{text(title)}</title><style>{_resource('page.css')}</style></head><body>"
        f"<header><h1>{text(title)}</h1><p>{_summary(evaluation)}</p>{glance(evaluation)}"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f"<main>{body}</main><footer><p>Made by nuptse {_core.__version__}.</p></footer>"
        f"<script>{script}</script></body></html>"
    )


def _summary(evaluation: Evaluation) -> str:
    """Return in a line what was tried on what."""
    count = len(evaluation.names)
    parts = [text(type(evaluation.estimator).__name__), f"{count:,} classes"]
    if evaluation.hierarchy is not None:
        levels = evaluation.hierarchy.n_levels
        parts[-1] += f" on {levels} level{'s' * (levels > 1)}"
    parts.append(f"{len(evaluation.truth):,} test {evaluation.noun}")
    if evaluation.weighted:
        parts[-1] += f" of weight {weight(float(evaluation.weights.sum()))}"
    return " · ".join(parts)


def _policy(script: str) -> str:
    """Let this script run, and nothing else be run or fetched, whatever is on the page."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


@cache
def _resource(name: str) -> str:
    return resources.files("nuptse._report").joinpath(name).read_text(encoding="utf-8").strip()
