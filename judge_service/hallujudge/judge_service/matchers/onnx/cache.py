"""A private folder of written graphs, each checked by its hash whenever it is read."""

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
    """Graphs by key, in files that nobody else may write.

    A graph is a program: whoever can replace it decides every verdict. So the folder must belong to
    the user alone, and a file whose hash is not the recorded one is written again.

    Args:
        folder: The folder. None: ``.cache/hallujudge/onnx`` in the user's home.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path.home() / ".cache" / "hallujudge" / "onnx"

    def graph(self, key: str, write: Callable[[], bytes]) -> bytes:
        """The graph of a key, written where it is absent or damaged.

        A folder that can't be written leaves the graph in memory: the next run writes it again.

        Args:
            key: Hash of everything that the graph depends on.
            write: Makes the graph.

        Raises:
            InvalidInputError: The folder or a file in it belongs to others, or others may write it.
        """
        if not self._open():
            return write()
        graph = self._read(key)
        if graph is None:
            graph = write()
            # A full or read-only disk costs the next start a second, and nothing else.
            with contextlib.suppress(OSError):
                self._replace(f"{key}.onnx", graph)
                record = {"sha256": hashlib.sha256(graph).hexdigest(), "bytes": len(graph)}
                self._replace(f"{key}.json", json.dumps(record).encode())
        return graph

    def _open(self) -> bool:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError as err:
            raise InvalidInputError(
                f"the cache folder {self._folder} is a file; give another folder"
            ) from err
        except OSError:
            return False
        self._check(self._folder)
        return True

    def _read(self, key: str) -> bytes | None:
        graph, record = self._folder / f"{key}.onnx", self._folder / f"{key}.json"
        try:
            for path in (graph, record):
                self._check(path)
            if record.stat().st_size > _MAX_RECORD_BYTES:
                return None
            told = json.loads(record.read_text(encoding="utf-8"))
            content = graph.read_bytes()
        except (OSError, ValueError, RecursionError):
            return None
        whole = isinstance(told, dict) and told.get("sha256") == hashlib.sha256(content).hexdigest()
        return content if whole else None

    def _replace(self, name: str, content: bytes) -> None:
        """Writes a file in one step, so that no other process reads half of it."""
        handle, path = tempfile.mkstemp(dir=self._folder, prefix=f".{name[:16]}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(path).replace(self._folder / name)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise

    def _check(self, path: Path) -> None:
        if not hasattr(os, "getuid"):
            return
        status = path.lstat()
        foreign = status.st_uid != os.getuid()
        if foreign or stat.S_ISLNK(status.st_mode) or status.st_mode & 0o022:
            raise InvalidInputError(
                f"{path} is a link, belongs to another user or may be written by others; "
                "give a cache folder of your own, with rights 0700"
            )
