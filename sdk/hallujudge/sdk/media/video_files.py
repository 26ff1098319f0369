"""Video files: what a file holds, and its frames one by one.

Frames are in yuv420p and upright: a rotation that the file asks for is applied. No more than one
frame is held while a file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, cast

from ..errors import ArchiveError, MissingExtraError

with MissingExtraError.unless_installed("reading videos", "video"):
    import av
    from av.error import FFmpegError

from av import Packet, VideoFrame
from av.container import InputContainer
from av.video.stream import VideoStream

from .frame_colours import Colours, upright_planes
from .media_files import VIDEO_FORMATS

_UNREADABLE = "is not a video that FFmpeg can read"
# FFmpeg's own default, for streams without a rate.
_DEFAULT_RATE = Fraction(25)
_WITH_DURATION = ("matroska", "mov", "flv")
"""Formats whose header has the duration; that of others is estimated from what can be read."""
# Bytes between two blocks of Matroska: about 10, with 30 more where a cluster begins.
_MOST_OVERHEAD = 1024
# Sound and video may end at different times.
_TAIL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """How a video's frames are stored, and how players show them."""

    pixel_format: str
    """FFmpeg's name of the format."""
    colours: Colours
    """What its numbers mean."""
    rotation: int
    """Degrees by which players turn the frames, counter-clockwise."""
    pixel_aspect: Fraction
    """Width of a pixel by its height, before the frames are turned."""

    @classmethod
    def of(cls, frame: VideoFrame, stream: VideoStream) -> Self:
        """Return the picture of a stream by one of its frames."""
        return cls(
            pixel_format=frame.format.name,
            colours=Colours.of(frame),
            rotation=frame.rotation,
            pixel_aspect=stream.sample_aspect_ratio or Fraction(1),
        )

    @property
    def upright_aspect(self) -> Fraction:
        """Width of a pixel by its height, once the frames are turned."""
        is_turned = round(self.rotation / 90) % 2
        return 1 / self.pixel_aspect if is_turned else self.pixel_aspect

    def to_json(self) -> dict[str, Any]:
        """Return the form in a manifest."""
        return {**asdict(self), "pixel_aspect": str(self.pixel_aspect)}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoInfo:
    """What a video file holds, as far as its packets and its first frame show."""

    path: Path
    """The file."""
    frames: int
    """Number of frames."""
    rate: Fraction
    """Frames per second, on average."""
    time_base: Fraction
    """Seconds of one unit of time."""
    seconds: float
    """Duration."""
    video_bytes: int
    """Bytes of the video stream, without audio and container."""
    hidden: int
    """Number of frames that the file has and an edit list leaves out."""
    picture: Picture
    """How its frames are stored and shown."""

    @property
    def bit_rate(self) -> float:
        """Bits per second of the video stream."""
        return 8 * self.video_bytes / self.seconds


def probe(path: Path) -> VideoInfo:
    """Return what a file holds; only its first frame is decoded.

    Raises:
        ArchiveError: The file is not a video, has no video stream, or no frames.
    """
    with _opened(path) as (container, stream), _of_file(path):
        frames = size = hidden = 0
        picture: Picture | None = None
        first: int | None = None
        last = 0
        for packet in packets_of(container, stream):
            if picture is None:
                shown = cast("list[VideoFrame]", packet.decode())
                picture = Picture.of(shown[0], stream) if shown else None
            if not packet.size or packet.is_discard:
                hidden += bool(packet.size)
                continue
            frames += 1
            size += packet.size
            if packet.pts is not None:
                first = packet.pts if first is None else min(first, packet.pts)
                last = max(last, packet.pts + (packet.duration or 0))
        rate, base = _rate(stream), _time_base(stream)
        spanned = float((last - (first or 0)) * base)
    if not frames or picture is None:
        raise ArchiveError(f"{path} has no frames; give a video with at least one frame")
    return VideoInfo(
        path=path,
        frames=frames,
        rate=rate,
        time_base=base,
        # Files without times have their length from frames and rate.
        seconds=spanned if spanned > 0 else float(frames / rate),
        video_bytes=size,
        hidden=hidden,
        picture=picture,
    )


class LostFramesError(ValueError):
    """Frames of a damaged file can't be read."""

    def __init__(self, lost: int, read: int) -> None:
        # Times and rates are rounded, so that the number may be off by a few.
        super().__init__(
            f"it is damaged or cut off: about {lost} of {lost + read} frames can't be read"
        )


