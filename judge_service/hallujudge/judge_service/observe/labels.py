"""Labels of metrics, whose values must be few whatever callers send."""

from __future__ import annotations

import threading
from collections.abc import Iterable

__all__ = ["OTHER", "BoundedLabel", "one_of"]

OTHER = "other"
"""Stands for all values that have no series of their own."""

_MAX_CHARS = 80


class BoundedLabel:
    """Gives the first values a series each, and one series to the rest.

    Args:
        most: The number of values.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, value: str) -> str:
        """Return the label for a value."""
        value = value[:_MAX_CHARS]
        if value in self._known:
            return value
        with self._lock:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(value)
        return value


def one_of(values: Iterable[str]) -> dict[str, str]:
    """Return a table of allowed labels; look values up with ``table.get(value, OTHER)``."""
    return {value: value for value in values}
