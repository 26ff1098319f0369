"""Guards of folders: a run's lock, what is saved of a lost one, unfinished files and runs."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hallujudge.judge_service.llm.cache_file import kept_replies

from ..errors import HallujudgeError, OutputError
from .manifest import ITEMS, JOURNAL, MANIFEST, MARKS, VERDICTS, partial

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None  # type: ignore[assignment]  # a module that is absent

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
    if fcntl is None:
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
    assert fcntl is not None, "it was locked"
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def place_of(file: BinaryIO) -> Path | None:
    """Return where an open file is now; None if it was deleted, or if the system can't tell."""
    with suppress(OSError):
        path = Path(f"/proc/self/fd/{file.fileno()}").readlink()
        return path if path.exists() else None
    return None


def copy_open_file(file: BinaryIO, path: Path, *, by: Path) -> None:
    """Write the content of an open file, which may be deleted, to a path.

    Args:
        file: The file, open for reading.
        path: The path.
        by: Where it is written first; the path may be that of the open file.

    Raises:
        OSError: It can't be written.
    """
    file.seek(0)
    with by.open("wb") as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())
    by.replace(path)


def make_folder(folder: Path) -> None:
    """Make a run's folder, and those above it.

    Raises:
        OutputError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as err:
        # As below /proc, where no folder can be made: none was lost.
        raise OutputError(
            f"can't make {folder}: {err.strerror}; give another folder for the results",
            metadata={"path": str(folder)},
        ) from err


def lost_folder(folder: Path, items: int, moved: Path | None, *, is_taken: bool) -> OutputError:
    """Return the error about a folder that was deleted, moved or replaced.

    Args:
        folder: The folder.
        items: Number of items that the run had written.
        moved: Where the lines of the run are now; None if they were deleted.
        is_taken: Whether another run has the folder's path.
    """
    where = f" (its items are at {moved})" if moved is not None else ""
    what = f"{folder} was deleted, moved or replaced while the run wrote to it{where}"
    if is_taken:
        text = (
            f"{what}; another run has written to that path, so this one stops. The replies that "
            f"were paid for are in {folder / VERDICTS}: name it with verdict_cache, and give "
            "another folder for the results"
        )
    else:
        text = (
            f"{what}. The run stops; its {items} items and the replies that were paid for are in "
            f"a new {folder}: go on with ScoreRun(resume=True), or delete it"
        )
    return OutputError(text, metadata={"path": str(folder)})


# SQLite's own files beside a database.
_BESIDE = ("", "-wal", "-shm")


@contextmanager
def tidied(folder: Path) -> Iterator[None]:
    """Remove what a refused run made, where neither an item nor a reply is kept.

    A server that can't be reached, or a judge that rejects its key, ends a run after its folder was
    made. Such a folder looks like a run that can be resumed.

    Args:
        folder: The run's folder, which may not exist yet.
    """
    was_there = folder.exists()
    had_verdicts = (folder / VERDICTS).exists()
    try:
        yield
    except HallujudgeError:
        # The files of another run, which has scored nothing yet, are its own.
        if folder.exists() and not is_locked(folder):
            # The refusal is what the caller must see, not what could not be removed after it.
            with suppress(OSError):
                _clear(folder, verdicts=not had_verdicts)
                if not was_there:
                    folder.rmdir()  # only an empty folder can be removed
        raise


def _clear(folder: Path, *, verdicts: bool) -> None:
    """Remove files without an item, and a new file of verdicts without a reply."""
    lines = partial(folder, ITEMS)
    if lines.exists() and (lines.is_symlink() or lines.stat().st_size):
        return
    for name in (ITEMS, JOURNAL, MANIFEST, MARKS):
        partial(folder, name).unlink(missing_ok=True)
    if verdicts:
        _remove_without_replies(folder / VERDICTS)


@asynccontextmanager
async def tidied_replies(cache: Path) -> AsyncIterator[None]:
    """Remove a new file of replies if what uses it is refused before the first one.

    Args:
        cache: The file, which may not exist yet, and which no other run uses.
    """
    was_there = cache.exists()
    try:
        yield
    except HallujudgeError:
        if not was_there:
            with suppress(OSError):
                _remove_without_replies(cache)
        raise


def _remove_without_replies(cache: Path) -> None:
    if not kept_replies(cache):
        for end in _BESIDE:
            cache.with_name(f"{cache.name}{end}").unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush the names of the files to the disk, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_synced(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file, and flush it to the disk."""
    with path.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def completed(path: Path) -> Iterator[Path]:
    """Yield the name under which a file is written, which gets its own name once it is whole.

    Raises:
        OSError: The file can't be written.
    """
    part = part_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """Return the name that a file has until it is complete."""
    # With the process's number, since two runs may write to one folder. In the same folder, since a
    # file is only replaced at once within a file system.
    return path.with_name(f".{path.name}.{os.getpid()}.part")
