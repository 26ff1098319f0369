"""The file of a run that says where reading of its archive can begin."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from .names import MARKS, partial

if TYPE_CHECKING:
    from .manifest import Manifest

__all__ = ["read_marks", "write_marks"]

_DIGEST_BYTES = 32


def write_marks(folder: Path, manifest: Manifest, marks: bytes) -> None:
    """Write the marks of a run that begins.

    Args:
        folder: The run's folder.
        manifest: The run's manifest, to which the marks belong.
        marks: The marks; empty if there are none.

    Raises:
        OSError: The file can't be written.
    """
    path = partial(folder, MARKS)
    if marks:
        path.write_bytes(_digest(manifest, marks) + marks)
    else:
        path.unlink(missing_ok=True)


def read_marks(folder: Path, manifest: Manifest) -> bytes:
    """Return the marks of a run that stopped; empty if they are damaged or of another run.

    Raises:
        OSError: The file can't be read, for example because the run has no marks.
    """
    content = partial(folder, MARKS).read_bytes()
    digest, marks = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return marks if digest == _digest(manifest, marks) else b""


def _digest(manifest: Manifest, marks: bytes) -> bytes:
    return hashlib.sha256(manifest.to_text().encode() + marks).digest()
