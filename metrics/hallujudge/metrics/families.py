"""The list of metric families, which every layer uses.

A family is a module or package of the same name in ``metrics``, ``engine/families``, ``archives``
and ``cli``. A new family adds these and a line here.
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
