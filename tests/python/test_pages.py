"""Every block of code in the documentation runs, and prints what the page says it prints.

Blocks of Python run from the top of a page in one namespace. Those of Rust are tests of the crate (src/lib.rs); here we
see to it that no page is left out. Commands are checked by `shell_commands`: that they exist, not what they do.
"""

import contextlib
import io
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from shell_commands import PROJECT, check_command, commands

DATA = Path(os.environ.get("NUPTSE_DATA", PROJECT.parent / "shared" / "data"))
DOCS = PROJECT / "docs"
PAGES = [PROJECT / "README.md", *sorted(DOCS.rglob("*.md"))]
#: for every page the folder within the data that it reads
FOLDERS = {"patents": "patents_ipc"}
#: what is printed there hangs on two classes that are equally probable but for rounding
CLOSE_CALLS = {"patents"}
#: run by test_cli.py, commands and Python in turns
RUN_ELSEWHERE = {"command_line"}
SHELL = {"sh", "bash", "console"}
#: what runs, what is shown only, and the directives of Sphinx
LANGUAGES = (
    {"python", "rust", "toml", *SHELL}
    | {"text", "csv", "tsv", "json"}
    | {"{include}", "{toctree}", "{eval-rst}", "{results}"}
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Block(NamedTuple):
    """A block of code on a page."""

    language: str
    code: str
    #: the line of the page before its first one
    line: int


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\S*)[^\n]*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [Block(block[1], block[2], text.count("\n", 0, block.start(2))) for block in found]


def pages_with(languages):
    pages = [page for page in PAGES if page.stem not in RUN_ELSEWHERE]
    chosen = [page for page in pages if any(block.language in languages for block in blocks(page))]
    return pytest.mark.parametrize("page", chosen, ids=lambda page: str(page.relative_to(PROJECT)))


def same_output(printed, shown):
    """Tell whether texts are the same, and numbers in them nearly: the last digits differ between processors."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", shown).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(
        abs(float(ours) - float(theirs)) <= max(0.05 * abs(float(theirs)), 2 * 0.1 ** len(theirs.partition(".")[2]))
        for ours, theirs in pairs
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_languages_are_known(page):
    """A block in a language that is not listed would not be run by anything."""
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pages_with({"python"})
def test_python_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    folder = DATA / FOLDERS.get(page.stem, "")
    if page.stem in FOLDERS and not folder.exists():
        pytest.skip(f"no data at {folder}; set NUPTSE_DATA to the folder that holds {FOLDERS[page.stem]}")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setenv("NUPTSE_DATA", str(DATA.resolve()))
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    everything = blocks(page)
    for block, after in zip(everything, [*everything[1:], Block("", "", 0)], strict=True):
        if block.language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Empty lines before the code let errors name the line of the page.
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)  # noqa: S102
        if after.language == "text" and page.stem not in CLOSE_CALLS:
            assert same_output(printed.getvalue(), after.code), (
                f"line {after.line}, but printed was:\n{printed.getvalue()}"
            )


@pages_with({"rust"})
def test_rust_is_among_the_tests_of_the_crate(page):
    path = f"../{page.relative_to(PROJECT)}"
    assert f'include_str!("{path}")' in (PROJECT / "src" / "lib.rs").read_text(encoding="utf-8")
    assert f'"/{page.relative_to(PROJECT)}"' in (PROJECT / "Cargo.toml").read_text(encoding="utf-8"), "not packaged"


@pages_with({"toml"})
@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is not in this Python")
def test_toml_can_be_read(page):
    import tomllib  # noqa: PLC0415

    for block in blocks(page):
        if block.language == "toml":
            assert tomllib.loads(block.code)


@pages_with(SHELL)
def test_commands_exist(page):
    for block in blocks(page):
        if block.language in SHELL:
            for command in commands(block.code):
                check_command(command)


def test_comparison_copies_no_figures_of_benchmarks():
    """They come out of benches/results while the pages are built, so that they are those of the last run."""
    assert not re.findall(r"\d+\.\d+", (DOCS / "compared.md").read_text(encoding="utf-8"))


def test_every_benchmark_has_a_page():
    results = {path.name for path in (PROJECT / "benches" / "results").glob("*.md")}
    assert results <= {path.name for path in (DOCS / "benchmarks").glob("*.md")}
