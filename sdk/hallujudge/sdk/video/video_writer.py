"""New video files, made of frames.

Files are written as H.264 in MP4, with one thread, so that equal frames give equal bytes. A file
gets its name when it is complete. Until then it has another name in the same folder, and is removed
when anything fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..errors import MissingExtraError, OutputError, UnsupportedError

with MissingExtraError.unless_installed("writing videos", "video"):
    import av
    from av.codec.context import Flags
    from av.error import ExternalError, FFmpegError

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import OutputContainer
    from av.video.stream import VideoStream

    from .video_files import VideoInfo

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
