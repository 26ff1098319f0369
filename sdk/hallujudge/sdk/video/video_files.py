"""Video files: what a file holds, its frames one by one, and new files made of frames.

Frames are in yuv420p or in red, green and blue. They are upright: a rotation that the file asks for
is applied. No more than one frame is held while a file is read.

Files are written as H.264 in MP4, with one thread, so that equal frames give equal bytes. A file
gets its name when it is complete. Until then it has another name in the same folder, and is removed
when anything fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ..errors import ArchiveError, MissingExtraError, OutputError, UnsupportedError

with MissingExtraError.unless_installed("reading videos", "video"):
    import av
    from av.codec.context import Flags
    from av.error import ExternalError, FFmpegError

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer, OutputContainer
    from av.video.stream import VideoStream

Pixels: TypeAlias = NDArray[np.uint8]
"""Pixels: height, width and the channels red, green and blue; or the planes of yuv420p."""

# Quicker conversions make frames darker by one or two of 255, or depend on the processor.
EXACT = (
    av.video.reformatter.Interpolation.BILINEAR
    | av.video.reformatter.Interpolation.FULL_CHR_H_INT
    | av.video.reformatter.Interpolation.ACCURATE_RND
    | av.video.reformatter.Interpolation.BITEXACT
)
"""How pixels are converted."""
_UNREADABLE = "is not a video that FFmpeg can read"
_DEFAULT_RATE = Fraction(25)
# Playlists and scripts are formats too, and would open further files and addresses.
_CONTAINERS = "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,gif"


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoInfo:
    """What a video file holds, as far as its packets tell without decoding them."""

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

    @property
    def bit_rate(self) -> float:
        """Bits per second of the video stream."""
        return 8 * self.video_bytes / self.seconds


def probe(path: Path) -> VideoInfo:
    """Return what a file holds; its packets are read and not decoded.

    Raises:
        ArchiveError: The file is not a video, has no video stream, or no frames.
    """
    with _opened(path) as (container, stream), _of_file(path):
        frames = size = 0
        first: int | None = None
        last = 0
        for packet in container.demux(stream):
            if not packet.size:
                continue
            frames += 1
            size += packet.size
            if packet.pts is not None:
                first = packet.pts if first is None else min(first, packet.pts)
                last = max(last, packet.pts + (packet.duration or 0))
        rate, base = _rate(stream), _time_base(stream)
        spanned = float((last - (first or 0)) * base)
    if not frames:
        raise ArchiveError(f"{path} has no frames; give a video with at least one frame")
    return VideoInfo(
        path=path,
        frames=frames,
        rate=rate,
        time_base=base,
        seconds=spanned if spanned > 0 else float(frames / rate),
        video_bytes=size,
    )


def read_frames(path: Path) -> Iterator[VideoFrame]:
    """Yield the frames of a video in the order in which they are shown.

    Frames are upright, of an even width and height, and in yuv420p, as encoders need them. The
    first one has the time 0, and every other one a later time than the frame before it.

    Raises:
        ArchiveError: The file is not a video, or a frame can't be decoded.
    """
    for frame in _decoded(path):
        ready = _even(_upright(frame, path))
        yield ready if ready is frame else stamped(ready, frame)


def rgb_of(frame: VideoFrame) -> Pixels:
    """Return the pixels of a frame in red, green and blue."""
    pixels: Pixels = _converted(frame, "rgb24").to_ndarray()
    return pixels


def frame_of(pixels: Pixels, like: VideoFrame) -> VideoFrame:
    """Return the frame of red, green and blue pixels, with the colours and time of another."""
    frame = _converted(av.VideoFrame.from_ndarray(pixels, "rgb24"), "yuv420p", like.colorspace)
    return stamped(frame, like)


def stamped(frame: VideoFrame, like: VideoFrame) -> VideoFrame:
    """Return a frame that has the colour space and the time of another."""
    frame.colorspace = like.colorspace
    frame.pts, frame.time_base, frame.duration = like.pts, like.time_base, like.duration
    return frame


def planes_of(frame: VideoFrame) -> Pixels:
    """Return the planes of a frame in yuv420p below each other."""
    planes: Pixels = frame.to_ndarray()
    return planes


def frame_of_planes(planes: Pixels, like: VideoFrame) -> VideoFrame:
    """Return the frame of planes, with the colour space and time of another."""
    return stamped(av.VideoFrame.from_ndarray(planes, "yuv420p"), like)


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
            for index, frame in enumerate(container.decode(stream)):
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


def _upright(frame: VideoFrame, path: Path) -> VideoFrame:
    # PyAV cuts off what is behind the decimal point.
    quarters = round(frame.rotation / 90)
    if abs(frame.rotation - 90 * quarters) > 1:
        raise ArchiveError(
            f"{path} asks to be shown rotated by {frame.rotation} degrees; rotate its frames by a "
            "multiple of 90"
        )
    if quarters % 4 == 0:
        return frame
    turned = np.ascontiguousarray(np.rot90(rgb_of(frame), quarters))
    upright = av.VideoFrame.from_ndarray(turned, "rgb24")
    upright.colorspace = frame.colorspace
    return upright


def _even(frame: VideoFrame) -> VideoFrame:
    """Return a frame in yuv420p; an odd width or height loses its last column or row."""
    width, height = frame.width // 2 * 2, frame.height // 2 * 2
    space = frame.colorspace
    if (width, height) == (frame.width, frame.height):
        return _converted(frame, "yuv420p", space)
    cut = np.ascontiguousarray(rgb_of(frame)[:height, :width])
    return _converted(av.VideoFrame.from_ndarray(cut, "rgb24"), "yuv420p", space)


def _converted(frame: VideoFrame, form: str, space: int | None = None) -> VideoFrame:
    """Return a frame in a format; red, green and blue are converted by a colour space."""
    if frame.format.name == form:
        return frame
    known = av.video.reformatter.Colorspace
    of_source = frame.colorspace if frame.colorspace == known.ITU709 else known.DEFAULT
    to = of_source if space is None else space
    converted = frame.reformat(
        format=form,
        interpolation=EXACT,
        src_colorspace=of_source,
        dst_colorspace=to if to == known.ITU709 else known.DEFAULT,
        threads=1,
    )
    if space is not None:
        converted.colorspace = space
    return converted


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
            limits = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "none"}
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
    except (FFmpegError, OSError) as err:
        said = getattr(err, "strerror", None) or str(err)
        raise ArchiveError(
            f"{path}: {what()} ({said}); check the file, or convert it to H.264 in MP4"
        ) from err


# Without it FFmpeg writes its version and the time into the file.
_BITEXACT = {"fflags": "+bitexact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How frames are encoded."""

    codec: str = "libx264"
    """FFmpeg's name of the encoder."""
    options: Mapping[str, str] = field(default_factory=lambda: {"preset": "ultrafast", "crf": "18"})
    """Its options. Noise is hard to compress, so that slower presets gain little."""
    bit_rate: int | None = None
    """Bits per second; None for a constant quality."""

    def to_json(self) -> dict[str, Any]:
        """Return the form in a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the encoding of a manifest."""
        return cls(**value)


