"""What a new user would try first, with the installed package and what it needs and no more."""

import importlib.metadata
import importlib.util
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import nuptse
from nuptse import KernelClassifier, metrics
from nuptse.datasets import make_taxonomy


def table_is_learned_and_predicted() -> None:
    X, y = load_iris(return_X_y=True, as_frame=False)
    model = KernelClassifier("rbf", scale="auto", folds=3).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.isfinite(model.cv_value_)


def tree_is_fitted_saved_and_loaded(folder: Path) -> None:
    documents = make_taxonomy(200, n_classes=8, n_words=300, random_state=0)
    X, y, tree = documents.data, documents.target, documents.hierarchy
    model = KernelClassifier("linear", hierarchy=tree, learn=False, scale="auto").fit(X, y)
    model.save(folder / "model.nuptse")
    for other in (nuptse.load(folder / "model.nuptse"), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
    decided = model.predict(X, loss="taxonomic")
    assert metrics.taxonomic_loss(y, decided, hierarchy=tree) < 1.0


def report_is_written(folder: Path) -> None:
    X, y = load_iris(return_X_y=True, as_frame=False)
    KernelClassifier("linear", learn=False).fit(X, y).report(X, y).save(folder / "report.html")
    assert (folder / "report.html").stat().st_size > 10_000


def command_line_runs() -> None:
    program = Path(sys.executable).with_name("nuptse")
    for command in ([str(program)], [sys.executable, "-I", "-m", "nuptse"]):
        shown = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
        assert nuptse.__version__ in shown.stdout
    shown = subprocess.run([str(program), "demo", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(shown.stdout)


def missing_extras_are_named() -> None:
    assert importlib.util.find_spec("matplotlib") is None, "this environment should have no extras"
    try:
        nuptse.plots.tree_errors(nuptse.Hierarchy.parse(["a/b", "a/c"]), ["a/b"], ["a/c"])
        message = "none"
    except ImportError as error:
        message = str(error)
    assert "pip install nuptse[plots]" in message, message


def main() -> None:
    assert nuptse.__version__ == importlib.metadata.version("nuptse")
    with tempfile.TemporaryDirectory() as folder:
        table_is_learned_and_predicted()
        tree_is_fitted_saved_and_loaded(Path(folder))
        report_is_written(Path(folder))
        command_line_runs()
        missing_extras_are_named()
    print(f"nuptse {nuptse.__version__} works in {Path(nuptse.__file__).parent}")


if __name__ == "__main__":
    main()
