"""Private files that several processes change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OutputError

try:
    import fcntl
except ImportError:  # Windows: two administrators must not change keys at the same moment
    fcntl = None  # type: ignore[assignment]  # checked where it is used

__all__ = ["locked", "replace_private"]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file, by a lock on a file beside it.

    Raises:
        OutputError: The folder can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f".{path.name}.lock").open("a")
    except OSError as err:
        raise _unwritable(path, err) from err
    with lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace_private(path: Path, text: str) -> None:
    """Replace a file at once; only its owner may read it.

    Raises:
        OutputError: The file can't be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        # An earlier writer may have died; its file may have other permissions.
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as err:
        raise _unwritable(path, err) from err


def _unwritable(path: Path, err: OSError) -> OutputError:
    return OutputError(f"{path} can't be written: {err.strerror or err}; check its folder")
