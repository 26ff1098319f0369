"""Colours of frames that are sent and of videos that are degraded, by tags, ranges and formats.

The right colours are known by the formulas of ITU-T H.273; PyAV and decord, with which models' own
processors read videos, agree with them. Pillow reads the images, as servers do.
"""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image
from support.coloured_clips import (
    COLOURS,
    MATRICES,
    RANGES,
    STORAGES,
    coloured_clip,
    colours_in,
    patched,
)

from hallujudge.asking import Sampling
from hallujudge.asking.video.degrading import DegradeSettings, Making, make
from hallujudge.asking.video.frame_operators import BlurSettings, NoiseSettings, Step
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.media.media_files import MediaError
from hallujudge.sdk.media.video_frames import FrameSettings, frames_of

LARGEST = 3
"""Largest difference of levels, of 255: conversions round, and JPEG has a loss."""
ORDERS = ("shuffle", "reverse", "procedural_counterfactual")
OPERATORS = (*ORDERS, "gaussian_noise", "motion_blur", "compression", "caption_injection")


def sent(path: Path, kind: str) -> Any:
    """Return the pixels of a frame as a server sees them."""
    settings = FrameSettings(sampling=Sampling("uniform:1"), format=kind)
    (image,) = frames_of(path, settings)
    with Image.open(io.BytesIO(image.data)) as found:
        return np.asarray(found.convert("RGB"))


def decoded(path: Path) -> Any:
    """Return the pixels of the first frame as PyAV reads them."""
    with av.open(str(path)) as container:
        return next(container.decode(video=0)).to_ndarray(format="rgb24")


def difference(pixels: Any, expected: Any = COLOURS) -> float:
    return float(np.abs(colours_in(pixels) - expected).max())


@pytest.mark.parametrize("storage", STORAGES.values(), ids=list(STORAGES))
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("range_", RANGES)
def test_frames_that_are_sent_have_the_colours_of_the_clip(
    tmp_path: Path, storage: Any, matrix: str, range_: str
) -> None:
    if storage.name == "vp9" and matrix == "fcc":
        matrix = "bt470bg"  # VP9 has no code for FCC.
    path = coloured_clip(tmp_path, storage=storage, matrix=matrix, range_=range_)
    found = {kind: difference(sent(path, kind)) for kind in ("jpeg", "png")}
    found["PyAV"] = difference(decoded(path))
    assert max(found.values()) <= LARGEST, found


@pytest.mark.parametrize("matrix", ["bt709", "bt2020nc", "smpte170m", "none"])
@pytest.mark.parametrize("range_", RANGES)
def test_a_second_decoder_agrees(tmp_path: Path, matrix: str, range_: str) -> None:
    decord = pytest.importorskip("decord", reason="the package decord is absent")
    path = coloured_clip(tmp_path, matrix=matrix, range_=range_)
    theirs = decord.VideoReader(str(path))[0].asnumpy()
    assert difference(theirs) <= LARGEST
    for kind in ("jpeg", "png"):
        assert difference(sent(path, kind), colours_in(theirs)) <= LARGEST


