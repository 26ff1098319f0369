"""Renderers of reports: terminal table, Markdown, CSV, LaTeX, and one HTML page.

Renderers turn a :class:`~hallujudge.metrics.Report` into text. They use no
files and no network. Responses and ids may hold any text, so every renderer escapes them.

Names are imported when they are first used: a run prints one of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are for the SDK's own modules.
if TYPE_CHECKING:
    from .export_formats import PRINTED, render_csv, render_latex, render_markdown, render_scores
    from .export_formats import plot_report as plot_report
    from .page import HtmlPage, PageAbout
    from .page.first_screen import render_notebook as render_notebook
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

_NAMES = {
    ".export_formats": "PRINTED plot_report render_csv render_latex render_markdown render_scores",
    ".page": "HtmlPage PageAbout",
    ".page.first_screen": "render_notebook",
    ".terminal_tables": "render_table render_variants",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
