"""Trees over classes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nuptse import _core
from nuptse import _hierarchy_input as forms
from nuptse._hierarchy_input import Label
from nuptse._hierarchy_order import breadth_first
from nuptse._hierarchy_text import html_tree, text_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

__all__ = ["Hierarchy"]

Path: TypeAlias = tuple[Label, ...]
ClassLabel: TypeAlias = Label | Path

_FORMAT = "nuptse.Hierarchy/1"


class Hierarchy:
    """A tree whose leaves are the classes.

    Make one with `parse`, which takes whatever form the tree is in, or with one of the methods `from_...`. A
    hierarchy does not change once it is made.

    Parameters
    ----------
    parents : array-like of int
        The parent of every node, in any order; -1 for the root.
    labels : sequence of str or of numbers, default=None
        The label of every node; that of the root may be None. A tuple holds the labels of nodes that were merged into
        one (see `contract`). By default the numbers of the nodes.
    classes : sequence of labels, default=None
        Leaves in the order in which the classes are to be; leaves that are not named follow, level by level. They need
        not occur in any data.
    separator : str, default=None
        Lets a class have its whole path as its label, joined by this string. By default it has the label of its leaf,
        or where several leaves have the same label, its path as a tuple.

    Attributes
    ----------
    parents : ndarray of shape (n_nodes,)
        The parent of every node, level by level and children side by side; -1 for the root, which is node 0.
    labels : tuple of length n_nodes
        The label of every node.
    depths : ndarray of shape (n_nodes,)
        The level of every node: 0 for the root.
    paths : tuple of length n_nodes
        The labels from below the root to every node, a tuple for each.
    leaves : ndarray of shape (n_classes,)
        The node of every class.
    classes : tuple of length n_classes
        The label of every class.
    n_levels : int
        The number of levels below the root.

    Examples
    --------
    >>> from nuptse import Hierarchy
    >>> tree = Hierarchy.parse({"animal": ["cat", "dog"], "plant": {"tree": ["oak", "elm"], "moss": None}})
    >>> print(tree)
    (root)
    ├── animal
    │   ├── cat
    │   └── dog
    └── plant
        ├── tree
        │   ├── oak
        │   └── elm
        └── moss
    >>> tree.classes
    ('cat', 'dog', 'moss', 'oak', 'elm')
    >>> tree.paths[tree.leaves[3]]
    ('plant', 'tree', 'oak')

    """

    def __init__(
        self,
        parents: ArrayLike,
        labels: Sequence[Label | Path | None] | None = None,
        classes: Iterable[Any] | None = None,
        separator: str | None = None,
    ) -> None:
        above = forms.read_parents(np.asarray(parents).tolist()).parents
        given: Sequence[Any] = range(len(above)) if labels is None else labels
        if len(given) != len(above):
            raise ValueError(f"there are {len(above)} nodes, but {len(given)} labels")
        chains = [tuple(label) if isinstance(label, tuple | list) else (label,) for label in given]
        order = breadth_first(above, [chain[-1] if chain else None for chain in chains])
        place = {node: i for i, node in enumerate(order)}
        root, *others = (chains[node] for node in order)
        self._root_label = None if not root or root[0] is None else forms.as_label(root[0], "labels")
        # A step leads from the parent of a node to it: its label, after those of the nodes that were merged with it.
        self._steps = tuple(tuple(forms.as_label(label, "labels") for label in step) for step in (root[1:], *others))
        self._separator = separator
        self.parents = _frozen([place.get(above[node], -1) for node in order])
        self.labels = (self._root_label, *(step[-1] for step in self._steps[1:]))
        self._children, self.depths = self._levels()
        self._check_labels()
        self.leaves = self._order_leaves(classes)

    def _levels(self) -> tuple[tuple[tuple[int, ...], ...], NDArray[np.int64]]:
        """Return the children and the depth of every node."""
        depths = [0]
        children: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents.tolist()[1:], start=1):
            depths.append(depths[parent] + 1)
            children[parent].append(node)
        return tuple(map(tuple, children)), _frozen(depths)

    def _check_labels(self) -> None:
        labels = [label for step in self._steps for label in step]
        forms.check_one_type(labels)
        seen = set()
        for parent, step in zip(self.parents.tolist(), self._steps, strict=True):
            if (parent, step) in seen:
                raise ValueError(f"two children of {self.labels[parent]!r} have the same label, {step[-1]!r}")
            seen.add((parent, step))
        if self._separator is not None:
            for label in labels:
                if not isinstance(label, str) or self._separator in label:
                    raise ValueError(f"label {label!r} must be a string without the separator {self._separator!r}")

    def _order_leaves(self, classes: Iterable[Any] | None) -> NDArray[np.int64]:
        """Return the leaves that are named, and then the others."""
        named: dict[int, None] = {}
        for label in classes or ():
            leaf = self._leaf(label)
            if leaf in named:
                raise ValueError(f"classes names {label!r} twice")
            named[leaf] = None
        return _frozen([*named, *(leaf for leaf in self._all_leaves() if leaf not in named)])

    # Every form

    @classmethod
    def parse(cls, obj: Any, classes: Iterable[Any] | None = None) -> Hierarchy:
        """Make a hierarchy from whatever describes one.

        Parameters
        ----------
        obj : object
            One of

            - a parent array: the number of every node's parent; the root has -1 or itself;
            - edges (parent, child);
            - a nested dict: below every label a dict, a list of labels, or None for a leaf;
            - rows of paths from below the root: tuples, a 2-d array or a DataFrame of pandas or polars; None, "" or NaN
              at the end of short rows; rows may be repeated, so the labels of a data set will do;
            - strings "A/01/B", which are then the labels of the classes;
            - a networkx.DiGraph with edges from parent to child;
            - a Hierarchy.

            Pairs are edges if some label is a parent here and a child there, or if there is one parent only; else they
            are rows of paths, as those of a DataFrame always are. `from_edges` and `from_paths` leave no doubt.
        classes : iterable of labels, default=None
            Leaves in the order in which the classes are to be; the others follow.

        Returns
        -------
        hierarchy : Hierarchy
            The tree.

        """
        if isinstance(obj, Hierarchy):
            return obj if classes is None else obj.with_classes(classes)
        return cls._from_nodes(forms.read(obj), classes)

    @classmethod
    def from_edges(cls, edges: Iterable[Iterable[Any]], classes: Iterable[Any] | None = None) -> Self:
        """Make a hierarchy from pairs (parent, child)."""
        return cls._from_nodes(forms.read_edges(edges), classes)

    @classmethod
    def from_paths(cls, rows: Iterable[Iterable[Any]], classes: Iterable[Any] | None = None) -> Self:
        """Make a hierarchy from rows that each lead from below the root to a node."""
        return cls._from_nodes(forms.read_paths(rows), classes)

    @classmethod
    def _from_nodes(cls, nodes: forms.Nodes, classes: Iterable[Any] | None) -> Self:
        return cls(nodes.parents, nodes.labels, classes, nodes.separator)

    def with_classes(self, classes: Iterable[Any]) -> Self:
        """Return the same tree with its classes in another order; leaves that are not named follow, as they were."""
        classes = list(classes)
        named = {self._leaf(label) for label in classes}
        rest = [self.paths[leaf] for leaf in self.leaves.tolist() if leaf not in named]
        return type(self)(self.parents, self._chains(), [*classes, *rest], self._separator)

    def contract(self) -> Self:
        """Return the tree in which nodes with one child are merged with it.

        The labels of merged nodes are kept: all paths and the labels of all classes stay as they are, and a merged node
        is found under each of its labels. A root is not merged with a leaf.
        """
        parents, labels = self.parents.tolist(), self._chains()
        # A chain takes the place of its first node, and has the children of its last one.
        first = [0]
        chains = {0: labels[0]}
        for node, parent in enumerate(parents[1:], start=1):
            alone = len(self._children[parent]) == 1
            merged = alone and (first[parent] > 0 or bool(self._children[node]))
            first.append(first[parent] if merged else node)
            chains[first[node]] = chains.get(first[node], ()) + labels[node]
        place = {node: i for i, node in enumerate(chains)}
        above = [-1 if node == 0 else place[first[parents[node]]] for node in chains]
        classes = [self.paths[leaf] for leaf in self.leaves]
        return type(self)(above, list(chains.values()), classes, self._separator)

    def _chains(self) -> list[tuple[Any, ...]]:
        """Return the labels as the constructor takes them."""
        return [(self._root_label, *self._steps[0]), *self._steps[1:]]

    # Nodes and classes

    @property
    def n_levels(self) -> int:
        """The number of levels below the root."""
        return int(self.depths[-1])

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The labels from below the root to every node."""
        paths: list[Path] = []
        for parent, step in zip(self.parents.tolist(), self._steps, strict=True):
            paths.append(step if parent < 0 else paths[parent] + step)
        return tuple(paths)

    @cached_property
    def classes(self) -> tuple[ClassLabel, ...]:
        """The label of every class."""
        return tuple(self._class_labels[leaf] for leaf in self.leaves.tolist())

    @cached_property
    def _class_labels(self) -> dict[int, ClassLabel]:
        leaves = self._all_leaves()
        if self._separator is not None:
            return {leaf: self._separator.join(map(str, self.paths[leaf])) for leaf in leaves}
        names = {leaf: self._steps[leaf][-1] for leaf in leaves}
        counts = Counter(names.values())
        return {leaf: name if counts[name] == 1 else self.paths[leaf] for leaf, name in names.items()}

    @cached_property
    def _class_numbers(self) -> dict[int, int]:
        return {leaf: number for number, leaf in enumerate(self.leaves.tolist())}

    @cached_property
    def _nodes_by_name(self) -> dict[Any, list[int]]:
        """For everything a node may be called the nodes it may mean."""
        names: defaultdict[Any, list[int]] = defaultdict(list)
        paths: dict[Any, list[int]] = {}
        for node, (path, step) in enumerate(zip(self.paths, self._steps, strict=True)):
            for i, label in enumerate(step, start=len(path) - len(step) + 1):
                names[label].append(node)
                paths[path[:i]] = [node]
                if self._separator is not None:
                    paths[self._separator.join(map(str, path[:i]))] = [node]
        root = {} if self._root_label is None else {self._root_label: [0]}
        # Where a name has several meanings, the label of a class comes first, then a path.
        return root | names | paths | {label: [leaf] for leaf, label in self._class_labels.items()}

    def _all_leaves(self) -> list[int]:
        return [node for node, below in enumerate(self._children) if not below]

    def children(self, node: int) -> range:
        """Return the children of a node, which lie side by side."""
        below = self._children[node]
        return range(below[0], below[-1] + 1) if below else range(0)

    def node_index(self, label: Any) -> int:
        """Return the node of a label or of a path; the label of a class means its leaf.

        Raises
        ------
        ValueError
            If there is no such node, or if there are several.

        """
        key = tuple(label) if isinstance(label, list | np.ndarray) else label
        found = self._nodes_by_name.get(key, [])
        if not found:
            raise ValueError(f"unknown label {label!r}; the hierarchy has {_shortened([*self._class_labels.values()])}")
        if len(found) > 1:
            one, other = (self.paths[node] for node in found[:2])
            raise ValueError(f"label {label!r} is that of several nodes; use a path, as {one!r} or {other!r}")
        return found[0]

    def node_label(self, node: int) -> Any:
        """Return what a node below the root is called, for `node_index` to find it.

        A class has its label, and another node its own, or its path where that would not be enough.
        """
        path, label = self.paths[node], self.labels[node]
        if node in self._class_labels:
            return self._class_labels[node]
        if self._separator is not None:
            return self._separator.join(map(str, path))
        return label if self._nodes_by_name.get(label) == [node] else path

    def leaf_index(self, label: Any) -> int:
        """Return the number of a class, its place in `classes` and `leaves`, from its label or path.

        Raises
        ------
        ValueError
            If there is no such class, or if the label is that of an inner node.

        """
        return self._class_numbers[self._leaf(label)]

    def _leaf(self, label: Any) -> int:
        node = self.node_index(label)
        if self._children[node]:
            names = [self.labels[child] for child in self._children[node]]
            raise ValueError(f"{label!r} is no class: it has children, {_shortened(names)}")
        return node

    def classes_below(self, node: int) -> NDArray[np.int64]:
        """Return the numbers of the classes below a node; for a leaf its own."""
        numbers = []
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if self._children[one]:
                waiting.extend(self._children[one])
            else:
                numbers.append(self._class_numbers[one])
        return np.array(sorted(numbers), dtype=np.int64)

    def decide(self, probabilities: ArrayLike, loss: str = "taxonomic") -> NDArray[Any]:
        """Return the class whose expected loss is smallest, from the probabilities of any classifier.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, n_classes)
            The probabilities of the classes, in the order of `classes`.
        loss : {"taxonomic", "parent", "zero_one"}, default="taxonomic"
            "taxonomic" is half the length of the path in the tree from the predicted to the true class; "parent" is
            zero where both lie directly below the same node, and else one; "zero_one" takes the most probable class.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels of the classes.

        """
        proba = np.ascontiguousarray(probabilities, dtype=np.float64)
        if proba.ndim != 2:
            raise ValueError(f"probabilities has shape {proba.shape}, but must have a row for every point")
        chosen = _core.decide((self.parents.tolist(), self.leaves.tolist()), proba, loss)
        return class_array(self.classes)[chosen]

    # To and from text

    def to_json(self) -> str:
        """Return the hierarchy as JSON, for `from_json`."""
        content = {
            "format": _FORMAT,
            "parents": self.parents.tolist(),
            "labels": [chain[0] if len(chain) == 1 else chain for chain in self._chains()],
            "leaves": self.leaves.tolist(),
            "separator": self._separator,
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the hierarchy that `to_json` has written."""
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"this is no hierarchy in the format {_FORMAT!r}")
        missing = [name for name in ("parents", "labels", "leaves", "separator") if name not in content]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing from the hierarchy")
        tree = cls(content["parents"], content["labels"], separator=content["separator"])
        if sorted(content["leaves"]) != tree.leaves.tolist():
            raise ValueError("the leaves written with the hierarchy are not those of its tree")
        return tree.with_classes(tree.paths[leaf] for leaf in content["leaves"])

    def __str__(self) -> str:
        """Draw the tree, one line a node."""
        return text_tree(self._display_names(), self._children)

    def __repr__(self) -> str:
        """Describe the tree in one line."""
        count = len(self.leaves)
        classes, levels = ("class", "classes")[count > 1], ("level", "levels")[self.n_levels > 1]
        return f"<Hierarchy of {count} {classes} on {self.n_levels} {levels}: {_shortened(self.classes)}>"

    def _repr_html_(self) -> str:
        return html_tree(self._display_names(), self._children)

    def _display_names(self) -> list[str]:
        """Return what is shown for every node; merged ones show all their labels."""
        root = "(root)" if self._root_label is None else str(self._root_label)
        names = [" / ".join(map(str, step)) for step in self._steps]
        return [" / ".join(filter(None, (root, names[0]))), *names[1:]]

    def _key(self) -> tuple[Any, ...]:
        return self._steps, self._root_label, self._separator, self.parents.tobytes(), self.leaves.tobytes()

    def __eq__(self, other: object) -> bool:
        """Tell whether nodes, labels and the order of the classes are the same."""
        return self._key() == other._key() if isinstance(other, Hierarchy) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of what makes hierarchies equal."""
        return hash(self._key())


def class_array(classes: Sequence[ClassLabel]) -> NDArray[Any]:
    """Return labels as an array; where some are paths, an array of objects."""
    if not any(isinstance(label, tuple) for label in classes):
        return np.asarray(classes)
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array


def _frozen(values: Any) -> NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def _shortened(labels: Sequence[Any], limit: int = 6) -> str:
    shown = ", ".join(map(repr, labels[:limit]))
    return shown if len(labels) <= limit else f"{shown}, ... ({len(labels)} in all)"
