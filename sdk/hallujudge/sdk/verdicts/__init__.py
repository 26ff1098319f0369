"""Verdicts of a run, read from its items: what human labels agree with or not."""

from __future__ import annotations

from .read import KINDS, read_verdicts
from .values import DecidedClaim, DecidedItem

__all__ = ["KINDS", "DecidedClaim", "DecidedItem", "read_verdicts"]
