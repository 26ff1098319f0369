"""A disk that becomes full: a small file system, or a limit of sizes where none can be made."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["SmallDisk", "small_disk"]

# Room for the log, which is a file too; databases are larger.
_LOG_BYTES = 1 << 16


class SmallDisk:
    """A folder that has no room beyond some bytes.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self._size = size
        mount = ("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
        # Only root mounts; elsewhere files that grow beyond the size fail like those on a quota.
        self.is_mounted = not subprocess.run(mount, capture_output=True, check=False).returncode

    def limit(self) -> None:
        """Limit this process; to be called in a process that begins."""
        if not self.is_mounted:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._size // 4, most))

    def fill(self, pid: int) -> None:
        """Leave no room.

        Args:
            pid: The process that writes to the folder.
        """
        if not self.is_mounted:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (_LOG_BYTES, resource.RLIM_INFINITY))
            return
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                return

    def grow(self, pid: int = 0) -> None:
        """Make room again.

        Args:
            pid: The process that writes to the folder, if one does now.
        """
        (self.folder / "filler").unlink(missing_ok=True)
        self._size <<= 8
        if self.is_mounted:
            remount = ("mount", "-o", f"remount,size={self._size}", self.folder)
            subprocess.run(remount, check=True)
        elif pid:
            resource.prlimit(
                pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )

    def close(self) -> None:
        """Remove the file system."""
        if self.is_mounted:
            subprocess.run(("umount", "--lazy", self.folder), check=True)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk]:
    """Make a folder on a disk of some bytes.

    Args:
        folder: The folder, which does not exist.
        size: Bytes of the disk.
    """
    folder.mkdir()
    disk = SmallDisk(folder, size)
    try:
        yield disk
    finally:
        disk.close()
