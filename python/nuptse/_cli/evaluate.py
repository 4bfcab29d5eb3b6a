"""`nuptse evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nuptse import metrics
from nuptse._cli import output
from nuptse._cli.errors import InputError, OutputError, UsageError
from nuptse._cli.model import Model, load
from nuptse._cli.predict import decisions, probabilities
from nuptse._cli.request import read_for_model
from nuptse.hierarchy import class_array

if TYPE_CHECKING:
    import argparse

    import numpy as np
    from numpy.typing import NDArray

    from nuptse._cli.dataset import Dataset


def evaluate(options: argparse.Namespace, console: output.Console) -> None:
    """Print scores, and write a report if one is asked for."""
    if options.report is not None:
        output.check_target(options.report, force=options.force)
    model = load(options.model)
    if options.report is not None and not hasattr(model.classifier, "report"):
        raise UsageError("this release of nuptse writes no reports; leave out --report")
    if options.threads is not None:
        model.classifier.n_threads = options.threads
    data = read_for_model(options, model, labelled=True)
    data, truth, left_out = _known_points(model, data, options)
    for reason, count in left_out.items():
        console.note(f"nuptse: {count} points are left out: {reason}")
    console.step(f"predicting {len(data)} points")
    proba = probabilities(model, data.X)
    content = {"points": len(data), "left_out": sum(left_out.values()), **_scores(model, truth, proba, data.weights)}
    if options.report is not None:
        console.step(f"writing {options.report}")
        _write_report(model, data, truth, options)
        content["report"] = options.report
    console.result(_text(content), content)


def _known_points(
    model: Model, data: Dataset, options: argparse.Namespace
) -> tuple[Dataset, list[Any], dict[str, int]]:
    """Return the points whose label is a class, their classes, and how many others there are."""
    known, labels = model.labels, data.labels or []
    left_out: dict[str, int] = {}
    rows = list(range(len(labels)))
    if options.skip_unknown:
        rows = [row for row in rows if labels[row] in known]
        left_out["their label is not known to the model"] = len(labels) - len(rows)
    found = dict(zip(rows, known.find_all([labels[row] for row in rows], options.data), strict=True))
    classes = {label: known.class_of(label) for label in dict.fromkeys(found.values())}
    rows = [row for row in rows if classes[found[row]] is not None]
    left_out["their label is an inner node of the tree, not a class"] = len(found) - len(rows)
    if not rows:
        raise InputError(f"{options.data} has no points with a label that is a class of the model")
    if len(rows) < len(labels):
        data = data.keep(rows)
    return data, [classes[found[row]] for row in rows], {reason: count for reason, count in left_out.items() if count}


def _scores(
    model: Model, truth: list[Any], proba: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> dict[str, Any]:
    classes, tree = model.classifier.classes_, model.classifier.hierarchy_
    y = class_array(truth)
    shared: dict[str, Any] = {"labels": classes, "sample_weight": weights}
    try:
        scores: dict[str, Any] = {
            "log_loss": metrics.log_loss(y, proba, **shared),
            "reciprocal_rank": metrics.reciprocal_rank(y, proba, **shared),
            "calibration_error": metrics.reliability(y, proba, **shared).error,
        }
        by_loss = {}
        for loss in ("zero_one",) if tree is None else ("zero_one", "taxonomic", "parent"):
            decided = classes[decisions(model, proba, loss)]
            by_loss[loss] = {"accuracy": metrics.accuracy(y, decided, sample_weight=weights)}
            if tree is not None:
                of_tree: dict[str, Any] = {"hierarchy": tree, "sample_weight": weights}
                by_loss[loss]["taxonomic_loss"] = metrics.taxonomic_loss(y, decided, **of_tree)
                by_loss[loss]["parent_accuracy"] = metrics.parent_accuracy(y, decided, **of_tree)
    except ValueError as error:  # weights that are negative, or all zero
        raise InputError(f"the model cannot be scored on these data: {error}") from error
    return {"accuracy": by_loss["zero_one"]["accuracy"], **scores, "decisions": by_loss}


def _text(content: dict[str, Any]) -> str:
    names = ("points", "accuracy", "log_loss", "reciprocal_rank", "calibration_error")
    text = output.pairs([(name.replace("_", " "), content[name]) for name in names])
    if len(content["decisions"]) > 1:
        header = ["decisions for", "accuracy", "taxonomic loss", "parent accuracy"]
        text += "\n\n" + output.table(header, [[loss, *row.values()] for loss, row in content["decisions"].items()])
    if "report" in content:
        text += f"\n\nreport written to {content['report']}"
    return text


def _write_report(model: Model, data: Dataset, truth: list[Any], options: argparse.Namespace) -> None:
    """Write the page of the classifier."""
    documents = data.X if data.kind == "text" else data.identifiers
    write: Any = model.classifier.report
    try:
        write(
            model.inputs(data),
            class_array(truth),
            options.report,
            sample_weight=data.weights,
            documents=documents,
            title=options.title,
        )
    except ImportError as error:
        raise UsageError(f"--report: {error}") from error
    except ValueError as error:
        raise InputError(f"no report can be made of these data: {error}") from error
    except OSError as error:
        raise OutputError(f"{options.report} could not be written: {error}") from error
