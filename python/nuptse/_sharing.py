"""Which classes, or nodes of a tree, share which hyperparameters, and the kernel blocks that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from nuptse.kernels import Kernel, as_kernel

if TYPE_CHECKING:
    from nuptse._columns import InputColumns
    from nuptse.hierarchy import Hierarchy
    from nuptse.kernels import Spec

#: The group of every class or node, in their order.
Groups: TypeAlias = list[Any]


@dataclass(frozen=True)
class KernelPlan:
    """The kernels of a model, and for every class or node its matrix and its variance."""

    #: one kernel for every different matrix
    kernels: list[Kernel]
    #: what the compiled core takes of each
    specs: list[Spec]
    #: for every class or node the index of its kernel and its variance; None for the automatic one
    blocks: list[tuple[int, float | None]]
    variance_groups: Groups
    shape_groups: Groups
    #: whether `kernel` was given by group
    by_group: bool


@dataclass(frozen=True)
class Units:
    """What has a function of its own: classes, or the nodes of a tree below the root."""

    #: what one of them is called
    kind: str
    labels: Sequence[Any]
    #: the groups that have a name
    named: Mapping[str, Groups]
    #: the name of the groups that have a variance of their own by default
    default: str

    @classmethod
    def of_classes(cls, classes: Sequence[Any]) -> Units:
        """Take classes without a tree."""
        return cls("class", classes, {"all": ["all"] * len(classes), "class": list(classes)}, "all")

    @classmethod
    def of_nodes(cls, hierarchy: Hierarchy) -> Units:
        """Take the nodes of a tree, but for its root; a node is known by its label, or its path where that is taken."""
        paths, depths = hierarchy.paths[1:], hierarchy.depths[1:]
        count = Counter(path[-1] for path in paths)
        labels = [path[-1] if count[path[-1]] == 1 else path for path in paths]
        named: dict[str, Groups] = {
            "all": ["all"] * len(labels),
            "level": [f"level {depth}" for depth in depths],
            "subtree": [path[0] for path in paths],
            "node": labels,
        }
        return cls("node", labels, named, "level")


def plan_kernels(kernel: Any, share: Any, units: Units, inputs: InputColumns, *, separate: bool = False) -> KernelPlan:
    """Work out the kernel of every class or node from the arguments of an estimator.

    Kernels of the same shape share one matrix, whatever their groups, unless they are to be kept separate because their
    shapes will be learned.
    """
    by_group = isinstance(kernel, Mapping)
    given = {group: as_kernel(one) for group, one in kernel.items()} if by_group else as_kernel(kernel)
    variance_groups, shape_groups = _groups(given, share, units)
    if isinstance(given, dict):
        missing = [group for group in dict.fromkeys(shape_groups) if group not in given]
        extra = [group for group in given if group not in shape_groups]
        if missing or extra:
            raise ValueError(f"kernel must name the groups of share: missing are {missing}, unknown are {extra}")
        of_class = [given[group] for group in shape_groups]
    else:
        of_class = [given] * len(units.labels)
    kernels: list[Kernel] = []
    specs: list[Spec] = []
    blocks: list[tuple[int, float | None]] = []
    spec_of: dict[int, Spec] = {}
    known: list[tuple[Any, Spec]] = []
    for group, one in zip(shape_groups, of_class, strict=True):
        if id(one) not in spec_of:
            spec_of[id(one)] = one._spec(inputs)  # noqa: SLF001
        spec = spec_of[id(one)]
        # A kernel without shape parameters has nothing to be learned apart.
        key = (group if separate and spec["parameters"] != [] else None, spec)
        if key not in known:
            known.append(key)
            kernels.append(one)
            specs.append(spec)
        blocks.append((known.index(key), one._start_variance()))  # noqa: SLF001
    return KernelPlan(kernels, specs, blocks, variance_groups, shape_groups, by_group)


def _groups(kernel: Kernel | dict[Any, Kernel], share: Any, units: Units) -> tuple[Groups, Groups]:
    """Return the groups of variances and of shapes."""
    if isinstance(share, Mapping) and set(share) == {"variance", "shape"}:
        return _one_kind(share["variance"], units), _one_kind(share["shape"], units)
    if share != "auto" or isinstance(share, Mapping):
        both = _one_kind(share, units)
        return both, both
    default = units.named[units.default]
    if isinstance(kernel, dict):
        both = default if set(kernel) == set(default) else list(units.labels)
        return both, both
    return default, units.named["all"]


def _one_kind(share: Any, units: Units) -> Groups:
    if isinstance(share, Mapping):
        missing = [label for label in units.labels if label not in share]
        unknown = [label for label in share if label not in set(units.labels)]
        if missing or unknown:
            raise ValueError(f"share must name every {units.kind} once: missing are {missing}, unknown are {unknown}")
        return [share[label] for label in units.labels]
    if isinstance(share, str) and share in units.named:
        return units.named[share]
    if share in {"level", "subtree", "node"}:
        raise ValueError(f"share={share!r} needs a hierarchy; without one use 'all' or 'class'")
    names = ", ".join(map(repr, ("auto", *units.named)))
    kinds = "classes" if units.kind == "class" else "nodes"
    raise ValueError(f"unknown share {share!r}; use one of {names}, or a mapping of {kinds} to groups")


def numbered(groups: Groups) -> list[int]:
    """Return groups by number, in the order in which they appear."""
    number: dict[Any, int] = {}
    return [number.setdefault(group, len(number)) for group in groups]


def hyperparameter_names(
    plan: KernelPlan, parameters: list[list[tuple[str, float]]], variances: list[float]
) -> dict[str, float]:
    """Name every hyperparameter of a fitted model: `variance`, or `variance[group]` where there are several groups.

    Variances come first, then the shape parameters, matrix by matrix: the order in which they are learned.
    """

    def name(base: str, group: Any, groups: Groups) -> str:
        if len(dict.fromkeys(groups)) == 1:
            return base
        return f"{base[:-1]}, {group}]" if base.endswith("]") else f"{base}[{group}]"

    values: dict[str, float] = {}
    for group, variance in zip(plan.variance_groups, variances, strict=True):
        values.setdefault(name("variance", group, plan.variance_groups), variance)
    for group, (matrix, _) in zip(plan.shape_groups, plan.blocks, strict=True):
        for base, value in parameters[matrix]:
            values.setdefault(name(base, group, plan.shape_groups), value)
    return values
