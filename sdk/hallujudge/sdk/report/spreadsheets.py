"""Cells of CSV files, which spreadsheets open."""

from __future__ import annotations

from .text import clean

__all__ = ["csv_cell"]

# A spreadsheet runs a cell that begins with one of these as a formula; full-width forms too.
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def csv_cell(value: str | float | bool | None) -> str:
    """Return a cell: a number with all digits, or a text that is not run as a formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    line = clean(value)
    return f"'{line}" if line.startswith(_FORMULA) else line
