"""Operators on frames: Gaussian noise and motion blur (mode II); shuffle, reverse, steps (mode IV).

The first two change each frame alone (Yang et al., 2026, appendix A.5). The paper gives no
strengths; ours are in `NoiseSettings` and
`BlurSettings`. Random numbers come from the raw bits of PCG64, which NumPy promises to keep, so
that another release of NumPy makes the same noise.

The others change the order of frames (sections 3.2 and 3.3). Any frame may be needed at any time,
and the frames of an hour do not fit in memory. So each frame is encoded as a picture of its own,
which is put into the new file once the order is known: one frame is held at a time.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from av import VideoFrame
from numpy.typing import NDArray

from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.media.frame_colours import (
    Pixels,
    colour_frame,
    colour_planes,
    frame_of_planes,
    planes_of,
    stored_frame,
)
from hallujudge.sdk.media.video_files import VideoInfo, read_frames

from .video_writer import Encoding, StillsWriter

Parameters: TypeAlias = Mapping[str, Any]
"""What was drawn for a file: values that JSON can hold."""
FrameChange: TypeAlias = "Callable[[VideoFrame], VideoFrame]"
"""Changes a frame; frames come in the order in which they are shown."""

# A random byte chooses how strong the noise is, and a further bit its sign.
_STRENGTHS = 1 << 8


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
    strengths = _noise_strengths(parameters["sigma"], parameters["limit"])
    bits = np.random.PCG64(parameters["start"])

    def change(frame: VideoFrame) -> VideoFrame:
        noisy = colour_frame(frame)
        for plane in colour_planes(noisy):
            _add_noise(plane, strengths, bits)
        return stored_frame(noisy, frame)

    return change


def _add_noise(plane: Pixels, strengths: bytes, bits: np.random.PCG64) -> None:
    """Add noise to a plane in place, with bytes throughout: they are quicker than wider numbers."""
    chosen = _random_bytes(bits, plane.size).tobytes().translate(strengths)
    size = np.frombuffer(chosen, np.uint8).reshape(plane.shape)
    signs = np.unpackbits(_random_bytes(bits, -(-plane.size // 8)), count=plane.size)
    # All bits of a byte are set where the noise is taken away.
    down = np.negative(signs).reshape(plane.shape)
    down &= size
    up = size ^ down
    # ~plane is 255 - plane, so that sums end at 255 without wider numbers.
    np.minimum(up, ~plane, out=up)
    plane += up
    # Nor does a difference fall below 0.
    np.minimum(down, plane, out=down)
    plane -= down


def _random_bytes(bits: np.random.PCG64, count: int) -> NDArray[np.uint8]:
    # Raw words in one byte order, so that every machine and release of numpy draws the same.
    words = bits.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count]


def _noise_strengths(sigma: float, limit: float) -> bytes:
    """Return the strength of the noise at equally probable quantiles of a cut normal distribution.

    Each is as likely with either sign, so that the mean is exactly 0.
    """
    if not sigma or not limit:
        return bytes(_STRENGTHS)
    normal = NormalDist(0, sigma)
    step = (normal.cdf(limit) - 0.5) / _STRENGTHS
    found = (normal.inv_cdf(0.5 + (place + 0.5) * step) for place in range(_STRENGTHS))
    # More than 255 is no different from 255: sums are cut.
    return bytes(min(255, round(strength)) for strength in found)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a procedure."""

    start: float
    """Where it starts, in seconds."""
    end: float
    """Where it ends."""


def draw_shuffle(draw: Random) -> Parameters:
    """Return where the random order of a file starts."""
    return {"start": draw.getrandbits(64)}


