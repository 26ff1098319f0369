"""Clips of patches whose colours are known, stored by the formulas of ITU-T H.273.

The clips are written without loss, and FFmpeg converts nothing: brightness and colours are computed
here. So what a reader makes of the tags can be compared with the colours themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLOURS: Sequence[tuple[int, int, int]] = (
    (30, 180, 30),
    (220, 30, 30),
    (30, 30, 220),
    (200, 200, 40),
    (128, 128, 128),
    (16, 16, 16),
    (235, 235, 235),
    (40, 200, 200),
)
"""The colours of the patches, row by row."""
SIDE = 32
"""Side of a patch; readers mix colours near its edges."""
ROWS, COLUMNS = 2, 4

MATRICES = {
    "bt709": (1, 0.2126, 0.0722),
    "none": (2, 0.299, 0.114),
    "fcc": (4, 0.30, 0.11),
    "bt470bg": (5, 0.299, 0.114),
    "smpte170m": (6, 0.299, 0.114),
    "smpte240m": (7, 0.212, 0.087),
    "bt2020nc": (9, 0.2627, 0.0593),
}
"""Tag of a matrix -> its code, and the shares of red and blue in the brightness."""
RANGES = {"none": 0, "limited": 1, "full": 2}
"""Tag of a range -> its code; without one, it is limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A way to store a clip without loss."""

    name: str
    codec: str
    suffix: str
    form: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def bits(self) -> int:
        return 10 if "10" in self.form else 8

    @property
    def steps(self) -> tuple[int, int]:
        """Rows and columns that share a colour."""
        return {"420": (2, 2), "422": (1, 2), "444": (1, 1)}[self.form.removeprefix("yuv")[:3]]


_X264 = (("qp", "0"), ("preset", "ultrafast"))
STORAGES = {
    each.name: each
    for each in (
        Storage(name="h264", codec="libx264", suffix="mp4", form="yuv420p", options=_X264),
        Storage(name="h264-422", codec="libx264", suffix="mp4", form="yuv422p", options=_X264),
        Storage(name="h264-444", codec="libx264", suffix="mp4", form="yuv444p", options=_X264),
        Storage(name="h264-10", codec="libx264", suffix="mp4", form="yuv420p10le", options=_X264),
        Storage(
            name="h265-10",
            codec="libx265",
            suffix="mp4",
            form="yuv422p10le",
            options=(("x265-params", "lossless=1:log-level=none"),),
        ),
        Storage(
            name="vp9",
            codec="libvpx-vp9",
            suffix="webm",
            form="yuv420p",
            options=(("lossless", "1"),),
        ),
    )
}


def coloured_clip(
    folder: Path,
    *,
    storage: Storage = STORAGES["h264"],
    matrix: str = "none",
    range_: str = "none",
    primaries: int = 2,
    transfer: int = 2,
    aspect: Fraction = Fraction(1),
    frames: int = 4,
) -> Path:
    """Write a clip whose frames show the patches, and return its path."""
    import av

    path = folder / f"{storage.name}-{matrix}-{range_}.{storage.suffix}"
    frame = av.VideoFrame(COLUMNS * SIDE, ROWS * SIDE, storage.form)
    for plane, numbers in zip(frame.planes, _numbers(storage, matrix, range_), strict=True):
        rows = np.zeros((plane.height, plane.line_size), np.uint8)
        stored = numbers.astype("<u2" if storage.bits > 8 else np.uint8).view(np.uint8)
        rows[:, : stored.shape[1]] = stored
        plane.update(rows)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(storage.codec, rate=5, options=dict(storage.options))
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, storage.form
        stream.codec_context.sample_aspect_ratio = aspect
        for tagged in (stream.codec_context, frame):
            tagged.colorspace, tagged.color_range = MATRICES[matrix][0], RANGES[range_]
            tagged.color_primaries, tagged.color_trc = primaries, transfer
        for index in range(frames):
            frame.pts, frame.time_base = index, Fraction(1, 5)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def patched(colours: Sequence[tuple[int, int, int]] = COLOURS) -> NDArray[np.uint8]:
    """Return a picture of the patches in red, green and blue."""
    small = np.array(colours, np.uint8).reshape(ROWS, COLUMNS, 3)
    return small.repeat(SIDE, 0).repeat(SIDE, 1)


def colours_in(pixels: Any) -> NDArray[np.float64]:
    """Return the mean colour within each patch of a picture."""
    patches = np.asarray(pixels, float).reshape(ROWS, SIDE, COLUMNS, SIDE, 3)
    means: NDArray[np.float64] = patches[:, 8:-8, :, 8:-8].mean((1, 3)).reshape(-1, 3)
    return means


def _numbers(storage: Storage, matrix: str, range_: str) -> list[NDArray[np.float64]]:
    """Return the numbers of brightness and both colours (ITU-T H.273, 8.3)."""
    _, of_red, of_blue = MATRICES[matrix]
    red, green, blue = np.moveaxis(patched() / 255.0, 2, 0)
    light = of_red * red + (1 - of_red - of_blue) * green + of_blue * blue
    colours = (blue - light) / 2 / (1 - of_blue), (red - light) / 2 / (1 - of_red)
    one = 1 << (storage.bits - 8)
    if range_ == "full":
        first, of_light, of_colour = 0, 256 * one - 1, 256 * one - 1
    else:
        first, of_light, of_colour = 16 * one, 219 * one, 224 * one
    down, across = storage.steps
    shared = [128 * one + of_colour * plane[::down, ::across] for plane in colours]
    return [np.round(plane) for plane in (first + of_light * light, *shared)]
