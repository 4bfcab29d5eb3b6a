"""The compiled core of nuptse."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FittedModel",
    "KernelMatrix",
    "MemoryLimitError",
    "__version__",
    "accuracy",
    "class_weights",
    "contributions",
    "cv_criterion",
    "decide",
    "fit",
    "function_weights",
    "hyperparameters",
    "is_linear",
    "load",
    "log_loss",
    "parent_accuracy",
    "reciprocal_rank",
    "reject_curve",
    "reliability",
    "restore",
    "taxonomic_loss",
]

__version__: str

_Floats: TypeAlias = NDArray[np.float64]
_SparseRows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], _Floats, int]
_Inputs: TypeAlias = _Floats | NDArray[np.float32] | _SparseRows
_Labels: TypeAlias = NDArray[np.int64]
_Sets: TypeAlias = tuple[_Labels, list[list[int]]]
_Tree: TypeAlias = tuple[list[int], list[int]]

class _Kernel(TypedDict):
    name: str
    parameters: list[float] | None
    per_input: bool
    columns: list[int] | None
    groups: list[int] | None

class _Problem(TypedDict):
    x: _Inputs
    targets: _Labels | _Floats | _Sets
    weights: _Floats | None
    classes: int
    tree: _Tree | None
    kernels: Sequence[Any]
    blocks: list[tuple[int, float | None]]
    intercept_variance: float
    scale: bool

class _Learning(TypedDict):
    folds: tuple[int, int] | _Labels
    fold_method: str
    variance_groups: list[int]
    learn_intercept: bool
    max_evaluations: int
    tolerance: float
    bounds: list[tuple[float, float]]
    priors: list[tuple[float, float]]
    keep_on_interrupt: bool
    checkpoint: str | None

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
    @property
    def variances(self) -> list[float]: ...
    @property
    def intercept_variance(self) -> float: ...
    def decision_function(self, x: _Inputs, n_threads: int | None) -> _Floats: ...
    def predict_log_proba(self, x: _Inputs, n_threads: int | None) -> _Floats: ...
    def node_proba(self, x: _Inputs, n_threads: int | None) -> _Floats: ...
    def decide(self, x: _Inputs, loss: str, n_threads: int | None) -> NDArray[np.uintp]: ...
    def to_bytes(self, notes: str) -> bytes: ...
    def save(self, path: str, notes: str) -> None: ...
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
    problem: _Problem,
    start: _Floats | None,
    options: _Options,
    learning: _Learning | None,
    n_threads: int | None,
    memory_limit: int | None,
    listener: Callable[[int, int | None, float, float], object] | None,
) -> tuple[FittedModel, dict[str, Any], dict[str, Any] | None]: ...
def cv_criterion(
    problem: _Problem,
    options: _Options,
    learning: _Learning,
    with_gradient: bool,
    n_threads: int | None,
    memory_limit: int | None,
) -> tuple[float, list[float] | None, list[list[tuple[str, float]]], list[float], dict[str, Any]]: ...
def hyperparameters(problem: _Problem) -> tuple[list[list[tuple[str, float]]], list[float]]: ...
def restore(content: bytes) -> FittedModel: ...
def load(path: str) -> tuple[FittedModel, str]: ...
def is_linear(model: FittedModel) -> bool: ...
def class_weights(model: FittedModel, n_threads: int | None) -> _Floats: ...
def function_weights(model: FittedModel, n_threads: int | None) -> _Floats: ...
def contributions(
    model: FittedModel, x: _Inputs, directions: _Floats, n_threads: int | None
) -> tuple[_Floats, _Floats]: ...
def decide(tree: _Tree, probabilities: _Floats, loss: str) -> NDArray[np.uintp]: ...
def accuracy(truth: _Labels, predicted: _Labels, weights: _Floats | None) -> float: ...
def reciprocal_rank(truth: _Labels, probabilities: _Floats, weights: _Floats | None) -> float: ...
def log_loss(truth: _Labels, probabilities: _Floats, weights: _Floats | None) -> float: ...
def taxonomic_loss(tree: _Tree, truth: _Labels, predicted: _Labels, weights: _Floats | None) -> float: ...
def parent_accuracy(tree: _Tree, truth: _Labels, predicted: _Labels, weights: _Floats | None) -> float: ...
def reject_curve(
    correct: NDArray[np.bool_], confidence: _Floats, weights: _Floats | None
) -> tuple[_Floats, _Floats]: ...
def reliability(
    correct: NDArray[np.bool_], confidence: _Floats, bins: int, weights: _Floats | None
) -> tuple[_Floats, _Floats, _Floats, _Floats, float]: ...
