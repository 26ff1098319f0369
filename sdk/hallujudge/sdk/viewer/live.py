"""The page of a run under way: what its journal holds so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from ..report.markup import Content, Markup, element
from ..report.page.document import document, first, links, render_parts
from ..report.page.images import Images
from ..report.text import counted
from ..runs.under_way import RunUnderWay, read_under_way
from .found import FoundRun
from .pages import OVERVIEW

__all__ = ["live_page"]


def live_page(run: FoundRun) -> str:
    """Return the page of a run under way; it keeps itself up to date.

    Args:
        run: The run.

    Raises:
        FileNotFoundError: The run was completed meanwhile.
    """
    held = read_under_way(run.folder)
    about = replace(held.about, title=run.title or held.about.title, overview=OVERVIEW)
    progress = _progress(run, held)
    if held.report is None:
        body = [links(OVERVIEW, items=False), progress, element("h1", about.title)]
        title = f"{about.title} – Hallujudge"
        return document(title, [first(*body, live=True)], scripts=("live.js",))
    return render_parts(held.parts, held.report, about, Images(), live=progress)


def _progress(run: FoundRun, held: RunUnderWay) -> Markup:
    total = held.manifest.items
    return element(
        "section",
        element("p", *_told(run, held), id="live-state", role="status"),
        element("progress", value=str(held.items), max=str(max(total, 1)), aria_label="Progress"),
        _class="under-way",
        aria_label="Progress of the run",
    )


def _told(run: FoundRun, held: RunUnderWay) -> Iterator[Content]:
    yield element("b", f"{run.state}: ")
    yield f"{held.items:,} of {counted(held.manifest.items, 'item')} scored; "
    yield f"last written {_ago(held)}. "
    yield "The scores are of these items. " if held.items else "Items are shown once scored. "
    if not run.writing:
        yield "To go on with a run that stopped, repeat its command with "
        yield element("code", "--resume")
        yield "."


def _ago(held: RunUnderWay) -> str:
    seconds = max(0, round((datetime.now(tz=UTC) - held.written).total_seconds()))
    if seconds < 120:
        return f"{counted(seconds, 'second')} ago"
    return f"{counted(seconds // 60, 'minute')} ago"