def rgb_clip(path: Path, codec: str, form: str, matrix: int = 2) -> Path:
    """Write a clip of patches in a format that needs no matrix."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=5)
        frame = av.VideoFrame.from_ndarray(patched(), "rgb24").reformat(format=form)
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, form
        stream.codec_context.colorspace = frame.colorspace = matrix
        for index in range(4):
            frame.pts, frame.time_base = index, Fraction(1, 5)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("name", "codec", "form", "matrix"),
    [
        ("a.mkv", "ffv1", "bgr0", 0),
        # A tag that means nothing for red, green and blue.
        ("b.mkv", "ffv1", "bgr0", 1),
        ("c.mkv", "ffv1", "gbrp10le", 2),
        ("d.mov", "qtrle", "rgb24", 2),
        ("e.gif", "gif", "rgb8", 2),
        ("f.mkv", "ffv1", "gray", 2),
        ("g.mkv", "ffv1", "gray10le", 1),
    ],
)
def test_formats_without_a_matrix_keep_their_colours(
    tmp_path: Path, name: str, codec: str, form: str, matrix: int
) -> None:
    path = rgb_clip(tmp_path / name, codec, form, matrix)
    expected = colours_in(decoded(path))
    for kind in ("jpeg", "png"):
        assert difference(sent(path, kind), expected) <= LARGEST, kind
    making = Making(
        source=path, name=name, operator="reverse", folder=tmp_path, settings=DegradeSettings()
    )
    make(making)
    assert difference(decoded(making.target), expected) <= LARGEST


@pytest.mark.parametrize("code", [8, 10, 14])
def test_a_matrix_that_cannot_be_converted_is_named(tmp_path: Path, code: int) -> None:
    path = coloured_clip(tmp_path, storage=STORAGES["h264-444"], matrix="bt709")
    tagged = tmp_path / "tagged.mp4"
    with av.open(str(path)) as source, av.open(str(tagged), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        options = f"matrix_coefficients={code}"
        retag = av.bitstream.BitStreamFilterContext(
            f"h264_metadata={options}", source.streams.video[0], stream
        )
        for packet in source.demux(video=0):
            for changed in retag.filter(packet if packet.size else None):
                changed.stream = stream
                target.mux(changed)
    expected = rf"matrix {code} of ITU-T H\.273, which FFmpeg can't convert; convert the video to"
    with pytest.raises(MediaError, match=expected):
        frames_of(tagged, FrameSettings())
    with pytest.raises(ArchiveError, match=expected):
        made(tagged, tmp_path, "gaussian_noise")


def made(path: Path, folder: Path, operator: str) -> tuple[Path, dict[str, Any]]:
    """Make a degraded video that differs from its base as little as its operator can."""
    settings = DegradeSettings(
        noise=NoiseSettings(sigma=0.0),
        blur=BlurSettings(shortest=1, longest=1),
        kept_share=1.0,
        steps={path.name: [Step(start=0.0, end=0.2), Step(start=0.2, end=0.4)]},
    )
    making = Making(
        source=path, name=path.name, operator=operator, folder=folder / "made", settings=settings
    )
    line = make(making)
    return making.target, line


TAGS = {
    "a phone's": {"matrix": "bt709", "range_": "full", "primaries": 1, "transfer": 1},
    "a recorder's": {"matrix": "smpte170m", "range_": "full", "primaries": 6, "transfer": 13},
    "full range alone": {"matrix": "none", "range_": "full"},
    "HD": {"matrix": "bt709", "range_": "limited", "primaries": 1, "transfer": 1},
    "HDR": {"matrix": "bt2020nc", "range_": "limited", "primaries": 9, "transfer": 16},
    "older": {"matrix": "smpte240m", "range_": "limited"},
    "none": {},
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("tags", TAGS.values(), ids=list(TAGS))
def test_degraded_videos_keep_colours_and_tags(
    tmp_path: Path, operator: str, tags: dict[str, Any]
) -> None:
    storage = STORAGES["h264-10" if tags.get("transfer") == 16 else "h264"]
    path = coloured_clip(tmp_path, storage=storage, **tags)
    target, line = made(path, tmp_path, operator)
    # Captions are drawn on the lower row of patches.
    rows = slice(0, 4 if operator == "caption_injection" else 8)
    found, expected = (colours_in(decoded(each))[rows] for each in (target, path))
    assert np.abs(found - expected).max() <= LARGEST
    assert line["pictures"]["made"]["colours"] == line["pictures"]["source"]["colours"]
    stored = line["pictures"]["made"]["colours"]
    assert stored["primaries"] == tags.get("primaries", 2)
    assert stored["transfer"] == tags.get("transfer", 2)
    assert (stored["range"] == 2) is (tags.get("range_") == "full")


def brightness(path: Path) -> Any:
    """Return the numbers of brightness in all frames."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray()[: frame.height] for frame in container.decode(video=0)]
    return np.array(frames, int)


@pytest.mark.parametrize(("range_", "black", "white"), [("full", 0, 255), ("limited", 16, 235)])
def test_captions_are_black_and_white_in_the_clips_range(
    tmp_path: Path, range_: str, black: int, white: int
) -> None:
    path = coloured_clip(tmp_path, range_=range_)
    target, _ = made(path, tmp_path, "caption_injection")
    before, after = brightness(path), brightness(target)
    assert after.max() == pytest.approx(white, abs=6)
    # The box is black, and mostly opaque.
    assert after.min() <= black + (before.min() - black) / 2 + 1


def test_a_manifest_says_what_was_kept_and_what_was_converted(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(30000, 1001))
        stream.width, stream.height, stream.pix_fmt = 128, 64, "yuv422p10le"
        stream.codec_context.sample_aspect_ratio = Fraction(4, 3)
        stream.codec_context.time_base = Fraction(1001, 30000)
        stream.set_display_rotation(90)
        for index in range(12):
            frame = av.VideoFrame.from_ndarray(patched(), "rgb24").reformat(format="yuv422p10le")
            # What is shown before the time 0 is left out by an edit list.
            frame.pts, frame.time_base = index - 4, Fraction(1001, 30000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    target, line = made(path, tmp_path, "shuffle")
    source, new = line["pictures"]["source"], line["pictures"]["made"]
    assert source == {
        "pixel_format": "yuv422p10le",
        "colours": {"matrix": 2, "range": 0, "primaries": 2, "transfer": 2},
        "rotation": 90,
        "pixel_aspect": "4/3",
        "rate": source["rate"],
        "hidden_frames": 4,
    }
    # Frames are turned, so that their pixels are too, and those that are not shown are left out.
    assert new == source | {
        "pixel_format": "yuv420p",
        "rotation": 0,
        "pixel_aspect": "3/4",
        "hidden_frames": 0,
    }
    assert Fraction(source["rate"]) == pytest.approx(30000 / 1001, rel=0.01)
    assert line["frames"] == 8
    turned = np.rot90(decoded(target), -1)
    assert difference(turned, colours_in(decoded(path))) <= LARGEST
