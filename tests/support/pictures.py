"""Small images and videos whose content is known."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import av
import numpy as np

__all__ = ["number_in", "numbered_video", "png"]

_BITS = 8


def png(seed: int, width: int = 32, height: int = 24) -> bytes:
    """Return a PNG whose first pixels are a number, so that no two are equal."""
    first = seed.to_bytes(4, "big").ljust(width * 3, b"\x7f")
    rows = b"".join(b"\0" + first for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def numbered_video(
    path: Path, frames: int = 40, *, rate: int = 10, codec: str = "libx264", size: int = 160
) -> Path:
    """Write a video whose frames show their numbers: white columns are ones of binary digits."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = size, size * 3 // 4, "yuv420p"
        for number in range(frames):
            pixels = np.zeros((stream.height, size, 3), np.uint8)
            for bit in range(_BITS):
                if number >> bit & 1:
                    pixels[:, bit * size // _BITS : (bit + 1) * size // _BITS] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def number_in(image: bytes) -> int:
    """Return the number of the frame that an image shows."""
    with av.open(io.BytesIO(image), mode="r") as container:
        pixels = next(container.decode(video=0)).to_ndarray(format="gray")
    height, width = pixels.shape
    line: Mapping[int, Any] = {
        bit: pixels[height // 2, int((bit + 0.5) * width / _BITS)] for bit in range(_BITS)
    }
    return sum((int(value) > 127) << bit for bit, value in line.items())
