"""The HTML page of two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..runs.saved_items import about_of
from ..runs.stored_runs import read_run
from .compare import compare
from .options import CompareOptions

if TYPE_CHECKING:
    from ..report.page import Images

__all__ = ["page_of_two"]


def page_of_two(
    first: Path,
    second: Path,
    *,
    images: Images | None = None,
    allow: tuple[str, ...] = (),
    overview: str = "",
) -> str:
    """Return the page of two complete runs: their differences, and their items side by side.

    Args:
        first: Folder of the baseline.
        second: Folder of the other run.
        images: Where pictures come from; None for no pictures.
        allow: Fields of the signature that may differ.
        overview: Address of the page of all runs; empty for a page that stands alone.

    Raises:
        InvalidInputError: The runs were scored in different ways, or have no item in common.
        ArchiveError: A folder does not hold a complete run.
    """
    from ..report.page import render_comparison
    from ..report.page.compared_runs import Differences, PageRun

    runs = [read_run(folder) for folder in (first, second)]
    found = compare(first, second, options=CompareOptions(allow=allow))
    sides = [
        PageRun(
            title=label.name,
            report=run.report,
            parts=run.page_parts(),
            content=about_of(run.manifest).content,
        )
        for run, label in zip(runs, found.runs, strict=True)
    ]
    return render_comparison(
        sides[0],
        sides[1],
        Differences(rows=found.pairs[0].differences, method=found.method, notes=found.notes),
        images=images,
        overview=overview,
    )
