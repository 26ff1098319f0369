"""Output files of commands."""

from __future__ import annotations

from pathlib import Path

from ..errors import OutputError

__all__ = ["write_file"]


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, and create its folder if it does not exist.

    Raises:
        OutputError: The file can't be written.
    """
    data = content if isinstance(content, bytes) else content.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as err:
        raise OutputError.of(path, err, "give another path") from err
