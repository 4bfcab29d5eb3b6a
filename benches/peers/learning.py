"""Learning of hyperparameters: the experiments of Seeger (2006), and others; writes benches/results/learning.md.

Run with `make bench-learning`. Every fit has a process of its own (`one_fit.py`). `--only` takes one table, `--quick`
small parts of the data, to try the script itself; both write to target/bench instead, but for
`--only ... --replace`.
"""

from __future__ import annotations

import math
from statistics import mean, median, stdev

from one_fit import ROOT
from runs import cell, fastest_in_turns, main, report, table
from tabular import SIZES

PARTITIONS = 10
RBF = {"kernel": ["RBF", {}]}
LINEAR = {"kernel": ["Linear", {}], "intercept_variance": 0.0}
PICTURE = "reject_curves.png"


def learned(options, seed=0):
    return options | {"learn": True, "random_state": seed}


def spread(values, form):
    """Return mean and standard deviation."""
    values = list(values)
    around = f" ± {format(stdev(values), form)}" if len(values) > 1 else ""
    return f"{format(mean(values), form)}{around}"


# The first experiment of Seeger (2006)


SATIMAGE = {
    "mc-tied": ("KernelClassifier", {"share": "all"}),
    "mc-sep": ("KernelClassifier", {"share": "class"}),
    "1rest": ("OneVsRest", {"share": "all"}),
}


def satimage(bench):
    partitions = range(2 if bench.quick else PARTITIONS)
    rows, curves = [], {}
    for name, (method, options) in SATIMAGE.items():
        found = [bench.fit("satimage", method, learned(RBF | options, seed), reject_curve=True) for seed in partitions]
        row_of_partitions(rows, name, found)
        curves[name] = [one["reject_curve"] for one in found if "reject_curve" in one]
    for folds, called in ((3, "three"), (10, "ten")):
        options = RBF | {"share": "all", "folds": folds}
        found = [bench.fit("satimage", "KernelClassifier", learned(options, seed)) for seed in partitions]
        row_of_partitions(rows, f"mc-tied, {called} folds", found)
    searches = [bench.fit("satimage", "GridSearchCV", {"seed": seed}) for seed in partitions]
    row_of_partitions(rows, "GridSearchCV(SVC)", searches)
    chosen = [(seed, one["chosen"]) for seed, one in zip(partitions, searches, strict=True) if "chosen" in one]
    calibrated = [bench.fit("satimage", "CalibratedClassifierCV", best | {"seed": seed}) for seed, best in chosen]
    row_of_partitions(rows, "the best SVC, calibrated", calibrated)
    draw(curves, bench)
    columns = ["method", "test error, %", "test log loss", "criterion", "evaluations", "seconds"]
    return f"""## satimage

The first experiment of Seeger (2006, section 8.1): 4435 training and 2000 test points, standardised inputs, RBF kernel,
{len(partitions)} random partitions into five folds for learning; mean and standard deviation over these. mc-tied: all
classes have one variance and one width (2 hyperparameters); mc-sep: each has its own (12); 1rest: every class against
the rest, voted by log probability. More folds leave less to the chance of a partition, and are fits to more of the
points. The grid search has 6 costs and 5 widths, five folds, two processes.

Goals: error of mc-tied at most 8.3 %, of mc-sep 8.0 % (in the paper 8.37 and 7.81 ± 0.16), log loss at most 0.22;
mc-tied in less time than the grid search, mc-sep within twice that.

{table(columns, rows)}
![Errors that are left when the least sure predictions are not made]({PICTURE})
"""


def row_of_partitions(rows, name, found):
    done = [one for one in found if "accuracy" in one]
    if not done:
        report(rows, [name, found[0].get("note", "") if found else "", *[""] * 4])
        return

    def column(key, form):
        values = [one[key] for one in done if key in one]
        return spread(values, form) if values else ""

    evaluations = [len(one["history"]) for one in done if "history" in one]
    cells = [spread((100 * (1 - one["accuracy"]) for one in done), ".3f"), column("log_loss", ".4f")]
    cells += [column("cv_value", ".1f"), spread(evaluations, ".0f") if evaluations else "", column("seconds", ".1f")]
    report(rows, [name, *cells])


