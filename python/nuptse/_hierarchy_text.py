"""Trees as text and as HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Below this many nodes a notebook shows all levels at once.
_OPEN = 60


def text_tree(names: Sequence[str], children: Sequence[Sequence[int]]) -> str:
    """Draw a tree whose root is node 0, one line a node."""
    lines = []
    waiting = [(0, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        lines.append(first + names[node])
        below = [(child, rest + "├── ", rest + "│   ") for child in children[node]]
        if below:
            below[-1] = (below[-1][0], rest + "└── ", rest + "    ")
        waiting.extend(reversed(below))
    return "\n".join(lines)


def html_tree(names: Sequence[str], children: Sequence[Sequence[int]]) -> str:
    """Draw a tree whose root is node 0 as nested lists that can be folded."""
    parts = []
    waiting: list[int | str] = [0]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        name = html.escape(names[item])
        if not children[item]:
            parts.append(f"<li>{name}</li>")
            continue
        is_open = " open" if item == 0 or len(names) < _OPEN else ""
        parts.append(f"<li><details{is_open}><summary>{name}</summary><ul>")
        waiting.append("</ul></details></li>")
        waiting.extend(reversed(children[item]))
    return f'<ul style="list-style: none; padding-left: 0">{"".join(parts)}</ul>'
