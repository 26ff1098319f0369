"""The list of metric families, which every layer uses.

A family ``NAME`` is ``metrics/NAME``, ``engine/families/NAME.py``, ``archives/NAME.py`` and
``cli/NAME.py``; a new family adds these modules and a line here.
"""

from __future__ import annotations

FAMILIES = [
    "chair",
    "pope",
    "tri_he",
    "mementos",
    "vidhal",
    "infact",
    "hallusion_bench",
    "event_hallusion",
    "video_hallucer",
    "amber",
]
"""Names of the families, in the order of tables and listings."""
