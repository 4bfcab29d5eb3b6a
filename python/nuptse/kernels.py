"""Covariance functions: how alike two points are before any target has been seen.

A kernel is its variance v times a correlation M with shape parameters. Like every scikit-learn object it only stores
what it is given; values are checked when a model is fitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["RBF", "Kernel", "Linear", "Precomputed"]

#: name, shape parameters (None: automatic), one for every input
Spec: TypeAlias = tuple[str, list[float] | None, bool]


class Kernel(BaseEstimator):  # type: ignore[misc]
    """Base class of all kernels."""

    variance: float

    def _spec(self) -> Spec:
        """Return what the compiled core takes."""
        raise NotImplementedError

    def _fitted(self, parameters: list[tuple[str, float]]) -> Kernel:  # noqa: ARG002
        """Return the same kernel with the shape parameters of a fitted model."""
        return type(self)(**self.get_params())


class RBF(Kernel):
    """The Gaussian kernel v exp(-(w / 2d) |x - x'|²), d the number of inputs.

    Parameters
    ----------
    variance : float, default=10.0
        v, the variance of the class functions before any target has been seen.
    inverse_width : float, array-like of shape (n_features,) or "auto", default="auto"
        w, one over the squared width. "auto" takes two over the mean variance of the inputs; for standardised inputs
        that is what `SVC` calls gamma="scale".
    ard : bool, default=False
        One inverse width for every input (automatic relevance determination), all starting from `inverse_width`.

    """

    def __init__(
        self,
        variance: float = 10.0,
        inverse_width: float | Sequence[float] | NDArray[np.float64] | str = "auto",
        ard: bool = False,
    ) -> None:
        self.variance = variance
        self.inverse_width = inverse_width
        self.ard = ard

    def _spec(self) -> Spec:
        if isinstance(self.inverse_width, str):
            if self.inverse_width != "auto":
                raise ValueError(f"inverse_width is {self.inverse_width!r}, but must be 'auto', a number or an array")
            return "rbf", None, self.ard
        widths = np.asarray(self.inverse_width, dtype=np.float64)
        if widths.ndim > 1:
            raise ValueError(f"inverse_width has {widths.ndim} dimensions, but must be a number or a flat array")
        return "rbf", widths.reshape(-1).tolist(), self.ard or widths.ndim == 1

    def _fitted(self, parameters: list[tuple[str, float]]) -> RBF:
        values = [value for _, value in parameters]
        per_input = any(name.endswith("]") for name, _ in parameters)
        return RBF(self.variance, np.array(values) if per_input else values[0], self.ard)


class Linear(Kernel):
    """The linear kernel v xᵀx', for dense and for sparse inputs; it never forms an n × n matrix.

    Parameters
    ----------
    variance : float, default=5.0
        v, the variance of the weight of every input.

    """

    def __init__(self, variance: float = 5.0) -> None:
        self.variance = variance

    def _spec(self) -> Spec:
        return "linear", [], False


class Precomputed(Kernel):
    """A kernel matrix of your own: `fit` takes it n × n, `predict` with one row a test point and n columns.

    Parameters
    ----------
    variance : float, default=1.0
        v, by which the matrix is multiplied.

    """

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = variance

    def _spec(self) -> Spec:
        return "precomputed", [], False


_NAMED: dict[str, type[Kernel]] = {"rbf": RBF, "linear": Linear, "precomputed": Precomputed}


def as_kernel(kernel: Any) -> Kernel:
    """Return the kernel that a name or a kernel object stands for."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _NAMED:
        return _NAMED[kernel]()
    known = ", ".join(repr(name) for name in _NAMED)
    raise ValueError(f"unknown kernel {kernel!r}; use one of {known}, or an object of nuptse.kernels")
