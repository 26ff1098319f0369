"""Degrading a video for INFACT: seconds of video per second of the processor, and memory.

    python benchmarks/bench_video.py [OPERATOR ...] [--seconds 40] [--height 360] [--source VIDEO]

Makes a clip of 30 frames a second with moving textures and camera noise, as a phone films it, and
runs each operator in a process of its own, which uses one core. The peak of its memory is that of
the whole process; twice as long a clip should not raise it. ``adversarial_noise`` is left out: it
depends on its encoders alone.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import needs
from arguments import Arguments

needs.packages("av", "PIL")

import av  # noqa: E402
import numpy as np  # noqa: E402

from hallujudge.asking.video.degrading import (  # noqa: E402
    MADE,
    PROCEDURAL,
    DegradeSettings,
    Making,
    make,
)
from hallujudge.asking.video.frame_operators import Step  # noqa: E402
from hallujudge.sdk.media.video_files import probe  # noqa: E402

RATE = 30
# Each operator is a process.
SMOKE_OPERATORS = 3
LEFT_OUT = ("adversarial_noise",)
# A subtitle is shown for most of this many seconds.
SUBTITLE_SECONDS = 3


def write_clip(path: Path, seconds: float, height: int) -> None:
    """Write a clip at about the quality of a phone's."""
    width = height * 16 // 9 // 2 * 2
    draw = np.random.default_rng(0)
    small = draw.integers(70, 186, (height // 4 + 2, width // 2, 3))
    texture = np.kron(small, np.ones((4, 4, 1))).astype(np.uint8)[:height]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(
            "libx264", rate=RATE, options={"crf": "18", "preset": "veryfast"}
        )
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for index in range(int(seconds * RATE)):
            left = 2 * index % (texture.shape[1] - width)
            pixels = texture[:, left : left + width].astype(np.int16)
            # A square moves against the camera.
            at = 5 * index % (width - 100)
            pixels[height // 3 : height // 2, at : at + 100] = (230, 60, 40)
            pixels += draw.integers(-6, 7, pixels.shape, np.int16)
            frame = av.VideoFrame.from_ndarray(pixels.clip(0, 255).astype(np.uint8), "rgb24")
            frame.pts, frame.time_base = index, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def write_subtitles(path: Path, seconds: float) -> Path:
    """Write subtitles that follow each other through a whole video."""
    texts = ("The man opens the red door.", "He walks into the kitchen\nand sits down.")
    cues = [
        f"{number + 1}\n{stamp(start)} --> {stamp(start + SUBTITLE_SECONDS - 0.2)}\n"
        f"{texts[number % 2]}\n"
        for number, start in enumerate(range(0, max(1, int(seconds)), SUBTITLE_SECONDS))
    ]
    path.write_text("\n".join(cues))
    return path


def stamp(seconds: float) -> str:
    """Return a time as SRT has it."""
    minutes, rest = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"


def measure(operator: str, source: Path, out: Path) -> None:
    """Make one file in this process, and print the time it took and the memory."""
    info = probe(source)
    third = info.seconds / 3
    steps = [Step(start=third * place, end=third * (place + 1)) for place in range(3)]
    subtitles = write_subtitles(out.with_suffix(".srt"), info.seconds)
    settings = DegradeSettings(steps={source.name: steps}, subtitles={source.name: subtitles})
    before = resource.getrusage(resource.RUSAGE_SELF)
    make(Making(source=source, name=source.name, operator=operator, folder=out, settings=settings))
    after = resource.getrusage(resource.RUSAGE_SELF)
    # `ru_maxrss` is at least the memory that the process which started this one had.
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert peak is not None
    found = {
        "seconds": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
        "memory": int(peak[1]) / 1024,
    }
    print(json.dumps(found))


def main() -> None:
    """Measure the operators."""
    parser = Arguments(__doc__)
    known = [name for name in (*MADE, PROCEDURAL) if name not in LEFT_OUT]
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help=", ".join(known))
    parser.size("--seconds", 40.0, smoke=1.0)
    parser.size("--height", 360, smoke=120)
    parser.add_argument("--source", type=Path, help="a video in place of the clip")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = parser.given()
    if given.one:
        measure(given.one, given.source, given.out)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = given.source or folder / "clip.mp4"
        if given.source is None:
            write_clip(source, given.seconds, given.height)
        info = probe(source)
        print(
            f"{info.seconds:.0f} s, {float(info.rate):.0f} frames a second, "
            f"{info.bit_rate / 1e6:.2f} Mbit/s"
        )
        print(f"{'operator':<28}{'x real time':>12}{'ms a frame':>12}{'MB memory':>12}")
        for operator in given.operators or (known[:SMOKE_OPERATORS] if given.smoke else known):
            command = [sys.executable, __file__, "--one", operator, "--source", str(source)]
            done = subprocess.run(
                [*command, "--out", str(folder / operator)], check=True, capture_output=True
            )
            found = json.loads(done.stdout)
            speed, frame = info.seconds / found["seconds"], 1000 * found["seconds"] / info.frames
            print(f"{operator:<28}{speed:>12.1f}{frame:>12.2f}{found['memory']:>12.0f}")


if __name__ == "__main__":
    main()
