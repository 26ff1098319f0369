"""Operators that change the order of frames: shuffle, reverse, and steps in another order.

Yang et al., 2026, sections 3.2 and 3.3 (mode IV). Any frame may be needed at any time, and the
frames of an hour do not fit in memory. So each frame is first written to a temporary file as a
picture of its own, and then read from where it lies: one frame is held at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import av

from ..errors import InvalidInputError, OutputError
from .video_files import Encoding, VideoWriter, frame_of_planes, planes_of, read_frames

if TYPE_CHECKING:
    from av import VideoFrame

    from .pixel_operators import Parameters
    from .video_files import VideoInfo

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
