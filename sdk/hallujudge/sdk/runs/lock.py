"""The lock of a run's folder."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import OutputError

__all__ = ["FolderLock", "is_locked"]


class FolderLock:
    """Holds a folder until it is released, or this process ends.

    Args:
        folder: The folder.

    Raises:
        OutputError: Another run holds the lock.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor = _locked(folder)

    def release(self) -> None:
        """Let other runs write to the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_locked(folder: Path) -> bool:
    """Return whether a run writes to a folder now."""
    try:
        FolderLock(folder).release()
    except OutputError:
        return True
    except OSError:
        return False
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
