"""Archives behind URLs, which fsspec reads: only where the user gives a URL."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from ..errors import ArchiveError, MissingExtraError
from .local_files import copy_to_file

__all__ = ["fetched", "is_url", "public_url"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# File systems that only read data; fsspec has others that run commands or unpack pickles.
_PROTOCOLS = frozenset(
    ["http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "memory"]
)


def is_url(source: object) -> bool:
    """Return whether a source is a URL rather than a path."""
    return isinstance(source, str) and _URL.match(source) is not None


def fetched(url: str) -> Path:
    """Return a temporary copy of the file behind a URL.

    Raises:
        ArchiveError: The URL has an unknown protocol, or reading it fails, also half way.
        MissingExtraError: fsspec, or the package for the protocol, is not installed.
    """
    protocol = url.partition("://")[0].lower()
    if protocol not in _PROTOCOLS or "::" in url:
        raise ArchiveError(
            f"{public_url(url)}: URLs of {protocol!r} are not read; use one of "
            f"{', '.join(sorted(_PROTOCOLS - {'memory'}))}, or download the file"
        )
    try:
        import fsspec
    except ImportError as err:
        raise MissingExtraError.of("reading URLs", "remote") from err
    return _copied(fsspec, url)


def _copied(fsspec: object, url: str) -> Path:
    received = 0
    expected: int | None = None
    try:
        with fsspec.open(url, "rb") as stream:  # type: ignore[attr-defined]  # the package fsspec
            expected = getattr(stream, "size", None)

            def read(size: int) -> bytes:
                nonlocal received
                piece: bytes = stream.read(size)
                received += len(piece)
                return piece

            path = copy_to_file(read, public_url(url), _name(url))
    except ArchiveError:
        raise
    except ImportError as err:
        raise MissingExtraError.of(f"reading {public_url(url)}", "remote") from err
    # Every file system of fsspec has exceptions of its own.
    except Exception as err:
        raise _failed(url, received, expected, str(err) or type(err).__name__) from err
    if expected is not None and received != expected:
        raise _failed(url, received, expected, "the connection ended early")
    return path


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


def _name(url: str) -> str:
    return PurePosixPath(urlsplit(url).path).name or "archive"
