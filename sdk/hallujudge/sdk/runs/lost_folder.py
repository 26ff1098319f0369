"""What is saved of a run whose folder was deleted or moved while the run writes to it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import OutputError
from .manifest import VERDICTS


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
