"""Pictures that a judge is shown: those that a record names, and closer looks at them.

A record names a file or a data URL, or holds bytes, as tables of Hugging Face do. A name is looked
for in the user's folder, and nowhere else. An address is called only where the user allows its
host.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hallujudge.metrics.framework.results import Picture
from hallujudge.metrics.seen_claims import MOMENT, OBJECT, CloserLook
from hallujudge.metrics.seen_claims.claim_words import Moment, frames_near

from ..errors import MissingExtraError
from .media_files import (
    Media,
    MediaError,
    MediaFolder,
    hash_of_files,
    image_of,
    is_address,
    path_of_address,
    shared_ends,
)
from .video_frames import Chosen, FrameSettings, chosen_frames, images_of

if TYPE_CHECKING:
    from PIL import Image

    from hallujudge.judge_service.llm.chat import ChatImage

    from .fetched_pictures import PictureFetcher

_DATA_URL = re.compile(r"data:image/[a-z+.-]{1,20};base64,", re.IGNORECASE)
# Four characters of base 64 are three bytes; image_of bounds the pixels.
_MOST_URL_CHARS = 28 << 20
# Consecutive responses are often about one picture.
_KEPT_BYTES = 64 << 20
_SHOWN_HASH = 16


class PictureFinder:
    """Finds the pictures of records, and keeps those that were used last.

    Args:
        folder: Where names are looked for; None if records carry their pictures.
        frames: How frames of videos are taken; None for the usual ones.
        fetcher: Fetches pictures of addresses that are not in the folder; None: none is called.
    """

    def __init__(
        self,
        folder: MediaFolder | None,
        frames: FrameSettings | None = None,
        fetcher: PictureFetcher | None = None,
    ) -> None:
        self._folder, self._fetcher = folder, fetcher
        self._frames = frames or FrameSettings()
        self._kept: OrderedDict[str, tuple[Picture, ...]] = OrderedDict()
        self._find = cache(self._looked_for)
        self._digest_of_file = cache(self._file_digest)
        self._size = 0
        self._shared: Container[str] = ()

    def expect(self, values: Iterable[object]) -> None:
        """Learn what will be looked for, so that no file is taken for two different names."""
        names = (value for value in values if isinstance(value, str) and not _is_data(value))
        self._shared = shared_ends(names)

    def name_of(self, value: object) -> str:
        """Return what a picture is called: its path in the folder, or the beginning of its hash.

        Raises:
            MediaError: The value is not a picture, or is not in the folder.
        """
        if isinstance(value, str) and not _is_data(value):
            is_looked_for = self._folder is not None or self._fetcher is not None
            return self._find(value).name if is_looked_for else value
        if isinstance(value, Mapping) and isinstance(path := value.get("path"), str) and path:
            return path
        return sha256(_carried(value)).hexdigest()[:_SHOWN_HASH]

    def digest(self, value: object) -> str:
        """Return the hash of what a record shows, and check that it can be shown.

        Videos are hashed without being decoded.

        Raises:
            MediaError: It is missing, ambiguous, outside of the folder, or can't be read.
        """
        if isinstance(value, str) and not _is_data(value):
            return self._digest_of_file(value)
        return sha256(self.pictures(value)[0].data).hexdigest()

    def video_of(self, value: object) -> Media | None:
        """Return the video of a record's value; None if it is a picture.

        Raises:
            MediaError: It is missing or ambiguous.
        """
        if isinstance(value, Mapping) and not value.get("bytes"):
            value = value.get("path")
        if not isinstance(value, str) or _is_data(value):
            return None
        found = self._find(value)
        return found if found.is_video else None

    def pictures(self, value: object) -> tuple[Picture, ...]:
        """Return the picture of a record's value, or the frames of its video.

        Args:
            value: A name, a data URL, bytes, or an object with ``bytes`` or ``path``.

        Raises:
            MediaError: See :meth:`digest`; also if a video can't be decoded.
            MissingExtraError: Frames of a video need PyAV, which isn't installed.
        """
        if isinstance(value, Mapping) and not value.get("bytes"):
            value = value.get("path")
        if not isinstance(value, str) or _is_data(value):
            name = self.name_of(value)
            return (picture_of(image_of(_carried(value), name), name),)
        if value not in self._kept:
            self._keep(value, self._loaded(self._find(value)))
        self._kept.move_to_end(value)
        return self._kept[value]

    def _looked_for(self, name: str) -> Media:
        if not is_address(name):
            return self._in_folder(name, name)
        # Of an address, the end of its path is looked for in the folder.
        if self._folder is not None:
            try:
                return self._in_folder(name, path_of_address(name) or name)
            except MediaError as err:
                # A file that is there and refused must not be fetched from elsewhere instead.
                if err.reason != "MEDIA_MISSING":
                    raise
        if self._fetcher is None:
            raise MediaError(
                "MEDIA_MISSING",
                f"{name!r:.80} is an address, and no address is called; put its file into the "
                "folder of InputOptions(own=dict(images=…)), or let its host be called with "
                "InputOptions(own=dict(fetch=…))",
            )
        return self._fetcher.media(name)

    def _in_folder(self, name: str, path: str) -> Media:
        if self._folder is None:
            raise MediaError(
                "MEDIA_MISSING",
                f"{name!r:.80} is a name, and no folder of pictures is given; name it with "
                "InputOptions(own=dict(images=…))",
            )
        return self._folder.find(path, self._shared)

    def _file_digest(self, name: str) -> str:
        media = self._find(name)
        if media.is_video:
            return hash_of_files(media.files)
        digest = sha256()
        for picture in self._loaded(media):
            digest.update(picture.sha256.encode())
        return digest.hexdigest()

    def _loaded(self, media: Media) -> tuple[Picture, ...]:
        return tuple(picture_of(image, media.name) for image in images_of(media, self._frames))

    def _keep(self, name: str, found: tuple[Picture, ...]) -> None:
        self._kept[name] = found
        self._size += _size_of(found)
        # One larger than the bound is kept alone, as the next response may be about it.
        while self._size > _KEPT_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= _size_of(dropped)


def hash_of_all(digests: Iterable[str]) -> str:
    """Return the hash of all that a run shows, in its order."""
    found = sha256()
    for digest in digests:
        found.update(f"{digest}\n".encode())
    return found.hexdigest()


def _size_of(found: tuple[Picture, ...]) -> int:
    return sum(len(picture.data) for picture in found)


def _is_data(text: str) -> bool:
    # A data URL may have megabytes.
    return text[:5].lower() == "data:"


def _carried(value: object) -> bytes:
    """Return the bytes of a picture that a record carries."""
    if isinstance(value, Mapping):
        value = value.get("bytes")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str) and (head := _DATA_URL.match(value)):
        if len(value) > _MOST_URL_CHARS:
            raise MediaError("MEDIA_TOO_LARGE", "a data URL has more than 20 MiB")
        try:
            return base64.b64decode(value[head.end() :], validate=True)
        except (binascii.Error, ValueError) as err:
            raise MediaError("MEDIA_UNREADABLE", f"a data URL is not base 64: {err}") from err
    raise MediaError(
        "MEDIA_UNREADABLE",
        f"{value!r:.40} is not a picture; give a name, a data URL with base 64, or bytes",
    )


def picture_of(image: ChatImage, name: str) -> Picture:
    """Return an encoded image as a picture with a name."""
    return Picture(
        name=name,
        data=image.data,
        media_type=image.media_type,
        width=image.width,
        height=image.height,
    )


def shown_colours(image: Image.Image) -> Image.Image:
    """Return an opened picture in RGB as viewers show it.

    ``convert("RGB")`` alone shows the colours that transparency hides, and makes nearly all of a
    grey picture of 16 bits white.
    """
    if image.mode == "I" or image.mode.startswith("I;16"):
        return image.convert("I").point(lambda level: level / 256).convert("L").convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    seen = image.convert("RGBA")
    # White, as the image processors of transformers show the whole picture to a model.
    white = seen.copy()
    white.paste("white", (0, 0, *seen.size))
    white.alpha_composite(seen)
    return white.convert("RGB")


# Closer looks -------------------------------------------------------------------------------------


MOMENT_FRAMES = 8
"""Frames of a moment at most."""
# What is around an object tells what it is: a share of its own size on each side.
_MARGIN = 0.15
# A crop of nearly the whole picture shows nothing more.
_MOST_OF_PICTURE = 0.7
# Encoders of vision models see squares of 336 pixels and more; smaller crops are enlarged.
_LEAST_SIDE, _MOST_ZOOM = 336, 8


class Box(Struct, frozen=True, kw_only=True):
    """An object and its place, in COCO's form."""

    name: str
    """The object."""
    x: float
    """Pixels from the left."""
    y: float
    """Pixels from the top."""
    width: float
    """Pixels."""
    height: float
    """Pixels."""


