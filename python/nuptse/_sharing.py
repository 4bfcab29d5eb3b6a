"""Which classes share which hyperparameters, and the kernel blocks that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from nuptse.kernels import Kernel, Linear, Precomputed, as_kernel

if TYPE_CHECKING:
    from nuptse.kernels import Spec

#: The group of every class, in the order of the classes.
Groups: TypeAlias = list[Any]

_NAMES = ("auto", "all", "class")


@dataclass(frozen=True)
class KernelPlan:
    """The kernels of a model, and for every class its matrix and its variance."""

    #: one kernel for every different matrix
    kernels: list[Kernel]
    #: for every class the index of its kernel and its variance
    blocks: list[tuple[int, float]]
    variance_groups: Groups
    shape_groups: Groups
    #: whether `kernel` was given by group
    by_group: bool

    @property
    def specs(self) -> list[Spec]:
        """What the compiled core takes."""
        return [kernel._spec() for kernel in self.kernels]  # noqa: SLF001


def plan_kernels(kernel: Any, share: Any, classes: Sequence[Any]) -> KernelPlan:
    """Work out the kernel of every class from the arguments of an estimator."""
    by_group = isinstance(kernel, Mapping)
    given = {group: as_kernel(one) for group, one in kernel.items()} if by_group else as_kernel(kernel)
    variance_groups, shape_groups = _groups(given, share, classes)
    if isinstance(given, dict):
        missing = [group for group in dict.fromkeys(shape_groups) if group not in given]
        extra = [group for group in given if group not in shape_groups]
        if missing or extra:
            raise ValueError(f"kernel must name the groups of share: missing are {missing}, unknown are {extra}")
        of_class = [given[group] for group in shape_groups]
    else:
        of_class = [given] * len(classes)
    # Kernels of the same shape share one matrix, whatever their groups.
    kernels: list[Kernel] = []
    blocks: list[tuple[int, float]] = []
    index: dict[str, int] = {}
    for one in of_class:
        place = index.setdefault(repr(one._spec()), len(kernels))  # noqa: SLF001
        if place == len(kernels):
            kernels.append(one)
        blocks.append((place, float(one.variance)))
    return KernelPlan(kernels, blocks, variance_groups, shape_groups, by_group)


def _groups(kernel: Kernel | dict[Any, Kernel], share: Any, classes: Sequence[Any]) -> tuple[Groups, Groups]:
    """Return the groups of variances and of shapes."""
    if isinstance(share, Mapping) and set(share) == {"variance", "shape"}:
        return _one_kind(share["variance"], classes), _one_kind(share["shape"], classes)
    if share != "auto" or isinstance(share, Mapping):
        both = _one_kind(share, classes)
        return both, both
    if isinstance(kernel, dict):
        return list(classes), list(classes)
    tied: Groups = ["all"] * len(classes)
    return (tied if isinstance(kernel, Linear | Precomputed) else list(classes)), tied


def _one_kind(share: Any, classes: Sequence[Any]) -> Groups:
    if isinstance(share, Mapping):
        missing = [label for label in classes if label not in share]
        unknown = [label for label in share if label not in set(classes)]
        if missing or unknown:
            raise ValueError(f"share must name every class once: missing are {missing}, unknown are {unknown}")
        return [share[label] for label in classes]
    if share == "all":
        return ["all"] * len(classes)
    if share == "class":
        return list(classes)
    if share in {"level", "subtree", "node"}:
        raise ValueError(f"share={share!r} needs a hierarchy; without one use 'all' or 'class'")
    raise ValueError(
        f"unknown share {share!r}; use one of {', '.join(map(repr, _NAMES))}, or a mapping of classes to groups"
    )


def hyperparameter_names(plan: KernelPlan, parameters: list[list[tuple[str, float]]]) -> dict[str, float]:
    """Name every hyperparameter of a fitted model: `variance`, or `variance[group]` where there are several groups."""

    def name(base: str, group: Any, groups: Groups) -> str:
        if len(dict.fromkeys(groups)) == 1:
            return base
        return f"{base[:-1]}, {group}]" if base.endswith("]") else f"{base}[{group}]"

    values: dict[str, float] = {}
    for group, (_, variance) in zip(plan.variance_groups, plan.blocks, strict=True):
        values.setdefault(name("variance", group, plan.variance_groups), variance)
    for group, (matrix, _) in zip(plan.shape_groups, plan.blocks, strict=True):
        for base, value in parameters[matrix]:
            values.setdefault(name(base, group, plan.shape_groups), value)
    return values
