"""How `make docs` builds these pages: Sphinx reads Markdown and docstrings, and writes a site that needs no network."""

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Nuptse"
author = "the authors of Nuptse"
copyright = "the authors of Nuptse; MIT or Apache 2.0, as you like"  # noqa: A001 (Sphinx calls it that)
release = version = importlib.metadata.version("nuptse")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "formulas", "benchmark_pages", "results"]
exclude_patterns = ["_extensions"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Docstrings say of what type everything is, in words; their single backticks are code.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
default_role = "code"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "returns_style")]  # a list, as the parameters are
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "Nuptse"
html_logo = html_favicon = "_static/peak.svg"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "drawn"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#3949ab", "color-brand-content": "#3949ab"},
    "dark_css_variables": {"color-brand-primary": "#9fa8da", "color-brand-content": "#9fa8da"},
}


def _skip(_app: Any, _kind: str, name: str, _member: Any, _skipped: bool, _options: Any) -> bool | None:
    """Leave out what scikit-learn adds to route metadata; its own pages explain that."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Any) -> None:
    """Tell Sphinx."""
    app.connect("autodoc-skip-member", _skip)
