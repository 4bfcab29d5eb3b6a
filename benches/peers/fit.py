"""Fits side by side with scikit-learn and hiclass, all in one run; writes benches/results/fit.md.

Run with `make bench-fit`. Every fit has a process of its own (`one_fit.py`), so that the peak of its memory is its own,
and a time limit. What fails or is stopped leaves its reason in the table. `--only` takes one table, `--quick` small
parts of the data, to try the script itself; both write to target/bench instead, but for
`--only ... --replace`.
"""

from __future__ import annotations

from itertools import product

from one_fit import MNIST_TEST, MNIST_TRAIN, digits
from runs import cell, fastest_in_turns, main, memory, report, table

TAXONOMIES = ("patents_ipc", "amazon_reviews", "newsgroups20")
SOLVERS = ("auto", "newton-cg", "lbfgs", "newton-cg-symmetric")
VARIANCE = 5.0  # of a weight; the C of the peers
LINEAR = {"kernel": ["Linear", {"variance": VARIANCE}], "intercept_variance": 0.0}
TURNS = 3
RBF = {"kernel": ["RBF", {"variance": 10.0, "inverse_width": "auto"}]}


# Everybody on everything


def overview_row(rows, data, name, result):
    known = "peak" in result
    above, whole = memory(result) if known else (None, None)
    report(
        rows,
        [
            data,
            name,
            cell(result.get("accuracy"), ".4f"),
            cell(result.get("log_loss"), ".4f"),
            cell(result.get("objective"), ".2f"),
            cell(result.get("seconds"), ".2f"),
            cell(result.get("products")),
            cell(above, ".0f"),
            cell(whole, ".0f"),
            ("yes" if result["converged"] else "no") if known else result["note"],
        ],
    )


def our_rows(bench, rows, data, name, options):
    for solver in SOLVERS:
        result = bench.fit(data, "KernelClassifier", options | {"solver": solver})
        chosen = f" ({result['chosen']})" if solver == "auto" and "chosen" in result else ""
        overview_row(rows, data, f"**{name}, {solver}**{chosen}", result)


def linear_peers(bench, rows, data, **more):
    for solver in ("lbfgs", "newton-cg"):
        result = bench.fit(data, "LogisticRegression", {"C": VARIANCE, "solver": solver}, **more)
        overview_row(rows, data, f"LogisticRegression, {solver}", result)
    overview_row(rows, data, "LinearSVC", bench.fit(data, "LinearSVC", {}, **more))


def overview(bench):
    rows = []
    for data in TAXONOMIES:
        linear_peers(bench, rows, data)
        result = bench.fit(data, "hiclass", {"C": VARIANCE})
        overview_row(rows, data, "hiclass, LogisticRegression per parent", result)
        our_rows(bench, rows, data, "linear, flat", LINEAR)
        our_rows(bench, rows, data, "linear, tree", LINEAR | {"hierarchy": True})
    for data in ("satimage", "mnist"):
        linear_peers(bench, rows, data, standardise=True)
        our_rows(bench, rows, data, "RBF", RBF)
    gaussian_processes(bench, rows)
    columns = ["data", "method", "accuracy", "log loss", "objective", "seconds", "products"]
    columns += ["memory of the fit", "whole peak", "converged"]
    return f"""## Everybody on everything

Sparse word counts with rows of unit norm; satimage standardised; the first {MNIST_TRAIN} training and {MNIST_TEST} test
images of mnist, pixels / 255, standardised for the linear peers. C = {VARIANCE:g} for the peers but LinearSVC, which
has its defaults; LogisticRegression without intercepts, we without on the sparse sets; `tol` is everybody's default.

The objective is Φ, the sum of the losses + ½⟨α, u⟩; for LogisticRegression it is the sum of the losses + ‖W‖² / 2C, its
weights W centred over the classes (that changes no probability and makes them shortest). With the linear flat kernel of
variance C these are one and the same function, and their values can be compared; with the tree prior or the RBF kernel
Φ is another function.

The Gaussian process has the kernel that we have, without learning. hiclass predicts from the root down; its log loss is
that of the products of its local probabilities. Memory in MB: the peak of the fit above what the process held with the
data loaded, and the whole peak.

{table(columns, rows)}"""


def gaussian_processes(bench, rows):
    """Compare at sizes that it can take: its time grows with the third power."""
    for part in (100, 200) if bench.quick else (1000, 2000):
        for method, options in (("GaussianProcessClassifier", {}), ("KernelClassifier", RBF)):
            overview_row(rows, f"satimage, {part} rows", method, bench.fit("satimage", method, options, rows=part))


