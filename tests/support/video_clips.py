"""Clips with a moving square, and the number of each frame in black and white blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]

BLOCK = 16
"""Side of a block of the counter; blocks survive strong compression."""
BITS = 10
"""Blocks of the counter, in the first row."""


def picture(index: int, width: int = 320, height: int = 180) -> Frame:
    """Return a frame: its number in blocks, a grey ramp, and a square that moves to the right."""
    frame = np.empty((height, width, 3), np.uint8)
    frame[:] = np.linspace(60, 180, width, dtype=np.uint8)[None, :, None]
    frame[: 2 * BLOCK] = 128
    for bit in range(BITS):
        frame[:BLOCK, bit * BLOCK : (bit + 1) * BLOCK] = 235 if index >> bit & 1 else 20
    left = 10 + 4 * index % (width - 60)
    frame[90:130, left : left + 40] = (220, 60, 40)
    return frame


def counted(frame: Frame) -> int:
    """Return the number that a frame shows."""
    middle = BLOCK // 2
    blocks = (
        frame[4:12, bit * BLOCK + middle - 4 : bit * BLOCK + middle + 4] for bit in range(BITS)
    )
    return sum(int(block.mean() > 128) << bit for bit, block in enumerate(blocks))


QUICK = {
    "libx264": {"preset": "ultrafast"},
    # Threads of libvpx wait for each other in loops, on a busy machine for twenty times as long.
    "libvpx": {"deadline": "realtime", "cpu-used": "8", "threads": "1"},
}
"""What makes encoders take little time; libvpx takes thirty times as long otherwise."""


def write_clip(
    path: Path,
    frames: Iterable[Frame],
    *,
    rate: int = 25,
    times: Sequence[int] | None = None,
    crf: int = 12,
    codec: str = "libx264",
    rotation: int = 0,
) -> Path:
    """Write a clip, and return its path.

    Args:
        path: The file.
        frames: The frames.
        rate: Frames per second.
        times: When each frame is shown, in milliseconds; None for equal distances.
        crf: Quality; lower is better.
        codec: FFmpeg's encoder.
        rotation: Degrees by which players turn the frames, counter-clockwise.
    """
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream: Any = None
        for index, pixels in enumerate(frames):
            if stream is None:
                options = {"crf": str(crf)} if codec == "libx264" else {}
                stream = container.add_stream(
                    codec, rate=rate, options=options | QUICK.get(codec, {})
                )
                stream.height, stream.width = pixels.shape[:2]
                stream.pix_fmt = "yuv420p" if codec != "ffv1" else "yuv444p"
                stream.codec_context.time_base = Fraction(1, 1000 if times else rate)
                if rotation:
                    stream.set_display_rotation(rotation)
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
            frame.pts = times[index] if times else index
            frame.time_base = stream.codec_context.time_base
            container.mux(stream.encode(frame))
        if stream is not None:
            container.mux(stream.encode(None))
    return path


def clip(path: Path, frames: int = 50, **options: Any) -> Path:
    """Write a clip of numbered frames."""
    return write_clip(path, map(picture, range(frames)), **options)


def shown(path: Path) -> list[Frame]:
    """Return the upright frames of a video, as another reader than ours decodes them."""
    import av

    found = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            pixels = frame.to_ndarray(format="rgb24")
            found.append(np.rot90(pixels, round(frame.rotation / 90)).copy())
    return found


def times(path: Path) -> list[float]:
    """Return when each frame of a video is shown, in seconds."""
    import av

    with av.open(str(path)) as container:
        return [round(float(frame.time), 3) for frame in container.decode(video=0)]
