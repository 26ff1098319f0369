"""Further looks at what is shown: frames of moments that a text names, and crops of objects."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from msgspec import Struct

from hallujudge.metrics.framework.pictures import Picture
from hallujudge.metrics.seen_claims.items import MOMENT, OBJECT, CloserLook
from hallujudge.metrics.seen_claims.moments import Moment, frames_near

from ..errors import MissingExtraError
from .media_files import MediaError, image_of
from .pictures import picture_of, shown_colours
from .video_frames import Chosen, chosen_frames

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
