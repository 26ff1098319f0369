"""Renderers of reports: terminal table, Markdown, CSV, LaTeX, and one HTML page.

Renderers turn a :class:`~hallujudge.metrics.Report` into text. They use no
files and no network. Responses and ids may hold any text, so every renderer escapes them.
"""

from collections.abc import Callable, Mapping

from hallujudge.metrics import Report

from .export_formats import render_csv, render_latex, render_markdown, render_scores
from .page import HtmlPage, PageAbout
from .terminal_tables import render_table, render_variants

__all__ = [
    "PRINTED",
    "HtmlPage",
    "PageAbout",
    "render_csv",
    "render_latex",
    "render_markdown",
    "render_scores",
    "render_table",
    "render_variants",
]

PRINTED: Mapping[str, Callable[[Report], str]] = {
    "json": Report.to_text,
    "markdown": render_markdown,
    "csv": render_csv,
    "latex": render_latex,
}
"""Format -> renderer, for the formats that are printed instead of the table."""
