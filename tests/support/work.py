"""Counting of calls, so that tests can assert how work grows on any machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["calls_of"]


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions, Python's and built-in ones, that work makes in this thread.

    Python's garbage collector waits meanwhile: it would call finalizers of what other tests left.
    """
    count = 0

    def note(_frame: FrameType, event: str, _value: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count