def packets_of(container: InputContainer, stream: VideoStream) -> Iterator[Packet]:
    """Yield the packets of a stream, and the empty ones by which a decoder ends.

    FFmpeg reads on behind damaged bytes without an error. A video that lacks a part without a word
    would be sampled at other moments, and degraded in another way, than the whole one. A user who
    wants what is left converts the file: the new one promises no more than it has.

    Raises:
        LostFramesError: The file promises more frames than it has, or bytes were passed over.
    """
    seen = _Seen()
    for packet in container.demux():
        seen.add(packet, is_shown=packet.stream.index == stream.index)
        if packet.stream.index == stream.index:
            yield packet
    if seen.frames and (lost := seen.lost(container, stream)) > 0:
        raise LostFramesError(lost, seen.frames)


class _Seen:
    """What the packets of a file cover: frames, time, and bytes."""

    def __init__(self) -> None:
        self.frames = 0
        self._has_hole = self._is_corrupt = False
        self._end = 0.0
        self._times: list[float] = []
        self._place = self._end_place = -1

    def add(self, packet: Packet, *, is_shown: bool) -> None:
        """Add a packet; those of other streams show where the file goes on."""
        if not packet.size:
            return
        if packet.pts is not None and packet.time_base is not None:
            time = float(packet.pts * packet.time_base)
            self._end = max(self._end, time + float((packet.duration or 0) * packet.time_base))
            if is_shown:
                self._times.append(time)
        self.frames += is_shown
        self._is_corrupt |= is_shown and packet.is_corrupt
        if packet.pos is None or packet.pos < self._place:
            return
        if packet.pos == self._place:
            # Several packets of sound may share a block.
            self._end_place += packet.size
            return
        self._has_hole |= self._place >= 0 and packet.pos - self._end_place > _MOST_OVERHEAD
        self._place, self._end_place = packet.pos, packet.pos + packet.size

    def lost(self, container: InputContainer, stream: VideoStream) -> int:
        """Return how many frames are missing, as far as the file's header shows."""
        kind = container.format.name
        if stream.frames:
            return _promised(stream, kind) - self.frames
        times, rate = sorted(self._times), _rate(stream)
        if len(times) < 2:
            return 0
        longest = max(after - before for before, after in pairwise(times))
        seconds = (container.duration or 0) / av.time_base
        # The last frame of a variable rate may be shown for long.
        if kind.startswith(_WITH_DURATION) and seconds - self._end > max(_TAIL, longest):
            spanned: float = seconds - times[0]
        elif (self._has_hole and kind.startswith("matroska")) or (
            # Joined recordings have flags like damaged ones, but lack no time.
            self._is_corrupt and kind == "mpegts" and longest > 1.5 / rate
        ):
            spanned = times[-1] - times[0] + float(1 / rate)
        else:
            return 0
        return max(1, round(spanned * float(rate)) - self.frames)


def _promised(stream: VideoStream, kind: str) -> int:
    """Return how many frames a file says it has, once all of them were read."""
    frames: int = stream.frames
    # Where an edit list leaves out a part, the index is shorter than the header says. AVI's header
    # also counts the moments at which a capture kept no frame; its index lacks them, but reaches as
    # far. A file that is cut off has no index, and FFmpeg makes one from the frames it finds.
    at = [entry.timestamp for entry in stream.index_entries]
    longest = max((after - before for before, after in pairwise(at)), default=0)
    reaches_end = kind == "avi" and len(at) > 1 and at[-1] + longest >= frames
    return min(len(at), frames) if kind.startswith("mov") or reaches_end else frames


def read_frames(path: Path) -> Iterator[VideoFrame]:
    """Yield the frames of a video in the order in which they are shown.

    Frames are upright, of an even width and height, and in yuv420p, as encoders need them; what
    their numbers mean stays. The first one has the time 0, and every other one a later time than
    the frame before it.

    Raises:
        ArchiveError: The file is not a video, a frame can't be decoded, or its colours can't be
            converted.
    """
    for frame in _decoded(path):
        try:
            upright = upright_planes(frame, _quarters(frame, path))
        except ValueError as err:
            raise ArchiveError(f"{path}: {err}") from err
        yield upright


