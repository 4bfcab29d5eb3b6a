"""Raw text: one document a line, and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nuptse._cli.dataset import Dataset
from nuptse._cli.errors import InputError
from nuptse._cli.opening import read_text

if TYPE_CHECKING:
    from nuptse._cli.dataset import Request


def read_documents(request: Request) -> Dataset:
    """Read one document a line; its label is in front of it, before a tab, unless labels are in a file of their own."""
    request.refuse("text", "weight", "groups", "identifier", "ignore", "where", "label")
    lines = read_lines(request.path, request.encoding)
    if not lines:
        raise InputError(f"{request.name} is empty")
    if request.labels_path is not None:
        return Dataset(lines, "text")
    parts = [line.partition("\t") for line in lines]
    if request.labelled:
        for number, (label, tab, _) in enumerate(parts, start=1):
            if not tab or not label.strip():
                raise InputError(
                    f"{request.name}, line {number}: there is no label before a tab; give lines 'label<tab>document', "
                    "or a file with one label a line as --labels FILE"
                )
        return Dataset([text for _, _, text in parts], "text", [label.strip() for label, _, _ in parts])
    # A file that was made for training has labels, which are no part of the documents.
    if all(tab and label.strip() in request.known_labels for label, tab, _ in parts):
        return Dataset([text for _, _, text in parts], "text", label="first column")
    return Dataset(lines, "text")


def read_labels(path: str, encoding: str) -> list[str]:
    """Return the labels of a file, one a line."""
    labels = [line.strip() for line in read_lines(path, encoding)]
    for number, label in enumerate(labels, start=1):
        if not label:
            raise InputError(f"{path}, line {number}: the label is missing")
    return labels


def read_lines(path: str, encoding: str) -> list[str]:
    """Return the lines of a file without their ends; empty ones stay, as rows have to match."""
    return [line.rstrip("\r\n") for line in read_text(path, encoding)]
