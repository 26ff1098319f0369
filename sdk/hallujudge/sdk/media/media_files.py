"""Images and videos of a folder, found by the names that questions give them.

Names and files are untrusted: no file outside of the folder is opened, no address is called, and an
image is sent as it is only if its header says that it is a PNG, JPEG, GIF or WebP of bounded size.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hallujudge.judge_service.llm.chat import ChatImage

from ..errors import InvalidInputError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".webp"})
"""Suffixes of images."""
VIDEO_SUFFIXES = frozenset(
    {
        ".mp4",
        ".m4v",
        ".mov",
        ".avi",
        ".mkv",
        ".webm",
        ".mpg",
        ".mpeg",
        ".ts",
        ".flv",
        ".wmv",
        ".ogv",
        ".3gp",
    }
)
"""Suffixes of videos."""
# Playlists and scripts are formats too, and would open further files and addresses.
VIDEO_FORMATS = "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,gif"
"""FFmpeg's formats of videos."""
# Hosted APIs take at most 20 MB an image.
_MOST_IMAGE_BYTES = 20 << 20
# A small file can unpack to any number of pixels; larger ones than any camera's are refused.
_MOST_PIXELS = 100_000_000
# A home folder or a disk named by mistake must not be walked to its end.
_MOST_FILES = 5_000_000
# Longer names are errors of the system and not only missing.
_MOST_NAME_CHARS = 250
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|data:", re.IGNORECASE)
# Names of COCO's files, which benchmarks often give by their number alone.
_NUMBER = re.compile(r"(?:coco_[a-z]+\d*_)?0*(\d{1,18})")


