"""The forms in which people have their hierarchies, all read as the parents and the labels of nodes."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Label: TypeAlias = str | int | float

SEPARATOR = "/"


class Nodes(NamedTuple):
    """A tree as it was given: for every node its parent (-1 for the root) and its label, nodes in any order."""

    parents: list[int]
    labels: list[Label | None]
    #: what joins the labels of a path into the label of a class; None where a class has the label of its leaf
    separator: str | None = None


def read(obj: Any) -> Nodes:
    """Read whatever `Hierarchy.parse` takes."""
    if isinstance(obj, Mapping):
        return read_nested(obj)
    if all(hasattr(obj, name) for name in ("nodes", "edges", "is_directed")):
        return read_graph(obj)
    if hasattr(obj, "itertuples"):  # pandas
        return read_paths(obj.itertuples(index=False, name=None))
    if hasattr(obj, "iter_rows"):  # polars
        return read_paths(obj.iter_rows())
    if isinstance(obj, str | bytes) or not isinstance(obj, Iterable):
        raise TypeError(
            f"a hierarchy cannot be read from {obj!r}; give a parent array, edges, a nested dict, rows of paths, "
            "'A/01/B' strings or a networkx.DiGraph"
        )
    return _read_items(_items(obj))


def _read_items(items: list[Any]) -> Nodes:
    """Tell the forms apart that are lists."""
    if not items:
        raise ValueError("the hierarchy is empty; it needs at least one class")
    forms: dict[str, Any] = {}
    for item in items:
        forms.setdefault(_form(item), item)
    if len(forms) > 1:
        (one, first), (other, second) = list(forms.items())[:2]
        raise ValueError(f"a hierarchy is given in one form, but {first!r} is a {one} and {second!r} a {other}")
    if "number" in forms:
        return read_parents(items)
    if "string" in forms:
        return read_strings(items)
    if "row" not in forms:
        raise TypeError(f"{items[0]!r} is no part of a hierarchy; use numbers, strings, or rows of labels")
    rows = [_items(item) for item in items]
    return read_edges(rows) if _are_edges(rows) else read_paths(rows)


def _items(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _form(item: Any) -> str:
    if item is None or isinstance(item, Real):
        return "number"
    if isinstance(item, str):
        return "string"
    if isinstance(item, Sequence | np.ndarray):
        return "row"
    return type(item).__name__


def _are_edges(rows: list[list[Any]]) -> bool:
    """Tell whether pairs are edges: some parent is a child too, or there is one parent only. Else they are paths."""
    labels = [value for row in rows for value in row]
    if any(len(row) != 2 for row in rows) or any(is_missing(v) or not isinstance(v, str | Real) for v in labels):
        return False
    parents = {row[0] for row in rows}
    return len(parents) == 1 or not parents.isdisjoint(row[1] for row in rows)


def read_parents(values: Iterable[Any]) -> Nodes:
    """Read a parent array; the root has -1, None, NaN or itself. Nodes are labelled by their numbers."""
    parents: list[int] = []
    for node, value in enumerate(values):
        parent = -1 if is_missing(value) else _number(value)
        if not isinstance(parent, int):
            raise ValueError(f"the parent of node {node} is {value!r}, but must be the number of a node")  # noqa: TRY004
        parents.append(-1 if parent == node else parent)
    return Nodes(parents, list(range(len(parents))))


def read_edges(pairs: Iterable[Iterable[Any]], nodes: Iterable[Any] = ()) -> Nodes:
    """Read edges (parent, child); `nodes` names nodes that may have none."""
    index: dict[Label, int] = {}
    parents: list[int] = []

    def place(value: Any) -> int:
        label = as_label(value, "edges")
        if label not in index:
            index[label] = len(parents)
            parents.append(-1)
        return index[label]

    for node in nodes:
        place(node)
    for pair in pairs:
        ends = list(pair)
        if len(ends) != 2:
            raise ValueError(f"the edge {ends!r} must be a pair (parent, child)")
        parent, child = place(ends[0]), place(ends[1])
        if parents[child] not in {-1, parent}:
            one, other = (list(index)[i] for i in (parents[child], parent))
            raise ValueError(
                f"{ends[1]!r} has two parents, {one!r} and {other!r}; where these are two nodes of the same name, give "
                "rows of paths (Hierarchy.from_paths)"
            )
        if parent == child:
            raise ValueError(f"{ends[0]!r} lies below itself; for rows of paths use Hierarchy.from_paths")
        parents[child] = parent
    return Nodes(parents, list(index))


def read_paths(rows: Iterable[Iterable[Any]]) -> Nodes:
    """Read rows that each lead from below the root to a node; None, "" and NaN may fill up the end of a row."""
    tree = _PathTree()
    for number, values in enumerate(rows):
        row = list(values)
        while row and is_missing(row[-1]):
            row.pop()
        if not row:
            raise ValueError(f"row {number} of the paths is empty")
        node = 0
        for value in row:
            if is_missing(value):
                raise ValueError(f"row {number} of the paths, {row!r}, has a gap; only its end may be left out")
            node = tree.child(node, as_label(value, f"row {number} of the paths"))
    return tree.nodes()


def read_strings(values: Iterable[str]) -> Nodes:
    """Read "A/01/B" strings; a class keeps its whole string as its label."""
    rows = [value.strip(SEPARATOR).split(SEPARATOR) for value in values]
    return read_paths(rows)._replace(separator=SEPARATOR)


def read_nested(mapping: Mapping[Any, Any]) -> Nodes:
    """Read a nested dict: below every label a dict, a list of labels or dicts, or None for a leaf."""
    tree = _PathTree()
    # Every entry: a node, what lies below it, and the containers it lies in, to notice one that contains itself.
    waiting: deque[tuple[int, Any, frozenset[int]]] = deque([(0, mapping, frozenset())])
    while waiting:
        node, below, around = waiting.popleft()
        if below is None:
            continue
        name = tree.labels[node]
        if isinstance(below, str | bytes) or not isinstance(below, Iterable):
            raise TypeError(f"below {name!r} is {below!r}, but there must be a dict, a list of labels, or None")
        if id(below) in around:
            raise ValueError(f"{name!r} lies below itself: the dict contains itself")
        around |= {id(below)}
        for part in [below] if isinstance(below, Mapping) else below:
            entries = part.items() if isinstance(part, Mapping) else [(part, None)]
            waiting.extend((tree.child(node, as_label(label, "the dict")), inside, around) for label, inside in entries)
    return tree.nodes()


def read_graph(graph: Any) -> Nodes:
    """Read a networkx.DiGraph with edges from parent to child; any object that looks like one will do."""
    if not graph.is_directed():
        raise ValueError("the graph has no directions; give a networkx.DiGraph with edges from parent to child")
    return read_edges((edge[:2] for edge in graph.edges), graph.nodes)


class _PathTree:
    """Nodes that are identified by their paths."""

    def __init__(self) -> None:
        self.parents = [-1]
        self.labels: list[Label | None] = [None]
        self._index: dict[tuple[int, Label], int] = {}

    def child(self, node: int, label: Label) -> int:
        """Return the child of this name, which is made if it is not there."""
        place = self._index.setdefault((node, label), len(self.parents))
        if place == len(self.parents):
            self.parents.append(node)
            self.labels.append(label)
        return place

    def nodes(self) -> Nodes:
        return Nodes(self.parents, self.labels)


def is_missing(value: Any) -> bool:
    """Tell whether a value only fills up a row."""
    if value is None or isinstance(value, str):
        return not value
    # pandas.NA and NaT, which may not be compared, are known by name, so that pandas is not needed.
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, Real) and math.isnan(value))


def as_label(value: Any, where: str) -> Label:
    """Return a label as a plain string or number; whole numbers are integers, as they were before they met a NaN."""
    label = str(value) if isinstance(value, str) else _number(value)
    if label is None or (isinstance(label, str) and not label):
        raise ValueError(f"{value!r} in {where} cannot be a label; labels are strings, not empty, or finite numbers")
    return label


def _number(value: Any) -> int | float | None:
    """Return a plain number, an integer if it is whole; None for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    return int(number) if number.is_integer() else number if math.isfinite(number) else None


def check_one_type(labels: Iterable[Label]) -> None:
    """Raise where some labels are strings and some are numbers."""
    first: dict[bool, Label] = {}
    counts: Counter[bool] = Counter()
    for label in labels:
        first.setdefault(isinstance(label, str), label)
        counts[isinstance(label, str)] += 1
    if len(first) > 1:
        odd = min(first, key=lambda kind: counts[kind])
        kinds = {True: "a string", False: "a number"}
        raise ValueError(
            f"labels mix types: {first[odd]!r} is {kinds[odd]}, but {first[not odd]!r} is {kinds[not odd]}; make "
            "all of them strings, here and in y"
        )
