"""Trees over classes from files: JSON, edges, tables of nodes, rows of paths."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nuptse._cli.errors import InputError, UsageError
from nuptse._cli.opening import ending, name_of, read_text
from nuptse._cli.tables import delimited_rows
from nuptse.hierarchy import Hierarchy

if TYPE_CHECKING:
    from collections.abc import Iterable

_SEPARATOR = "/"
#: What the column of the nodes may be called in a table that has a column "parent", the best first.
_NODE = ("child", "node", "id", "label", "name", "code")
_NO_PARENT = {"", "-1", "none", "null", "na", "nan"}
_LEVEL = re.compile(r"(level|depth|l)[ _-]?\d+|path")


class Taxonomy(NamedTuple):
    """A tree, and other names of its nodes."""

    hierarchy: Hierarchy
    #: the label of a node by its number in the file, where labels were taken from another column
    aliases: dict[str, str]


def read_taxonomy(path: str, names: str | None = None, encoding: str = "utf-8") -> Taxonomy:
    """Read a tree; `names` is the column with the labels in a table of nodes."""
    text = read_text(path, encoding).getvalue()
    kind = ending(path)
    try:
        if kind == ".json" or (kind not in {".csv", ".tsv"} and text.lstrip()[:1] in {"{", "["}):
            if names is not None:
                raise UsageError(f"{name_of(path)} is JSON, which has nothing for --names")
            return Taxonomy(_plain_classes(_from_json(text)), {})
        delimiter = {".csv": ",", ".tsv": "\t"}.get(kind) or _guessed_delimiter(text)
        quotes = delimiter != "\t"
        rows = [
            row for _, row in delimited_rows(path, delimiter, quotes=quotes, encoding=encoding) if row[0][:1] != "#"
        ]
        return _from_rows(rows, names)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{name_of(path)} is no taxonomy: {error}") from error


def tree_of_paths(labels: Iterable[str]) -> Taxonomy:
    """Return the tree that labels like "A/01/B" make."""
    try:
        return Taxonomy(Hierarchy.parse(list(dict.fromkeys(labels))), {})
    except (ValueError, TypeError) as error:
        raise InputError(f"the labels make no tree: {error}") from error


def _from_json(text: str) -> Hierarchy:
    content = json.loads(text)
    if isinstance(content, dict) and str(content.get("format", "")).startswith("nuptse.Hierarchy"):
        return Hierarchy.from_json(text)
    return Hierarchy.parse(content)


def _guessed_delimiter(text: str) -> str:
    """Return the delimiter that the first line tells; paths like A/01/B are whole lines, which have no tabs."""
    first = next((line for line in text.splitlines() if line.strip() and line[0] != "#"), "")
    return "\t" if "\t" in first or _SEPARATOR in first else ","


def _from_rows(rows: list[list[str]], names: str | None) -> Taxonomy:
    if not rows:
        raise ValueError("it is empty")
    header = [name.lower() for name in rows[0]]
    if "parent" in header:
        return _from_nodes(rows, header, names)
    if names is not None:
        raise ValueError("--names needs a table whose first line names its columns, one of them 'parent'")
    if all(_LEVEL.fullmatch(name) for name in header):
        rows = rows[1:]
        return Taxonomy(_plain_classes(Hierarchy.from_paths(rows) if len(header) > 1 else _from_strings(rows)), {})
    if all(len(row) == 1 for row in rows):
        return Taxonomy(_from_strings(rows), {})
    return Taxonomy(_plain_classes(Hierarchy.parse(rows)), {})


def _from_strings(rows: list[list[str]]) -> Hierarchy:
    return Hierarchy.parse([row[0] for row in rows])


def _from_nodes(rows: list[list[str]], header: list[str], names: str | None) -> Taxonomy:
    """Read a table with a line for every node, which has the number or label of its parent."""
    found = [name for name in _NODE if name in header]
    if not found:
        raise ValueError(f"it has a column 'parent', but none for the node itself: {', '.join(_NODE)}")
    if names is not None and names not in rows[0]:
        raise ValueError(f"it has no column {names!r}, but {', '.join(rows[0])}")
    node_column, parent_column = header.index(found[0]), header.index("parent")
    label_column = node_column if names is None else rows[0].index(names)
    wrong = next((row for row in rows if len(row) != len(header)), None)
    if wrong is not None:
        raise ValueError(f"the line {wrong!r} has {len(wrong)} fields, but its first line has {len(header)}")
    labels: dict[str, str] = {}
    for row in rows[1:]:
        if row[node_column] in labels:
            raise ValueError(f"the node {row[node_column]!r} is there twice")
        labels[row[node_column]] = row[label_column]
    above = {row[node_column]: row[parent_column] for row in rows[1:]}
    for node, parent in list(above.items()):
        if parent == node or (parent.lower() in _NO_PARENT and parent not in labels):
            above[node] = ""
        elif parent not in labels:  # lists of edges do not have their root as a child
            labels[parent], above[parent] = parent, ""
    return _numbered(labels, above, renamed=names is not None)


def _numbered(labels: dict[str, str], above: dict[str, str], *, renamed: bool) -> Taxonomy:
    """Return the tree of nodes by their names; roots are put below one root where there are several."""
    place = {node: number for number, node in enumerate(labels)}
    roots = [node for node, parent in above.items() if not parent]
    shown: list[Any] = list(labels.values())
    parents = [place.get(above[node], -1) for node in labels]
    if len(roots) > 1:
        parents = [len(labels) if parent < 0 else parent for parent in parents] + [-1]
        shown.append(None)
    # Where a name means several nodes, paths tell them apart.
    unique = len(set(labels.values())) == len(labels)
    tree = Hierarchy(parents, shown, separator=None if unique else _SEPARATOR)
    if not renamed:
        return Taxonomy(tree, {})
    if unique:
        return Taxonomy(tree, dict(labels))
    return Taxonomy(tree, _paths(labels, above, whole=len(roots) > 1))


def _paths(labels: dict[str, str], above: dict[str, str], *, whole: bool) -> dict[str, str]:
    """Return the path of every node, its root included if that is one of several."""
    paths = {}
    for node in labels:
        chain = [node]
        while above[chain[-1]]:
            chain.append(above[chain[-1]])
        names = [labels[one] for one in reversed(chain)]
        paths[node] = _SEPARATOR.join(names if whole else names[1:])
    return {node: path for node, path in paths.items() if path}


def _plain_classes(hierarchy: Hierarchy) -> Hierarchy:
    """Return a tree whose classes have texts or numbers as labels; where leaves have the same name, their paths."""
    if not any(isinstance(label, tuple) for label in hierarchy.classes):
        return hierarchy
    labels = [None if label is None else str(label) for label in hierarchy.labels]
    return Hierarchy(hierarchy.parents, labels, separator=_SEPARATOR)
