"""New video files, made of frames.

Files are written as H.264 in MP4, with one thread, so that equal frames give equal bytes. A file
gets its name when it is complete. Until then it has another name in the same folder, and is removed
when anything fails.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from types import TracebackType
from typing import IO, Any, Self

from hallujudge.sdk.errors import (
    InvalidInputError,
    MissingExtraError,
    OutputError,
    UnsupportedError,
)

with MissingExtraError.unless_installed("writing videos", "video"):
    import av
    from av.codec.context import Flags
    from av.error import ExternalError, FFmpegError

from av import Packet, VideoFrame
from av.container import OutputContainer
from av.video.stream import VideoStream

from hallujudge.sdk.media.frame_colours import Colours
from hallujudge.sdk.media.video_files import VideoInfo
from hallujudge.sdk.runs.folder_guards import completed, part_of

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


STILLS = Encoding(options={"preset": "ultrafast", "crf": "18", "g": "1", "aud": "1"})
"""Each frame is encoded alone, with a delimiter before it, so that any order can be shown."""


class VideoWriter:
    """Writes the frames of a video; a context manager.

    Args:
        path: The file.
        like: The video whose rate, unit of time and shape of pixels the file gets.
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
            self._take(self._stream.encode(frame))
        self.frames += 1

    def _take(self, packets: Iterable[Packet]) -> None:
        """Write encoded frames."""
        assert self._container is not None
        for packet in packets:
            self._container.mux(packet)

    def _started(self, container: OutputContainer, frame: VideoFrame) -> VideoStream:
        encoding = self._encoding
        if encoding.codec not in av.codecs_available:
            raise UnsupportedError(
                f"PyAV has no encoder {encoding.codec}; install the package av from its wheels"
            )
        stream: VideoStream = container.add_stream(  # type: ignore[assignment]  # any codec's
            encoding.codec, rate=self._like.rate, options=dict(encoding.options)
        )
        # The form in which frames are read, so that those without a change keep their numbers.
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, "yuv420p"
        context = stream.codec_context
        # The source's own base, in which the time of each frame is whole.
        context.time_base = self._like.time_base
        # With more threads, frames are encoded in another way each time.
        context.thread_count = 1
        context.flags |= Flags.bitexact
        context.sample_aspect_ratio = self._like.picture.upright_aspect
        Colours.of(frame).tag(context)
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
                    self._complete(self._stream)
                    container.close()
                    _flush(self._part)
                    self._part.replace(self._path)
        finally:
            # The first error is the one to show; this one would hide it.
            with suppress(FFmpegError, OSError):
                container.close()
            self._part.unlink(missing_ok=True)

    def _complete(self, stream: VideoStream) -> None:
        """Write what the encoder holds back."""
        self._take(stream.encode(None))


class StillsWriter(VideoWriter):
    """Writes frames that do not depend on each other, in an order that is known at their end.

    Encoded frames are kept in a temporary file without a name, which goes with the process, and are
    put into the new file from where they lie.

    Two neighbours may have the same ``idr_pic_id``, by which some decoders know where a frame ends.
    The encoder therefore puts a delimiter before each (``aud``).
    """

    def __enter__(self) -> Self:
        """Create both files."""
        with _of_temporary():
            self._kept: IO[bytes] = TemporaryFile(prefix="hallujudge-")
        self._places = array("Q", [0])
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        """Complete the file, or remove it after an error; remove the temporary file."""
        try:
            super().__exit__(*error)
        finally:
            # Closing writes what a full disk refused before, but the file is not needed any more.
            with suppress(OSError):
                self._kept.close()

    def _take(self, packets: Iterable[Packet]) -> None:
        with _of_temporary():
            for packet in packets:
                if not packet.is_keyframe:
                    raise InvalidInputError(
                        "frames that depend on each other can't be shown in another order; give "
                        "the encoder the option g with the value 1"
                    )
                self._places.append(self._places[-1] + self._kept.write(packet))
            self._kept.flush()

    def _complete(self, stream: VideoStream) -> None:
        """Nothing is left once the frames were shown."""

    def show(self, order: Sequence[int], times: Iterable[int]) -> None:
        """Put frames into the file.

        Args:
            order: Which frame is shown at each place.
            times: When, in the units of the video that the file is like.
        """
        assert self._container is not None
        assert self._stream is not None
        with _of_output(self._path):
            self._take(self._stream.encode(None))
            for place, time in zip(order, times, strict=True):
                self._kept.seek(self._places[place])
                packet = av.Packet(self._kept.read(self._places[place + 1] - self._places[place]))
                packet.stream, packet.time_base = self._stream, self._like.time_base
                # Frames that stand alone are decoded in the order in which they are shown.
                packet.pts = packet.dts = time
                packet.is_keyframe = True
                self._container.mux(packet)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file of any kind, which has its name only when it is complete.

    Raises:
        OutputError: The disk is full, or another error of the system.
    """
    with _of_output(path), completed(path) as part:
        part.write_bytes(data)
        _flush(part)


def write_temporary(path: Path, data: bytes) -> None:
    """Write a temporary file.

    Raises:
        OutputError: The disk is full, or another error of the system.
    """
    with _of_temporary():
        path.write_bytes(data)
        _flush(path)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second place: a link to it, or a copy where links are not possible.

    Raises:
        OutputError: The disk is full, or another error of the system.
    """
    with _of_output(target):
        # By content: size and time alone do not show that a file is the same.
        if target.exists() and filecmp.cmp(source, target, shallow=False):
            return
        with completed(target) as part:
            try:
                os.link(source, part)
            except OSError:
                shutil.copyfile(source, part)
                _flush(part)


def _flush(path: Path) -> None:
    """Write a file to the disk, which may be full without that anything said so yet."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _of_temporary() -> Iterator[None]:
    """Turn errors of the system into errors about temporary files."""
    try:
        yield
    except OSError as err:
        raise OutputError.of(
            Path(gettempdir()), err, "free space for temporary files, or set TMPDIR"
        ) from err


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
