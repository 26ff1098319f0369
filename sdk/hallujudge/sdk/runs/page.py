"""The HTML page of a run, from what its journal keeps."""

from __future__ import annotations

from collections.abc import Iterable

from hallujudge.metrics import Report

from .shown import selected, unpacked

__all__ = ["render_page"]


def render_page(report: Report, shown: Iterable[bytes]) -> str:
    """Return the page of a report.

    Args:
        report: The report.
        shown: What the parts of the run keep for the page.
    """
    from ..report import HtmlPage

    page = HtmlPage()
    for entry in selected(unpacked(b"".join(shown))):
        page.add(entry.item, entry.result)
    return page.render(report)
