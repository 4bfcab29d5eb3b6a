"""What the columns of a table are: labels, documents, weights, inputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nuptse._cli.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nuptse._cli.dataset import Request

#: The label column where none is named.
LABEL = "label"


@dataclass(frozen=True)
class Columns:
    """The columns of a table by what they are for."""

    label: str | None
    text: str | None
    inputs: list[str]
    #: all that is read as text
    special: list[str]


def plan(header: Sequence[str], request: Request) -> Columns:
    """Tell what the columns are for; raise where some are missing or doubtful."""
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError(f"{request.name} has two columns {twice[0]!r}; give each a name of its own")
    asked = [request.text, request.weight, request.groups, request.identifier, *request.ignore]
    for name in [*asked, *(name for name, _ in request.where), *([request.label] if request.labelled else [])]:
        if name is not None and name not in header:
            raise InputError(missing(name, header, request))
    label = _label(header, request)
    special = [name for name in (label, *asked[:4], *(name for name, _ in request.where)) if name is not None]
    if request.text is not None:
        return Columns(label, request.text, [], list(dict.fromkeys(special)))
    inputs = _inputs(header, {*special, *request.ignore}, request)
    return Columns(label, None, inputs, list(dict.fromkeys(special)))


def _label(header: Sequence[str], request: Request) -> str | None:
    if request.labels_path is not None:
        return None
    name = LABEL if request.label is None else request.label
    if name in header:
        return name
    if request.labelled:
        raise InputError(f"{missing(name, header, request)}. Say with --label which column has the labels")
    return None


def _inputs(header: Sequence[str], taken: set[str], request: Request) -> list[str]:
    if request.columns is not None:  # those of a model; others are left alone
        for name in request.columns:
            if name not in header:
                raise InputError(missing(name, header, request, "which the model needs"))
        return list(request.columns)
    inputs = [name for name in header if name not in taken]
    if not inputs:
        raise InputError(f"{request.name} has no column left for inputs; its columns are {_shown(header)}")
    if "" in inputs:
        raise InputError(
            f"{request.name}, line 1: column {header.index('') + 1} has no name; if it only numbers the lines, leave "
            "it out with --ignore ''"
        )
    if request.n_columns is not None and len(inputs) != request.n_columns:
        raise InputError(
            f"{request.name} has {len(inputs)} columns of inputs, but the model needs {request.n_columns}; leave "
            "others out with --ignore"
        )
    return inputs


def missing(name: str, header: Sequence[str], request: Request, why: str = "") -> str:
    """Return what is said of a column that is not there."""
    alike = get_close_matches(name, header, 1)
    hint = f"; did you mean {alike[0]!r}?" if alike else f"; its columns are {_shown(header)}"
    one = header[0] if len(header) == 1 else ""
    for delimiter, called in ((";", "';'"), ("\t", "tab"), (",", "','"), ("|", "'|'")):
        if delimiter in one:
            hint = f"; it has one column only, {_cut(one)!r}: use --delimiter {called}"
            break
    return f"{request.name} has no column {name!r}{', ' + why if why else ''}{hint}"


def _shown(header: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(repr(_cut(name)) for name in header[:limit])
    return shown if len(header) <= limit else f"{shown}, ... ({len(header)} in all)"


def _cut(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