def moment_looks(
    path: Path, moments: Sequence[Moment], form: str, name: str
) -> tuple[CloserLook, ...]:
    """Return frames of each moment of a video.

    Args:
        path: The video.
        moments: The moments.
        form: Format of frames.
        name: What the pictures are called.

    Raises:
        MediaError: A frame can't be decoded.
        MissingExtraError: PyAV is not installed.
    """
    found = chosen_frames(path, [_near(moment) for moment in moments], form)
    return tuple(
        CloserLook(
            kind=MOMENT,
            of=moment.label,
            pictures=tuple(picture_of(image, name) for image in frames),
        )
        for moment, frames in zip(moments, found, strict=True)
    )


def _near(moment: Moment) -> Chosen:
    def chosen(times: Sequence[Fraction | float]) -> list[int]:
        # Moments count from the first frame, whose time need not be 0.
        return frames_near(moment, [float(time - times[0]) for time in times], MOMENT_FRAMES)

    return chosen


def object_looks(picture: Picture, boxes: Iterable[Box]) -> tuple[CloserLook, ...]:
    """Return crops of a picture's objects, by name, the largest first.

    Args:
        picture: The picture.
        boxes: Its objects.

    Raises:
        MediaError: A box lies outside of the picture, or the picture can't be decoded.
        MissingExtraError: Pillow is not installed.
    """
    by_name: dict[str, list[Box]] = {}
    for box in boxes:
        by_name.setdefault(box.name, []).append(box)
    crops = {name: _crops(picture, own) for name, own in by_name.items()}
    return tuple(
        CloserLook(kind=OBJECT, of=name, pictures=pictures)
        for name, pictures in crops.items()
        if pictures
    )


