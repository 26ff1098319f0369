"""Operators on frames: Gaussian noise and motion blur (mode II); shuffle, reverse, steps (mode IV).

The first two change each frame alone (Yang et al., 2026, appendix A.5). The paper gives no
strengths; ours are in `NoiseSettings` and
`BlurSettings`. Random numbers come from the raw bits of PCG64, which NumPy promises to keep, so
that another release of NumPy makes the same noise.

The others change the order of frames (sections 3.2 and 3.3). Any frame may be needed at any time,
and the frames of an hour do not fit in memory. So each frame is first written to a temporary file
as a picture of its own, and then read from where it lies: one frame is held at a time.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from statistics import NormalDist
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import av
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError, OutputError
from .video_files import Pixels, frame_of, frame_of_planes, planes_of, read_frames, rgb_of
from .video_writer import Encoding, VideoWriter

if TYPE_CHECKING:
    from av import VideoFrame

    from .video_files import VideoInfo


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


# JPEG's best quality in FFmpeg; pixels change by less than one of 255 on average.
_QUALITY = 2


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
) -> int:
    """Write a video with its frames in another order, and return how many there are.

    The times at which frames are shown stay, as does each frame's duration under ``reverse``: a
    video of variable frame rate is mirrored in time.

    Raises:
        ArchiveError: A frame can't be decoded.
        InvalidInputError: A step has no frame.
        OutputError: A file can't be written.
    """
    with FrameFile() as stored, VideoWriter(target, info, encoding) as writer:
        for frame in read_frames(info.path):
            stored.add(frame)
        times = stored.times
        order = frame_order(operator, parameters, times, info.time_base)
        shown = mirrored(times, stored.last_duration) if operator == "reverse" else times
        for frame, time in zip(stored.frames(order), shown, strict=True):
            frame.pts, frame.time_base = time, info.time_base
            writer.write(frame)
        return writer.frames


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


class FrameFile:
    """Frames in a temporary file, each of which can be read alone; a context manager.

    The pixels are JPEG's with the values of yuv420p as they are: JPEG means another range of
    brightness, but converting to it and back would round twice.
    """

    def __init__(self) -> None:
        self.times = array("q")
        """The time of each frame, in the video's units."""
        self.last_duration = 0
        """How long the last frame is shown, in the video's units; 0 if the file does not say."""
        self._places = array("Q", [0])
        self._file: IO[bytes]
        self._encoder: Any = None
        self._like: VideoFrame | None = None

    def __enter__(self) -> FrameFile:
        """Create the file, which has no name and goes with the process."""
        self._file = TemporaryFile(prefix="hallujudge-")
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        # Closing writes what a full disk refused before, but the file is not needed any more.
        with suppress(OSError):
            self._file.close()

    def add(self, frame: VideoFrame) -> None:
        """Write a frame.

        Raises:
            OutputError: The disk is full.
        """
        self._like = self._like or _sample_of(frame)
        encoder = self._encoder = self._encoder or _jpeg_encoder(frame)
        picture = av.VideoFrame.from_ndarray(planes_of(frame), "yuvj420p")
        picture.pts = len(self.times)
        data = b"".join(bytes(packet) for packet in encoder.encode(picture))
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as err:
            raise OutputError.of(
                Path(str(self._file.name)), err, "free space for temporary files, or set TMPDIR"
            ) from err
        self._places.append(self._places[-1] + len(data))
        self.times.append(frame.pts)
        self.last_duration = frame.duration or 0

    def frames(self, order: Sequence[int]) -> Iterator[VideoFrame]:
        """Yield frames in an order; each is decoded when it is needed."""
        decoder: Any = av.CodecContext.create("mjpeg", "r")
        decoder.thread_count = 1
        assert self._like is not None
        for place in order:
            self._file.seek(self._places[place])
            data = self._file.read(self._places[place + 1] - self._places[place])
            (picture,) = decoder.decode(av.Packet(data))
            yield frame_of_planes(planes_of(picture), self._like)


def _sample_of(frame: VideoFrame) -> VideoFrame:
    """Return a tiny frame with the colour space of another."""
    sample = av.VideoFrame(2, 2, "yuv420p")
    sample.colorspace = frame.colorspace
    sample.pts, sample.time_base = 0, frame.time_base
    return sample


def _jpeg_encoder(frame: VideoFrame) -> Any:
    encoder: Any = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = frame.width, frame.height, "yuvj420p"
    encoder.time_base = Fraction(1, 25)
    encoder.thread_count = 1
    encoder.qmin = encoder.qmax = _QUALITY
    return encoder
