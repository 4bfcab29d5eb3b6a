"""The version stands in Cargo.toml, and nowhere else."""

import importlib.metadata
import re
from pathlib import Path

import nuptse

PROJECT = Path(__file__).parents[2]
VERSION = re.search(
    r'^version = "(\d+\.\d+\.\d+)"$', (PROJECT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE
)[1]


def test_package_has_the_version_of_the_crate():
    assert nuptse.__version__ == VERSION


def test_installed_package_has_it_too():
    assert importlib.metadata.version("nuptse") == VERSION


def test_settings_of_the_package_do_not_repeat_it():
    settings = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in settings
    assert not re.search(r"^version\b", settings, re.MULTILINE)


def test_tutorial_asks_for_a_version_that_this_one_is():
    page = (PROJECT / "docs" / "tutorials" / "rust.md").read_text(encoding="utf-8")
    assert f'nuptse = "{VERSION.rpartition(".")[0]}"' in page


def test_changelog_has_a_place_for_what_comes_next_or_this_version():
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## (Unreleased|{re.escape(VERSION)}\b)", changelog, re.MULTILINE)