# Time to the objective of LogisticRegression


def first(result, objective):
    """Return the first step of a fit at which the objective was as low."""
    return next((step for step in result.get("trace", []) if step["objective"] <= objective), None)


def seconds_at(result, step):
    """Return the seconds until a step, with all that the fit spent outside the compiled core."""
    return step["seconds"] + result["seconds"] - result["core_seconds"]


def time_to_objective(bench):
    rows = []
    for data, goal in (("amazon_reviews", 5), ("patents_ipc", 8)):
        theirs = bench.fit(data, "LogisticRegression", {"C": VARIANCE, "solver": "lbfgs"})
        ours = bench.fit(data, "KernelClassifier", LINEAR | {"tol": 1e-4})
        report(rows, [data, *objective_cells(theirs, ours), f"{goal}x"])
    columns = ["data", "its objective", "ours, seconds", "products", "its seconds", "faster by"]
    columns += ["our memory", "its memory", "goal"]
    return f"""## Time to the objective of LogisticRegression

LogisticRegression(C=5, fit_intercept=False, max_iter=1000) against our default solver, until its objective is as low as
that leaves it. Ours is the fit with `tol=1e-4`, and memory is that of the whole of it; MB above the data.

{table(columns, rows)}"""


def objective_cells(theirs, ours):
    if "note" in theirs or "note" in ours:
        return [theirs.get("note", ""), ours.get("note", ""), *[""] * 5]
    step = first(ours, theirs["objective"])
    seconds = step and seconds_at(ours, step)
    return [
        f"{theirs['objective']:.2f}",
        "not reached" if step is None else f"{seconds:.2f}",
        cell(step and step["products"]),
        f"{theirs['seconds']:.2f}",
        cell(step and theirs["seconds"] / seconds, ".1f"),
        f"{memory(ours)[0]:.0f}",
        f"{memory(theirs)[0]:.0f}",
    ]


# Products to a relative objective of 1e-4


PRIORS = {"flat": ({}, 35), "tree": ({"hierarchy": True}, 60)}


def products(bench, data="amazon_reviews", accuracy=1e-4):
    lowest = {
        prior: bench.fit(data, "KernelClassifier", LINEAR | more | {"tol": 1e-7}).get("objective")
        for prior, (more, _) in PRIORS.items()
    }
    reached = {}
    # Both priors take turns, so that what else the machine does is no cost of one of them.
    for turn, solver, prior in product(range(TURNS), ("auto", "newton-cg", "lbfgs"), PRIORS):
        result = bench.fit(data, "KernelClassifier", LINEAR | PRIORS[prior][0] | {"solver": solver}, turn=turn)
        step = None if lowest[prior] is None else first(result, lowest[prior] * (1 + accuracy))
        if step is not None:
            reached.setdefault((prior, solver), []).append((seconds_at(result, step), step["products"]))
    rows = []
    for (prior, solver), found in sorted(reached.items()):
        seconds, count = min(found)
        goal = str(PRIORS[prior][1]) if solver == "auto" else ""
        report(rows, [prior, solver, f"{lowest[prior]:.3f}", str(count), f"{seconds:.2f}", goal])
    flat, tree = (min(reached.get((prior, "auto"), [(None, None)]))[0] for prior in PRIORS)
    ratio = f"{tree / flat:.2f}" if flat and tree else "(not known)"
    return f"""## Products to the minimum

{data}, linear kernel of variance {VARIANCE:g}, no intercept, `tol` as it is by default: products until the objective is
within {accuracy:g} (relative) of the lowest known, that of a fit with `tol=1e-7`. Seconds are those of the fastest of
{TURNS} fits, in turns. With the default solver the tree prior takes {ratio} times the time of the flat one (goal: at
most 2).

{table(["prior", "solver", "lowest objective", "products", "seconds", "goal"], rows)}"""


# Hard kernels on digits


def digits_fit(bench, variance, inverse_width, **options):
    kernel = ["RBF", {"variance": float(variance), "inverse_width": inverse_width}]
    return bench.fit("digits", "KernelClassifier", {"kernel": kernel, "tol": 1e-6} | options)


def digits_cell(result):
    if "note" in result:
        return result["note"].split(":")[0]
    text = f"{result['products']} · {result['residual']:.0e}"
    return text if result["converged"] else f"({text})"


