"""Models as files: what Python knows of an estimator goes as text beside the arrays of the compiled core.

The text is JSON: plain values, and objects with one of the keys below for what JSON does not have. Nothing is ever
looked up by name but kernels, estimators of this package and attributes of these, so a file can make no code run.
"""

from __future__ import annotations

import json
import numbers
import warnings
from collections.abc import Callable, Mapping
from os import fspath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from nuptse import _core
from nuptse.hierarchy import Hierarchy
from nuptse.kernels import RBF, Kernel, Linear, Precomputed

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

_Kind = TypeVar("_Kind", bound=type)

_KERNELS = {kind.__name__: kind for kind in (RBF, Linear, Precomputed)}
#: The compiled core has these.
_OF_THE_MODEL = {"dual_coef_", "intercept_"}
#: Booleans, numbers, texts and anything.
_KINDS_OF_ARRAYS = "biufUO"
#: The estimators that a file may hold.
_ESTIMATORS: dict[str, type] = {}


def kept_in_files(kind: _Kind) -> _Kind:
    """Let files hold estimators of a kind: one that has a compiled model, or a `classifier_` that has."""
    _ESTIMATORS[kind.__name__] = kind
    return kind


def save_model(estimator: BaseEstimator, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all."""
    content = json.dumps({"nuptse": _core.__version__, **_encoded_estimator(estimator)})
    _holder(estimator)._model.save(fspath(path), content)  # noqa: SLF001
    left_out = _left_out(estimator)
    if left_out:
        warnings.warn(
            f"{', '.join(left_out)} cannot be kept in a file; the estimator that is loaded from it has the default "
            "there, which matters only if it is fitted again",
            UserWarning,
            stacklevel=3,
        )


def load_model(path: str | PathLike[str]) -> Any:
    """Return the estimator that a file holds."""
    model, notes = _core.load(fspath(path))
    try:
        return _restored(model, json.loads(notes))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{fspath(path)}: the file is damaged: {error}; take another copy") from error


def _restored(model: _core.FittedModel, content: Any) -> Any:
    estimator = _decoded_estimator(content)
    holder = _holder(estimator)
    holder.dual_coef_, holder.intercept_ = model.alpha, model.intercepts
    holder._model = model  # noqa: SLF001
    if len(holder.classes_) != holder.dual_coef_.shape[1]:
        raise ValueError("there are not as many labels as classes")
    if holder is not estimator:
        estimator._check_loaded()  # noqa: SLF001
    return estimator


def _holder(estimator: BaseEstimator) -> Any:
    """Return the estimator that has the compiled model: this one, or the one inside it."""
    return getattr(estimator, "classifier_", estimator)


def _encoded_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    """Return parameters as far as they can be kept, and what a fit has left behind."""
    given, attributes = estimator.get_params(deep=False), vars(estimator)
    parameters = {name: _encoded(value) for name, value in given.items() if _can_be_kept(value)}
    names = [name for name in attributes if _is_fitted(name) and name not in _OF_THE_MODEL]
    fitted = {name: _encoded(attributes[name]) for name in names}
    return {"estimator": type(estimator).__name__, "parameters": parameters, "fitted": fitted}


def _decoded_estimator(content: Any) -> Any:
    estimator = _ESTIMATORS[content["estimator"]]()
    known = estimator.get_params(deep=False)
    parameters = {name: _decoded(value) for name, value in content["parameters"].items() if name in known}
    estimator.set_params(**parameters)
    for name, value in content["fitted"].items():
        if not _is_fitted(name):
            raise ValueError(f"{name!r} is no attribute of a fitted estimator")
        setattr(estimator, name, _decoded(value))
    return estimator


def _left_out(estimator: BaseEstimator) -> list[str]:
    """Return the parameters that cannot be kept, those of an estimator inside it among them."""
    names = []
    for name, value in estimator.get_params(deep=False).items():
        if type(value) in _ESTIMATORS.values():
            names += [f"{name}__{inner}" for inner in _left_out(value)]
        elif not _can_be_kept(value):
            names.append(name)
    return names


def _is_fitted(name: str) -> bool:
    """Tell whether that is how scikit-learn names what a fit leaves behind."""
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _can_be_kept(value: Any) -> bool:
    try:
        _encoded(value)
    except TypeError:
        return False
    return True


def _encoded(value: Any) -> Any:
    """Return a value as JSON has it; raise TypeError for one that is not known here."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    for kind, encode in _ENCODERS:
        if isinstance(value, kind):
            return encode(value)
    raise TypeError(f"a {type(value).__name__} cannot be kept in a file")


def _encoded_array(array: NDArray[Any]) -> dict[str, Any]:
    if array.dtype.kind not in _KINDS_OF_ARRAYS:
        raise TypeError(f"an array of {array.dtype} cannot be kept in a file")
    kind = "object" if array.dtype.kind == "O" else array.dtype.str
    return {"array": [_encoded(one) for one in array.ravel().tolist()], "shape": list(array.shape), "dtype": kind}


def _encoded_kernel(kernel: Kernel) -> dict[str, Any]:
    name = type(kernel).__name__
    if _KERNELS.get(name) is not type(kernel):
        raise TypeError(f"a {name} cannot be kept in a file")
    return {"kernel": name, "parameters": _encoded(kernel.get_params(deep=False))}


def _encoded_inner_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(f"a {name} cannot be kept in a file")
    return _encoded_estimator(estimator)


#: What JSON does not have, or only under another name, in the order in which it is looked for.
_ENCODERS: list[tuple[Any, Callable[[Any], Any]]] = [
    (numbers.Integral, int),
    (numbers.Real, float),
    (list, lambda value: [_encoded(one) for one in value]),
    (tuple, lambda value: {"tuple": [_encoded(one) for one in value]}),
    (np.ndarray, _encoded_array),
    (Mapping, lambda value: {"mapping": [[_encoded(key), _encoded(one)] for key, one in value.items()]}),
    (Hierarchy, lambda value: {"hierarchy": value.to_json()}),
    (Kernel, _encoded_kernel),
    (BaseEstimator, _encoded_inner_estimator),
]


def _decoded(value: Any) -> Any:
    """Return the value that `_encoded` was given."""
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    for key, decode in _DECODERS.items():
        if key in value:
            return decode(value)
    raise ValueError(f"{next(iter(value), None)!r} is not known here")


def _decoded_array(value: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in _KINDS_OF_ARRAYS:
        raise ValueError(f"there are no arrays of {dtype}")
    entries = [_decoded(one) for one in value["array"]]
    array = np.empty(len(entries), dtype=dtype)
    array[:] = entries if dtype.kind != "O" else _as_objects(entries)
    return array.reshape(value["shape"])


_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "tuple": lambda value: tuple(_decoded(one) for one in value["tuple"]),
    "mapping": lambda value: {_decoded(key): _decoded(one) for key, one in value["mapping"]},
    "hierarchy": lambda value: Hierarchy.from_json(value["hierarchy"]),
    "estimator": _decoded_estimator,
    "kernel": lambda value: _KERNELS[value["kernel"]](**_decoded(value["parameters"])),
    "array": _decoded_array,
}


def _as_objects(entries: list[Any]) -> Any:
    """Return an array of objects, tuples among them being one object each."""
    array = np.empty(len(entries), dtype=object)
    for number, entry in enumerate(entries):
        array[number] = entry
    return array
