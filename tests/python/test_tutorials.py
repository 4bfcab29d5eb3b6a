"""Every tutorial runs: its blocks of Python, from the top, in one namespace."""

import os
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DATA = Path(os.environ.get("NUPTSE_DATA", PROJECT.parent / "shared" / "data"))
#: for every tutorial the folder within the data that it reads
FOLDERS = {"patents": "patents_ipc"}


def python_blocks(page):
    """Return the number of the first line and the code of every block."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)), block[1]) for block in found]


@pytest.mark.parametrize("page", sorted((PROJECT / "docs" / "tutorials").glob("*.md")), ids=lambda path: path.stem)
def test_tutorial_runs(page, tmp_path, monkeypatch):
    blocks = python_blocks(page)
    assert blocks, "the page has no blocks of Python"
    folder = DATA / FOLDERS.get(page.stem, "")
    if page.stem in FOLDERS and not folder.exists():
        pytest.skip(f"no data at {folder}; set NUPTSE_DATA to the folder that holds {FOLDERS[page.stem]}")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setenv("NUPTSE_DATA", str(DATA.resolve()))
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, code in blocks:
        # Empty lines before the code let errors name the line of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)  # noqa: S102
