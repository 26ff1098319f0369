"""What a decoder shows of seven small clips.

    python tools/behaviour/decoders.py pyav

Writes the clips with PyAV, and prints one cell for each, as JSON. Frame number i is grey of level
20 i, so that the number of a decoded frame is known. `behaviour_tables.py` installs the packages
and compares.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

FRAMES, WIDTH, HEIGHT = 10, 64, 32
STEP = 20
TIME_BASE = Fraction(1, 100)
# The identity of a track header, and a quarter turn: 16.16 fixed point, the last column 2.30.
UPRIGHT = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
TURNED = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, HEIGHT << 16, 0, 1 << 30)


def write(path: Path, times: Iterable[int], **options: str) -> None:
    """Write grey frames as H.264 at these times, in hundredths of a second."""
    import av

    # A time before 0 makes an edit list that hides the frame, as a cut without encoding does.
    muxer = {"avoid_negative_ts": "disabled"}
    with av.open(str(path), "w", options=muxer) as container:
        stream: Any = container.add_stream("libx264", rate=10, options={"crf": "0", **options})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.time_base = stream.codec_context.time_base = TIME_BASE
        full = path.stem == "full range"
        if full:
            stream.codec_context.color_range = 2
        for number, time in enumerate(times):
            frame: Any = av.VideoFrame(WIDTH, HEIGHT, "yuv420p")
            level = 16 if full else 16 + STEP * number
            for plane, value in zip(frame.planes, (level, 128, 128), strict=True):
                plane.update(bytes([value]) * plane.buffer_size)
            frame.pts, frame.time_base = time, TIME_BASE
            if full:
                frame.color_range = 2
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def write_gif(path: Path) -> None:
    """Write three frames that are shown for 0.1, 0.1 and 1 second."""
    from PIL import Image

    pictures = [Image.new("RGB", (WIDTH, HEIGHT), (STEP * at,) * 3) for at in range(3)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=[100, 100, 1000])


def clips(folder: Path) -> dict[str, Path]:
    """Write the clips; return name -> path."""
    steady = range(0, 10 * FRAMES, 10)
    write(folder / "constant rate.mp4", steady, bf="0")
    write(folder / "B-frames.mp4", steady, bf="3", **{"x264-params": "b-adapt=0"})
    write(folder / "variable rate.mp4", [0, 10, 20, 30, 40, 90, 140, 190, 240, 290], bf="0")
    write(folder / "edit list.mp4", [time - 40 for time in steady], bf="0", g="10")
    write(folder / "rotation.mp4", steady, bf="0")
    write(folder / "full range.mp4", steady, bf="0")
    write_gif(folder / "GIF.gif")
    turned = folder / "rotation.mp4"
    content = turned.read_bytes()
    at = content.index(UPRIGHT, content.index(b"tkhd"))
    turned.write_bytes(content[:at] + TURNED + content[at + len(TURNED) :])
    return {path.stem: path for path in sorted(folder.iterdir())}


@dataclass(frozen=True)
class Shown:
    """What a decoder says of a clip, and its frames."""

    frames: Sequence[Any]
    said: int | None = None
    rate: float | None = None


def pyav(path: Path) -> Shown:
    """Decode with PyAV."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        return Shown(frames, stream.frames, float(stream.average_rate or 0))


def opencv(path: Path) -> Shown:
    """Decode with OpenCV."""
    import cv2

    capture = cv2.VideoCapture(str(path))
    said = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    rate = capture.get(cv2.CAP_PROP_FPS)
    frames = []
    while (read := capture.read())[0]:
        frames.append(read[1][..., ::-1])
    return Shown(frames, said, rate)


def decord(path: Path) -> Shown:
    """Decode with decord."""
    from decord import VideoReader

    reader = VideoReader(str(path))
    frames = [reader[at].asnumpy() for at in range(len(reader))]
    return Shown(frames, len(reader), reader.get_avg_fps())


def torchcodec(path: Path) -> Shown:
    """Decode with torchcodec."""
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(str(path), dimension_order="NHWC")
    frames = [decoder[at].numpy() for at in range(len(decoder))]
    return Shown(frames, decoder.metadata.num_frames_from_header, decoder.metadata.average_fps)


def transformers(path: Path) -> Shown:
    """Sample four frames as transformers' loader does, through PyAV."""
    from transformers.video_utils import load_video

    frames, said = load_video(str(path), num_frames=4, backend="pyav")
    return Shown(list(frames), None, said.fps)


def hallujudge(path: Path) -> Shown:
    """Sample four frames as `uniform:4` does."""
    import io

    import numpy as np
    from PIL import Image

    from hallujudge.sdk.media.video_frames import FrameSettings, Sampling, frames_of

    images = frames_of(path, FrameSettings(sampling=Sampling("uniform:4"), format="png"))
    frames = [np.asarray(Image.open(io.BytesIO(one.data)).convert("RGB")) for one in images]
    return Shown(frames)


DECODERS: dict[str, Callable[[Path], Shown]] = {
    "pyav": pyav,
    "opencv": opencv,
    "decord": decord,
    "torchcodec": torchcodec,
    "transformers": transformers,
    "hallujudge": hallujudge,
}


def number_of(frame: Any, name: str) -> int:
    """Return a frame's number by its level in the middle."""
    level = float(frame[frame.shape[0] // 2, frame.shape[1] // 2].mean())
    # Limited range is stretched from 16 ... 235 to 0 ... 255.
    return round(level / STEP if name == "GIF" else level / (STEP * 255 / 219))


def cell(decoder: Callable[[Path], Shown], name: str, path: Path) -> str:
    """Return what is shown, in a few words."""
    try:
        shown = decoder(path)
    except ImportError:
        raise
    except Exception as err:
        return type(err).__name__
    if name == "full range":
        return f"grey 16 is shown as {round(float(shown.frames[0].mean()))}"
    if name == "rotation":
        height, width = shown.frames[0].shape[:2]
        return f"{width} x {height}"
    numbers = [number_of(frame, name) for frame in shown.frames]
    which = ", ".join(map(str, numbers))
    if numbers == [*range(numbers[0], numbers[0] + len(numbers))] and len(numbers) > 1:
        which = f"{numbers[0]} to {numbers[-1]}"
    said = "" if shown.said in (None, len(numbers)) else f", says {shown.said} frames"
    rate = f", {shown.rate:.2f}/s" if shown.rate else ""
    return f"frames {which}{said}{rate}"


def main() -> None:
    """Print a decoder's cells."""
    warnings.simplefilter("ignore")
    decoder = DECODERS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        found = {name: cell(decoder, name, path) for name, path in clips(Path(folder)).items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
