"""Pictures beside items: from a folder, from addresses, or embedded as thumbnails."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from ...errors import InvalidInputError, MissingExtraError

__all__ = ["ImageSource", "Images"]

_TYPES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif"})
_MOST_FILES = 1_000_000
_THUMBNAIL = 320
_MOST_PIXELS = 100_000_000
_LAST_DIGITS = re.compile(r"(\d+)\D*$")

ImageSource: TypeAlias = "Callable[[str, str], str]"
"""Returns the source of an item's picture from its id and group; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Where the pictures of a page come from."""

    source: ImageSource = field(default=lambda _id, _group: "")
    """Finds an item's picture."""
    policy: str = "data:"
    """What the page's content security policy allows as a picture."""

    @classmethod
    def of(cls, given: str, *, page: Path, embed: bool = False) -> Images:
        """Return the pictures of a folder or of an address template.

        Args:
            given: A folder, or an address with ``{id}`` or ``{group}``; empty for no pictures.
            page: Folder of the page, which files are linked from.
            embed: Whether thumbnails are embedded, so that the page can be sent on.

        Raises:
            InvalidInputError: The folder doesn't exist, or the address names neither.
            MissingExtraError: Thumbnails need Pillow, which isn't installed.
        """
        if not given:
            return cls()
        if re.match(r"https?://", given):
            return cls(source=_template(given, embed), policy=f"data: {_origin(given)}")
        files = _files(Path(given))
        if embed:
            return cls(source=_looked_up(files, _thumbnail_maker()))
        return cls(source=_looked_up(files, _linker(page)), policy="data: file: 'self'")


def _template(given: str, embed: bool) -> ImageSource:
    if embed:
        raise InvalidInputError("pictures at an address can't be embedded; give a folder of files")
    if "{id}" not in given and "{group}" not in given:
        raise InvalidInputError(f"{given!r:.200} names neither {{id}} nor {{group}} of an item")

    def source(item_id: str, group: str) -> str:
        named = {"{id}": item_id, "{group}": group}
        return re.sub(r"\{(?:id|group)\}", lambda m: quote(named[m[0]], safe=""), given)

    return source


def _origin(address: str) -> str:
    match = re.match(r"(https?://[A-Za-z0-9.:\[\]_-]+)(?:/|$)", address)
    if match is None:
        raise InvalidInputError(
            f"{address!r:.200} is not an address of pictures; write it like "
            "https://example.org/pictures/{id}.jpg"
        )
    return match[1]


@dataclass(frozen=True, slots=True)
class _Files:
    """The pictures of a folder."""

    names: dict[str, Path]
    """By name and by stem; the first where several folders have one of the name."""
    repeated: frozenset[str]
    """Names that several folders have, as frames of several videos do."""
    frames: dict[str, Path]
    """The middle frame of each video, by the name of the folder that holds its frames."""
    numbers: dict[str, Path]
    """By the number at the stem's end."""

    def find(self, name: str) -> Path | None:
        """Return the picture of an id; frame 12 of some video is not the picture of video 12."""
        if name in self.names and name not in self.repeated:
            return self.names[name]
        return self.frames.get(name) or self.names.get(name) or self.numbers.get(name)


def _files(folder: Path) -> _Files:
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: not a folder of pictures; check the path")
    names: dict[str, Path] = {}
    numbers: dict[str, Path] = {}
    repeated: set[str] = set()
    folders: dict[Path, list[Path]] = {}
    for count, path in enumerate(_walk(folder)):
        if count >= _MOST_FILES:
            raise InvalidInputError(f"{folder} has more than {_MOST_FILES:,} pictures")
        folders.setdefault(path.parent, []).append(path)
        for name in (path.name, path.stem):
            if names.setdefault(name, path).parent != path.parent:
                repeated.add(name)
        for name in _number(path.stem):
            numbers.setdefault(name, path)
    frames = {
        held.name: paths[len(paths) // 2]
        for held, paths in folders.items()
        if held != folder and _are_frames(held, paths, repeated)
    }
    return _Files(names, frozenset(repeated), frames, numbers)


def _are_frames(folder: Path, paths: list[Path], repeated: set[str]) -> bool:
    """Return whether a folder's pictures are a video's frames: 0001.jpg, or named after it."""
    return all(path.stem in repeated or path.stem.startswith(folder.name) for path in paths[:1])


def _walk(folder: Path) -> Iterable[Path]:
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            if Path(name).suffix.lower() in _TYPES:
                yield Path(root, name)


def _number(stem: str) -> list[str]:
    match = _LAST_DIGITS.search(stem)
    return [str(int(match[1]))] if match else []


def _looked_up(files: _Files, show: Callable[[Path], str]) -> ImageSource:
    def source(item_id: str, group: str) -> str:
        names = [name for key in (group, item_id) for name in (key, Path(key).stem, *_number(key))]
        path = next(filter(None, map(files.find, names)), None)
        return "" if path is None else show(path)

    return source


def _linker(page: Path) -> Callable[[Path], str]:
    base = page.resolve()

    def link(path: Path) -> str:
        return quote(Path(os.path.relpath(path.resolve(), base)).as_posix())

    return link


def _thumbnail_maker() -> Callable[[Path], str]:
    try:
        from PIL import Image
    except ImportError as err:
        raise MissingExtraError.of("a page with embedded pictures", "images") from err

    def thumbnail(path: Path) -> str:
        try:
            with Image.open(path) as image:
                # A small file may unfold to a picture that fills the memory.
                if image.width * image.height > _MOST_PIXELS:
                    return ""
                small = image.convert("RGB")
                small.thumbnail((_THUMBNAIL, _THUMBNAIL))
        except (OSError, ValueError, Image.DecompressionBombError):
            return ""
        stream = io.BytesIO()
        small.save(stream, "JPEG", quality=70)
        return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"

    return thumbnail