def digits_summary(solver, results):
    done = [result for result in results if "note" not in result]
    claimed = [result["residual"] for result in done if result["converged"]]
    return [
        solver,
        f"{len(claimed)} of {len(results)}",
        cell(max(claimed, default=None), ".3e"),
        cell(max((result["products"] for result in done), default=None)),
        str(sum(result["products"] > 300 for result in done)),
    ]


def sweep(bench, inputs, unit, solvers):
    """Return a table over kernels, their inverse widths multiples of the unit, and what every solver returned."""
    variances, multiples = ((10, 1e3), (8,)) if bench.quick else ((10, 100, 1e3, 1e4), (1, 8, 32, 128))
    rows, results = [], {solver: [] for solver in solvers}
    for variance, multiple in product(variances, multiples):
        corner = variance in {variances[0], variances[-1]} and multiple in {multiples[0], multiples[-1]}
        cells = []
        for solver, of_solver in results.items():
            if solver == "exact" and not corner:
                cells.append("")
                continue
            of_solver.append(digits_fit(bench, variance, multiple * unit, solver=solver))
            cells.append(digits_cell(of_solver[-1]))
        report(rows, [f"{variance:g}", f"{multiple}{inputs} / ΣVar", *cells])
    return table(["variance", "inverse width", *solvers], rows), results


def hard_kernels(bench):
    X = digits().X
    d, unit = X.shape[1], 1 / X.var(axis=0).sum()
    smooth, results = sweep(bench, "", unit, (*SOLVERS, "exact"))
    rough, more = sweep(bench, " d", d * unit, SOLVERS)
    summary = [digits_summary(solver, found + more.get(solver, [])) for solver, found in results.items()]
    columns = ["solver", "claims convergence", "worst max|α + g| of these", "most products", "above 300"]
    return f"""## Hard kernels

digits ({len(X)} rows, d = {d} inputs, unscaled), RBF kernel exp(-(w / 2d)|x - x'|²), intercept variance 1, `tol=1e-6`.
The inverse widths w of the first table are m / ΣVar, which makes smooth kernels; those of the second m d / ΣVar, in
steps of the total variance. Cells give products · max|α + g|, the latter by numpy at the α that was returned; brackets
where the solver says itself that it did not converge. Goals: none that claims convergence is above 1e-6, none takes
more than 300 products. "exact" counts a product for every Newton step; it is slow, and only at the corners of the first
table.

{table(columns, summary)}
{smooth}
{rough}
{preconditioner(bench, 8 * unit)}"""


def preconditioner(bench, inverse_width):
    rows = []
    for solver, options, goal in (
        ("newton-cg", {"solver_options": {"preconditioner": "off"}}, ""),
        ("newton-cg", {"solver_options": {"preconditioner": "on"}}, "60"),
        ("auto", {}, ""),
    ):
        result = digits_fit(bench, 30, inverse_width, solver=solver, **options)
        chosen = options.get("solver_options", {}).get("preconditioner", "by default")
        cells = [solver, chosen, digits_cell(result), cell(result.get("seconds"), ".2f"), goal]
        report(rows, cells)
    return f"""The same data, variance 30, inverse width 8 / ΣVar, intercept variance 1; every product counts.

{table(["solver", "preconditioner", "products · max|α + g|", "seconds", "goal"], rows)}"""


# Where preconditioners pay


def preconditioned_row(bench, out, what, data, method, options, **more):
    cells = []
    for use in ("off", "auto", "on"):
        chosen = options | {"solver": "newton-cg", "solver_options": {"preconditioner": use, "max_products": 2000}}
        found = bench.fit(data, method, chosen, **more)
        cells += [found.get("note", cell(found.get("products"))), cell(found.get("seconds"), ".2f")]
    report(out, [data, what, *cells])


