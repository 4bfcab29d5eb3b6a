"""Labels: texts in files, whatever they are in a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nuptse._cli.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nuptse.hierarchy import Hierarchy


def typed(labels: Iterable[str]) -> list[Any]:
    """Return labels as whole numbers if all of them are written as such, else as they are."""
    texts = list(labels)
    return [int(text) for text in texts] if all(_is_whole(text) for text in set(texts)) else texts


def _is_whole(text: str) -> bool:
    """Tell whether a text is just how a whole number is written; '01' and '+1' are names."""
    digits = text.removeprefix("-")
    return text.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


class KnownLabels:
    """The labels that a model or a tree knows, found by how they are written in files.

    Parameters
    ----------
    classes : iterable
        The labels of the classes.
    hierarchy : Hierarchy or None
        The tree, whose nodes may be labels as well.
    aliases : mapping of str to str
        Other names of labels, by which they may be called in data.

    """

    def __init__(self, classes: Iterable[Any], hierarchy: Hierarchy | None, aliases: Mapping[str, str]) -> None:
        self._classes = {label_name(label): label for label in classes}
        self._hierarchy = hierarchy
        self._aliases = aliases

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.find(text) is not None

    def find(self, text: str) -> Any:
        """Return the label that a text stands for, as an estimator takes it; None where there is none."""
        name = self._aliases.get(text, text)
        if name in self._classes:
            return self._classes[name]
        if self._hierarchy is None:
            return None
        for label in (name, int(name) if _is_whole(name) else name):
            try:
                self._hierarchy.node_index(label)
            except ValueError:
                continue
            return label
        return None

    def find_all(self, texts: Iterable[str], where: str) -> list[Any]:
        """Return the labels that texts stand for; raise if some are not known."""
        texts = list(texts)
        known = {text: self.find(text) for text in dict.fromkeys(texts)}
        unknown = [text for text, label in known.items() if label is None]
        if unknown:
            points = sum(known[text] is None for text in texts)
            raise InputError(
                f"{where} has labels that are not known: {_shown(unknown)}, on {points} of {len(texts)} points; known "
                f"are {_shown(list(self._classes))}"
            )
        return [known[text] for text in texts]

    def class_of(self, label: Any) -> Any:
        """Return the class that a label means; None for an inner node with several classes below it."""
        if self._hierarchy is None:
            return label
        below = self._hierarchy.classes_below(self._hierarchy.node_index(label))
        return self._hierarchy.classes[below[0]] if len(below) == 1 else None


def label_name(label: Any) -> str:
    """Return a label as it is written in files; a path with slashes."""
    if isinstance(label, tuple):
        return "/".join(map(str, label))
    return str(plain(label))


def plain(value: Any) -> Any:
    """Return a value of numpy as one of Python, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    return label_name(value) if isinstance(value, tuple) else value


def _shown(names: list[str], limit: int = 5) -> str:
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} in all)"