def _crops(picture: Picture, boxes: Sequence[Box]) -> tuple[Picture, ...]:
    ordered = sorted(boxes, key=lambda box: (-box.width * box.height, box.x, box.y))
    found = (_crop(picture, box) for box in dict.fromkeys(ordered))
    return tuple(crop for crop in found if crop is not None)


def _crop(picture: Picture, box: Box) -> Picture | None:
    """Return what lies in a box and around it; None if that is nearly the whole picture."""
    with MissingExtraError.unless_installed("cropping objects of pictures", "images"):
        from PIL import Image
    left, top, right, bottom = _place(picture, box)
    if (right - left) * (bottom - top) > _MOST_OF_PICTURE * picture.width * picture.height:
        return None
    try:
        with Image.open(io.BytesIO(picture.data)) as image:
            part = shown_colours(image).crop((left, top, right, bottom))
    except (OSError, ValueError, Image.DecompressionBombError) as err:
        raise MediaError("MEDIA_UNREADABLE", f"{picture.name!r:.80}: {str(err)[:200]}") from err
    zoom = min(_MOST_ZOOM, _LEAST_SIDE / max(part.size))
    if zoom > 1:
        size = (round(part.width * zoom), round(part.height * zoom))
        part = part.resize(size, Image.Resampling.BICUBIC)
    data = io.BytesIO()
    # Without loss: a second compression would blur what a closer look is for.
    part.save(data, "PNG")
    return picture_of(image_of(data.getvalue(), picture.name), f"{picture.name}: {box.name}")


def check_boxes(picture: Picture, boxes: Iterable[Box]) -> None:
    """Check that boxes lie in a picture.

    Raises:
        MediaError: One lies outside of it.
    """
    for box in boxes:
        _place(picture, box)


def _place(picture: Picture, box: Box) -> tuple[int, int, int, int]:
    """Return a box with its margin, within the picture: left, top, right and bottom."""
    wide, high = _MARGIN * box.width, _MARGIN * box.height
    left, top = max(0, int(box.x - wide)), max(0, int(box.y - high))
    right = min(picture.width, round(box.x + box.width + wide))
    bottom = min(picture.height, round(box.y + box.height + high))
    if box.x >= picture.width or box.y >= picture.height or right <= left or bottom <= top:
        raise MediaError(
            "BOX_OUTSIDE",
            f"{picture.name!r:.80} has {picture.width} x {picture.height} pixels, and the box of "
            f"{box.name!r:.40} is [{box.x:g}, {box.y:g}, {box.width:g}, {box.height:g}]; give "
            "[left, top, width, height] in its pixels",
        )
    return left, top, right, bottom
