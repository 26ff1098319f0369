"""Images, videos and their frames: found in folders, bounded in size, and never fetched.

Names are imported when they are first used: pages have pictures only if a user names their folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from .pictures import shown_colours as shown_colours

__getattr__, __dir__ = names_on_use(__name__)
