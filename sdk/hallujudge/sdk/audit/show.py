"""An audit as a table whose columns add up as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from ..report.grids import Cell, Grid, show_number
from ..report.text import ABSENT
from .values import Cause, ScoreAudit

__all__ = ["steps"]

_DIGITS = 5


def steps(scores: Sequence[ScoreAudit], causes: Sequence[Cause], rows: int) -> Grid:
    """Return the steps from the printed numbers to ours, with a column for each score.

    Args:
        scores: The scores.
        causes: The causes, of which the first two are about the printed numbers as a whole.
        rows: How many rows the tool counts.
    """
    names = tuple(score.name for score in scores)
    columns = [_column(score, causes) for score in scores]
    heads = [
        ("printed", ABSENT, ABSENT),
        *((c.name, _whole(c.items), _whole(c.rows)) for c in causes[:2]),
        ("re-derived", ABSENT, _whole(rows)),
        *((c.name, _whole(c.items), _whole(c.rows)) for c in causes[2:]),
        ("ours", ABSENT, _whole(causes[-1].rows)),
    ]
    return Grid(
        title="From the printed numbers to ours",
        headings=("step", "items", "rows", *names),
        rows=tuple((*head, *cells) for head, *cells in zip(heads, *columns, strict=True)),
        keys=("cause", "items", "rows", *names),
        values=tuple(_values(scores, cause) for cause in causes),
    )


def _whole(number: int | None) -> str:
    return ABSENT if number is None else f"{number:,}"


def _values(scores: Sequence[ScoreAudit], cause: Cause) -> tuple[Cell, ...]:
    shares = (score.shares.get(cause.name) for score in scores)
    return (
        cause.name,
        cause.items,
        cause.rows,
        *(None if share is None else float(share) for share in shares),
    )


def _column(score: ScoreAudit, causes: Sequence[Cause]) -> list[str]:
    """Return a score's cells: differences of rounded sums, so that they add up as shown."""
    sums = [score.first]
    for cause in causes:
        sums.append(sums[-1] + score.shares.get(cause.name, Fraction(0)))
    shown = [round(number, _DIGITS) for number in sums]
    steps = [
        show_number(float(after - before), signed=True, digits=_DIGITS)
        if cause.name in score.shares
        else ABSENT
        for cause, (before, after) in zip(causes, pairwise(shown), strict=True)
    ]
    first, rederived, ours = (
        show_number(float(number), digits=_DIGITS) for number in (shown[0], shown[2], shown[-1])
    )
    printed = ABSENT if score.printed is None else first
    return [printed, *steps[:2], rederived, *steps[2:], ours]
