"""Captions and reference objects for CHAIR."""

from collections.abc import Mapping

from ..inputs import CheckedReader, Reader
from .captions import read_chair, read_checked

__all__ = ["CHECKED_READERS", "READERS"]

READERS: Mapping[str, Reader] = {"chair": read_chair}
"""Metric -> its archive reader."""
CHECKED_READERS: Mapping[str, CheckedReader] = {"chair": read_checked}
"""Metric -> the reader of archives that were checked before."""
