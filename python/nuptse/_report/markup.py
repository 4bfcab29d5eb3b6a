"""Text, numbers and tables as HTML. Nothing that users have written gets onto a page but through :func:`text`."""

from __future__ import annotations

import html
import json
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: What HTML does not allow, or what would be no text in UTF-8.
_NOT_ALLOWED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(value: str) -> str:
    """Replace what may not stand in a page at all."""
    return _NOT_ALLOWED.sub("\ufffd", value)


def text(value: Any, limit: int | None = None) -> str:
    """Return anything as text that is safe within an element and within an attribute."""
    return html.escape(shortened(clean(str(value)), limit), quote=True)


def label(value: Any, limit: int | None = 120) -> str:
    """Return the name of a class, which may be broken between its steps.

    Its direction of writing does not disturb what stands around it.
    """
    return f"<bdi>{text(value, limit).replace('/', '/<wbr>')}</bdi>"


def shortened(value: str, limit: int | None) -> str:
    """Return at most so many characters."""
    return value if limit is None or len(value) <= limit else value[: limit - 1].rstrip() + "…"


def data_script(identifier: str, content: Any) -> str:
    """Return data for scripts; nothing in them can end the element or begin another."""
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identifier}">{clean(written)}</script>'


def number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits that count, and without needless zeros."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    mantissa, power_of_ten = f"{value:.{digits - 1}e}".split("e")
    exponent = int(power_of_ten)
    if -4 < exponent < 5:
        written = f"{value:,.{max(digits - 1 - exponent, 0)}f}"
        return _minus(written.rstrip("0").rstrip(".") if "." in written else written)
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return power if mantissa == "1" else _minus(f"{mantissa} × {power}")


def weight(value: float) -> str:
    """Return how many points there are, or what they weigh."""
    return f"{value:,.0f}" if float(value).is_integer() else number(value, 4)


def share(value: float, decimals: int = 1) -> str:
    """Return a share in percent."""
    return "–" if math.isnan(value) else f"{value:.{decimals}%}"


def exact(value: float, shown: str) -> str:
    """Return a number as it is shown, with all its digits for programs that read the page."""
    return f'<data value="{float(value)!r}">{shown}</data>'


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str,
    numeric: Sequence[int] = (),
    kind: str = "plain",
) -> str:
    """Return a table that scrolls within its own frame; the first cell of every row names it. All cells are HTML."""
    kinds = [' class="n"' if column in numeric else "" for column in range(len(header))]
    head = "".join(f'<th scope="col"{kind}>{cell}</th>' for cell, kind in zip(header, kinds, strict=True))
    body = []
    for first, *others in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
        body.append(f'<tr><th scope="row"{kinds[0]}>{first}</th>{cells}</tr>')
    return scrolled(
        f'<table class="{kind}"><caption class="hidden">{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>",
        caption,
    )


def scrolled(content: str, name: str) -> str:
    """Return what may be wider than the page in a frame that scrolls, by keyboard too."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">{content}</div>'


def _minus(written: str) -> str:
    return "−" + written[1:] if written.startswith("-") else written
