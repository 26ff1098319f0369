"""Frames of videos, sampled as stated, by PyAV.

A sampling chooses among the frames in the order in which they are shown, so that a variable frame
rate changes nothing but ``fps``. With T frames, numbered from 0:

* ``uniform:N``: frame floor((i + 1/2) T / N) for i = 0 ... N-1: the middle of N equal parts, so
  that neither end is favoured. All frames if there are at most N.
* ``ends:N``: frame round(i (T-1) / (N-1)): equal steps from the first frame to the last one.
* ``fps:R``: the first frame at or after each of the times 0, 1/R, 2/R, ..., counted from the first
  frame. Of more than 256 frames, ``uniform:256`` is taken.
* ``all``: every frame; of more than 256, ``uniform:256``.

Mementos (section 2.1.1) takes its frames in two ways of its own:

* ``every:N``: the first frame and every N-th after it; ``every:100`` for daily life.
* ``mementos-robotics``: one frame every T/20 of more than 100 frames, else every fifth one.
"""

from __future__ import annotations

import io
import math
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hallujudge.judge_service.llm.chat import ChatImage

from ..errors import InvalidInputError, MissingExtraError
from .media_files import VIDEO_FORMATS, Media, MediaError, image_of, open_regular, read_image

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

MOST_FRAMES = 256
"""Frames of one question at most."""
# Bounds of what a hostile file can cost: bytes, pixels of a frame, and packets to look at.
_MOST_VIDEO_BYTES = 16 << 30
_MOST_PIXELS = 40_000_000
_MOST_PACKETS = 20_000_000
# FFmpeg's scale is from 1, the best, to 31.
_JPEG_QUALITY = "2"
_SPEC = re.compile(
    r"(?:uniform|ends):([1-9]\d{0,2})|fps:(\d{1,3}(?:\.\d{1,6})?)|every:[1-9]\d{0,3}|all"
    r"|mementos-robotics"
)
# Section 2.1.1 of Mementos, "Robotics".
_MANY_FRAMES, _PARTS, _STEP = 100, 20, 5


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which frames of a video are sent.

    Args:
        spec: ``uniform:N``, ``ends:N``, ``every:N``, ``fps:R``, ``mementos-robotics`` or ``all``.

    Raises:
        InvalidInputError: It is none of these, or N is above 256.
    """

    spec: str = "uniform:16"

    def __post_init__(self) -> None:
        found = _SPEC.fullmatch(self.spec)
        if found is None or int(found[1] or 1) > MOST_FRAMES or not float(found[2] or 1):
            raise InvalidInputError(
                f"frames is {self.spec!r:.40}; give uniform:N, ends:N, every:N, fps:R, "
                f"mementos-robotics or all, with at most {MOST_FRAMES} frames"
            )

    def chosen(self, times: Sequence[Fraction | float]) -> list[int]:
        """Return the numbers of the chosen frames, in order.

        Args:
            times: When each frame is shown, in seconds, in order.
        """
        total = len(times)
        kind, _, text = self.spec.partition(":")
        if kind == "ends":
            return _from_end_to_end(total, int(text))
        if kind == "uniform":
            return _middles(total, int(text))
        chosen = list(range(total))
        if kind == "every":
            chosen = chosen[:: int(text)]
        if kind == "mementos-robotics":
            many = total > _MANY_FRAMES
            chosen = [n * total // _PARTS for n in range(_PARTS)] if many else chosen[::_STEP]
        if kind == "fps":
            step = 1 / Fraction(text)
            count = math.floor((times[-1] - times[0]) / step) + 1
            shown = [time - times[0] for time in times]
            # No frame is as late as some of the times.
            chosen = sorted({bisect_left(shown, n * step) for n in range(count)} - {total})
        if len(chosen) > MOST_FRAMES:
            chosen = [chosen[n] for n in _middles(len(chosen), MOST_FRAMES)]
        return chosen


def _middles(total: int, count: int) -> list[int]:
    if total <= count:
        return list(range(total))
    return [(2 * n + 1) * total // (2 * count) for n in range(count)]


def _from_end_to_end(total: int, count: int) -> list[int]:
    if total <= count:
        return list(range(total))
    if count == 1:
        return [0]
    # Halves are rounded up, and not to the next even number.
    return [(2 * n * (total - 1) + count - 1) // (2 * (count - 1)) for n in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSettings:
    """How frames are taken and sent."""

    sampling: Sampling = Sampling()
    """Which frames."""
    format: str = "jpeg"
    """``jpeg`` (quality 2 of FFmpeg's scale) or ``png``, without loss."""
    combined: bool = False
    """Whether all frames, of a video or a folder, are sent as one picture (Mementos' c-input)."""

    def __post_init__(self) -> None:
        if self.format not in ("jpeg", "png"):
            raise InvalidInputError(f"frame_format is {self.format!r:.40}; give jpeg or png")

    @property
    def label(self) -> str:
        """The settings as signatures name them."""
        return f"frames={self.sampling.spec},{self.format}{self.combining}"

    @property
    def combining(self) -> str:
        """How frames are put together, as a part of the label; empty if they are not."""
        return ",combined" if self.combined else ""


def images_of(media: Media, settings: FrameSettings) -> tuple[ChatImage, ...]:
    """Return an image, the images of a folder in order, or the sampled frames of a video.

    Raises:
        MediaError: A file can't be sent, or there are too many.
        MissingExtraError: PyAV is not installed.
    """
    if media.is_video:
        return tuple(frames_of(media.files[0], settings))
    if len(media.files) > MOST_FRAMES:
        raise MediaError(
            "MEDIA_TOO_LARGE",
            f"{media.name!r:.80} has {len(media.files)} images; at most {MOST_FRAMES} are sent",
        )
    return tuple(map(read_image, media.files))


Chosen: TypeAlias = "Callable[[Sequence[Fraction | float]], list[int]]"
"""Chooses frames by when each is shown, in seconds; see :meth:`Sampling.chosen`."""


def frames_of(path: Path, settings: FrameSettings) -> list[ChatImage]:
    """Return the sampled frames of a video as images; see :func:`chosen_frames`."""
    [found] = chosen_frames(path, [settings.sampling.chosen], settings.format)
    return found


def chosen_frames(path: Path, choices: Sequence[Chosen], form: str) -> list[list[ChatImage]]:
    """Return what each choice takes of a video's frames, which are decoded once.

    Args:
        path: The video.
        choices: What is taken, each in the order of the frames.
        form: ``jpeg`` or ``png``.

    Raises:
        MediaError: It is not a video, is broken, or a chosen frame can't be decoded.
        MissingExtraError: PyAV is not installed.
    """
    with _opened_stream(path) as (container, stream):
        shown = _shown_at(container, stream)
        if not shown:
            raise MediaError("VIDEO_UNREADABLE", f"{path.name!r:.80} has no frames")
        base = stream.time_base or Fraction(1)
        chosen = [choose([time * base for time in shown]) for choose in choices]
    times = {shown[number] for numbers in chosen for number in numbers}
    # Opened again: looking at the packets has read the file to its end.
    with _opened_stream(path) as (container, stream):
        found = {
            frame.pts: image_of(encoded_frame(frame, form), path.name)
            for frame in _frames_at(container, stream, times)
        }
    if len(found) < len(times):
        raise MediaError(
            "VIDEO_UNREADABLE",
            f"{path.name!r:.80}: only {len(found)} of the {len(times)} chosen frames can be "
            "decoded",
        )
    return [[found[shown[number]] for number in numbers] for numbers in chosen]


def seconds_of(path: Path) -> float:
    """Return when the last frame of a video is shown, in seconds after the first one.

    Raises:
        MediaError: It is not a video, or is broken.
        MissingExtraError: PyAV is not installed.
    """
    with _opened_stream(path) as (container, stream):
        shown = _shown_at(container, stream)
        base = stream.time_base or Fraction(1)
    return float((shown[-1] - shown[0]) * base) if shown else 0.0


def estimated_frames(path: Path, settings: FrameSettings) -> list[ChatImage]:
    """Return images without content, of the number and size that a video's frames will have.

    Raises:
        MediaError: It is not a video, or is broken.
        MissingExtraError: PyAV is not installed.
    """
    with _opened_stream(path) as (container, stream):
        times = [time * (stream.time_base or 1) for time in _shown_at(container, stream)]
        width, height = stream.width, stream.height
    if not times:
        raise MediaError("VIDEO_UNREADABLE", f"{path.name!r:.80} has no frames")
    empty = ChatImage(data=b"", media_type=f"image/{settings.format}", width=width, height=height)
    return [empty] * len(settings.sampling.chosen(times))


def _unreadable(path: Path, err: Exception) -> MediaError:
    # FFmpeg's errors begin with numbers that mean nothing to a reader.
    said = str(getattr(err, "strerror", None) or err)
    return MediaError("VIDEO_UNREADABLE", f"{path.name!r:.80}: {' '.join(said.split())[:200]}")


@contextmanager
def _opened_stream(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a video and its stream of frames.

    Raises:
        MediaError: It is not a video, is too large, or is broken.
        MissingExtraError: PyAV is not installed.
    """
    try:
        import av
    except ImportError as err:
        raise MissingExtraError.of("taking frames of a video", "video") from err
    try:
        with opened_container(path) as container:
            yield container, _video_stream(container, path)
    except (av.FFmpegError, ValueError, MemoryError) as err:
        raise _unreadable(path, err) from err


@contextmanager
def opened_container(path: Path, formats: str = VIDEO_FORMATS) -> Iterator[InputContainer]:
    """Open a file of video or audio, from which nothing else can be opened.

    Args:
        path: The file.
        formats: FFmpeg's formats that it may have.

    Raises:
        MediaError: It can't be opened, or is too large.
    """
    import av

    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _MOST_VIDEO_BYTES:
            raise MediaError(
                "MEDIA_TOO_LARGE", f"{path.name!r:.80} has more than {_MOST_VIDEO_BYTES >> 30} GiB"
            )
        options = {"format_whitelist": formats, "protocol_whitelist": "none"}
        # A file object instead of a path: nothing else can be opened by its content.
        with av.open(file, mode="r", options=options) as container:
            yield container


def _video_stream(container: InputContainer, path: Path) -> VideoStream:
    if not container.streams.video:
        raise MediaError("VIDEO_UNREADABLE", f"{path.name!r:.80} has no video stream")
    stream = container.streams.video[0]
    if stream.width * stream.height > _MOST_PIXELS:
        raise MediaError(
            "MEDIA_TOO_LARGE",
            f"{path.name!r:.80} has frames of {stream.width} x {stream.height} pixels",
        )
    # PyAV's default shares out the slices of one frame; this decodes frames at once, too.
    stream.thread_type = "AUTO"
    return stream


def _shown_at(container: InputContainer, stream: VideoStream) -> list[int]:
    """Return when each frame is shown, in order, without decoding any."""
    from .video_files import packets_of

    times: set[int] = set()
    packets = 0
    for packet in packets_of(container, stream):
        time = packet.pts if packet.pts is not None else packet.dts
        packets += bool(packet.size)
        if time is not None and packet.size and not packet.is_discard:
            times.add(time)
        if packets > _MOST_PACKETS:
            raise ValueError("it has too many frames")
    return sorted(times)


def _frames_at(
    container: InputContainer, stream: VideoStream, times: set[int]
) -> Iterator[VideoFrame]:
    """Yield the frames that are shown at some times, in order."""
    left = set(times)
    for frame in container.decode(stream):
        if frame.pts in left:
            left.discard(frame.pts)
            # A decoder guesses what damaged frames show; such a frame is left out.
            if not frame.is_corrupt:
                yield frame
        if not left:
            return


def encoded_frame(frame: VideoFrame, kind: str) -> bytes:
    """Return a frame as an image, turned upright as players show it."""
    import av
    import numpy as np

    from .frame_colours import JPEG, converted, rgb_of

    turns = round(frame.rotation / 90) % 4
    if turns:
        # rot90 returns a view with negative strides, which PyAV can't take.
        frame = av.VideoFrame.from_ndarray(np.rot90(rgb_of(frame), turns).copy(), format="rgb24")
    name, pixel_format = ("png", "rgb24") if kind == "png" else ("mjpeg", "yuvj420p")
    frame = converted(frame, pixel_format, JPEG)
    frame.pts = 0
    coder: Any = av.CodecContext.create(name, "w")
    coder.width, coder.height, coder.pix_fmt = frame.width, frame.height, pixel_format
    coder.time_base = Fraction(1, 1)
    if kind != "png":
        # A fixed quality instead of a bitrate, of which one frame would get too little.
        coder.options = {"qmin": _JPEG_QUALITY, "qmax": _JPEG_QUALITY}
    data = io.BytesIO()
    for packet in (*coder.encode(frame), *coder.encode(None)):
        data.write(bytes(packet))
    return data.getvalue()
