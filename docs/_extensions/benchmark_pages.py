"""Leaves out pages of benchmarks that have not been run: every page of the folder shows a file of benches/results."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

_DOCS = Path(__file__).parents[1]


def _leave_out(_: "Sphinx", config: "Config") -> None:
    for page in (_DOCS / "benchmarks").glob("*.md"):
        result = _DOCS.parent / "benches" / "results" / page.name
        if page.name != "index.md" and not result.exists():
            config.exclude_patterns.append(f"benchmarks/{page.name}")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("config-inited", _leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
