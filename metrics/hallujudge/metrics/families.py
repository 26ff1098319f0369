"""The metric families, the one list that every layer goes through.

A family ``NAME`` is ``metrics/NAME``, ``engine/families/NAME.py``, ``archives/NAME.py`` and
``cli/NAME.py``; a new one is those and a line here.
"""

from __future__ import annotations

__all__ = ["FAMILIES"]

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