def preconditioners(bench):
    def kernel(name, **values):
        return {"kernel": [name, values]}

    rows = []
    near = kernel("RBF", variance=30.0, inverse_width="auto")
    preconditioned_row(bench, rows, "RBF, 6 classes", "satimage", "KernelClassifier", near)
    preconditioned_row(bench, rows, "RBF, 10 classes", "mnist", "KernelClassifier", RBF)
    many = {"points": 300, "classes": 20} if bench.quick else {"points": 3000, "classes": 200}
    preconditioned_row(bench, rows, f"RBF, {many['classes']} classes", "clusters", "KernelClassifier", near, **many)
    for data, variance in (("newsgroups20", 100.0), ("amazon_reviews", VARIANCE), ("amazon_reviews", 100.0)):
        what = f"linear, v = {variance:g}"
        options = kernel("Linear", variance=variance)
        preconditioned_row(bench, rows, what, data, "KernelClassifier", options)
    tree = kernel("Linear", variance=100.0) | {"hierarchy": True}
    preconditioned_row(bench, rows, "linear, v = 100, tree", "amazon_reviews", "KernelClassifier", tree)
    learned = kernel("RBF", variance=27.0, inverse_width=7.9)
    preconditioned_row(bench, rows, "criterion and gradient, RBF", "satimage", "Criterion", learned)
    preconditioned_row(bench, rows, "criterion and gradient, RBF", "digits", "Criterion", near)
    text = kernel("Linear", variance=100.0)
    preconditioned_row(bench, rows, "criterion and gradient, linear", "newsgroups20", "Criterion", text, rows=3000)
    columns = ["data", "what", "off: products", "seconds", "auto: products", "seconds", "on: products", "seconds"]
    return f"""## Where preconditioners pay

newton-cg, `tol` as it is by default. "auto" tries the preconditioner where many steps are in sight, and goes on with it
where that took fewer of them, all counted; it leaves alone what has too many classes for one system (rank times classes
above 1600). "on" takes a system for every class there. In the criterion of cross-validation "auto" is off, for fits and
for the systems of the gradient, but when asked for; products are those of all five folds.

Preconditioners pay for smooth kernels and few classes: see also the table above. They do not for linear kernels of
texts, whose spectrum falls too slowly for any rank that costs less than it saves. Nor do systems of single classes:
what makes the systems hard is coupled through all classes, and leaving that out leaves most of the steps.

{table(columns, rows)}"""


# Cost against the number of classes and of documents


def fixed_work(bench, solver, documents, classes, count, turn):
    # The same work for all sizes: a preconditioner would be there for few classes only.
    fixed = {"max_products": count, "preconditioner": "off"}
    options = LINEAR | {"solver": solver, "tol": 1e-12, "solver_options": fixed}
    size = {"documents": documents, "classes": classes}
    return bench.fit("synthetic", "KernelClassifier", options, **size, repeats=3, seconds=1, turn=turn)


def scaling_rows(bench, solver, sizes, of_size, count):
    """Return rows for growing sizes: the cost of a product, that for a unit of size, how far that is from linear."""

    def fit(size, turn):
        return fixed_work(bench, solver, *of_size(size), count, turn)

    results = fastest_in_turns(fit, sizes, TURNS)
    costs = {size: found["seconds"] / found["products"] for size, found in results.items() if "note" not in found}
    units = [seconds / size for size, seconds in costs.items()]
    nearest = (min(units) + max(units)) / 2 if units else None
    rows = []
    for size, found in results.items():
        cells = [*map(str, of_size(size)), found.get("note", cell(found.get("products")))]
        if seconds := costs.get(size):
            cells += [f"{1e3 * seconds:.3f}", f"{1e6 * seconds / size:.3f}", f"{seconds / size / nearest - 1:+.0%}"]
        report(rows, cells)
    return rows


def scaling(bench):
    n, count = (500, 5) if bench.quick else (4000, 40)
    classes = (16, 32) if bench.quick else (16, 32, 64, 128, 256, 512)
    documents = (500, 1000) if bench.quick else (2000, 4000, 8000, 16000, 32000, 64000)
    columns = ["documents", "classes", "products", "ms a product"]
    tables = []
    for solver in ("lbfgs", "newton-cg"):
        by_class = scaling_rows(bench, solver, classes, lambda size: (n, size), count)
        by_document = scaling_rows(bench, solver, documents, lambda size: (size, 64), count)
        tables.append(f"""### {solver}

{table([*columns, "µs a product and class", "from linear"], by_class)}
{table([*columns, "µs a product and document", "from linear"], by_document)}""")
    both = "\n".join(tables)
    return f"""## Cost against classes and documents

Synthetic documents (60 words of 10000, half of them from a topic of the class), linear kernel, stopped after {count}
products; the fastest of at least {3 * TURNS} fits, in {TURNS} turns of a second or more over all sizes, all of it,
divided by the number of products. The last column compares with the line through the origin that comes nearest to all
rows: 0 % everywhere would be linear. Goal: within 15 %. What is not linear is the memory of the machine: a vector of
2000 documents and 64 classes has 1 MB and one of 64000 has 32, and a fit goes over several of them; on the way they
leave one cache after the other.

{both}"""


TABLES = {
    "overview": overview,
    "objective": time_to_objective,
    "products": products,
    "digits": hard_kernels,
    "preconditioners": preconditioners,
    "scaling": scaling,
}


if __name__ == "__main__":
    main("Fits", "fit", TABLES, limit=120, twice=True)
