"""The tree of classes as bars below bars, into which one can zoom: the data, and the frame that the script fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nuptse._report.markup import data_script, shortened

if TYPE_CHECKING:
    from nuptse._report.confusions import Branches
    from nuptse.hierarchy import Hierarchy

#: Where colours begin: shares of errors above each have the colour of its number plus one, none at all colour 0.
BREAKS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
_LABEL = 60


def shade(error: float) -> int:
    """Return the number of the colour for a share of errors."""
    return sum(error > one for one in BREAKS)


def legend() -> str:
    """Return what colours mean."""
    ends = [*BREAKS[1:], 1.0]
    steps = "".join(
        f'<li><span class="swatch e{number}"></span>{name}</li>'
        for number, name in enumerate(["none", *(f"≤ {end:.0%}" for end in ends)])
    )
    return f'<ul class="legend" aria-label="Colours: share of errors"><li class="muted">errors</li>{steps}</ul>'


def icicle(hierarchy: Hierarchy, branches: Branches, noun: str) -> str:
    """Return the frame of the picture, and its data."""
    return (
        f"<p>Every bar is a node of the tree, as wide as the number of test {noun} whose class lies below it. Its "
        f"colour is the share of them that was placed outside the node: a strong colour below a faint one is a node "
        f"that is taken for its siblings. Choose a bar to zoom in.</p>{legend()}"
        '<div id="icicle" class="icicle"><nav aria-label="Place in the tree"><ol class="crumbs"></ol></nav>'
        '<div class="bars"></div><div class="details" aria-live="polite"></div>'
        '<p class="note">Keys: arrows move, Enter zooms in, Escape zooms out.</p>'
        "<noscript><p>The picture of the tree needs scripts; the tables below do not.</p></noscript></div>"
        + data_script("icicle-data", _data(hierarchy, branches, noun))
    )


def _data(hierarchy: Hierarchy, branches: Branches, noun: str) -> dict[str, Any]:
    """Return the nodes that have points, or are where points were placed, with all above them, in columns."""
    parents = hierarchy.parents.tolist()
    needed = {node for node, total in enumerate(branches.total.tolist()) if total > 0}
    for places in branches.destinations:
        for destination, _ in places:
            above = destination
            while above >= 0 and above not in needed:
                needed.add(above)
                above = parents[above]
    nodes = sorted(needed)
    place = {node: i for i, node in enumerate(nodes)}
    names = [_name(hierarchy, node, f"All {noun}") for node in nodes]
    return {
        "noun": noun,
        "breaks": BREAKS,
        "names": names,
        "parents": [place.get(parents[node], -1) for node in nodes],
        "weights": [_short(branches.total[node]) for node in nodes],
        "outside": [_short(branches.outside[node]) for node in nodes],
        "destinations": [
            [part for other, weight in branches.destinations[node] for part in (place[other], _short(weight))]
            for node in nodes
        ],
    }


def _name(hierarchy: Hierarchy, node: int, root: str) -> str:
    """Return the label of a node, after those of nodes that were merged with it."""
    if node == 0:
        return root
    steps = hierarchy.paths[node][len(hierarchy.paths[hierarchy.parents[node]]) :]
    return shortened(" / ".join(map(str, steps)), _LABEL)


def _short(value: float) -> float:
    """Return a number in as few digits as will do for a picture."""
    return int(value) if float(value).is_integer() else float(f"{value:.6g}")
