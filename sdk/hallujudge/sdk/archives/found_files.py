"""The files that a path, a folder, a pattern, a URL or standard input stands for."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import ArchiveError
from .local_files import STDIN, copy_of_stdin
from .remote_files import fetched, fetched_tree, is_tree, is_url, public_url

__all__ = ["STDIN_NAME", "FoundFile", "found_files", "is_pattern", "with_given_name"]

STDIN_NAME = "standard input"
"""Name of standard input in messages."""

_MAX_FILES = 20_000
_MAX_DEPTH = 12
_PATTERN = re.compile(r"[*?\[]")
# Files of these kinds lie beside archives and are never archives themselves.
_IGNORED = re.compile(
    r"\.(jpe?g|png|gif|webp|mp4|avi|mov|pdf|html|md|log|py|sh|ya?ml|toml|lock|pt|pth|bin|npy|npz"
    r"|safetensors|tex|svg|css|js)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file of an archive."""

    path: Path
    """Path of the file on this machine, which may be a temporary copy."""
    name: str
    """Name for messages: the path or URL that the user gave."""
    root: Path | None = None
    """Folder that the file was found in; None if the user named the file."""


@contextmanager
def with_given_name(file: FoundFile) -> Iterator[None]:
    """Let errors about a temporary copy name what the user gave."""
    try:
        yield
    except ArchiveError as err:
        path, message = str(file.path), str(err)
        if path == file.name or path not in message:
            raise
        raise ArchiveError(message.replace(path, file.name), metadata=dict(err.metadata)) from err


def found_files(source: str | Path) -> list[FoundFile]:
    """Return the files that a source stands for, in the order of their paths.

    Args:
        source: A file, a folder, a pattern such as ``runs/*/samples.jsonl``, a URL of one of them,
            or ``-``.

    Raises:
        ArchiveError: There is no such file, or a folder has too many.
    """
    text = str(source)
    if text == STDIN:
        return [FoundFile(path=copy_of_stdin(), name=STDIN_NAME)]
    if is_url(text):
        return _behind_url(text)
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    return _matching(text) if is_pattern(path) else [FoundFile(path=path, name=text)]


def is_pattern(path: Path) -> bool:
    """Return whether a path is a pattern of files, and not a file whose name looks like one."""
    return _PATTERN.search(str(path)) is not None and not path.exists()


def _behind_url(url: str) -> list[FoundFile]:
    if not is_tree(url):
        return [FoundFile(path=fetched(url), name=public_url(url))]
    root, copies = fetched_tree(url, _may_be_archive)
    return [FoundFile(path=path, name=name, root=root) for path, name in copies]


def _may_be_archive(name: str) -> bool:
    return not name.startswith(".") and not _IGNORED.fullmatch(Path(name).suffix)


def _in_folder(folder: Path) -> list[FoundFile]:
    paths = _unique(_walked(folder))
    if not paths:
        raise ArchiveError(f"{folder}: the folder has no file that could be an archive")
    return [FoundFile(path=path, name=str(path), root=folder) for path in paths]


def _matching(pattern: str) -> list[FoundFile]:
    found = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207  # a pattern may be absolute
    files: list[Path] = []
    for path in found:
        # A link that leads nowhere, or around in a circle, is not a file.
        files += _walked(path) if path.is_dir() else [path] if path.is_file() else []
    paths = _unique(files)
    if not paths:
        raise ArchiveError(f"{pattern}: no file matches the pattern; check it")
    root = Path(_PATTERN.split(pattern)[0]).parent
    return [FoundFile(path=path, name=str(path), root=root) for path in paths]


def _walked(folder: Path) -> Iterator[Path]:
    """Yield a folder's files; hidden ones, links to folders and deep folders are left out."""
    count = 0
    for place, folders, names in os.walk(folder, onerror=_refuse):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "__")) and depth < _MAX_DEPTH
        )
        for name in sorted(names):
            path = Path(place, name)
            if not _may_be_archive(name) or not path.is_file():
                continue
            count += 1
            if count > _MAX_FILES:
                raise ArchiveError(
                    f"{folder}: more than {_MAX_FILES:,} files; give a folder inside it"
                )
            yield path


def _refuse(err: OSError) -> None:
    raise ArchiveError(f"{err.filename}: {err.strerror or err}; check the path") from err


def _unique(paths: Iterable[Path]) -> list[Path]:
    """Return each file once, without links to files in the list, as VLMEvalKit makes.

    Links to folders, too, let a pattern find a file several times, without end if they go around
    in a circle. Of several paths the shortest one without a link as its last part is kept.
    """
    by_file: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda path: (path.is_symlink(), len(path.parts), path)):
        by_file.setdefault(path.resolve(), path)
    return sorted(by_file.values())
