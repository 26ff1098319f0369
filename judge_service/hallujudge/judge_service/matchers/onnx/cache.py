"""A private folder of ONNX graphs, whose hashes are verified at every read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...errors import InvalidInputError

__all__ = ["GraphCache"]

_MAX_RECORD_BYTES = 1 << 16


class GraphCache:
    """Cached graphs by key, in files that only this user may write.

    A graph is a program that determines every verdict. The folder must therefore belong to the user
    alone, and a file whose hash differs from the recorded one is written again.

    Args:
        folder: The folder; None: ``.cache/hallujudge/onnx`` in the user's home, or no folder if the
            user has no home.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _folder_of_user()

    def graph(self, key: str, write: Callable[[], bytes]) -> bytes:
        """Return the graph of a key, and write it first if it is absent or damaged.

        Without a folder, or if it is not writable, the graph stays in memory and the next run
        builds it again.

        Args:
            key: A hash of everything that determines the graph.
            write: Builds the graph.

        Raises:
            InvalidInputError: Another user owns the folder or a file in it, or may write to it.
        """
        folder = self._folder
        if folder is None or not _open(folder):
            return write()
        graph = _read(folder, key)
        if graph is None:
            graph = write()
            # On a full or read-only disk the next start takes a second longer.
            with contextlib.suppress(OSError):
                _replace(folder, f"{key}.onnx", graph)
                record = {"sha256": hashlib.sha256(graph).hexdigest(), "bytes": len(graph)}
                _replace(folder, f"{key}.json", json.dumps(record).encode())
        return graph


def _folder_of_user() -> Path | None:
    try:
        return Path.home() / ".cache" / "hallujudge" / "onnx"
    except RuntimeError:
        # The user of a service or of a container may have neither HOME nor an entry in passwd.
        return None


def _open(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as err:
        raise InvalidInputError(
            f"the cache folder {folder} is a file; give another folder"
        ) from err
    except OSError:
        return False
    _check(folder)
    return True


def _read(folder: Path, key: str) -> bytes | None:
    graph, record = folder / f"{key}.onnx", folder / f"{key}.json"
    try:
        for path in (graph, record):
            _check(path)
        if record.stat().st_size > _MAX_RECORD_BYTES:
            return None
        recorded = json.loads(record.read_text(encoding="utf-8"))
        content = graph.read_bytes()
    except (OSError, ValueError, RecursionError):
        return None
    digest = hashlib.sha256(content).hexdigest()
    intact = isinstance(recorded, dict) and recorded.get("sha256") == digest
    return content if intact else None


def _replace(folder: Path, name: str, content: bytes) -> None:
    """Write a file atomically, so that no other process reads a part of it."""
    handle, path = tempfile.mkstemp(dir=folder, prefix=f".{name[:16]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(path).replace(folder / name)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _check(path: Path) -> None:
    if not hasattr(os, "getuid"):
        return
    status = path.lstat()
    foreign = status.st_uid != os.getuid()
    # 0o022: the write permissions of the group and of other users.
    if foreign or stat.S_ISLNK(status.st_mode) or status.st_mode & 0o022:
        raise InvalidInputError(
            f"{path} is a link, belongs to another user or is writable by others; "
            "give a cache folder that you own, with mode 0700"
        )
