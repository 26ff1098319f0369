"""The page of a run under way: what its journal holds so far."""

from __future__ import annotations

from datetime import UTC, datetime

from ..report.markup import Markup, element
from ..report.page.document import document, first, render_parts
from ..report.page.images import Images
from ..report.text import counted
from ..runs.under_way import RunUnderWay, read_under_way
from .found import FoundRun

__all__ = ["live_page"]


def live_page(run: FoundRun) -> str:
    """Return the page of a run under way; it keeps itself up to date.

    Args:
        run: The run.

    Raises:
        FileNotFoundError: The run was completed meanwhile.
    """
    held = read_under_way(run.folder)
    progress = _progress(held)
    if held.report is None:
        body = [element("h1", run.name), progress]
        return document(f"{run.name} – Hallujudge", [first(*body, live=True)], scripts=("live.js",))
    return render_parts(held.parts, held.report, held.about, Images(), live=progress)


def _progress(held: RunUnderWay) -> Markup:
    total = held.manifest.items
    told = f"{held.items:,} of {counted(total, 'item')} scored; last written {_ago(held)}. "
    told += "The scores are of these items."
    return element(
        "section",
        element("p", element("b", "Under way: "), told, id="live-state", role="status"),
        element("progress", value=str(held.items), max=str(max(total, 1)), aria_label="Progress"),
        _class="under-way",
        aria_label="Progress of the run",
    )


def _ago(held: RunUnderWay) -> str:
    seconds = max(0, round((datetime.now(tz=UTC) - held.written).total_seconds()))
    if seconds < 120:
        return f"{counted(seconds, 'second')} ago"
    return f"{counted(seconds // 60, 'minute')} ago"
