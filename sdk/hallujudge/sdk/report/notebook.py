"""Fragments of HTML for notebooks: the first screen of the page, and tables."""

from __future__ import annotations

from collections.abc import Iterable

from hallujudge.metrics import Report

from .markup import Markup, element
from .page.about import PageAbout
from .page.assets import asset
from .page.first_screen import first_screen

__all__ = ["notebook_fragment", "render_notebook"]


def render_notebook(report: Report) -> Markup:
    """Return the first screen of the report's page, without a script."""
    return notebook_fragment(first_screen(report, PageAbout(), copy=False))


def notebook_fragment(content: Iterable[Markup]) -> Markup:
    """Return content with its style sheet, whose rules apply to nothing else in the notebook.

    Args:
        content: What is shown.
    """
    style = element("style", Markup(asset("notebook.css")))
    return element("div", style, *content, _class="hallujudge")
