"""How many items the HTML page shows."""

from __future__ import annotations

__all__ = ["SHOWN_ITEMS", "SHOWN_UNSCORED"]

SHOWN_ITEMS = 200
"""Most scored items: those with the most hallucinations, and of equal ones the earliest."""

SHOWN_UNSCORED = 50
"""Most unscored items: the earliest."""
