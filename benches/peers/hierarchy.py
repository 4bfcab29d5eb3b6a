"""Flat and tree priors side by side with scikit-learn and hiclass, all in one run; writes benches/results/hierarchy.md.

Run with `make bench-hierarchy`. Every fit has a process of its own (`one_fit.py`) and a time limit. `--only` takes one
table, `--quick` small parts of the data, to try the script itself; both write to target/bench instead, but for
`--only ... --replace`.
"""

from __future__ import annotations

from runs import cell, main, memory, report, table

C = 50.0  # of the logistic regressions
# Variances of our kernels: for unit-norm counts and for tf-idf, flat and on every level of the tree.
VARIANCES = {"counts": (500.0, 100.0), "tf-idf": (3000.0, 300.0)}
DATA = ("amazon_reviews", "patents_ipc")
COLUMNS = [
    "features",
    "method",
    "acc",
    "prec",
    "taxo",
    "taxo [0-1]",
    "pacc",
    "pacc [0-1]",
    "log loss",
]


def score_row(rows, features, name, result):
    if "note" in result:
        report(rows, [features, name, result["note"], *[""] * 6])
        return
    names = ("accuracy", "reciprocal_rank", "taxonomic_decided", "taxonomic", "parent_decided", "parent", "log_loss")
    scores = [cell(result.get(name), ".3f") for name in names]
    report(rows, [features, name, *scores])


def scores(bench):
    text = ""
    for data in DATA:
        rows = []
        for features, (flat, tree) in VARIANCES.items():
            more = {"features": features, "tree_scores": True}
            for name, method, options in (
                ("LogisticRegression", "LogisticRegression", {"C": C}),
                ("hiclass, LogisticRegression per parent", "hiclass", {"C": C}),
                ("LinearSVC", "LinearSVC", {}),
                (f"**flat, v = {flat:g}**", "KernelClassifier", {"kernel": ["Linear", {"variance": flat}]}),
                (
                    f"**tree, v = {tree:g} on all levels**",
                    "KernelClassifier",
                    {"kernel": ["Linear", {"variance": tree}], "hierarchy": True, "share": "level"},
                ),
            ):
                score_row(rows, features, name, bench.fit(data, method, options, **more))
        text += f"\n### {data}\n\n{table(COLUMNS, rows)}"
    return f"""## Scores

Linear kernels, hyperparameters fixed, default `tol`; LogisticRegression and hiclass with C = {C:g} and no intercept,
LinearSVC as it comes. Features: word counts with rows of unit norm, and scikit-learn's
`TfidfTransformer(sublinear_tf=True)` of them. What fits take is in `fit.md`; counts with
learned variances are in `learning.md`.

acc: accuracy; prec: mean reciprocal rank; taxo: taxonomic loss; pacc: parent accuracy. taxo and pacc are for decisions
of least expected loss, those with [0-1] for the most probable class. Everybody who gives probabilities gets these
decisions, by `Hierarchy.decide`; LinearSVC gives none.
{text}"""


def scale(bench):
    documents, classes = (300, 60) if bench.quick else (20_000, 5000)
    options = {"kernel": ["Linear", {"variance": 10.0}], "hierarchy": True}
    result = bench.fit("taxonomy", "KernelClassifier", options, documents=documents, classes=classes, tree_scores=True)
    rows = []
    if "note" in result:
        report(rows, ["not measured", result["note"]])
    else:
        share = result["mixing_seconds"] / result["core_seconds"]
        for name, value in (
            ("solver", f"{result['chosen']}: {result['reason']}"),
            ("converged", "yes" if result["converged"] else "no"),
            ("products", str(result["products"])),
            ("seconds of the fit", f"{result['seconds']:.0f}"),
            ("passes over the tree, share of the fit (goal: below 10 %)", f"{share:.1%}"),
            ("seconds of predictions and probabilities, 1000 documents", f"{result['predict_seconds']:.1f}"),
            ("seconds of two decisions, 1000 documents", f"{result['decide_seconds']:.2f}"),
            ("peak of the fit above the data, GB", f"{memory(result)[0] / 1024:.1f}"),
            ("peak of all of it, GB (goal: below 24)", f"{result['whole_peak'] / 1024:.1f}"),
            ("accuracy", f"{result['accuracy']:.3f}"),
            ("taxonomic loss", f"{result['taxonomic_decided']:.3f}"),
        ):
            report(rows, [name, value])
    return f"""## Many classes

{classes} classes, {documents} synthetic documents (`nuptse.datasets.make_taxonomy`), three levels, linear kernel of
variance 10.

{table(["", ""], rows)}"""


TABLES = {"scores": scores, "scale": scale}


if __name__ == "__main__":
    main("Hierarchies", "hierarchy", TABLES, limit=2400, twice=False)
