"""Reports for people: a table for the terminal, Markdown, and one HTML page.

Everything here turns a :class:`~hallujudge.metrics.Report` into text and does nothing else: no
files, no network. Responses and ids are other people's text, so every renderer makes them harmless.
"""

from .analysis import render_analysis
from .html import HtmlPage
from .markdown import render_markdown
from .table import render_table

__all__ = ["HtmlPage", "render_analysis", "render_markdown", "render_table"]