def draw(curves, bench):
    """Draw the mean reject curve of every method."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import numpy as np  # noqa: PLC0415
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    shares = np.linspace(0, 0.5, 101)
    for name, of_method in curves.items():
        if of_method:
            # The curve has the share of points that get a prediction, and the errors among these as a share of all.
            left = [np.interp(1 - shares, answered, error) / (1 - shares) for answered, error in of_method]
            ax.plot(100 * shares, 100 * np.mean(left, axis=0), label=name)
    ax.set(xlabel="rejected, %", ylabel="error of the others, %", title="satimage: errors left after rejection")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend()
    folder = ROOT / ("target/bench" if bench.quick else "benches/results")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / PICTURE, dpi=120)


# The second experiment of Seeger (2006)


TEXTS = {
    "F1: flat, one variance": {"share": "all"},
    "F2: flat, one for every branch": {"share": "branch"},
    "H1: tree, one for every level": {"hierarchy": True, "share": "level"},
    "H2: tree, one for every branch": {"hierarchy": True, "share": "subtree"},
}


def text_row(rows, data, name, found):
    if "note" in found:
        report(rows, [data, name, found["note"], *[""] * 9])
        return
    history = found.get("history", [])
    of_evaluation = mean([one["fold_seconds"] + one["gradient_seconds"] for one in history]) if history else None
    report(
        rows,
        [
            data,
            name,
            cell(found["accuracy"], ".3f"),
            cell(found.get("reciprocal_rank"), ".3f"),
            cell(found.get("taxonomic_decided"), ".3f"),
            cell(found["taxonomic"], ".3f"),
            cell(found.get("parent_decided"), ".3f"),
            cell(found["parent"], ".3f"),
            cell(found.get("log_loss"), ".3f"),
            cell(len(history) or None),
            cell(of_evaluation, ".1f"),
            cell(found["seconds"], ".0f"),
        ],
    )


def texts(bench):
    rows = []
    for data in ("patents_ipc", "amazon_reviews"):
        for name, options in TEXTS.items():
            # As in the paper: three folds.
            chosen = learned(LINEAR | options) | {"folds": 3}
            text_row(rows, data, name, bench.fit(data, "KernelClassifier", chosen, tree_scores=True))
        options = LINEAR | {"kernel": ["Linear", {"variance": 100.0}], "hierarchy": True, "share": "level"}
        text_row(rows, data, "tree, all variances 100", bench.fit(data, "KernelClassifier", options, tree_scores=True))
        found = bench.fit(data, "LogisticRegressionCV", {"Cs": [5.0, 50.0, 500.0], "cv": 3}, tree_scores=True)
        text_row(rows, data, "LogisticRegressionCV", found)
        text_row(rows, data, "hiclass, C = 50", bench.fit(data, "hiclass", {"C": 50.0}, tree_scores=True))
    columns = ["data", "method", "accuracy", "reciprocal rank", "taxonomic loss", "[0-1]", "parent accuracy"]
    columns += ["[0-1]", "log loss", "evaluations", "seconds each", "seconds"]
    return f"""## Texts with a taxonomy

The second experiment of Seeger (2006, section 8.2): counts with rows of unit norm, linear kernel, no intercepts, three
folds; reviews of one product are held out together, as they are in the test part. As in Table 1 there, taxonomic loss
and parent accuracy are those of decisions of least expected loss, by everybody's probabilities, and [0-1] is the same
for the most probable class. Seconds of all of it, learning and fit, and of one evaluation of criterion and gradient.
Goal: H1 ahead of the fixed variances, F1, hiclass and LogisticRegressionCV in log loss and taxonomic loss.

{table(columns, rows)}"""


# Weights of words by frequency


def frequencies(bench):
    rows = []
    for data in ("newsgroups_part", "amazon_reviews"):
        losses = []
        for name, options, features in (
            ("counts, one variance", LINEAR, None),
            ("counts, weights by frequency", {"kernel": ["Linear", {"groups": "frequency"}]}, None),
            ("tf-idf, one variance", LINEAR, "tf-idf"),
        ):
            chosen = learned(LINEAR | options) | {"folds": 3}
            more = {} if features is None else {"features": features}
            found = bench.fit(data, "KernelClassifier", chosen, **more)
            losses.append(found.get("log_loss", math.nan))
            counts = [len(found.get("hyperparameters", {})) - 1, len(found.get("history", []))]
            cells = [cell(found.get("accuracy"), ".3f"), cell(found.get("log_loss"), ".3f"), *map(str, counts)]
            report(rows, [data, name, *cells, cell(found.get("seconds"), ".0f"), found.get("note", "")])
        plain, weighted, by_hand = losses
        share = (plain - weighted) / (plain - by_hand)
        report(rows, [data, "share of the gap that weights close (goal: 70 %)", f"{share:.0%}", *[""] * 5])
    columns = ["data", "features", "accuracy", "log loss", "hyperparameters", "evaluations", "seconds", ""]
    return f"""## Weights of words by frequency

`Linear(groups="frequency")` learns a weight for about 16 groups of words by the number of documents that have them;
sublinear tf-idf is what people do by hand. Flat, three folds, nothing else set.

