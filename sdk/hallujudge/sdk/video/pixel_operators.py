"""Operators that change each frame alone: Gaussian noise and motion blur (mode II).

Yang et al., 2026, appendix A.5. The paper gives no strengths; ours are in `NoiseSettings` and
`BlurSettings`. Random numbers come from the raw bits of PCG64, which NumPy promises to keep, so
that another release of NumPy makes the same noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .video_files import Pixels, frame_of, frame_of_planes, planes_of, rgb_of

if TYPE_CHECKING:
    from av import VideoFrame

Parameters: TypeAlias = Mapping[str, Any]
"""What was drawn for a file: values that JSON can hold."""
FrameChange: TypeAlias = "Callable[[VideoFrame], VideoFrame]"
"""Changes a frame; frames come in the order in which they are shown."""

# Sixteen random bits choose a quantile of the noise.
_QUANTILES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSettings:
    """How strong Gaussian noise is."""

    sigma: float = 20.0
    """Standard deviation before it is bounded, of values from 0 to 255."""
    bound: float = 3.0
    """Largest noise, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlurSettings:
    """How strong motion blur is."""

    shortest: int = 7
    """Shortest line, in pixels."""
    longest: int = 21
    """Longest line, in pixels."""


def draw_noise(draw: Random, settings: NoiseSettings) -> Parameters:
    """Return the noise of a file: its strength, and where its random numbers start."""
    limit = round(settings.sigma * settings.bound)
    return {"sigma": settings.sigma, "limit": limit, "start": draw.getrandbits(64)}


def noise(parameters: Parameters) -> FrameChange:
    """Return what adds zero-mean noise to red, green and blue of each frame.

    The noise is normal, cut at the limit and rounded; sums are cut at 0 and 255.
    """
    values = _noise_values(parameters["sigma"], parameters["limit"])
    bits = np.random.PCG64(parameters["start"])

    def change(frame: VideoFrame) -> VideoFrame:
        pixels = rgb_of(frame)
        chosen = bits.random_raw(-(-pixels.size // 4)).view("<u2")[: pixels.size]
        noisy = values.take(chosen).reshape(pixels.shape)
        noisy += pixels
        np.clip(noisy, 0, 255, out=noisy)
        return frame_of(noisy.astype(np.uint8), frame)

    return change


def _noise_values(sigma: float, limit: float) -> NDArray[np.int16]:
    """Return the noise at equally probable quantiles of a normal distribution that is cut."""
    if not sigma or not limit:
        return np.zeros(_QUANTILES, np.int16)
    normal = NormalDist(0, sigma)
    low = normal.cdf(-limit)
    step = (1 - 2 * low) / _QUANTILES
    half = [round(normal.inv_cdf(low + (i + 0.5) * step)) for i in range(_QUANTILES // 2)]
    # The other half mirrors the first, so that the mean is exactly 0.
    return np.array([*half, *(-value for value in reversed(half))], np.int16)


def draw_blur(draw: Random, settings: BlurSettings) -> Parameters:
    """Return the blur of a file: one line's length and angle for all frames."""
    return {
        "length": draw.randint(settings.shortest, settings.longest),
        "angle": round(draw.random() * 180, 2),
    }


def blur(parameters: Parameters) -> FrameChange:
    """Return what replaces each pixel by the mean along a line through it.

    Brightness and both colours are blurred apart, which is the same as blurring red, green and
    blue, since both are linear. Colours have half the resolution, and a line of half the length.
    """
    length, angle = parameters["length"], math.radians(parameters["angle"])
    line = line_kernel(length, angle)
    short = line_kernel(length, angle, scale=0.5)

    def change(frame: VideoFrame) -> VideoFrame:
        height, width = frame.height, frame.width
        planes = planes_of(frame)
        blurred = np.empty_like(planes)
        blurred[:height] = _along(planes[:height], line)
        # Both colours lie below the brightness, in rows of half the width.
        shape = (2, height // 2, width // 2)
        colours = planes[height:].reshape(shape)
        found = [_along(plane, short) for plane in colours]
        blurred[height:] = np.stack(found).reshape(height // 2, width)
        return frame_of_planes(blurred, frame)

    return change


def line_kernel(length: int, angle: float, scale: float = 1.0) -> dict[tuple[int, int], int]:
    """Return how often a line passes each pixel around its middle, by row and column.

    Args:
        length: Number of points on the line, a pixel apart along its longer direction.
        angle: Angle in radians, counter-clockwise from the right.
        scale: Size of a pixel's coordinates.
    """
    across, down = math.cos(angle), -math.sin(angle)
    middle = (length - 1) / 2
    points = ((place - middle) * scale for place in range(length))
    # Halves are always rounded up: Python would round them to even numbers.
    return dict(
        Counter(
            (math.floor(point * down + 0.5), math.floor(point * across + 0.5)) for point in points
        )
    )


def _along(plane: Pixels, kernel: Mapping[tuple[int, int], int]) -> Pixels:
    """Return the weighted mean of a plane's shifted copies; edges are repeated."""
    most = max(max(map(abs, place)) for place in kernel)
    height, width = plane.shape
    padded = np.pad(plane, most, mode="edge").astype(np.uint16)
    total = np.zeros((height, width), np.uint16)
    for (down, across), count in kernel.items():
        rows = slice(most + down, most + down + height)
        part = padded[rows, most + across : most + across + width]
        total += part if count == 1 else part * np.uint16(count)
    # A sum has few values: a table is quicker than dividing, and rounds.
    points = sum(kernel.values())
    means = (np.arange(255 * points + 1) + points // 2) // points
    blurred: Pixels = means.astype(np.uint8).take(total)
    return blurred
