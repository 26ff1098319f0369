"""Values as compact JSON, compressed."""

from __future__ import annotations

import gzip
import json
from typing import Any

__all__ = ["packed", "unpacked"]


def packed(value: object, *, level: int = 6) -> bytes:
    """Return a value as compressed JSON; equal values give equal bytes.

    Args:
        value: The value; it has no NaN and no infinity.
        level: How hard gzip tries, from 1 to 9.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Without the time of day: equal items make equal bytes.
    return gzip.compress(text.encode(), compresslevel=level, mtime=0)


def unpacked(data: bytes) -> Any:
    """Return the value that was packed."""
    return json.loads(gzip.decompress(data))
