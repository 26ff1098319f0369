"""How much the HTML page shows."""

from __future__ import annotations

__all__ = ["KEPT_ITEMS", "MOST_BYTES", "MOST_ITEMS"]

MOST_ITEMS = 50_000
"""Most items of a page, the first ones; those after them are only in ``items.jsonl``."""

KEPT_ITEMS = 10_000
"""Items that a run keeps for a page where none was asked for. Keeping one costs about 30 µs, which
a large run without a page would spend for nothing."""

MOST_BYTES = 64 << 20
"""Compressed size from which on a page holds no more items."""
