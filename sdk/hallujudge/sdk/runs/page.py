"""The HTML page of a run, from what its journal keeps."""

from __future__ import annotations

from collections.abc import Iterable

from hallujudge.metrics import Report

from .shown import unpacked

__all__ = ["render_page"]


def render_page(report: Report, shown: Iterable[bytes]) -> str:
    """Return the page of a report.

    Args:
        report: The report.
        shown: What the parts of the run keep for the page.
    """
    from ..report import HtmlPage

    page = HtmlPage()
    for part in shown:
        for item, result in unpacked(part):
            page.add(item, result)
    return page.render(report)
