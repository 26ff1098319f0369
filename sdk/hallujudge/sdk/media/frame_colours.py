"""Colours of frames: what their numbers mean, and conversions that keep it or change it on purpose.

A file's tags say which matrix its brightness and colours were made with, which range they have, and
which primaries and transfer curve they are for. The codes are those of ITU-T H.273. A conversion
between red, green and blue and brightness and colours always names matrix and range on both sides:
FFmpeg's own choice depends on the formats. Primaries and transfer curve are never converted: no
decoder that models are fed with does so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from ..errors import MissingExtraError

with MissingExtraError.unless_installed("reading videos", "video"):
    import av

import numpy as np
from av import VideoFrame
from av.video.codeccontext import VideoCodecContext
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]
"""Pixels: height, width and the channels red, green and blue; or the planes of yuv420p."""

_How = av.video.reformatter.Interpolation
# Quicker conversions make frames darker by one to three of 255, or depend on the processor.
EXACT = _How.BILINEAR | _How.FULL_CHR_H_INT | _How.ACCURATE_RND | _How.BITEXACT
"""How pixels are converted."""
# For planes, fewer flags change no byte (tried on random frames of four sizes), and are quicker.
_TO_PLANES = _How.BILINEAR | _How.ACCURATE_RND | _How.BITEXACT
_FROM_PLANES = _How.BILINEAR | _How.BITEXACT

# Matrices of colours by their numbers in ITU-T H.273; below, FFmpeg's ranges of brightness.
_RGB, _UNSPECIFIED, _BT601 = 0, 2, 6
_LIMITED, _FULL = 1, 2
# FFmpeg's names of matrices. All decoders read files without a tag as BT.601.
_MATRICES = {
    1: av.video.reformatter.Colorspace.ITU709,
    _UNSPECIFIED: av.video.reformatter.Colorspace.DEFAULT,
    4: av.video.reformatter.Colorspace.FCC,
    5: av.video.reformatter.Colorspace.ITU601,
    _BT601: av.video.reformatter.Colorspace.ITU601,
    7: av.video.reformatter.Colorspace.SMPTE240M,
    9: av.video.reformatter.Colorspace.BT2020,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """What the numbers of a frame mean, in codes of ITU-T H.273."""

    matrix: int = _UNSPECIFIED
    """Matrix between brightness and colours, and red, green and blue."""
    range: int = 0
    """1: brightness from 16 to 235; 2: from 0 to 255; 0: the file does not say, which means 1."""
    primaries: int = _UNSPECIFIED
    """Primaries of red, green and blue."""
    transfer: int = _UNSPECIFIED
    """Transfer curve."""

    @classmethod
    def of(cls, frame: VideoFrame) -> Self:
        """Return the colours of a frame."""
        # FFmpeg's older names of formats have the range in them.
        is_full = frame.format.name.startswith("yuvj")
        return cls(
            matrix=frame.colorspace,
            range=_FULL if is_full else frame.color_range,
            primaries=frame.color_primaries,
            transfer=frame.color_trc,
        )

    @classmethod
    def to_store(cls, frame: VideoFrame) -> Self:
        """Return the colours that a frame has once it is stored in yuv420p: its own.

        Frames in red, green and blue have neither matrix nor range. They get those that a reader
        takes who does not look at tags.
        """
        found = cls.of(frame)
        return replace(found, matrix=_BT601, range=_LIMITED) if _is_rgb(frame) else found

    def tag(self, target: VideoFrame | VideoCodecContext) -> None:
        """Write the codes into a frame, or into an encoder."""
        target.colorspace, target.color_range = self.matrix, self.range
        target.color_primaries, target.color_trc = self.primaries, self.transfer

    @property
    def black_and_white(self) -> tuple[int, int]:
        """Brightness of black and of white."""
        # Limited range, which nearly all videos have, leaves room below black and above white.
        return (0, 255) if self.range == _FULL else (16, 235)


JPEG = Colours(matrix=_BT601, range=_FULL)
"""What a JPEG file is by definition, whatever the frame was (ITU-T T.871)."""


def converted(
    frame: VideoFrame, form: str, colours: Colours = Colours(), how: Any = EXACT
) -> VideoFrame:
    """Return a frame in another format.

    Args:
        frame: The frame.
        form: FFmpeg's name of the format.
        colours: What the new numbers mean; for red, green and blue it makes no difference.
        how: FFmpeg's flags.

    Raises:
        ValueError: FFmpeg can't convert the frame's matrix.
    """
    # A conversion to the same format would cost time, and may round.
    if frame.format.name == form and (_is_rgb(frame) or Colours.of(frame) == colours):
        return frame
    found: VideoFrame = frame.reformat(
        format=form,
        interpolation=how,
        src_colorspace=_matrix(_BT601 if _is_rgb(frame) else frame.colorspace),
        dst_colorspace=_matrix(colours.matrix),
        src_color_range=Colours.of(frame).range,
        dst_color_range=colours.range,
        threads=1,
    )
    return found


def _is_rgb(frame: VideoFrame) -> bool:
    """Return whether a frame has red, green and blue instead of brightness and colours."""
    form = frame.format
    return bool(form.is_rgb or form.has_palette or frame.colorspace == _RGB)


def _matrix(code: int) -> av.video.reformatter.Colorspace:
    try:
        return _MATRICES[code]
    except KeyError as err:
        raise ValueError(
            f"its colours have matrix {code} of ITU-T H.273, which FFmpeg can't convert; convert "
            "the video to BT.709"
        ) from err


def rgb_of(frame: VideoFrame) -> Pixels:
    """Return the pixels of a frame in red, green and blue."""
    pixels: Pixels = converted(frame, "rgb24").to_ndarray()
    return pixels


def frame_of(pixels: Pixels, like: VideoFrame) -> VideoFrame:
    """Return the frame of red, green and blue pixels, with the colours and time of another."""
    return stored_frame(av.VideoFrame.from_ndarray(pixels, "rgb24"), like)


def colour_frame(frame: VideoFrame) -> VideoFrame:
    """Return a new frame with the green, blue and red of another, each in a plane of its own.

    Planes are converted quicker than pixels.
    """
    return converted(frame, "gbrp", how=_TO_PLANES)


def colour_planes(frame: VideoFrame) -> Iterator[Pixels]:
    """Yield the planes of a frame with a byte for each value, which can be written to."""
    for plane in frame.planes:
        # How many bytes fill up a row depends on the processor.
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        yield rows[:, : plane.width]


def stored_frame(colours: VideoFrame, like: VideoFrame) -> VideoFrame:
    """Return a frame of red, green and blue in yuv420p, with the colours and time of another."""
    how = _FROM_PLANES if colours.format.name == "gbrp" else EXACT
    return stamped(converted(colours, "yuv420p", Colours.of(like), how), like)


def stamped(frame: VideoFrame, like: VideoFrame) -> VideoFrame:
    """Return a frame that has the colours and the time of another."""
    Colours.of(like).tag(frame)
    frame.pts, frame.time_base, frame.duration = like.pts, like.time_base, like.duration
    return frame


def planes_of(frame: VideoFrame) -> Pixels:
    """Return the planes of a frame in yuv420p below each other."""
    planes: Pixels = frame.to_ndarray()
    return planes


def frame_of_planes(planes: Pixels, like: VideoFrame) -> VideoFrame:
    """Return the frame of planes, with the colours and time of another."""
    return stamped(av.VideoFrame.from_ndarray(planes, "yuv420p"), like)


def upright_planes(frame: VideoFrame, quarters: int) -> VideoFrame:
    """Return a frame in yuv420p of an even width and height, turned counter-clockwise.

    Its numbers stay as they are. An odd width or height loses its last column or row.

    Args:
        frame: The frame.
        quarters: By how many quarters of a circle it is turned.
    """
    colours = Colours.to_store(frame)
    found = converted(frame, "yuv420p", colours)
    width, height = frame.width // 2 * 2, frame.height // 2 * 2
    if quarters % 4 or (width, height) != (frame.width, frame.height):
        size = (height, width) if quarters % 2 else (width, height)
        made = av.VideoFrame(*size, "yuv420p")
        scales = (1, 2, 2)
        for new, plane, scale in zip(
            colour_planes(made), colour_planes(found), scales, strict=True
        ):
            new[:] = np.rot90(plane[: height // scale, : width // scale], quarters)
        found = made
    colours.tag(found)
    found.pts, found.time_base, found.duration = frame.pts, frame.time_base, frame.duration
    return found
