"""`nuptse predict`."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from nuptse._cli import output
from nuptse._cli.errors import InputError, UsageError
from nuptse._cli.labels import label_name, plain
from nuptse._cli.model import Model, load
from nuptse._cli.request import read_for_model

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from numpy.typing import NDArray

#: Points that are predicted at a time: probabilities of many classes take memory.
_BATCH = 1000


def predict(options: argparse.Namespace, console: output.Console) -> None:
    """Write a line for every point."""
    if options.out is not None:
        output.check_target(options.out, force=options.force)
    model = load(options.model)
    if options.loss != "zero_one" and model.classifier.hierarchy_ is None:
        raise UsageError(f"--loss {options.loss} needs a model with a taxonomy; this one has none")
    if options.threads is not None:
        model.classifier.n_threads = options.threads
    data = read_for_model(options, model, labelled=False)
    if data.label == "first column":
        console.note(f"nuptse: the lines of {options.data} begin with labels, which are left out")
    identifiers: list[str | None] = [None] * len(data) if data.identifiers is None else [*data.identifiers]
    rows = zip(identifiers, _predictions(model, data.X, options), strict=True)
    with output.written_whole(options.out) as stream:
        if options.json:
            for number, (identifier, one) in enumerate(rows, start=1):
                stream.write(output.json_text(_content(number, identifier, one)) + "\n")
            return
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(_header(options, model))
        writer.writerows(_fields(identifier, one) for identifier, one in rows)


def probabilities(model: Model, X: Any) -> NDArray[np.float64]:
    """Return the probabilities of all classes; what is wrong with the inputs is an `InputError`."""
    try:
        return model.estimator.predict_proba(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"the model cannot take these inputs: {error}") from error


def decisions(model: Model, proba: NDArray[np.float64], loss: str) -> NDArray[np.intp]:
    """Return the number of the class that is decided on for every point."""
    tree = model.classifier.hierarchy_
    if loss == "zero_one" or tree is None:
        return np.asarray(proba.argmax(axis=1), dtype=np.intp)
    number = {label: place for place, label in enumerate(tree.classes)}
    return np.array([number[label] for label in tree.decide(proba, loss).tolist()], dtype=np.intp)


class _Prediction:
    """What is known of one point."""

    def __init__(self, chosen: int, others: list[int], proba: NDArray[np.float64], labels: list[Any]) -> None:
        self.best = (labels[chosen], float(proba[chosen]))
        self.others = [(labels[one], float(proba[one])) for one in others]


class _Full(_Prediction):
    """With the probability of every class."""


class _Top(_Prediction):
    """With those of the most probable classes."""


def _predictions(model: Model, X: Any, options: argparse.Namespace) -> Iterator[_Prediction]:
    labels = model.classifier.classes_.tolist()
    kind = _Full if options.proba else _Top if options.top else _Prediction
    count = len(labels) if options.proba else min(options.top or 0, len(labels))
    total = X.shape[0] if hasattr(X, "shape") else len(X)
    for start in range(0, total, _BATCH):
        proba = probabilities(model, X[start : start + _BATCH])
        chosen = decisions(model, proba, options.loss)
        order = np.tile(np.arange(count), (len(proba), 1)) if options.proba else (-proba).argsort(axis=1, kind="stable")
        for row, one in enumerate(chosen.tolist()):
            yield kind(one, order[row, :count].tolist(), proba[row], labels)


def _header(options: argparse.Namespace, model: Model) -> list[str]:
    names = [] if options.identifier is None else [options.identifier]
    names += ["label", "probability"]
    if options.proba:
        return names + [label_name(label) for label in model.classifier.classes_.tolist()]
    count = min(options.top or 0, len(model.classifier.classes_))
    return names + [f"{name}_{place}" for place in range(1, count + 1) for name in ("label", "probability")]


def _fields(identifier: str | None, one: _Prediction) -> list[str]:
    fields = [] if identifier is None else [identifier]
    fields += [label_name(one.best[0]), f"{one.best[1]:.6g}"]
    for label, probability in one.others:
        fields += [f"{probability:.6g}"] if isinstance(one, _Full) else [label_name(label), f"{probability:.6g}"]
    return fields


def _content(number: int, identifier: str | None, one: _Prediction) -> dict[str, Any]:
    content: dict[str, Any] = {"row": number}
    if identifier is not None:
        content["id"] = identifier
    content |= {"label": plain(one.best[0]), "probability": one.best[1]}
    if isinstance(one, _Full):
        content["probabilities"] = {label_name(label): probability for label, probability in one.others}
    elif isinstance(one, _Top):
        content["top"] = [{"label": plain(label), "probability": probability} for label, probability in one.others]
    return content
