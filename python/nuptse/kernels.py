"""Covariance functions: how alike two points are before any target has been seen.

A kernel is its variance v times a correlation M with shape parameters. Like every scikit-learn object it only stores
what it is given; values are checked when a model is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nuptse._columns import InputColumns

__all__ = ["RBF", "Kernel", "Linear", "Precomputed"]


class Spec(TypedDict):
    """A kernel as the compiled core takes it."""

    name: str
    #: the shape parameters; None for automatic ones
    parameters: list[float] | None
    #: whether there is one for every input
    per_input: bool
    #: the columns of the inputs that it sees; None for all
    columns: list[int] | None
    #: the group of each of these, where a linear kernel has weights by group
    groups: list[int] | None


class Kernel(BaseEstimator):  # type: ignore[misc]
    """Base class of all kernels."""

    variance: float | str
    columns: Any = None

    def __eq__(self, other: object) -> bool:
        """Tell whether the other is a kernel of the same kind with the same parameters."""
        if type(other) is not type(self):
            return NotImplemented
        return bool(_plain(self.get_params()) == _plain(other.get_params()))

    def __hash__(self) -> int:
        """Return the hash of the kind, which stays when parameters change."""
        return hash(type(self))

    def _start_variance(self) -> float | None:
        """Return the variance; None for the automatic one."""
        if isinstance(self.variance, str):
            if self.variance != "auto" or not self._has_automatic_variance:
                choices = "'auto' or a number" if self._has_automatic_variance else "a number"
                raise ValueError(f"variance is {self.variance!r}, but must be {choices}")
            return None
        return float(self.variance)

    _has_automatic_variance = False

    def _spec(self, inputs: InputColumns) -> Spec:
        """Return what the compiled core takes."""
        name, parameters, per_input = self._shape()
        columns = inputs.resolve(self.columns)
        spec: Spec = {
            "name": name,
            "parameters": parameters,
            "per_input": per_input,
            "columns": columns,
            "groups": None,
        }
        return spec

    def _shape(self) -> tuple[str, list[float] | None, bool]:
        """Return the name, the shape parameters (None: automatic), and whether there is one for every input."""
        raise NotImplementedError

    def _fitted(self, parameters: list[tuple[str, float]]) -> Kernel:  # noqa: ARG002
        """Return the same kernel with the shape parameters of a fitted model."""
        return type(self)(**self.get_params())


class RBF(Kernel):
    """The Gaussian kernel v exp(-(w / 2d) ‖x - x'‖²), d the number of inputs.

    Parameters
    ----------
    variance : float, default=10.0
        v, the variance of the class functions before any target has been seen.
    inverse_width : float, array-like of shape (n_features,) or "auto", default="auto"
        w, one over the squared width. "auto" takes two over the mean variance of the inputs; for standardised inputs
        that is what `SVC` calls gamma="scale".
    ard : bool, default=False
        One inverse width for every input (automatic relevance determination), all starting from `inverse_width`.
    columns : list of int or of str, mask or slice, default=None
        The columns of the inputs that the kernel sees, by number or by name; by default all of them.

    """

    def __init__(
        self,
        variance: float = 10.0,
        inverse_width: float | Sequence[float] | NDArray[np.float64] | str = "auto",
        ard: bool = False,
        columns: Any = None,
    ) -> None:
        self.variance = variance
        self.inverse_width = inverse_width
        self.ard = ard
        self.columns = columns

    def _shape(self) -> tuple[str, list[float] | None, bool]:
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
        return RBF(cast("float", self.variance), np.array(values) if per_input else values[0], self.ard, self.columns)


class Linear(Kernel):
    """The linear kernel v Σ_j θ_g(j) x_j x'_j, for dense and for sparse inputs.

    Parameters
    ----------
    variance : float or "auto", default="auto"
        v, the variance of the weight of every input. "auto" takes five over the mean squared length of the inputs, so
        that functions vary as much whatever the scale of the inputs; with rows of unit norm that is five.
    groups : array-like of int, dict of name to columns, or "frequency", default=None
        Gives every group of inputs a weight θ of its own, to be learned: by the number of the group of every input; by
        name, with the columns of every group; or "frequency", for about 16 groups of words by the number of documents
        that have them, which finds what idf weighting does by hand. By default all weights are one. A group for every
        single word is possible, but overfits.
    weights : array-like of float, default=None
        θ of every group, or where learning starts; by default one.
    columns : list of int or of str, mask or slice, default=None
        The columns of the inputs that the kernel sees, by number or by name; by default all of them.

    """

    def __init__(
        self, variance: float | str = "auto", columns: Any = None, groups: Any = None, weights: Any = None
    ) -> None:
        self.variance = variance
        self.columns = columns
        self.groups = groups
        self.weights = weights

    _has_automatic_variance = True

    def _spec(self, inputs: InputColumns) -> Spec:
        spec = super()._spec(inputs)
        if self.groups is None:
            return spec
        names, groups = inputs.groups(self.groups, spec["columns"])
        weights = np.ones(len(names)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (len(names),):
            raise ValueError(f"weights has shape {weights.shape}, but there are {len(names)} groups")
        return {**spec, "parameters": weights.tolist(), "per_input": True, "groups": groups}

    def _shape(self) -> tuple[str, list[float] | None, bool]:
        return "linear", [], False

    def _fitted(self, parameters: list[tuple[str, float]]) -> Linear:
        weights = np.array([value for _, value in parameters]) if parameters else self.weights
        return Linear(self.variance, self.columns, self.groups, weights)


class Precomputed(Kernel):
    """A kernel matrix of your own: `fit` takes it n × n, `predict` with one row a test point and n columns.

    Parameters
    ----------
    variance : float, default=1.0
        v, by which the matrix is multiplied.

    """

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = variance

    def _shape(self) -> tuple[str, list[float] | None, bool]:
        return "precomputed", [], False


def _plain(value: Any) -> Any:
    """Return arrays as lists, so that values may be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


_NAMED: dict[str, type[Kernel]] = {"rbf": RBF, "linear": Linear, "precomputed": Precomputed}


def as_kernel(kernel: Any) -> Kernel:
    """Return the kernel that a name or a kernel object stands for."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _NAMED:
        return _NAMED[kernel]()
    known = ", ".join(repr(name) for name in _NAMED)
    raise ValueError(f"unknown kernel {kernel!r}; use one of {known}, or an object of nuptse.kernels")


def with_kernel_object(kernel: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of an estimator that name an object where they reach into a kernel known by its name."""
    kernel = params.get("kernel", kernel)
    into_kernel = [name for name in params if name.startswith("kernel__")]
    if not into_kernel or isinstance(kernel, Kernel):
        return params
    if isinstance(kernel, Mapping):
        message = f"{into_kernel[0]}: there is a kernel for every group; set kernel to a dict with other kernels"
        raise ValueError(message)  # noqa: TRY004, as set_params has it
    return {**params, "kernel": as_kernel(kernel)}
