"""Compression to a share of the bitrate (mode II): a video encoded again, in two passes.

Yang et al., 2026, appendix A.5: about 15.19 % of the original bitrate stays. The first pass only
measures how hard each frame is to encode; one pass alone misses the bitrate of short videos.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ..errors import UnsupportedError
from .video_files import probe, read_frames
from .video_writer import Encoding, VideoWriter

if TYPE_CHECKING:
    from .pixel_operators import Parameters
    from .video_files import VideoInfo

KEPT_SHARE = 0.1519
"""Share of the bitrate that stays: 2.83 GB became 0.43 GB."""
# What sharing platforms do is not published; this preset is the slowest that is quick enough.
_PRESET = "superfast"
# Encoders miss low bitrates of short videos. Another attempt aims as much lower as this one missed.
_TOLERANCE = 0.02
_ATTEMPTS = 4
_LEAST_BITS = 1_000


def compression_parameters(info: VideoInfo, share: float) -> Parameters:
    """Return the bitrate that a video gets."""
    return {"share": share, "bit_rate": max(_LEAST_BITS, round(info.bit_rate * share))}


def compress(info: VideoInfo, target: Path, parameters: Parameters) -> Encoding:
    """Write a video that has a given bitrate, as close as the encoder comes.

    Returns:
        How the written file was encoded.

    Raises:
        ArchiveError: A frame can't be decoded.
        OutputError: The file can't be written.
        UnsupportedError: The encoder refuses the video.
    """
    wanted = aim = parameters["bit_rate"]
    with TemporaryDirectory(prefix="hallujudge-") as folder:
        log = Path(folder) / "pass.log"
        _encode(info, Path(folder) / "first.mp4", _pass(1, log, aim))
        _encode(info, target, _pass(2, log, aim))
        for _ in range(1, _ATTEMPTS):
            found = probe(target).bit_rate
            if abs(found / wanted - 1) <= _TOLERANCE:
                break
            lower = max(_LEAST_BITS, round(aim * wanted / found))
            # x264 refuses less than its own estimate of the least: the attempt before stays.
            with suppress(UnsupportedError):
                _encode(info, target, _pass(2, log, lower))
                aim = lower
                continue
            break
    return Encoding(options={"preset": _PRESET, "passes": "2"}, bit_rate=aim)


def _encode(info: VideoInfo, target: Path, encoding: Encoding) -> None:
    with VideoWriter(target, info, encoding) as writer:
        for frame in read_frames(info.path):
            writer.write(frame)


def _pass(number: int, log: Path, bit_rate: int) -> Encoding:
    # A colon would end the path, as in names of drives.
    options = {"preset": _PRESET, "flags": f"+pass{number}", "stats": str(log)}
    return Encoding(options=options, bit_rate=bit_rate)
