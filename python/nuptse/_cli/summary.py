"""What is said of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nuptse._cli.labels import label_name, plain

if TYPE_CHECKING:
    from nuptse._cli.model import Model

_MOST_HYPERPARAMETERS = 8


def model_content(model: Model) -> dict[str, Any]:
    """Return a model for machines."""
    classifier = model.classifier
    tree = classifier.hierarchy_
    points = int(classifier.dual_coef_.shape[0])
    value = getattr(classifier, "cv_value_", None)
    return {
        "estimator": type(model.estimator).__name__,
        "points": points,
        "inputs": int(classifier.n_features_in_),
        "classes": [plain(label) for label in classifier.classes_.tolist()],
        "levels": None if tree is None else tree.n_levels,
        "nodes": None if tree is None else len(tree.parents),
        "kernel": _kernel(classifier.kernel_),
        "hyperparameters": dict(classifier.hyperparameters_),
        "cv_value": value,
        "cv_log_loss": None if value is None else value / points,
        "evaluations": len(classifier.history_) if hasattr(classifier, "history_") else 0,
        "converged": bool(classifier.fit_info_["converged"]),
        "solver": classifier.fit_info_["solver"],
    }


def model_rows(model: Model) -> list[tuple[str, Any]]:
    """Return a model for people."""
    content = model_content(model)
    classes = f"{len(content['classes'])}"
    if content["levels"] is not None:
        classes += f", in a tree of {content['nodes']} nodes on {content['levels']} levels"
    inputs = "words" if model.takes_text else "inputs"
    rows: list[tuple[str, Any]] = [
        ("points", content["points"]),
        (inputs, content["inputs"]),
        ("classes", classes),
        ("kernel", content["kernel"]),
    ]
    given = list(content["hyperparameters"].items())
    rows += [(name, float(value)) for name, value in given[:_MOST_HYPERPARAMETERS]]
    if len(given) > _MOST_HYPERPARAMETERS:
        rows.append(("...", f"{len(given)} hyperparameters in all; --json has every one"))
    if content["cv_value"] is not None:
        of = f"{content['cv_log_loss']:.4g} a point, {content['cv_value']:.6g} in all"
        rows.append(("cv log loss", f"{of}, after {content['evaluations']} evaluations"))
    else:
        rows.append(("cv log loss", "not known: nothing was learned"))
    if not content["converged"]:
        rows.append(("fit", "not converged"))
    return rows


def class_list(labels: list[Any], limit: int) -> str:
    """Return the first labels, and how many there are."""
    names = ", ".join(label_name(label) for label in labels[:limit])
    return names if len(labels) <= limit else f"{names}, ... ({len(labels)} in all; --tree shows them)"


def _kernel(kernel: Any) -> str:
    if isinstance(kernel, dict):
        return ", ".join(dict.fromkeys(type(one).__name__ for one in kernel.values())) + f" ({len(kernel)} groups)"
    return type(kernel).__name__
