"""Checks that nodes form a tree, and puts them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nuptse._hierarchy_input import Label


def breadth_first(parents: Sequence[int], labels: Sequence[Label | None]) -> list[int]:
    """Return the nodes level by level, the children of a node side by side; raise where they form no tree."""
    count = len(parents)
    children: list[list[int]] = [[] for _ in parents]
    roots = []
    for node, parent in enumerate(parents):
        if not -1 <= parent < count:
            raise ValueError(f"the parent of node {labels[node]!r} is {parent}, but the nodes are 0 to {count - 1}")
        if parent == -1:
            roots.append(node)
        else:
            children[parent].append(node)
    if len(roots) > 1:
        one, other = (labels[root] for root in roots[:2])
        raise ValueError(f"there are two roots, {one!r} and {other!r}; put them below a common node")
    order = roots
    for node in order:  # it grows as it goes
        order.extend(children[node])
    if len(order) < count:
        raise ValueError(_describe_cycle(parents, labels, set(order)))
    if count < 2:
        raise ValueError(f"the hierarchy has {count} node(s); it needs a root and at least one class below it")
    return order


def _describe_cycle(parents: Sequence[int], labels: Sequence[Label | None], connected: set[int]) -> str:
    node = next(node for node in range(len(parents)) if node not in connected)
    seen: dict[int, None] = {}
    while node not in seen:
        seen[node] = None
        node = parents[node]
    upwards = list(seen)
    cycle = upwards[upwards.index(node) :]
    names = " -> ".join(repr(labels[i]) for i in [node, *reversed(cycle)])
    return f"{labels[node]!r} lies below itself: {names}; take out one of these edges"
