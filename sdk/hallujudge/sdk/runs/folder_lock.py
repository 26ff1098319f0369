"""The lock of a run's folder: one run at a time writes to it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import OutputError

# A viewer holds the lock for a moment to see whether a run is under way.
_TRIES = 4
_SECONDS = 0.05


class FolderLock:
    """Holds a folder until it is released, or this process ends.

    A lock that is held is tried again for a moment, because :func:`is_locked` holds it that long.

    Args:
        folder: The folder.
        wait: Waits between two tries.

    Raises:
        OutputError: Another run holds the lock.
    """

    def __init__(self, folder: Path, *, wait: Callable[[float], object] = time.sleep) -> None:
        for _ in range(_TRIES - 1):
            try:
                self._descriptor = _locked(folder)
            except OutputError:
                wait(_SECONDS)
            else:
                return
        self._descriptor = _locked(folder)

    def release(self) -> None:
        """Let other runs write to the folder."""
        if self._descriptor is not None:
            _unlock(self._descriptor)
            self._descriptor = None


def is_locked(folder: Path) -> bool | None:
    """Return whether a run writes to a folder now, or None if the system has no such locks."""
    try:
        descriptor = _locked(folder)
    except OutputError:
        return True
    except OSError:
        return None
    if descriptor is None:
        return None
    _unlock(descriptor)
    return False


def _locked(folder: Path) -> int | None:
    try:
        import fcntl
    except ImportError:  # Windows has no such locks.
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as err:
        os.close(descriptor)
        raise OutputError(
            f"another run writes to {folder}; wait for it to end, or give another folder",
            metadata={"path": str(folder)},
        ) from err
    except OSError:
        # Some network file systems have no locks.
        os.close(descriptor)
        return None
    return descriptor


def _unlock(descriptor: int) -> None:
    """Release a lock; closing it alone would leave it to processes forked meanwhile."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
