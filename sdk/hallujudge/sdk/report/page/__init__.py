"""The report as one self-contained, interactive HTML page.

The page is written from *parts*: what it shows of a batch of items. A part is a pure function of
its batch, so that a run that was resumed or merged makes the same page.
"""

from .document import HtmlPage, Images, render_parts
from .first_screen import PageAbout
from .page_parts import page_part

__all__ = [
    "HtmlPage",
    "Images",
    "PageAbout",
    "page_part",
    "render_parts",
]
