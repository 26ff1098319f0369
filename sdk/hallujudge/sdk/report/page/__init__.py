"""The report as one self-contained, interactive HTML page.

The page is written from *parts*: what it shows of a batch of items. A part is a pure function of
its batch, so that a run that was resumed or merged makes the same page.

Names are imported when they are first used: few runs have a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from .document import HtmlPage as HtmlPage
    from .document import Images as Images
    from .document import render_parts as render_parts
    from .first_screen import PageAbout as PageAbout
    from .page_parts import page_part as page_part


MOST_PAGE_ITEMS = 50_000
"""Maximum number of items of a page, the first ones; the others are only in ``items.jsonl``."""

__getattr__, __dir__ = names_on_use(__name__)
