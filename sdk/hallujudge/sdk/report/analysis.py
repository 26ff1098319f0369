"""Analyses as tables for a terminal."""

from __future__ import annotations

from ..analysis import Analysis, AnalysisTable, Cell
from .text import ABSENT, clean, cut

__all__ = ["render_analysis"]

_ROWS = 30
_CELL_CHARS = 40


def render_analysis(analysis: Analysis) -> str:
    """Return the analyses as readable text that ends with a line feed.

    Args:
        analysis: The analyses. Long tables are cut after their first rows.
    """
    parts = [f"{analysis.metric}/{analysis.variant}"]
    parts += [_table(table) for table in analysis.tables if table.rows]
    parts.append(f"of the run {clean(analysis.signature)}")
    return "\n\n".join(parts) + "\n"


def _table(table: AnalysisTable) -> str:
    head = [_words(name) for name in table.rows[0]]
    rows = [[_cell(value) for value in row.values()] for row in table.rows[:_ROWS]]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [f"{_words(table.name)} ({table.source})"]
    for row in (head, *rows):
        lines.append("  ".join(c.rjust(width) for c, width in zip(row, widths, strict=True)))
    if (more := len(table.rows) - _ROWS) > 0:
        lines.append(f"… and {more} more in the analysis file")
    return "\n".join(lines)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Cell) -> str:
    if value is None:
        return ABSENT
    return f"{value:.4f}" if isinstance(value, float) else cut(clean(str(value)), _CELL_CHARS)
