"""How many rows of a page fit into so many bytes."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["fitting"]


def fitting(sizes: Iterable[int | None], max_bytes: int) -> int:
    """Return how many rows from the first on fit; the first one always does.

    Args:
        sizes: The size of each row; None ends the page.
        max_bytes: The most bytes.
    """
    count = total = 0
    for size in sizes:
        if size is None or (count and total + size > max_bytes):
            break
        total += size
        count += 1
    return count
