"""`nuptse demo`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nuptse import metrics
from nuptse._cli import output
from nuptse.classifier import KernelClassifier
from nuptse.datasets import make_taxonomy

if TYPE_CHECKING:
    import argparse


def demo(options: argparse.Namespace, console: output.Console) -> None:
    """Train small models on data that need no file, and print how good they are."""
    X, y = load_digits(return_X_y=True)
    # Hard enough that the tree helps, and small enough for a few seconds.
    made = make_taxonomy(400, n_classes=20, n_words=1000, words_per_document=30, topic_share=0.25, random_state=0)
    runs = [
        ("digits", "rbf", None, X, y),
        ("digits", "linear", None, X, y),
        ("documents", "linear", None, made.data, made.target),
        ("documents", "linear", made.hierarchy, made.data, made.target),
    ]
    results = []
    for name, kernel, tree, inputs, targets in runs:
        console.step(f"{name}: {kernel} kernel{', with the tree' if tree is not None else ''}")
        classifier = KernelClassifier(
            kernel, hierarchy=tree, scale="auto", n_threads=options.threads, random_state=0, verbose=console.progress
        )
        results.append({"data": name, "kernel": kernel, **_run(classifier, inputs, targets)})
    header = ["data", "kernel", "tree", "classes", "train", "test", "accuracy", "log loss", "seconds"]
    names = ["data", "kernel", "tree", "classes", "train", "test", "accuracy", "log_loss", "seconds"]
    rows = [[("yes" if row[name] else "no") if name == "tree" else row[name] for name in names] for row in results]
    text = output.table(header, rows)
    text += "\n\nHyperparameters were learned by cross-validation; accuracy and log loss are those on the test points."
    console.result(text, {"runs": results})


def _run(classifier: KernelClassifier, X: Any, y: Any) -> dict[str, Any]:
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    start = time.perf_counter()
    classifier.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    proba = classifier.predict_proba(X_test)
    return {
        "tree": classifier.hierarchy_ is not None,
        "classes": len(classifier.classes_),
        "train": int(X_train.shape[0]),
        "test": int(X_test.shape[0]),
        "accuracy": metrics.accuracy(y_test, classifier.predict(X_test)),
        "log_loss": metrics.log_loss(y_test, proba, labels=classifier.classes_),
        "seconds": round(seconds, 2),
        "hyperparameters": classifier.hyperparameters_,
    }
