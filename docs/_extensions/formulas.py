"""Formulas as pictures inside the pages, drawn while these are built: they need no network, no scripts and no fonts."""

import html
import re
from typing import TYPE_CHECKING, Any

import ziamath
from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SIZE = 20.0


def _draw(formula: str, *, inline: bool) -> str:
    """Return an SVG of the size and colour of the text around it, on its line; readers of screens get the source."""
    drawn = ziamath.Latex(formula, size=_SIZE, color="currentColor", inline=inline)
    drawing = drawn.svg()
    width, height = (float(value) / _SIZE for value in re.findall(r'(?:width|height)="([\d.]+)"', drawing)[:2])
    style = f"width: {width:.3f}em; height: {height:.3f}em; vertical-align: {drawn.getyofst() / _SIZE:.3f}em"
    label = html.escape(" ".join(formula.split()), quote=True)
    attributes = f'role="img" aria-label="{label}" style="{style}"'
    return re.sub(r'width="[\d.]+" height="[\d.]+"', lambda _: attributes, drawing, count=1)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="formula">{_draw(node.astext(), inline=True)}</span>')
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_draw(node.astext(), inline=False)}</div>\n')
    raise nodes.SkipNode


def setup(app: "Sphinx") -> dict[str, bool]:
    """Tell Sphinx."""
    ziamath.config.svg2 = False  # every formula stands for itself
    ziamath.config.precision = 1
    app.add_html_math_renderer("drawn", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
