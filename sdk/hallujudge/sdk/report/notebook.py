"""The report as a fragment of HTML, for notebooks."""

from __future__ import annotations

from hallujudge.metrics import Report

from .markup import Markup, element
from .text import coverage_sentence, interval_label, meaning_of, shown

__all__ = ["render_notebook"]


def render_notebook(report: Report) -> Markup:
    """Return a heading, the scores as a table, the coverage and the signature."""
    headings = ("score", "value", interval_label(report), "n", "meaning")
    rows = [
        element("tr", *(element("td", cell) for cell in cells))
        for name, score in report.scores.items()
        for figures in [shown(score)]
        for cells in [
            (name, figures.value, figures.interval, figures.n, meaning_of(report, name)),
        ]
    ]
    return element(
        "div",
        element("b", f"{report.metric} ({report.variant})"),
        element(
            "table",
            element("thead", element("tr", *(element("th", text) for text in headings))),
            element("tbody", *rows),
        ),
        element("p", coverage_sentence(report.coverage)),
        *(element("p", f"Note: {note}") for note in report.notes),
        element("code", report.signature),
    )
