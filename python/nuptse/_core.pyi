"""The compiled core of nuptse."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["FittedModel", "KernelMatrix", "MemoryLimitError", "__version__", "fit", "restore"]

__version__: str

_Floats: TypeAlias = NDArray[np.float64]
_SparseRows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], _Floats, int]
_Inputs: TypeAlias = _Floats | NDArray[np.float32] | _SparseRows
_Kernel: TypeAlias = tuple[str, list[float] | None, bool]
_Tree: TypeAlias = tuple[list[int], list[int]]
_Scaling: TypeAlias = tuple[list[float], list[float]] | str | None

class _Options(TypedDict):
    solver: str
    tol: float
    precision: str
    max_steps: int
    max_cg_steps: int
    max_products: int
    pairs: int
    preconditioner: str

class MemoryLimitError(MemoryError):
    bytes_needed: int
    bytes_allowed: int

@final
class FittedModel:
    @property
    def alpha(self) -> _Floats: ...
    @property
    def intercepts(self) -> _Floats: ...
    @property
    def parameters(self) -> list[list[tuple[str, float]]]: ...
    def decision_function(self, x: _Inputs, n_threads: int | None) -> _Floats: ...
    def predict_log_proba(self, x: _Inputs, n_threads: int | None) -> _Floats: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class KernelMatrix:
    def __new__(
        cls, x: _Inputs, kernel: _Kernel, precision: str, n_threads: int | None, memory_limit: int | None
    ) -> KernelMatrix: ...
    @property
    def representation(self) -> str: ...
    @property
    def build_seconds(self) -> float: ...
    def multiply(self, s: _Floats) -> _Floats: ...
    def seconds(self, s: _Floats, repeats: int) -> list[float]: ...

def fit(
    x: _Inputs,
    targets: NDArray[np.int64] | _Floats,
    weights: _Floats | None,
    classes: int,
    tree: _Tree | None,
    kernels: list[_Kernel],
    blocks: list[tuple[int, float]],
    intercept_variance: float,
    scale: bool,
    start: _Floats | None,
    options: _Options,
    n_threads: int | None,
    memory_limit: int | None,
    listener: Callable[[int, int, float, float], object] | None,
) -> tuple[FittedModel, dict[str, Any]]: ...
def restore(
    x: _Inputs,
    scaling: _Scaling,
    kernels: list[_Kernel],
    blocks: list[tuple[int, float]],
    intercept_variance: float,
    tree: _Tree | None,
    alpha: _Floats,
    intercepts: _Floats,
) -> FittedModel: ...
