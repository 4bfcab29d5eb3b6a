"""One measured fit in a process of its own: takes a description as JSON, prints what was measured as JSON.

`fit.py` and others run it, with the number of threads in the environment. A description has

- `data`: the name of a data set; `rows`: take so many training rows only, at random; `standardise`: scale the columns;
  `seed`: cut a tabular set into training and test points at random, by this seed;
  `features`: "tf-idf" for texts instead of counts of unit norm; `documents`, `classes`: the size of the synthetic sets,
- `method`: one of METHODS, and `options`, its arguments,
- `tree_scores`: give the scores of trees too, for the most probable classes and for decisions of least expected loss,
- `reject_curve`: give that too,
- `repeats`: fit so often, and for `seconds` at least, and give the fastest; `turn` tells one such fit from another.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from tabular import SIZES, tabular

import nuptse
from nuptse import metrics

THREADS = 2
ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("NUPTSE_DATA", ROOT.parent / "shared" / "data"))
MNIST_TRAIN, MNIST_TEST = 10_000, 2_000


@dataclass
class Problem:
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    paths: dict[int, list[int]] | None = None  # the nodes from below the root to every class
    groups: np.ndarray | None = None  # training points that belong together


def unit_norm(X):
    return scipy.sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))


def documents(name, features):
    z = np.load(DATA / name / "counts.npz")
    X = scipy.sparse.csr_array((z["data"].astype(float), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    X.sum_duplicates()
    y, test = z["leaf"].astype(np.int64), z["is_test"]
    if features == "tf-idf":
        X = scipy.sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit(X[~test]).transform(X))
    else:
        X = unit_norm(X)
    groups = read_titles(name)[~test] if name == "amazon_reviews" else None
    return Problem(X[~test], y[~test], X[test], y[test], read_paths(name, y), groups)


def read_titles(name):
    """Return the number of the product of every review: its title is the first sentence."""
    with lzma.open(DATA / name / "docs.tsv.xz", "rt", encoding="utf-8") as lines:
        titles = [line.rstrip("\n").split("\t")[2].split(". ")[0] for line in lines][1:]
    return np.unique(titles, return_inverse=True)[1]


def read_paths(name, leaves):
    lines = (DATA / name / "taxonomy.tsv").read_text(encoding="utf-8").splitlines()[1:]
    parents = dict(map(int, line.split("\t")[:2]) for line in lines)

    def path(node):
        return [] if node == 0 else [*path(parents[node]), node]

    return {leaf: path(leaf) for leaf in np.unique(leaves).tolist()}


def satimage():
    z = np.load(DATA / "satimage" / "satimage.npz")
    scaler = StandardScaler().fit(z["X_train"])
    X, X_test = scaler.transform(z["X_train"]), scaler.transform(z["X_test"])
    return Problem(X, z["y_train"].astype(int), X_test, z["y_test"].astype(int))


def mnist():
    z = np.load(DATA / "mnist" / "mnist.npz")
    X, X_test = z["X_train"][:MNIST_TRAIN] / 255, z["X_test"][:MNIST_TEST] / 255
    return Problem(X, z["y_train"][:MNIST_TRAIN].astype(int), X_test, z["y_test"][:MNIST_TEST].astype(int))


def digits():
    X, y = load_digits(return_X_y=True)
    return Problem(X, y, X, y)


def synthetic(n, classes, words=10_000, length=60, topic=50):
    """Draw documents half of the words of which come from a topic of their class, half from a skewed common stock."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % classes)
    topics = rng.integers(words, size=(classes, topic))
    own = topics[y[:, None], rng.integers(topic, size=(n, length // 2))]
    common = (words * rng.random((n, length // 2)) ** 3).astype(int)
    columns = np.hstack([own, common]).ravel()
    starts = np.arange(0, n * length + 1, length)
    X = scipy.sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(n, words))
    X.sum_duplicates()
    X = unit_norm(X)
    return Problem(X, y, X[:1], y[:1])


def clusters(n, classes, inputs=6):
    """Draw points around a centre for every class, of which neighbours overlap."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % classes)
    X = rng.normal(size=(classes, inputs))[y] + 0.4 * rng.normal(size=(n, inputs))
    return Problem(X, y, X[:1], y[:1])


def wide(n=2000, inputs=199, classes=4):
    """Draw points with many inputs, of which some say something of the class."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % classes)
    X = rng.normal(size=(n, inputs))
    X[:, :20] += rng.normal(size=(classes, 20))[y]
    return Problem(X, y, X[:1], y[:1])


def taxonomy(n, classes, tests=1000):
    """Draw documents from a random tree of topics; the last ones are for tests."""
    made = nuptse.datasets.make_taxonomy(n + tests, n_classes=classes, random_state=0)
    leaves = dict(zip(made.hierarchy.classes, made.hierarchy.leaves.tolist(), strict=True))
    X, y = unit_norm(made.data), np.array([leaves[label] for label in made.target.tolist()])
    parents = made.hierarchy.parents.tolist()

    def path(node):
        return [] if node == 0 else [*path(parents[node]), node]

    paths = {leaf: path(leaf) for leaf in np.unique(y[:n]).tolist()}
    return Problem(X[:n], y[:n], X[n:], y[n:], paths)


def newsgroups_part(features, rows=5000, fewest=3):
    """Draw training documents, and take the words that some of them have: what groups by frequency were tried on."""
    z = np.load(DATA / "newsgroups20" / "counts.npz")
    X = scipy.sparse.csr_array((z["data"].astype(float), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    X.sum_duplicates()
    y, test = z["leaf"].astype(np.int64), z["is_test"]
    X_train, y_train = X[~test], y[~test]
    chosen = np.random.default_rng(0).permutation(len(y_train))[:rows]
    X_train, y_train = X_train[chosen], y_train[chosen]
    words = np.flatnonzero((X_train != 0).sum(axis=0) >= fewest)
    X_train, X_test = X_train[:, words], X[test][:, words]
    if features == "tf-idf":
        transform = TfidfTransformer(sublinear_tf=True).fit(X_train)
        return Problem(
            *(scipy.sparse.csr_array(transform.transform(X_train)), y_train),
            *(scipy.sparse.csr_array(transform.transform(X_test)), y[test]),
        )
    return Problem(unit_norm(X_train), y_train, unit_norm(X_test), y[test])


def load(description):
    """Return the problem of a description; test points of classes without a training point are left out."""
    name = description["data"]
    if name == "synthetic":
        return synthetic(description["documents"], description["classes"])
    if name == "wide":
        return wide()
    if name == "clusters":
        return clusters(description["points"], description["classes"])
    if name == "taxonomy":
        p = taxonomy(description["documents"], description["classes"])
    elif name == "newsgroups_part":
        p = newsgroups_part(description.get("features"))
    elif name in SIZES and "seed" in description:
        p = Problem(*tabular(name, DATA, description["seed"]))
    elif name in (loaders := {"satimage": satimage, "mnist": mnist, "digits": digits}):
        p = loaders[name]()
    else:
        p = documents(name, description.get("features"))
    chosen = np.arange(len(p.y))
    if "rows" in description:
        chosen = np.sort(np.random.default_rng(0).permutation(chosen)[: description["rows"]])
    X, y = p.X[chosen], p.y[chosen]
    known = np.isin(p.y_test, y)
    X_test, y_test = p.X_test[known], p.y_test[known]
    if description.get("standardise"):
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    paths = p.paths and {leaf: p.paths[leaf] for leaf in np.unique(y).tolist()}
    groups = None if p.groups is None else p.groups[chosen]
    return Problem(X, y, X_test, y_test, paths, groups)


class Ours:
    """KernelClassifier, with its kernel as name and values, and the taxonomy of the data where `hierarchy` is true."""

    def __init__(self, problem, kernel, hierarchy=False, learn=False, **options):
        name, self.kernel = kernel
        options["learn"] = learn
        if options.get("share") == "branch":  # the nodes right below the root
            options["share"] = {leaf: path[0] for leaf, path in problem.paths.items()}
        if hierarchy:
            options["hierarchy"] = nuptse.Hierarchy.parse(list(problem.paths.values()))
        self.model = nuptse.KernelClassifier(getattr(nuptse.kernels, name)(**self.kernel), n_threads=THREADS, **options)

    def fit(self, problem):
        self.model.fit(problem.X, problem.y, groups=problem.groups)

    def predict(self, X):
        return self.model.predict(X)

    def log_proba(self, X):
        return self.model.classes_, self.model.predict_log_proba(X)

    def details(self, problem):
        info = self.model.fit_info_
        found = {"objective": info["objective"], "products": info["products"], "chosen": info["solver"]}
        found |= {"core_seconds": info["seconds"], "mixing_seconds": info["mixing_seconds"], "trace": info["trace"]}
        found["reason"] = info["reason"]
        if hasattr(self.model, "cv_value_"):
            found |= {"cv_value": self.model.cv_value_, "hyperparameters": self.model.hyperparameters_}
            found["history"] = [
                {
                    name: row[name]
                    for name in ("value", "products", "kernel_seconds", "fold_seconds", "gradient_seconds")
                }
                for row in self.model.history_
            ]
        if isinstance(self.kernel.get("inverse_width"), float):
            found["residual"] = self.residual(problem)
        return found

    def residual(self, problem):
        """Return max|α + g| at the fitted α, by numpy and the formula of the RBF kernel."""
        X, alpha = problem.X, self.model.dual_coef_
        M = np.exp(-self.kernel["inverse_width"] / (2 * X.shape[1]) * cdist(X, X, "sqeuclidean"))
        u = self.kernel["variance"] * M @ alpha + self.model.intercept_variance * alpha.sum(axis=0)
        return float(np.abs(alpha + softmax(u, axis=1) - (problem.y[:, None] == self.model.classes_)).max())


class AgainstRest(Ours):
    """A model for every class against the rest."""

    def __init__(self, problem, **options):
        super().__init__(problem, **options)
        self.model = nuptse.OneVsRestKernelClassifier(self.model)

    def fit(self, problem):
        self.model.fit(problem.X, problem.y)

    def details(self, problem):  # noqa: ARG002
        return {"cv_value": sum(one.cv_value_ for one in self.model.estimators_)}


class Criterion(Ours):
    """The cross-validation criterion of the same, and its gradient."""

    found = None

    def fit(self, problem):
        now = self.model.cv_criterion(problem.X, problem.y)
        if self.found is None or now.info["fold_seconds"] < self.found.info["fold_seconds"]:
            self.found = now

    def predict(self, X):
        return np.zeros(X.shape[0])

    def log_proba(self, X):  # noqa: ARG002
        return None

    def details(self, problem):  # noqa: ARG002
        info = self.found.info
        return {"value": self.found.value, "count": len(self.found.values)} | {
            name: info[name] for name in ("products", "fold_method", "fold_seconds", "gradient_seconds")
        }


class Peer:
    """A classifier of scikit-learn."""

    def __init__(self, problem, **options):
        self.model = self.make(problem, **options)

    def fit(self, problem):
        self.model.fit(problem.X, problem.y)

    def predict(self, X):
        return self.model.predict(X)

    def log_proba(self, X):
        return self.model.classes_, np.log(self.model.predict_proba(X))

    def details(self, problem):  # noqa: ARG002
        return {}


class Logistic(Peer):
    def make(self, _, **options):
        return LogisticRegression(fit_intercept=False, max_iter=1000, **options)

    def log_proba(self, X):
        return self.model.classes_, self.model.predict_log_proba(X)

    def details(self, problem):
        """Return Φ: the weights have variance C; centred over the classes they give the same losses and are shorter."""
        W = self.model.coef_ - self.model.coef_.mean(axis=0)
        log_proba = log_softmax(problem.X @ W.T, axis=1)
        loss = -log_proba[np.arange(len(problem.y)), np.searchsorted(self.model.classes_, problem.y)].sum()
        return {"objective": float(loss + (W**2).sum() / (2 * self.model.C))}


class SupportVectors(Peer):
    def make(self, _, **options):
        return LinearSVC(random_state=0, **options)

    def log_proba(self, _):
        return None


class GaussianProcess(Peer):
    """At the hyperparameters of our kernel on standardised inputs: variance 10, inverse width 2."""

    def make(self, problem, **options):
        kernel = gp_kernels.ConstantKernel(10.0) * gp_kernels.RBF(np.sqrt(problem.X.shape[1] / 2))
        return GaussianProcessClassifier(kernel, optimizer=None, random_state=0, **options)


class LogisticSearch(Peer):
    """Logistic regression that chooses its C by cross-validation."""

    def make(self, problem, cv, **options):
        if problem.groups is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that some classes are small
                splitter = StratifiedGroupKFold(cv, shuffle=True, random_state=0)
                cv = list(splitter.split(problem.X, problem.y, problem.groups))
        return LogisticRegressionCV(cv=cv, fit_intercept=False, max_iter=200, n_jobs=THREADS, **options)


class VectorSearch(Peer):
    """A grid search for a support vector machine: 6 costs and 5 widths around the usual ones, 5 folds."""

    def make(self, problem, seed=0, **_):
        usual = 1 / (problem.X.shape[1] * problem.X.var())
        grid = {"C": 2.0 ** np.arange(-1, 11, 2), "gamma": usual * 2.0 ** np.arange(-4, 6, 2)}
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        return GridSearchCV(SVC(), grid, cv=folds, n_jobs=THREADS)

    def log_proba(self, _):
        return None

    def details(self, problem):  # noqa: ARG002
        return {"chosen": {name: float(value) for name, value in self.model.best_params_.items()}}


class CalibratedVectors(Peer):
    """The machine that the grid search found, calibrated."""

    def make(self, _, seed=0, **options):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        return CalibratedClassifierCV(SVC(**options), cv=folds, n_jobs=THREADS)


class PerParent(Peer):
    """hiclass, one logistic regression for every inner node of the taxonomy."""

    def make(self, problem, **options):
        from hiclass import LocalClassifierPerParentNode  # noqa: PLC0415

        self.paths = problem.paths
        self.depth = max(map(len, problem.paths.values()))
        return LocalClassifierPerParentNode(
            LogisticRegression(fit_intercept=False, max_iter=1000, **options), n_jobs=THREADS
        )

    def fit(self, problem):
        rows = {leaf: [*map(str, path), *[""] * (self.depth - len(path))] for leaf, path in self.paths.items()}
        with joblib.parallel_config(backend="threading"):
            self.model.fit(problem.X, np.array([rows[leaf] for leaf in problem.y.tolist()]))

    def predict(self, X):
        return np.array([int([node for node in row if node][-1]) for row in self.model.predict(X)])

    def log_proba(self, X):
        """Return the products of the local probabilities along the paths.

        Its own `predict_proba` goes down only below the nodes predicted last, which leaves most leaves without any.
        """
        tree, found = self.model.hierarchy_, {self.model.root_: np.zeros(X.shape[0])}
        nodes = [self.model.root_]
        for node in nodes:
            if not (children := list(tree.successors(node))):
                continue
            local = tree.nodes[node]["classifier"]
            for child, column in zip(local.classes_, np.log(local.predict_proba(X)).T, strict=True):
                found[child] = found[node] + column
            nodes.extend(children)
        leaves = sorted((int(node.split("::")[-1]), node) for node in nodes if not list(tree.successors(node)))
        return np.array([leaf for leaf, _ in leaves]), np.stack([found[node] for _, node in leaves], axis=1)


METHODS = {
    "KernelClassifier": Ours,
    "Criterion": Criterion,
    "OneVsRest": AgainstRest,
    "LogisticRegressionCV": LogisticSearch,
    "GridSearchCV": VectorSearch,
    "CalibratedClassifierCV": CalibratedVectors,
    "LogisticRegression": Logistic,
    "LinearSVC": SupportVectors,
    "GaussianProcessClassifier": GaussianProcess,
    "hiclass": PerParent,
}


def resident(name):
    """Return MB of this process: VmRSS now, VmHWM at its peak. (`ru_maxrss` would start at what the parent had.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def timed_fit(method, problem):
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method.fit(problem)
    return time.perf_counter() - start, not any(issubclass(w.category, ConvergenceWarning) for w in caught)


def scores(method, problem):
    found = {"accuracy": float(np.mean(method.predict(problem.X_test) == problem.y_test))}
    if (answer := method.log_proba(problem.X_test)) is not None:
        classes, log_proba = answer
        columns = np.searchsorted(classes, problem.y_test)
        found["log_loss"] = float(-log_proba[np.arange(len(columns)), columns].mean())
    return found


def tree_scores(method, problem):
    """Return the scores of Seeger (2006), Table 1: of the most probable class, and of decisions of least expected loss.

    Everybody who gives probabilities gets these decisions.
    """
    tree = nuptse.Hierarchy.parse(list(problem.paths.values()))
    y, guess = problem.y_test, method.predict(problem.X_test)
    found = {
        "taxonomic": metrics.taxonomic_loss(y, guess, hierarchy=tree),
        "parent": metrics.parent_accuracy(y, guess, hierarchy=tree),
    }
    answer = method.log_proba(problem.X_test)
    if answer is None:
        return found
    classes, proba = answer[0], np.exp(answer[1])
    tree = tree.with_classes(classes.tolist())
    start = time.perf_counter()
    decisions = {loss: tree.decide(proba, loss=loss) for loss in ("taxonomic", "parent")}
    return found | {
        "decide_seconds": time.perf_counter() - start,
        "reciprocal_rank": metrics.reciprocal_rank(y, proba, labels=classes),
        "taxonomic_decided": metrics.taxonomic_loss(y, decisions["taxonomic"], hierarchy=tree),
        "parent_decided": metrics.parent_accuracy(y, decisions["parent"], hierarchy=tree),
    }


def main():
    description = json.loads(sys.argv[1])
    problem = load(description)
    method = METHODS[description["method"]](problem, **description["options"])
    found = {"baseline": resident("VmRSS")}
    Path("/proc/self/clear_refs").write_text("5")  # the peak from now on
    fits = []
    while len(fits) < description.get("repeats", 1) or sum(seconds for seconds, _ in fits) < description.get(
        "seconds", 0
    ):
        fits.append(timed_fit(method, problem))
    found |= {"peak": resident("VmHWM"), "seconds": min(fits)[0], "converged": all(done for _, done in fits)}
    start = time.perf_counter()
    found |= scores(method, problem)
    found["predict_seconds"] = time.perf_counter() - start
    if description.get("tree_scores"):
        found |= tree_scores(method, problem)
    if description.get("reject_curve"):
        classes, log_proba = method.log_proba(problem.X_test)
        guess, confidence = classes[log_proba.argmax(axis=1)], np.exp(log_proba.max(axis=1))
        found["reject_curve"] = [part.tolist() for part in metrics.reject_curve(problem.y_test, guess, confidence)]
    found["whole_peak"] = resident("VmHWM")
    print(json.dumps(found | method.details(problem)))


if __name__ == "__main__":
    main()
