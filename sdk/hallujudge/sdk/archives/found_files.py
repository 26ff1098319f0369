"""The files behind a path, a folder, a pattern, a URL or standard input.

fsspec reads URLs; it is imported only where the user gives one.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from msgspec import Struct

from ..errors import ArchiveError, MissingExtraError
from .local_files import STDIN

STDIN_NAME = "standard input"
"""Name of standard input in messages."""
# Standard input and URLs are copied to the disk, up to this size.
_MAX_COPIED_BYTES = 1 << 33
_COPIED_PIECE = 1 << 20
_MAX_FILES = 20_000
_MAX_DEPTH = 12
# What makes glob treat a path as a pattern.
_PATTERN = re.compile(r"[*?\[]")
# Files of these kinds are found next to archives and are never archives themselves.
_IGNORED = re.compile(
    r"\.(jpe?g|png|gif|webp|mp4|avi|mov|pdf|html|md|log|py|sh|ya?ml|toml|lock|pt|pth|bin|npy|npz"
    r"|safetensors|tex|svg|css|js)",
    re.IGNORECASE,
)
# Of these, the kinds that somebody may have written responses to.
_TEXTS = frozenset({".md", ".log"})


class FoundFile(Struct, frozen=True, kw_only=True):
    """A file of an archive."""

    path: Path
    """Path of the file on this machine, which may be a temporary copy."""
    name: str
    """Name for messages: the path or URL that the user gave."""
    root: Path | None = None
    """Folder that the file was found in; None if the user named the file."""


def found_files(source: str | Path) -> list[FoundFile]:
    """Return the files of a source, in the order of their paths.

    Args:
        source: A file, a folder, a pattern such as ``runs/*/samples.jsonl``, a URL of one of them,
            or ``-``.

    Raises:
        ArchiveError: There is no such file, or a folder has too many.
    """
    refuse_texts([source])
    text = str(source)
    if text == STDIN:
        return [FoundFile(path=copy_of_stdin(), name=STDIN_NAME)]
    if is_url(text):
        return _behind_url(text)
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    return _matching(text) if is_pattern(path) else [FoundFile(path=path, name=text)]


def refuse_texts(sources: Iterable[str | Path]) -> None:
    """Refuse texts that no system takes for names of files.

    Raises:
        ArchiveError: There is one, such as a caption in place of a file.
    """
    for source in sources:
        if is_url(source):
            continue
        try:
            os.lstat(source)
        except (OSError, ValueError) as err:
            # A missing file is reported where it is read.
            if isinstance(err, ValueError) or err.errno == errno.ENAMETOOLONG:
                raise ArchiveError(
                    f"{str(source)[:80]!r} can't be the name of a file; give the path of one, or "
                    "texts in a mapping from id to text"
                ) from err


def unread_texts(folder: Path) -> list[Path]:
    """Return the notes and program outputs of a folder, which are never read as archives."""
    return list(_walked(folder, lambda name: Path(name).suffix.lower() in _TEXTS))


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


def is_pattern(path: Path) -> bool:
    """Return whether a path is a pattern of files, and not a file whose name looks like one."""
    return _PATTERN.search(str(path)) is not None and not path.exists()


def copy_of_stdin() -> Path:
    """Return a temporary file with the content of standard input, the same one at each call.

    Archives are read more than once, which a pipe does not allow.

    Raises:
        ArchiveError: Standard input is a terminal, is closed, or is too large.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise ArchiveError("standard input is a terminal; pipe a file into the command")
    if (known := _STDIN_COPIES.get(sys.stdin)) is None:
        known = copy_to_file(sys.stdin.buffer.read, "standard input", "standard-input")
        _STDIN_COPIES[sys.stdin] = known
    return known


def temporary_folder() -> Path:
    """Return a new folder, which is deleted when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="hallujudge-")
    # Kept, since a folder is deleted once nothing refers to it.
    _FOLDERS.append(folder)
    return Path(folder.name)


def copy_to_file(
    read: Callable[[int], bytes], what: str, name: str, folder: Path | None = None
) -> Path:
    """Return a temporary file with a stream's content; it is deleted when this process ends.

    Args:
        read: Reads up to a number of bytes of the stream.
        what: The stream, for messages.
        name: Name of the file, whose suffix names its format.
        folder: The folder that it is written to; None for a new one.

    Raises:
        ArchiveError: The stream is too large.
    """
    path = (folder or temporary_folder()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    left = _MAX_COPIED_BYTES
    with path.open("wb") as file:
        while piece := read(_COPIED_PIECE):
            left -= len(piece)
            if left < 0:
                raise ArchiveError(f"{what} has more than {_MAX_COPIED_BYTES:,} bytes; split it")
            file.write(piece)
    return path


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
_STDIN_COPIES: WeakKeyDictionary[TextIO, Path] = WeakKeyDictionary()


def _behind_url(url: str) -> list[FoundFile]:
    if not _is_tree(url):
        return [FoundFile(path=fetched(url), name=public_url(url))]
    root, copies = _fetched_tree(url)
    return [FoundFile(path=path, name=name, root=root) for path, name in copies]


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
    # Folders below the first one with a mark may name models.
    root = Path(_PATTERN.split(pattern)[0]).parent
    return [FoundFile(path=path, name=str(path), root=root) for path in paths]


def _walked(folder: Path, wanted: Callable[[str], bool] | None = None) -> Iterator[Path]:
    """Yield a folder's files; hidden ones, links to folders and deep folders are left out.

    Args:
        folder: The folder.
        wanted: Whether a file of some name is yielded; None for those that may be archives.
    """
    wanted = wanted or _may_be_archive
    count = 0
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        depth = len(Path(place).relative_to(folder).parts)
        # In place, which keeps os.walk out of the others; __MACOSX and __pycache__ are of no user.
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "__")) and depth < _MAX_DEPTH
        )
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(".") or not wanted(name) or not path.is_file():
                continue
            count += 1
            if count > _MAX_FILES:
                raise ArchiveError(
                    f"{folder}: more than {_MAX_FILES:,} files; give a folder inside it"
                )
            yield path


def _may_be_archive(name: str) -> bool:
    return not name.startswith(".") and not _IGNORED.fullmatch(Path(name).suffix)


def _refuse_folder(err: OSError) -> None:
    raise ArchiveError(f"{err.filename}: {err.strerror or err}; check the path") from err


def _unique(paths: Iterable[Path]) -> list[Path]:
    """Return each file once, without links to files in the list, as VLMEvalKit makes.

    Links to folders also let a pattern find a file several times, without end if they form a
    circle. Of several paths the shortest one without a link as its last part is kept.
    """
    by_file: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda path: (path.is_symlink(), len(path.parts), path)):
        by_file.setdefault(path.resolve(), path)
    return sorted(by_file.values())


# Fewer than in a local folder, since each file is downloaded.
_MOST_FILES = 2_000
# A question mark begins the query of a URL.
_URL_PATTERN = re.compile(r"[*\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# File systems that only read data; fsspec has others that run commands or unpack pickles.
_PROTOCOLS = frozenset({
    "http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "file", "memory",
})  # fmt: skip
_SECONDS_WITHOUT_DATA = 60
# What errors of aiohttp mean, by the names of their classes: their texts are objects of Python.
_HTTP_PROBLEMS = {
    "ClientPayloadError": "the connection ended early",
    "TooManyRedirects": "it redirects too often",
    "NonHttpUrlRedirectClientError": "it redirects to a URL that is not HTTP",
    "SocketTimeoutError": f"no data for {_SECONDS_WITHOUT_DATA} seconds",
}
_COPIES: dict[str, Path] = {}
# Copy -> its URL, and the URL of the folder that names within a copied folder belong to.
_ORIGINS: dict[Path, tuple[str, str]] = {}


def copy_of(url: object) -> Path | None:
    """Return the last temporary copy of a URL that this process made; None if there is none."""
    return _COPIES.get(str(url))


def origin_of(path: Path) -> str:
    """Return the URL of a temporary copy, or of what is in it; empty for other files."""
    for folder in (path, *path.parents):
        if folder in _ORIGINS:
            url, start = _ORIGINS[folder]
            return url if folder == path else f"{start}{path.relative_to(folder).as_posix()}"
    return ""


def is_url(source: object) -> bool:
    """Return whether a source is a URL rather than a path."""
    return isinstance(source, str) and _URL.match(source) is not None


def fetched(url: str) -> Path:
    """Return a temporary copy of the file behind a URL.

    Raises:
        ArchiveError: The URL has an unknown protocol, or reading it fails, also half way.
        MissingExtraError: fsspec, or the package for the protocol, is not installed.
    """
    return _noted(url, url, _copied(_library(url), _unquoted(url), _url_name(url)))


def _noted(url: str, start: str, copy: Path) -> Path:
    _COPIES[url] = copy
    _ORIGINS[copy] = (url, start)
    return copy


def _is_tree(url: str) -> bool:
    """Return whether a URL is a folder or a pattern, rather than one file.

    A folder behind HTTP ends with a slash, since a server does not say which URLs are folders.

    Raises:
        ArchiveError: See :func:`fetched`.
        MissingExtraError: See :func:`fetched`.
    """
    library: Any = _library(url)
    if url.endswith("/") or _URL_PATTERN.search(urlsplit(url).path):
        return True
    with _failures(url):
        files, path = library.core.url_to_fs(_unquoted(url))
        return not url.startswith("http") and bool(files.isdir(path))


def _fetched_tree(url: str) -> tuple[Path, list[tuple[Path, str]]]:
    """Return a temporary folder, and its files with their URLs: those of a folder or a pattern.

    Raises:
        ArchiveError: See :func:`fetched`; also if there are no files, or too many.
        MissingExtraError: See :func:`fetched`.
    """
    library: Any = _library(url)
    with _failures(url):
        files, path = library.core.url_to_fs(_unquoted(url))
        fixed, *pattern = _URL_PATTERN.split(files.unstrip_protocol(path), maxsplit=1)
        start = f"{fixed.rpartition('/')[0] if pattern else fixed.rstrip('/')}/"
        found = files.glob(path) if pattern else files.find(path)
        urls = sorted(map(files.unstrip_protocol, found))
    names = {each: _inside(start, each) for each in urls}
    chosen = [each for each in urls if names[each] and _may_be_archive(PurePosixPath(each).name)]
    if not chosen or len(chosen) > _MOST_FILES:
        count = f"more than {_MOST_FILES:,} files" if chosen else "no file"
        raise ArchiveError(
            f"{public_url(url)}: {count} that could be an archive; give another folder or pattern"
        )
    root = _noted(url, start, temporary_folder())
    return root, [(_copied(library, each, names[each], root), public_url(each)) for each in chosen]


def _inside(start: str, url: str) -> str:
    """Return the path of a file below a folder; empty for what is not below it."""
    name = unquote(url.removeprefix(start)) if url.startswith(start) else ""
    parts = PurePosixPath(name).parts
    # A server names its files as it likes.
    safe = parts and not any(part in ("..", "/") or "\\" in part or "\0" in part for part in parts)
    return "/".join(parts) if safe else ""


def _library(url: str) -> object:
    """Return fsspec, for a URL that it may read."""
    try:
        urlsplit(url)
    except ValueError as err:
        # A password may be before the @, and a key in the query.
        shown = url.rpartition("@")[2].partition("?")[0]
        raise ArchiveError(f"{shown!r:.200} is not a URL ({err}); correct it") from err
    protocol = url.partition("://")[0].lower()
    # fsspec chains file systems with "::", and only the first would be checked.
    if protocol not in _PROTOCOLS or "::" in url:
        raise ArchiveError(
            f"{public_url(url)}: URLs of {protocol!r} are not read; use one of "
            f"{', '.join(sorted(_PROTOCOLS - {'memory'}))}, or download the file"
        )
    with MissingExtraError.unless_installed("reading URLs", "remote"):
        import fsspec
    return fsspec


@contextmanager
def _failures(url: str) -> Iterator[None]:
    try:
        yield
    except ImportError as err:
        raise MissingExtraError.of(f"reading {public_url(url)}", "remote") from err
    # Every file system of fsspec has exceptions of its own.
    except Exception as err:
        raise _failed(url, 0, None, str(err) or type(err).__name__) from err


def _copied(fsspec: object, url: str, name: str, folder: Path | None = None) -> Path:
    received = 0
    expected: int | None = None
    try:
        with fsspec.open(url, "rb", **_options(url)) as stream:  # type: ignore[attr-defined]  # the package fsspec
            expected = getattr(stream, "size", None)

            def read(size: int) -> bytes:
                nonlocal received
                piece: bytes = stream.read(size)
                received += len(piece)
                return piece

            path = copy_to_file(read, public_url(url), name, folder)
    # What copy_to_file raises says all; the broad clause below would reword it.
    except ArchiveError:
        raise
    except ImportError as err:
        raise MissingExtraError.of(f"reading {public_url(url)}", "remote") from err
    # Every file system of fsspec has exceptions of its own.
    except Exception as err:
        raise _failed(url, received, expected, _reason(err, url)) from err
    if expected is not None and received != expected:
        raise _failed(url, received, expected, "the connection ended early")
    return path


def _options(url: str) -> dict[str, Any]:
    """Return options of a file system.

    A file behind HTTP is read as one stream. By default, fsspec asks for its length beforehand and
    then for ranges; if a server states a length that is too small, the rest would be lost.
    """
    if not url.startswith("http"):
        return {}
    from aiohttp import ClientTimeout

    # Large files take longer than aiohttp's five minutes.
    timeout = ClientTimeout(total=None, sock_connect=30, sock_read=_SECONDS_WITHOUT_DATA)
    return {"block_size": 0, "client_kwargs": {"timeout": timeout}}


def _reason(err: BaseException, url: str) -> str:
    """Return an error's problem; where a library names only the URL, the cause has it."""
    absent = isinstance(err, FileNotFoundError)
    if err.__cause__ is not None and (absent or str(err) in ("", url)):
        return _reason(err.__cause__, url)
    name, status = type(err).__name__, getattr(err, "status", 0)
    if name == "ClientResponseError" and status:
        # Its text has the URL, and the body if the body is invalid.
        message = str(getattr(err, "message", "")).partition("\n")[0].rstrip(":")
        return f"HTTP status {status}, {message}"
    return "no such file" if absent else _HTTP_PROBLEMS.get(name) or str(err) or name


def _failed(url: str, received: int, expected: int | None, problem: str) -> ArchiveError:
    got = f" after {received:,} bytes" if received else ""
    of = f" of {expected:,}" if received and expected is not None else ""
    first_line = problem.replace(url, public_url(url)).splitlines()[0][:200]
    return ArchiveError(
        f"{public_url(url)}: reading failed{got}{of}: {first_line}. Check the URL and try again, "
        "or download the file",
        metadata={"url": public_url(url)},
    )


def public_url(url: str) -> str:
    """Return a URL without user, password and query, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _url_name(url: str) -> str:
    return PurePosixPath(urlsplit(url).path).name or "archive"


def _unquoted(url: str) -> str:
    """Return a URL as fsspec takes it, which does not decode ``%20`` in URLs of files."""
    protocol, _, rest = url.partition("://")
    plain = f"{protocol.lower()}://{rest}"
    return unquote(plain) if plain.startswith("file:") else plain
