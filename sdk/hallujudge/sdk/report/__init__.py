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
    from .export_formats import PRINTED as PRINTED
    from .export_formats import plot_report as plot_report
    from .export_formats import render_csv as render_csv
    from .export_formats import render_latex as render_latex
    from .export_formats import render_markdown as render_markdown
    from .export_formats import render_scores as render_scores
    from .page import HtmlPage as HtmlPage
    from .page import PageAbout as PageAbout
    from .page.first_screen import render_notebook as render_notebook
    from .terminal_tables import render_table as render_table
    from .terminal_tables import render_variants as render_variants

__getattr__, __dir__ = names_on_use(__name__)
