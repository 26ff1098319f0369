"""The report as data for other programs: plain scores, CSV and LaTeX."""

from __future__ import annotations

import csv
import io

from hallujudge.metrics import Report

from .latex import latex_table
from .spreadsheets import csv_cell
from .text import clean, interval_label, shown

__all__ = ["render_csv", "render_latex", "render_scores"]


def render_scores(report: Report) -> str:
    """Return one line for each score: its name and its value, or ``-`` if it is not defined."""
    width = max((len(name) for name in report.scores), default=0)
    return "".join(
        f"{clean(name):<{width}} {'-' if score.value is None else repr(score.value)}\n"
        for name, score in report.scores.items()
    )


def render_csv(report: Report) -> str:
    """Return the scores of the run and of its groups as CSV, with all digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["group_by", "group", "score", "value", "ci_low", "ci_high", "n"])
    writer.writerows(map(csv_cell, record.values()) for record in report.records())
    return stream.getvalue()


def render_latex(report: Report) -> str:
    """Return the scores as a LaTeX table, with the signature as a footnote."""
    rows = [
        (name, figures.value, figures.interval, figures.n)
        for name, score in report.scores.items()
        for figures in [shown(score)]
    ]
    return latex_table(
        ("score", "value", interval_label(report), "n"),
        rows,
        notes=report.notes,
        sources={"Signature": report.signature},
    )
