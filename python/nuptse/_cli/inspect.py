"""`nuptse inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nuptse._cli import output
from nuptse._cli.labels import label_name
from nuptse._cli.model import Model, load
from nuptse._cli.summary import class_list, model_content, model_rows

if TYPE_CHECKING:
    import argparse

_CLASSES = 12
_LINES = 25


def inspect(options: argparse.Namespace, console: output.Console) -> None:
    """Show what is in a model file."""
    model = load(options.model)
    version, release = _versions(options.model)
    size = Path(options.model).stat().st_size
    content: dict[str, Any] = {
        "path": options.model,
        "bytes": size,
        "file_version": version,
        "nuptse": release,
        **model_content(model),
        "trained_on": {name: value for name, value in model.trained_on.items() if name != "aliases"},
        "columns": model.columns,
    }
    tree = model.classifier.hierarchy_
    content["tree"] = None if tree is None else json.loads(tree.to_json())
    words = _top_features(model, options.top)
    content["top_features"] = None if words is None else {label: dict(pairs) for label, pairs in words.items()}
    console.result(_text(model, content, words, options), content)


def _text(model: Model, content: dict[str, Any], words: dict[str, Any] | None, options: argparse.Namespace) -> str:
    release = content["nuptse"] or "another program"
    rows = [
        ("file", f"{content['path']} ({output.size(content['bytes'])})"),
        ("format", f"version {content['file_version']}, written by nuptse {release}"),
        ("estimator", content["estimator"]),
        *model_rows(model),
    ]
    labels = model.classifier.classes_.tolist()
    rows.append(("labels", class_list(labels, len(labels) if options.tree else _CLASSES)))
    parts = [output.pairs(rows)]
    if model.classifier.hierarchy_ is not None:
        lines = str(model.classifier.hierarchy_).splitlines()
        if len(lines) > _LINES and not options.tree:
            lines = [*lines[:_LINES], f"... ({len(lines)} lines in all; --tree shows them)"]
        parts.append("\n".join(lines))
    if words is not None:
        shown = list(words.items())[: None if options.tree else _CLASSES]
        parts.append(
            output.table(["class", "top inputs"], [[name, ", ".join(n for n, _ in top)] for name, top in shown])
        )
    return "\n\n".join(parts)


def _top_features(model: Model, count: int) -> dict[str, list[tuple[str, float]]] | None:
    """Return for every class or node the inputs that speak for it; None where the kernel cannot tell."""
    find: Any = getattr(model.classifier, "top_features", None)
    if find is None:
        return None
    try:
        found = find(n=count, feature_names=model.words)
    except ValueError:  # only linear kernels have weights
        return None
    return {label_name(one.label): [(str(name), float(weight)) for name, _, weight in one.supporting] for one in found}


def _versions(path: str) -> tuple[int, str | None]:
    """Return the version of the format and of the package that wrote a file, which has been checked already."""
    with Path(path).open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    about = json.loads(header["__metadata__"]["nuptse"])
    notes = json.loads(about["header"]["notes"])
    release = notes.get("nuptse")
    return int(about["version"]), release if isinstance(release, str) else None
