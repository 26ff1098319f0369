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


def _files(folder: Path) -> dict[str, Path]:
    """Return the pictures of a folder by name, by stem, and by the number at the stem's end."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: not a folder of pictures; check the path")
    found: dict[str, Path] = {}
    for count, path in enumerate(_walk(folder)):
        if count >= _MOST_FILES:
            raise InvalidInputError(f"{folder} has more than {_MOST_FILES:,} pictures")
        for name in (path.name, path.stem, *_number(path.stem)):
            found.setdefault(name, path)
    return found


def _walk(folder: Path) -> Iterable[Path]:
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            if Path(name).suffix.lower() in _TYPES:
                yield Path(root, name)


def _number(stem: str) -> list[str]:
    match = _LAST_DIGITS.search(stem)
    return [str(int(match[1]))] if match else []


def _looked_up(files: dict[str, Path], show: Callable[[Path], str]) -> ImageSource:
    def source(item_id: str, group: str) -> str:
        names = [name for key in (group, item_id) for name in (key, Path(key).stem, *_number(key))]
        path = next((files[name] for name in names if name in files), None)
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
        raise MissingExtraError(
            "embedded pictures need Pillow: pip install 'hallujudge[images]'"
        ) from err

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
