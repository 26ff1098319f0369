"""Which frames of a video are sent."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pictures import number_in, numbered_video

from hallujudge.asking import Sampling
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.media.media_files import MediaError
from hallujudge.sdk.media.video_frames import FrameSettings, estimated_frames, frames_of


@given(st.integers(1, 2000), st.integers(1, 256))
def test_uniform_frames_are_the_middles_of_equal_parts(total: int, count: int) -> None:
    chosen = Sampling(f"uniform:{count}").chosen(range(total))
    if total <= count:
        assert chosen == list(range(total))
    else:
        assert chosen == [int(Fraction(2 * n + 1, 2) * total / count) for n in range(count)]
    assert chosen == sorted(set(chosen))


@given(st.integers(1, 2000), st.integers(1, 256))
def test_frames_from_end_to_end_have_equal_steps(total: int, count: int) -> None:
    chosen = Sampling(f"ends:{count}").chosen(range(total))
    assert len(chosen) == min(total, count)
    assert chosen[0] == 0
    if count > 1:
        assert chosen[-1] == total - 1
        steps = {later - one for one, later in pairwise(chosen)}
        assert not steps or max(steps) - min(steps) <= 1


@given(
    st.lists(st.fractions(0, 60, max_denominator=1000), min_size=1, max_size=200, unique=True),
    st.sampled_from(["0.5", "1", "2.5", "30"]),
)
def test_frames_by_time_are_the_first_after_each_time(times: list[Fraction], rate: str) -> None:
    times.sort()
    step, wanted, n = 1 / Fraction(rate), [], 0
    while times[0] + n * step <= times[-1]:
        wanted.append(next(k for k, time in enumerate(times) if time >= times[0] + n * step))
        n += 1
    assert Sampling(f"fps:{rate}").chosen(times) == sorted(set(wanted))


def test_many_frames_become_uniform_ones() -> None:
    assert Sampling("all").chosen(range(300)) == Sampling("uniform:256").chosen(range(300))
    assert len(Sampling("fps:100").chosen([Fraction(n, 100) for n in range(1000)])) == 256


@pytest.mark.parametrize(
    "spec",
    ["", "16", "uniform", "uniform:0", "uniform:257", "fps:0", "fps:0.0", "fps:-1", "every:0"],
)
def test_other_samplings_are_refused(spec: str) -> None:
    with pytest.raises(InvalidInputError, match="give uniform:N, ends:N, every:N"):
        Sampling(spec)


@pytest.mark.parametrize("codec", ["libx264", "mpeg4", "libvpx-vp9"])
@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_decoded_frames_are_the_chosen_ones(tmp_path: Path, codec: str, kind: str) -> None:
    suffix = "webm" if codec == "libvpx-vp9" else "mp4"
    video = numbered_video(tmp_path / f"v.{suffix}", 50, codec=codec)
    settings = FrameSettings(sampling=Sampling("uniform:7"), format=kind)
    frames = frames_of(video, settings)
    assert [number_in(frame.data) for frame in frames] == [3, 10, 17, 25, 32, 39, 46]
    assert {(f.media_type, f.width, f.height) for f in frames} == {(f"image/{kind}", 160, 120)}
    expected = estimated_frames(video, settings)
    assert [frame.tokens for frame in expected] == [frame.tokens for frame in frames]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no video",
        b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"\x00\x00\x00\x20ftypisom" + bytes(2000),
    ],
)
def test_what_is_not_a_video_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.mp4"
    path.write_bytes(content)
    for read in (frames_of, estimated_frames):
        with pytest.raises(MediaError) as caught:
            read(path, FrameSettings())
        assert caught.value.reason == "VIDEO_UNREADABLE"


def test_a_video_that_is_cut_off_or_has_no_pictures_is_an_error(tmp_path: Path) -> None:
    video = numbered_video(tmp_path / "v.mkv", 60)
    (tmp_path / "half.mkv").write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    whole = frames_of(video, FrameSettings(sampling=Sampling("all")))
    assert len(whole) == 60
    # Other moments would be sampled of what is left.
    for read in (frames_of, estimated_frames):
        with pytest.raises(MediaError, match=r"about \d+ of 60 frames can't be read"):
            read(tmp_path / "half.mkv", FrameSettings(sampling=Sampling("all")))
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("mp2", rate=16000, layout="mono")
        samples = np.zeros((1, 1152), np.int16)
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate, frame.pts = 16000, 0
        container.mux([*stream.encode(frame), *stream.encode(None)])
    with pytest.raises(MediaError, match="has no video stream"):
        frames_of(tmp_path / "sound.mp4", FrameSettings())


@pytest.mark.parametrize(
    ("spec", "total", "chosen"),
    [
        # Mementos, section 2.1.1: the first frame and one image every 100 frames.
        ("every:100", 450, [0, 100, 200, 300, 400]),
        ("every:100", 100, [0]),
        # Its robotics: every n/20 frames of more than 100, else one every 5.
        ("mementos-robotics", 210, [n * 210 // 20 for n in range(20)]),
        ("mementos-robotics", 100, list(range(0, 100, 5))),
        ("mementos-robotics", 22, [0, 5, 10, 15, 20]),
    ],
)
def test_frames_of_mementos(spec: str, total: int, chosen: list[int]) -> None:
    assert Sampling(spec).chosen(range(total)) == chosen