class MediaError(Exception):
    """An image or video can't be sent.

    Attributes:
        reason: A fixed name, such as ``MEDIA_MISSING``.
        detail: What is wrong, in words.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """What a question shows: an image, a video, or a folder of images in order; and its sound."""

    name: str
    """Its path in the folder."""
    files: tuple[Path, ...]
    """The image or video, or the images in order; empty for a sound alone."""
    sound: Path | None = None
    """The audio file, or the video, whose sound is sent too; None without."""

    @property
    def is_video(self) -> bool:
        """Whether frames are to be taken of it."""
        return bool(self.files) and self.files[0].suffix.lower() in VIDEO_SUFFIXES


@dataclass(frozen=True)
class MediaFolder:
    """A folder of images and videos, which may lie in folders of it.

    Args:
        root: The folder.

    Raises:
        InvalidInputError: It is not a folder.
    """

    root: Path
    _real: Path = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            real = self.root.resolve(strict=True)
        except (OSError, RuntimeError) as err:
            raise InvalidInputError(
                f"the folder of images {self.root} can't be read: "
                f"{getattr(err, 'strerror', None) or err}; check the path"
            ) from err
        if not real.is_dir():
            raise InvalidInputError(f"{self.root} is not a folder; give the folder of the images")
        # The class is frozen, and this is computed of its field.
        object.__setattr__(self, "_real", real)

    def inner(self, name: str) -> MediaFolder | None:
        """Return a folder in this one; None if there is none."""
        path = self._real / name
        return MediaFolder(path) if path.is_dir() and self._holds(path) else None

    def find(self, name: str, shared: Container[str] = ()) -> Media:
        """Return the image or video of a name: its path, or its name without folder and suffix.

        Released files name paths below another folder than the user's, so that leading folders are
        left out until a file is found. A number, as COCO's ids are, is found in file names such as
        ``COCO_val2014_000000000042.jpg``.

        Args:
            name: What the question names.
            shared: Ends of paths that several questions' names have; none of these says which file
                is meant.

        Raises:
            MediaError: It is missing or ambiguous, or the name leads out of the folder.
        """
        self._refuse_odd(name)
        parts = parts_of_name(name)
        if len(name) > _MOST_NAME_CHARS:
            raise MediaError("MEDIA_MISSING", f"{name!r:.40} is too long for a path")
        for start in range(len(parts)):
            # Two names with this end would show the same file, of which one is wrong.
            if start and "/".join(parts[start:]) in shared:
                break
            path = self._real.joinpath(*parts[start:])
            if path.is_file() or (path.is_dir() and path != self._real):
                return self._media(path)
            # Frames of what a picture shows in one lie in a folder of its name.
            if path.suffix.lower() in IMAGE_SUFFIXES and path.with_suffix("").is_dir():
                return self._media(path.with_suffix(""))
        return self._by_stem(name, parts)

    def all(self) -> list[Media]:
        """Return all images, videos, and folders without folders of their own, by name."""
        if any(path.is_file() for path in self._known_files(self._real)):
            return [self._media(path) for path in sorted(self._known_files(self._real))]
        folders = sorted(path for path in self._real.iterdir() if path.is_dir())
        return [self._media(path) for path in folders if any(self._known_files(path))]

    def _refuse_odd(self, name: str) -> None:
        if is_address(name):
            raise MediaError(
                "MEDIA_OUTSIDE", f"{name!r:.80} is an address; only files of the folder are sent"
            )
        parts = PurePosixPath(name.replace("\\", "/"))
        if (
            parts.is_absolute()
            or ".." in parts.parts
            or "\0" in name
            # A drive of Windows; the archive may be from there.
            or re.match("[A-Za-z]:", name)
        ):
            raise MediaError("MEDIA_OUTSIDE", f"{name!r:.80} leads out of the folder of images")

    def _holds(self, path: Path) -> bool:
        """Return whether a path is in the folder once its links are followed."""
        try:
            return path.resolve(strict=True).is_relative_to(self._real)
        except (OSError, RuntimeError):
            # A link to nothing, or a loop of links.
            return False

    def _media(self, path: Path) -> Media:
        name = path.relative_to(self._real).as_posix()
        files: tuple[Path, ...] = (path,)
        if path.is_dir():
            files = tuple(sorted(self._known_files(path, videos=False), key=_natural))
            if not files:
                raise MediaError("MEDIA_MISSING", f"the folder {name!r} holds no images")
        if odd := [file.name for file in files if not self._holds(file)]:
            raise MediaError("MEDIA_OUTSIDE", f"{odd[0]!r:.80} is a link out of the folder")
        return Media(name=name, files=files)

    def _known_files(self, folder: Path, *, videos: bool = True) -> Iterator[Path]:
        known = IMAGE_SUFFIXES | VIDEO_SUFFIXES if videos else IMAGE_SUFFIXES
        return (path for path in folder.iterdir() if path.suffix.lower() in known)

    def _by_stem(self, name: str, parts: Sequence[str]) -> Media:
        *folders, stem = parts or ("",)
        stem = stem.casefold()
        found = self._stems.get(stem, [])
        if Path(stem).suffix in IMAGE_SUFFIXES | VIDEO_SUFFIXES:
            stem = stem.rpartition(".")[0]
            found = found or self._stems.get(stem, [])
        if folders:
            # A file of the name in another folder is another file, unless it is known by a number.
            end = "/".join(folders).casefold()
            found = [
                path
                for path in found
                if f"/{path}".casefold().rpartition("/")[0].endswith(f"/{end}")
            ]
        if not found and (number := _NUMBER.fullmatch(stem)):
            found = self._numbers.get(int(number[1]), [])
        if not found:
            raise MediaError("MEDIA_MISSING", f"{name!r:.80} is not in the folder")
        if len(found) > 1:
            raise MediaError("MEDIA_AMBIGUOUS", f"{name!r:.80} may be {_listed(sorted(found)[:3])}")
        return self._media(self._real / found[0])

    @cached_property
    def _stems(self) -> dict[str, list[str]]:
        """Name without suffix -> files and folders of this name."""
        found: dict[str, list[str]] = {}
        for count, path in enumerate(self._walked()):
            if count >= _MOST_FILES:
                raise InvalidInputError(
                    f"{self.root} holds more than {_MOST_FILES:,} files; give the folder of one "
                    "benchmark"
                )
            file = path.rpartition("/")[2]
            stem, dot, suffix = file.rpartition(".")
            if f"{dot}{suffix}".lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES:
                found.setdefault(stem.casefold(), []).append(path)
        return found

    @cached_property
    def _numbers(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for stem, paths in self._stems.items():
            if number := _NUMBER.fullmatch(stem):
                found.setdefault(int(number[1]), []).extend(paths)
        return found

    def _walked(self) -> Iterator[str]:
        # Links to folders are not followed.
        for folder, _, files in os.walk(self._real):
            inside = Path(folder).relative_to(self._real).as_posix()
            prefix = "" if inside == "." else f"{inside}/"
            yield from (f"{prefix}{file}" for file in files)


def _listed(paths: Iterable[str]) -> str:
    """Return paths for a message; characters that a terminal obeys are escaped."""
    return ", ".join(path if path.isprintable() else repr(path)[1:-1] for path in paths)


def folder_of_name(
    root: MediaFolder, folder: MediaFolder, name: str, condition: str, base: str
) -> tuple[MediaFolder, str]:
    """Return where a name is looked for: it may begin with the folder of a condition.

    Questions about made procedures name ``base/clip.mp4`` and a file in another folder next to
    ``base``. A file of the same name in a condition's folder shows something else.

    Args:
        root: The folder of all conditions.
        folder: The condition's folder.
        name: What the question names.
        condition: The condition.
        base: The condition of the clean files.

    Raises:
        MediaError: The name is that of a file that the condition was not applied to.
    """
    first, slash, rest = name.partition("/")
    known = slash and not is_address(name) and first not in ("", ".", "..")
    if not known or root.inner(base) is None or root.inner(first) is None:
        return folder, name
    if folder.inner(first) is not None:
        return folder, name
    if condition == base:
        return root, name
    if first == base:
        return folder, rest
    raise MediaError("MEDIA_MISSING", f"{name!r:.80} has no video under {condition!r}")


def parts_of_name(name: str) -> tuple[str, ...]:
    """Return the folders and the file of a name."""
    return PurePosixPath(name.replace("\\", "/")).parts


def shared_ends(names: Iterable[str]) -> frozenset[str]:
    """Return the ends of paths that several different names have."""
    every = {parts for name in names if (parts := parts_of_name(name))}
    ends = Counter("/".join(parts[n:]) for parts in every for n in range(len(parts)))
    return frozenset(end for end, count in ends.items() if count > 1)


def is_address(name: str) -> bool:
    """Return whether a name is an address, or holds data, and so is not a path."""
    return _ADDRESS.match(name) is not None


def path_of_address(name: str) -> str:
    """Return host and path of an address as a path; empty if it is none, or has no file."""
    if not is_address(name) or name[:5].lower() == "data:":
        return ""
    host, _, path = re.split(r"[?#]", name.partition("://")[2])[0].partition("/")
    parts = [part for part in unquote(path).split("/") if part not in ("", ".", "..")]
    return "/".join([host.replace(":", "_"), *parts]) if parts else ""


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return what sorts frame 10 after frame 9."""
    parts = re.split(r"(\d+)", path.name.casefold())
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file.

    Raises:
        MediaError: It is a pipe or a device, or can't be opened.
    """
    try:
        # A pipe without a writer would block.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as err:
        detail = f"{path.name!r:.80}: {err.strerror or err}"
        raise MediaError("MEDIA_UNREADABLE", detail) from err
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise MediaError("MEDIA_UNREADABLE", f"{path.name!r:.80} is not a regular file")
    return os.fdopen(number, "rb")


def hash_of_files(files: Iterable[Path]) -> str:
    """Return the hash of files, in their order.

    Raises:
        MediaError: A file can't be read.
    """
    digest = hashlib.sha256()
    for path in files:
        with open_regular(path) as file:
            hashlib.file_digest(file, lambda: digest)
        # Without a mark between them, moving bytes from one file to the next is not a change.
        digest.update(b"\0")
    return digest.hexdigest()


def read_image(path: Path) -> ChatImage:
    """Return an image with its bytes as they are.

    Raises:
        MediaError: It is too large, cut off, or not a PNG, JPEG, GIF or WebP.
    """
    with open_regular(path) as file:
        data = file.read(_MOST_IMAGE_BYTES + 1)
    if len(data) > _MOST_IMAGE_BYTES:
        raise MediaError(
            "MEDIA_TOO_LARGE", f"{path.name!r:.80} has more than {_MOST_IMAGE_BYTES >> 20} MiB"
        )
    return image_of(data, path.name)


def image_of(data: bytes, name: str) -> ChatImage:
    """Return an encoded image with its type and size, read from its header.

    Raises:
        MediaError: It is none of the four types, or has too many pixels.
    """
    try:
        found = _header(data)
    except (IndexError, ValueError):
        found = None
    if found is None or not (found[1] and found[2]):
        raise MediaError(
            "MEDIA_UNREADABLE",
            f"{name!r:.80} is not a whole PNG, JPEG, GIF or WebP; it begins {data[:8]!r}",
        )
    kind, width, height = found
    if width * height > _MOST_PIXELS:
        raise MediaError(
            "MEDIA_TOO_LARGE", f"{name!r:.80} has {width} x {height} pixels; at most 100 million"
        )
    return ChatImage(data=data, media_type=f"image/{kind}", width=width, height=height)


def _header(data: bytes) -> tuple[str, int, int] | None:
    """Return type, width and height; None for another type, or a file that is cut off."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and b"IEND" in data:
        # The chunk IHDR comes first, big-endian; IEND ends a whole file.
        return "png", _big(data[16:20]), _big(data[20:24])
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif", _little(data[6:8]), _little(data[8:10])
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 8 + _little(data[4:8]):
        return _webp(data)
    return None


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    # The end marker may be followed by padding, or by further pictures of a camera.
    if b"\xff\xd9" not in data:
        return None
    place = 2
    while data[place] == 0xFF:
        mark = data[place + 1]
        if mark == 0xFF:
            place += 1
        # The frame's header; C4, C8 and CC are tables and a reserved mark of the same range.
        elif 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            return "jpeg", _big(data[place + 7 : place + 9]), _big(data[place + 5 : place + 7])
        # The picture's data begins, or the file ends, before any header of a frame.
        elif mark in (0xD9, 0xDA):
            return None
        else:
            place += 2 + _big(data[place + 2 : place + 4])
    return None


def _webp(data: bytes) -> tuple[str, int, int] | None:
    kind = data[12:16]
    # Extended files keep both sides less one in 24 bits; lossless ones, in 14 bits each.
    if kind == b"VP8X":
        return "webp", 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return "webp", 1 + (bits & 0x3FFF), 1 + ((bits >> 14) & 0x3FFF)
    if kind == b"VP8 ":
        # Lossy: 14 bits each; the two bits above are a hint of scaling.
        return "webp", _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _big(data: Sequence[int]) -> int:
    return int.from_bytes(bytes(data), "big")


def _little(data: Sequence[int]) -> int:
    return int.from_bytes(bytes(data), "little")
