"""Reports of several variants side by side, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.metrics import Report

from .table import print_to_text, score_table
from .text import clean, coverage_sentence, shown, signature_lines

__all__ = ["render_variants"]

_WIDTH = 80


def render_variants(reports: Sequence[Report], *, width: int = _WIDTH) -> str:
    """Return the scores of one metric's variants in one table.

    Args:
        reports: One report for each variant, of the same responses.
        width: Columns of the terminal.

    Returns:
        A row for each score with each variant's value and interval, the difference of the last
        and the first variant, coverage, notes and signatures; ends with a line feed.
    """
    names = [clean(report.variant) for report in reports]
    table = score_table("score", *names, "difference")
    for score in reports[0].scores:
        figures = [shown(report[score]) for report in reports]
        cells = ["\n".join(filter(None, (f.value, f.interval))) for f in figures]
        table.add_row(clean(score), *cells, _difference(reports, score))
    parts: list[object] = [f"{clean(reports[0].metric)} ({', '.join(names)})", "", table]
    for name, report in zip(names, reports, strict=True):
        parts += ["", f"{name}: {coverage_sentence(report.coverage)}"]
        parts += [f"note: {clean(note)}" for note in report.notes]
    parts += ["", "signatures"]
    for report in reports:
        parts += [f"  {line}" for line in signature_lines(report.signature, width - 2)]
    return print_to_text(parts, width=width)


def _difference(reports: Sequence[Report], score: str) -> str:
    first, last = reports[0][score].value, reports[-1][score].value
    return "" if first is None or last is None else f"{last - first:+.4f}"
