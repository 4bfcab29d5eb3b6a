"""Files as bytes and as lines: compressed or not, or standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from nuptse._cli.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

STDIN = "-"
_COMPRESSED = {".gz", ".xz", ".bz2"}
#: How compressed files begin, and what undoes that. Content counts, not names, so that standard input works as well.
_OPENERS: list[tuple[bytes, Callable[[bytes], bytes]]] = [
    (b"\x1f\x8b\x08", gzip.decompress),
    (b"\xfd7zXZ\x00", lzma.decompress),
    (b"BZh", bz2.decompress),
]


def name_of(path: str) -> str:
    """Return what messages call a file."""
    return "standard input" if path == STDIN else path


def ending(path: str) -> str:
    """Return how the name of a file ends, without the ending of a compressed one: '.csv' for 'data.csv.gz'."""
    name = PurePath(path.lower())
    return (name.with_suffix("") if name.suffix in _COMPRESSED else name).suffix


def read_bytes(path: str) -> bytes:
    """Return what is in a file or comes from standard input, decompressed."""
    try:
        content = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{name_of(path)} cannot be read: {reason}") from error
    for start, undo in _OPENERS:
        if content.startswith(start):
            try:
                return undo(content)
            except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
                if ending(path) == PurePath(path.lower()).suffix:  # a plain file that begins like a compressed one
                    return content
                raise InputError(f"{name_of(path)} is damaged: {error}; take another copy") from error
    return content


def read_text(path: str, encoding: str = "utf-8") -> io.StringIO:
    """Return the text of a file; a mark of the byte order at its beginning is left out."""
    content = read_bytes(path)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name_of(path)}, line {line}: there are bytes that are not {encoding}; say with --encoding what the file "
            "is in, such as latin-1"
        ) from error
    except (LookupError, ValueError) as error:
        raise InputError(f"{name_of(path)} cannot be read as {encoding!r}: {error}") from error
    return io.StringIO(text.removeprefix("\ufeff"), newline="")