def _decoded(path: Path) -> Iterator[VideoFrame]:
    """Yield frames as they are stored; times begin with 0 and grow."""
    index = -1
    with _opened(path) as (container, stream):
        # Files are decoded at the same time instead; a decoder with threads holds more frames.
        stream.codec_context.thread_count = 1
        base = _time_base(stream)
        step = max(1, round(1 / (_rate(stream) * base)))
        start: int | None = None
        last = -step
        with _of_file(path, lambda: f"frame {index + 2} can't be decoded"):
            for index, frame in enumerate(_whole_frames(container, stream)):
                given = frame.pts
                if start is None:
                    start = given or 0
                # A file may have no times, or the same one twice.
                time = last + step if given is None else given - start
                last = time if time > last else last + 1
                frame.pts, frame.time_base = last if index else 0, base
                yield frame
    if index < 0:
        raise ArchiveError(f"{path} has no frames; give a video with at least one frame")


def _whole_frames(container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
    """Yield decoded frames.

    Raises:
        LostFramesError: A decoder left out a packet, or guessed what a frame shows.
    """
    # Packets that led to no frame yet; before the first frame, recordings may have some for which
    # nothing to start from is known.
    due: set[int] = set()
    count = guessed = 0
    for packet in packets_of(container, stream):
        if packet.pts is not None and not packet.is_discard and not _is_hidden(packet, stream):
            due.add(packet.pts)
        for frame in cast("list[VideoFrame]", packet.decode()):
            if frame.pts is not None:
                due = due if count else {time for time in due if time >= frame.pts}
                due.discard(frame.pts)
            count += 1
            guessed += frame.is_corrupt
            yield frame
    if count and (lost := len(due) + guessed):
        raise LostFramesError(lost, count - guessed)


def _is_hidden(packet: Packet, stream: VideoStream) -> bool:
    """Return whether a packet has no frame of its own, but helps others: VP8 has such ones."""
    # The bit show_frame of the frame's header (RFC 6386, section 9.1).
    return stream.codec_context.name in ("vp8", "libvpx") and not bytes(packet)[0] & 0x10


def _quarters(frame: VideoFrame, path: Path) -> int:
    """Return by how many quarters of a circle players turn a frame, counter-clockwise."""
    # PyAV cuts off what is behind the decimal point.
    quarters: int = round(frame.rotation / 90)
    if abs(frame.rotation - 90 * quarters) > 1:
        raise ArchiveError(
            f"{path} asks to be shown rotated by {frame.rotation} degrees; rotate its frames by a "
            "multiple of 90"
        )
    return quarters


def _rate(stream: VideoStream) -> Fraction:
    return stream.average_rate or stream.guessed_rate or _DEFAULT_RATE


def _time_base(stream: VideoStream) -> Fraction:
    return stream.time_base or 1 / _rate(stream)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file and its first video stream.

    Raises:
        ArchiveError: The file can't be opened, or has no video stream.
    """
    if not path.is_file():
        raise ArchiveError(f"{path} is not a file; give a video")
    with ExitStack() as stack:
        with _of_file(path):
            # A file object instead of a path: nothing else can be opened by its content.
            file = stack.enter_context(path.open("rb"))
            limits = {"format_whitelist": VIDEO_FORMATS, "protocol_whitelist": "none"}
            container = stack.enter_context(av.open(file, options=limits))
        streams = [each for each in container.streams.video if not _is_cover(each)]
        if not streams:
            kinds = ", ".join(sorted({each.type for each in container.streams})) or "none"
            raise ArchiveError(f"{path} has no video stream (streams: {kinds}); give a video")
        if streams[0].codec_context is None:
            raise ArchiveError(f"{path}: PyAV has no decoder for it; convert it to H.264 first")
        yield container, streams[0]


def _is_cover(stream: VideoStream) -> bool:
    """Return whether a stream is the picture of an audio file."""
    return bool(stream.disposition & av.stream.Disposition.attached_pic)


@contextmanager
def _of_file(path: Path, what: Callable[[], str] = lambda: _UNREADABLE) -> Iterator[None]:
    """Turn errors of FFmpeg into errors about a file."""
    try:
        yield
    except LostFramesError as err:
        raise ArchiveError(
            f"{path}: {err}; get a whole copy, or convert it to H.264 in MP4 to use what is left"
        ) from err
    except (FFmpegError, OSError) as err:
        said = getattr(err, "strerror", None) or str(err)
        raise ArchiveError(
            f"{path}: {what()} ({said}); check the file, or convert it to H.264 in MP4"
        ) from err
