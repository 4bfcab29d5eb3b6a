"""What commands say: tables and JSON on standard output, notes on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from nuptse._cli.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass
class Console:
    """Where a command speaks."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def progress(self) -> int:
        """Whether estimators show how they go on: asked for, or to a person who waits."""
        return int(self.verbose or (sys.stderr.isatty() and not self.quiet))

    def note(self, text: str) -> None:
        """Say something about what is going on."""
        if not self.quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def step(self, text: str) -> None:
        """Say what begins now, to a person who waits."""
        if self.progress:
            self.note(text)

    def result(self, text: str, content: dict[str, Any]) -> None:
        """Write the result of a command: as text for people or as JSON for machines."""
        if self.json:
            content = {**content, "warnings": self.warnings}
            text = json_text(content, indent=2)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    @contextmanager
    def hearing_warnings(self) -> Iterator[None]:
        """Show warnings as notes, once each."""

        def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            text = " ".join(str(message).split())
            if issubclass(category, UserWarning) and text not in self.warnings:
                self.warnings.append(text)
                self.note(f"nuptse: warning: {text}")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            # Files are matched by the names of their columns here; scikit-learn cannot know that.
            warnings.filterwarnings("ignore", message=r".*valid feature names.*")
            warnings.showwarning = hear
            yield


def json_text(content: Any, indent: int | None = None) -> str:
    """Return JSON, in which numbers that JSON does not have are null."""
    return json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return aligned columns: texts to the left, numbers to the right."""
    cells = [[shown(cell) for cell in row] for row in rows]
    numbers = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    lines = []
    for line in [list(header), *cells]:
        columns = zip(line, widths, numbers, strict=True)
        lines.append("  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in columns).rstrip())
    return "\n".join(lines)


def pairs(rows: Sequence[tuple[str, Any]]) -> str:
    """Return names and values, one line each."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {shown(value)}".rstrip() for name, value in rows)


def shown(value: Any) -> str:
    """Return a value as people read it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def size(count: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def check_target(path: str, *, force: bool) -> None:
    """Raise, before any work, where a result could not be written or would overwrite a file."""
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{path} is a folder; name a file")
    if not target.parent.is_dir():
        raise OutputError(f"there is no folder {target.parent} for {path}; make it first")
    if target.exists() and not force:
        raise OutputError(f"{path} is there already; use --force to overwrite it, or another name")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"the folder {target.parent} cannot be written to")


@contextmanager
def written_whole(path: str | None) -> Iterator[TextIO]:
    """Open standard output, or a file that appears when all of it is written."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    target = Path(path)
    aside = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            aside = Path(file.name)
            yield cast("TextIO", file)
        aside.chmod(0o666 & ~_mask())
        aside.replace(target)
        aside = None
    except OSError as error:
        raise OutputError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def _mask() -> int:
    """Return the mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
