"""What a run leaves in its folder if it is refused before its first item is scored: nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from hallujudge.judge_service.llm.cache_file import kept_replies

from ..errors import HallujudgeError
from .folder_lock import is_locked
from .manifest import ITEMS, JOURNAL, MANIFEST, MARKS, VERDICTS, partial

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