{table(columns, rows)}"""


# Widths that suit all points


CUTS = 3


def widths(bench):
    rows, growths, changes = [], [], []
    for data, size in SIZES.items():
        found = [of_one_cut(bench, data, size, seed) for seed in range(CUTS)]
        if any("log_loss" not in one for cut in found for one in cut):
            report(rows, [data, str(size), "left out", *[""] * 4])
            continue
        growth = [math.log2(width(whole) / width(half)) for half, whole, _ in found]
        errors, losses = (
            [[form(one) for one in cut[1:]] for cut in found]
            for form in (lambda one: 100 * (1 - one["accuracy"]), lambda one: one["log_loss"])
        )
        growths.append(mean(growth))
        changes.append([mean(carried - kept for carried, kept in pairs) for pairs in (errors, losses)])
        cells = [format(mean(pair[at] for pair in errors), ".2f") for at in (1, 0)]
        cells += [format(mean(pair[at] for pair in losses), ".4f") for at in (1, 0)]
        report(rows, [data, str(size), spread(growth, ".2f"), *cells])
    if growths:
        change = [f"{mean(change[at] for change in changes):{form}}" for at, form in ((0, "+.3f"), (1, "+.5f"))]
        report(rows, ["median, and mean change", "", f"{median(growths):.2f}", "", change[0], "", change[1]])
    columns = ["data", "points", "growth", "error, %", "carried: error", "log loss", "carried: log loss"]
    return f"""## Widths that suit all points

More points show finer structure: inverse widths grow with their number. Growth is the power of the number of points,
from what is learned from half of them and from all: RBF kernel, all classes with one variance and one width, two
folds; mean and standard deviation over {CUTS} random cuts. Folds keep half of the points, so learning carries the
width that suits them on to all by 2^0.25; with five folds it would be by (5/4)^0.25. Error and log loss on test points
with the width of the folds, and with that.

{table(columns, rows)}"""


def of_one_cut(bench, data, size, seed):
    """Return what is learned from half of the points, from all, and what all give with the width of the folds."""
    options = learned(RBF | {"share": "all", "folds": 2}, seed)
    half = bench.fit(data, "KernelClassifier", options, seed=seed, rows=size // 2)
    whole = bench.fit(data, "KernelClassifier", options, seed=seed)
    if "hyperparameters" not in whole:
        return half, whole, {}
    of_folds = {"variance": whole["hyperparameters"]["variance"], "inverse_width": width(whole) * 0.5**0.25}
    options = {"kernel": ["RBF", of_folds], "share": "all", "tol": 1e-4}
    return half, whole, bench.fit(data, "KernelClassifier", options, seed=seed)


def width(found):
    return found["hyperparameters"]["inverse_width"]


# What an evaluation costs


def costs(bench):
    rows = []
    kinds = {"one width": False, "a width for every input": True}

    def fit(name, turn):
        kernel = ["RBF", {"variance": 30.0, "inverse_width": 2.0, "ard": kinds[name]}]
        options = {"kernel": kernel, "share": "all", "tol": 1e-4, "random_state": 0}
        return bench.fit("wide", "Criterion", options, repeats=8, turn=turn)

    fastest = fastest_in_turns(fit, kinds, 3, "fold_seconds")
    for name, found in fastest.items():
        cells = [cell(found.get("count")), cell(found.get("products"))]
        cells += [cell(found.get(part), ".3f") for part in ("fold_seconds", "gradient_seconds")]
        report(rows, [name, *cells, found.get("note", "")])
    narrow, wide = (found.get("fold_seconds", math.nan) for found in fastest.values())
    report(rows, ["more for a width for every input", "", "", f"{wide / narrow - 1:+.0%}", "", ""])
    columns = ["kernel", "hyperparameters", "products", "seconds of the folds", "seconds of the derivatives", ""]
    return f"""## What an evaluation costs

Criterion and gradient, 2000 points with 199 inputs, RBF kernel, five folds; the fastest of 24. Goal: the folds take
the same time within 10 % for 2 and for 200 hyperparameters; derivative products are apart.

{table(columns, rows)}
{methods(bench)}"""


def methods(bench):
    rows = []

    def fit(method, turn):
        kernel = ["RBF", {"variance": 30.0, "inverse_width": 8.0}]
        options = {"kernel": kernel, "share": "class", "random_state": 0, "solver_options": {"fold_method": method}}
        return bench.fit("satimage", "Criterion", options, turn=turn)

    fastest = fastest_in_turns(fit, ("batched", "shuffled"), 3, "fold_seconds")
    for method, found in fastest.items():
        cells = [cell(found.get("value"), ".4f"), cell(found.get("products")), cell(found.get("fold_seconds"), ".2f")]
        report(rows, [method, *cells, found.get("note", "")])
    batched, shuffled = (found.get("fold_seconds", math.nan) for found in fastest.values())
    report(rows, ["batched folds are faster by (goal: 1.5)", "", "", f"{shuffled / batched:.2f}", ""])
    return f"""satimage, a kernel for every class (share="class"), criterion and gradient, the fastest of three:

{table(["folds", "criterion", "products", "seconds of the folds", ""], rows)}"""


TABLES = {"satimage": satimage, "widths": widths, "costs": costs, "texts": texts, "frequencies": frequencies}


if __name__ == "__main__":
    main("Learning", "learning", TABLES, limit=3600, twice=False)
