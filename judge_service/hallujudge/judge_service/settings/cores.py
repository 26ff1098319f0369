"""How many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["usable_cores"]

_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota_file: Path = _QUOTA_FILE) -> int:
    """Return how many cores this process may use: those of its affinity, within its quota.

    Args:
        quota_file: The quota of a container, such as ``200000 100000`` for two cores.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not say which cores a process may use
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota(quota_file) or cores))


def _quota(file: Path) -> int | None:
    """Return the number of cores of a quota, rounded up; None: there is no quota."""
    try:
        time, period = file.read_text().split()
        return -(-int(time) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
