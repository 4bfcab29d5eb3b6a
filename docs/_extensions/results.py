"""The directive `results`: rows and columns of a table in benches/results, so that no figure is copied by hand.

    ```{results} fit.md
    :section: Time to the objective of LogisticRegression
    :columns: data; ours, seconds; its seconds
    :rows: amazon|patents
    ```

`section` is the heading above the table, `rows` a pattern that the cells of a row must match, with " | " between them.
What is not found ends the build.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

_RESULTS = Path(__file__).parents[2] / "benches" / "results"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _table(text: str, section: str) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows of the first table below a heading."""
    _, found, below = re.sub(r"^#+ ", "# ", text, flags=re.MULTILINE).partition(f"# {section}\n")
    lines = re.search(r"^\|.*(?:\n\|.*)*", below, flags=re.MULTILINE)
    if not found or lines is None:
        raise ValueError(f"there is no table below {section!r}")
    header, _, *rows = lines[0].splitlines()
    return _cells(header), [_cells(row) for row in rows]


def select(text: str, section: str, columns: list[str], rows: str = "") -> str:
    """Return a table of some columns and rows."""
    names, body = _table(text, section)
    places = [names.index(column) for column in columns]
    chosen = [row for row in body if re.search(rows, " | ".join(row))]
    if not chosen:
        raise ValueError(f"no row of {section!r} matches {rows!r}")
    table = [columns, ["---"] * len(columns), *([row[place] for place in places] for row in chosen)]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


class Results(SphinxDirective):
    """Shows the table."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "section": directives.unchanged_required,
        "columns": directives.unchanged_required,
        "rows": directives.unchanged,
    }

    def run(self) -> "list[nodes.Node]":
        """Return the nodes of the page."""
        path = _RESULTS / self.arguments[0]
        self.env.note_dependency(str(path))
        columns = [name.strip() for name in self.options["columns"].split(";")]
        try:
            table = select(path.read_text("utf-8"), self.options["section"], columns, self.options.get("rows", ""))
        except (OSError, ValueError) as error:
            raise self.error(str(error)) from error
        return self.parse_text_to_nodes(table)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