class VideoWriter:
    """Writes the frames of a video; a context manager.

    Args:
        path: The file.
        like: The video whose rate and unit of time the file gets.
        encoding: How frames are encoded.
    """

    def __init__(self, path: Path, like: VideoInfo, encoding: Encoding) -> None:
        self._path = path
        self._like = like
        self._encoding = encoding
        self._part = part_of(path)
        self._container: OutputContainer | None = None
        self._stream: VideoStream | None = None
        self.frames = 0
        """Number of frames that were written."""

    def __enter__(self) -> Self:
        """Create the file."""
        with _of_output(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._container = av.open(
                str(self._part), "w", format="mp4", container_options=_BITEXACT
            )
        return self

    def write(self, frame: VideoFrame) -> None:
        """Write the next frame; its time is later than that of the frame before it.

        Raises:
            OutputError: The disk is full, or another error of the system.
            UnsupportedError: FFmpeg has no such encoder, or it refuses the video.
        """
        assert self._container is not None
        with _of_output(self._path):
            if self._stream is None:
                self._stream = self._started(self._container, frame)
            # Encoders would otherwise keep the kinds of frames that the decoder saw.
            frame.pict_type = 0
            self._container.mux(self._stream.encode(frame))
        self.frames += 1

    def _started(self, container: OutputContainer, frame: VideoFrame) -> VideoStream:
        encoding = self._encoding
        if encoding.codec not in av.codecs_available:
            raise UnsupportedError(
                f"PyAV has no encoder {encoding.codec}; install the package av from its wheels"
            )
        stream: VideoStream = container.add_stream(  # type: ignore[assignment]  # any codec's
            encoding.codec, rate=self._like.rate, options=dict(encoding.options)
        )
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, "yuv420p"
        context = stream.codec_context
        context.time_base = self._like.time_base
        # With more threads, frames are encoded in another way each time.
        context.thread_count = 1
        context.flags |= Flags.bitexact
        context.colorspace = frame.colorspace
        if encoding.bit_rate is not None:
            context.bit_rate = encoding.bit_rate
        return stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Complete the file, or remove it after an error."""
        container = self._container
        assert container is not None
        try:
            with _of_output(self._path):
                if kind is None and self._stream is not None:
                    container.mux(self._stream.encode(None))
                    container.close()
                    _flush(self._part)
                    self._part.replace(self._path)
        finally:
            with suppress(FFmpegError, OSError):
                container.close()
            self._part.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file of any kind, which has its name only when it is complete.

    Raises:
        OutputError: The disk is full, or another error of the system.
    """
    part = part_of(path)
    with _of_output(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(data)
            _flush(part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """Return the name that a file has until it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _flush(path: Path) -> None:
    """Write a file to the disk, which may be full without that anything said so yet."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _of_output(path: Path) -> Iterator[None]:
    """Turn errors of FFmpeg and the system into errors about a file to write."""
    try:
        yield
    except OSError as err:
        raise OutputError.of(
            path, err, "free space or give another --out, then go on with --resume"
        ) from err
    except ExternalError as err:
        raise UnsupportedError(
            f"the encoder refuses {path.name}: its bitrate would be below the least that it can "
            "reach, or its size is not allowed; leave the video out"
        ) from err
    except FFmpegError as err:
        raise OutputError(f"can't write {path}: FFmpeg says {err}") from err
