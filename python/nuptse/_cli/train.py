"""`nuptse train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nuptse._cli import output
from nuptse._cli.errors import InputError, OutputError, UsageError
from nuptse._cli.labels import KnownLabels, typed
from nuptse._cli.model import ATTRIBUTE, Model
from nuptse._cli.request import read_for_training
from nuptse._cli.summary import model_content, model_rows
from nuptse._cli.taxonomy import Taxonomy, read_taxonomy, tree_of_paths
from nuptse.classifier import KernelClassifier
from nuptse.kernels import RBF, Kernel, Linear
from nuptse.text import FOLDS_OF_TEXT, TextClassifier

if TYPE_CHECKING:
    import argparse

    from nuptse._cli.dataset import Dataset


def train(options: argparse.Namespace, console: output.Console) -> None:
    """Read data, fit a model, write it, and say how it went."""
    output.check_target(options.out, force=options.force)
    if options.names is not None and options.taxonomy is None:
        raise UsageError("--names is about the file given with --taxonomy")
    taxonomy = None if options.taxonomy is None else read_taxonomy(options.taxonomy, options.names, options.encoding)
    console.step(f"reading {options.data}")
    data, kind = read_for_training(options)
    labels = data.labels or []
    if options.labels_are_paths:
        taxonomy = tree_of_paths(labels)
    targets = _targets(labels, taxonomy, options.data)
    console.step(f"fitting {len(data)} points")
    start = time.perf_counter()
    estimator = _estimator(options, data, taxonomy, console)
    groups = None if data.groups is None else typed(data.groups)
    try:
        estimator.fit(data.X, targets, data.weights, groups=groups)
    except (ValueError, TypeError) as error:
        raise InputError(f"{options.data}: {error}") from error
    except OSError as error:
        raise OutputError(f"the checkpoint: {error}") from error
    seconds = time.perf_counter() - start
    if data.columns is not None:
        # So that tables are matched by name in `predict`, here and in Python.
        estimator.feature_names_in_ = np.array(data.columns, dtype=object)
    about: dict[str, Any] = {"format": kind, "label": data.label, "text": data.text, "first_column": data.first_column}
    if taxonomy is not None and taxonomy.aliases:
        about["aliases"] = taxonomy.aliases
    setattr(estimator, ATTRIBUTE, about)
    _forget_this_run(estimator)
    try:
        estimator.save(options.out)
    except OSError as error:
        raise OutputError(str(error)) from error
    _tell(Model(estimator, about), options.out, seconds, console)


def _targets(labels: list[str], taxonomy: Taxonomy | None, where: str) -> Any:
    if taxonomy is None:
        return np.array(typed(labels))
    known = KnownLabels(taxonomy.hierarchy.classes, taxonomy.hierarchy, taxonomy.aliases)
    return np.array(known.find_all(labels, where))


def _estimator(
    options: argparse.Namespace, data: Dataset, taxonomy: Taxonomy | None, console: output.Console
) -> KernelClassifier | TextClassifier:
    name = options.kernel or ("rbf" if data.kind == "dense" else "linear")
    kernel: Kernel = RBF() if name == "rbf" else Linear()
    if options.variance is not None:
        kernel.set_params(variance=options.variance)
    classifier = KernelClassifier(
        name if options.variance is None else kernel,
        hierarchy=None if taxonomy is None else taxonomy.hierarchy,
        learn=not options.no_learn,
        folds=options.folds or (FOLDS_OF_TEXT if data.kind == "text" else 5),
        scale=None if options.scale == "none" else "auto",
        max_evaluations=options.max_evaluations,
        checkpoint=options.checkpoint,
        memory_limit=options.memory_limit,
        n_threads=options.threads,
        random_state=options.seed,
        verbose=console.progress,
    )
    if data.kind != "text":
        return classifier
    return TextClassifier(
        classifier,
        weighting=options.weighting,
        ngram_range=(1, options.ngrams),
        min_df=options.min_df,
        stop_words=options.stop_words,
    )


def _forget_this_run(estimator: KernelClassifier | TextClassifier) -> None:
    """Set back what was about this machine and this run, not about the model."""
    classifiers: list[Any] = [estimator]
    if isinstance(estimator, TextClassifier):
        classifiers = [estimator.classifier_, estimator.classifier]
    for classifier in classifiers:
        classifier.set_params(checkpoint=None, memory_limit=None, n_threads=None, verbose=0)


def _tell(model: Model, path: str, seconds: float, console: output.Console) -> None:
    size = Path(path).stat().st_size
    rows = [*model_rows(model), ("fitted in", f"{seconds:.1f} s"), ("written to", f"{path} ({output.size(size)})")]
    content = {**model_content(model), "seconds": seconds, "path": path, "bytes": size}
    console.result(output.pairs(rows), content)