def draw_steps(draw: Random, steps: Sequence[Step]) -> Parameters:
    """Return the steps of a procedure in another order than theirs, each as likely.

    Raises:
        InvalidInputError: There are fewer than two steps, or they overlap.
    """
    if len(steps) < 2:
        raise InvalidInputError(f"there are {len(steps)} steps; give the boundaries of two or more")
    ordered = sorted(steps, key=lambda step: step.start)
    for step, after in pairwise([*ordered, Step(start=float("inf"), end=float("inf"))]):
        if not 0 <= step.start < step.end <= after.start:
            raise InvalidInputError(
                f"the step from {step.start} to {step.end} s is empty or overlaps the next one; "
                "give steps that follow each other"
            )
    order = list(range(len(ordered)))
    # The order of the procedure itself would be no counterfactual.
    while order == sorted(order):
        _shuffle(order, draw)
    return {"steps": [[step.start, step.end] for step in ordered], "order": order}


def frame_order(
    operator: str, parameters: Parameters, times: Sequence[int], time_base: Fraction
) -> Sequence[int]:
    """Return which frame is shown at each place.

    Args:
        operator: ``shuffle``, ``reverse`` or ``procedural_counterfactual``.
        parameters: What was drawn for the file.
        times: The time of each frame, in units.
        time_base: Seconds of one unit.
    """
    if operator == "reverse":
        return range(len(times) - 1, -1, -1)
    if operator == "shuffle":
        order = array("L", range(len(times)))
        _shuffle(order, Random(parameters["start"]))  # noqa: S311 - no secret
        return order
    return _steps_order(parameters, times, float(time_base))


def _steps_order(parameters: Parameters, times: Sequence[int], unit: float) -> Sequence[int]:
    """Return frames whose steps are exchanged; what lies between steps stays where it is."""
    steps = [(start / unit, end / unit) for start, end in parameters["steps"]]
    # Arrays, since an hour at 30 frames a second has 108,000 of them.
    inside = [array("L") for _ in steps]
    between = [array("L") for _ in range(len(steps) + 1)]
    for place, time in enumerate(times):
        before = sum(start <= time for start, _ in steps)
        is_inside = before and time < steps[before - 1][1]
        (inside[before - 1] if is_inside else between[before]).append(place)
    for (start, end), held in zip(parameters["steps"], inside, strict=True):
        if not held:
            raise InvalidInputError(
                f"no frame lies in the step from {start} to {end} s; correct its boundaries, the "
                f"last frame is at {times[-1] * unit:.2f} s"
            )
    parts = [between[0]]
    for slot, step in enumerate(parameters["order"]):
        parts += [inside[step], between[slot + 1]]
    return array("L", chain.from_iterable(parts))


def _shuffle(order: MutableSequence[int], draw: Random) -> None:
    """Give an order that is as likely as any other, by draws that no release of Python changes."""
    for last in range(len(order) - 1, 0, -1):
        other = int(draw.random() * (last + 1))
        order[last], order[other] = order[other], order[last]


def reorder(
    info: VideoInfo, target: Path, operator: str, parameters: Parameters, encoding: Encoding
) -> None:
    """Write a video with its frames in another order.

    The times at which frames are shown stay, as does each frame's duration under ``reverse``: a
    video of variable frame rate is mirrored in time.

    Raises:
        ArchiveError: A frame can't be decoded.
        InvalidInputError: A step has no frame.
        OutputError: A file can't be written.
    """
    times = array("q")
    last = 0
    with StillsWriter(target, info, encoding) as writer:
        for frame in read_frames(info.path):
            times.append(frame.pts)
            last = frame.duration or 0
            writer.write(frame)
        order = frame_order(operator, parameters, times, info.time_base)
        writer.show(order, mirrored(times, last) if operator == "reverse" else times)


def mirrored(times: Sequence[int], last: int) -> Iterator[int]:
    """Yield times at which frames in reverse order have the durations that they had.

    Args:
        times: When each frame is shown.
        last: How long the last one is shown; 0 if the file does not say.
    """
    if not last and len(times) > 1:
        last = times[-1] - times[-2]
    end = times[-1] + last
    return (end - time for time in chain([end], islice(reversed(times), len(times) - 1)))
