"""Frames are read upright and in order, and every bad file has a sentence of its own."""

from __future__ import annotations

import re
import struct
import wave
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.video_clips import clip, counted, picture, times, write_clip

from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.media.frame_colours import frame_of, rgb_of
from hallujudge.sdk.media.video_files import probe, read_frames


def test_a_file_is_described_by_its_packets(tmp_path: Path) -> None:
    info = probe(clip(tmp_path / "a.mp4", 50))
    assert (info.frames, info.rate, info.seconds) == (50, Fraction(25), 2.0)
    assert 0 < info.video_bytes < (tmp_path / "a.mp4").stat().st_size
    assert info.bit_rate == 8 * info.video_bytes / 2


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi", "a.mov", "a.ts"])
def test_frames_come_in_order(tmp_path: Path, name: str) -> None:
    frames = list(read_frames(clip(tmp_path / name, 30)))
    assert [counted(rgb_of(frame)) for frame in frames] == list(range(30))
    assert [float(frame.pts * frame.time_base) for frame in frames] == pytest.approx(
        [index / 25 for index in range(30)], abs=0.002
    )


def test_colours_survive_both_conversions(tmp_path: Path) -> None:
    frame = next(read_frames(clip(tmp_path / "a.mp4", 2)))
    pixels = rgb_of(frame)
    again = rgb_of(frame_of(pixels, frame))
    difference = again.astype(int) - pixels
    assert abs(difference.mean()) < 0.05, "frames become darker or brighter"
    assert np.abs(difference).mean() < 1
    assert np.abs(pixels.astype(int) - picture(0)).mean() < 3


@pytest.mark.parametrize("rotation", [90, 180, -90])
def test_a_rotation_is_applied(tmp_path: Path, rotation: int) -> None:
    turned = (np.rot90(picture(index), -rotation // 90) for index in range(5))
    path = write_clip(tmp_path / "a.mp4", map(np.ascontiguousarray, turned), rotation=rotation)
    frames = [rgb_of(frame) for frame in read_frames(path)]
    assert [counted(frame) for frame in frames] == [0, 1, 2, 3, 4]
    assert frames[0].shape == (180, 320, 3)


def test_another_rotation_is_refused(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mp4", 3, rotation=30)
    with pytest.raises(ArchiveError, match=r"rotated by (29|30) degrees"):
        list(read_frames(path))


def test_an_odd_size_loses_a_row_and_a_column(tmp_path: Path) -> None:
    frames = (picture(index)[:179, :319] for index in range(3))
    path = write_clip(tmp_path / "a.mkv", frames, codec="ffv1")
    found = list(read_frames(path))
    assert [(frame.width, frame.height) for frame in found] == [(318, 178)] * 3
    assert [counted(rgb_of(frame)) for frame in found] == [0, 1, 2]


def test_times_of_a_variable_rate_are_kept(tmp_path: Path) -> None:
    given = [0, 40, 80, 500, 540, 1000]
    path = clip(tmp_path / "a.mkv", 6, times=given)
    found = [frame.pts * frame.time_base for frame in read_frames(path)]
    assert found == [Fraction(time, 1000) for time in given]
    assert times(path) == [time / 1000 for time in given]


def test_bad_files_have_a_sentence_each(tmp_path: Path) -> None:
    text = tmp_path / "text.mp4"
    text.write_text("no video")
    empty = tmp_path / "empty.mp4"
    empty.touch()
    sound = tmp_path / "sound.avi"
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000))
    _with_sound_alone(tmp_path / "sound.wav", sound)
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(clip(tmp_path / "a.mp4", 30).read_bytes()[:2000])
    playlist = tmp_path / "list.mp4"
    playlist.write_text("#EXTM3U\n#EXTINF:1,\na.mp4\n#EXT-X-ENDLIST\n")
    said = {}
    for path in (text, empty, sound, cut, playlist, tmp_path / "absent.mp4"):
        with pytest.raises(ArchiveError) as caught:
            list(read_frames(path))
        said[path.stem] = str(caught.value)
        with pytest.raises(ArchiveError):
            probe(path)
        assert str(path) in said[path.stem]
        assert "\n" not in said[path.stem]
    for name in ("text", "empty", "cut", "list"):
        assert "not a video that FFmpeg can read" in said[name], name
    assert "no video stream (streams: audio)" in said["sound"]
    assert "is not a file" in said["absent"]


def _damaged(path: Path, share: float, size: int = 0) -> Path:
    """Return a copy with other bytes at a place, or cut off there if there is no size."""
    data = path.read_bytes()
    at = int(len(data) * share)
    end = data[at + size :] if size else b""
    copy = path.with_name(f"damaged-{path.name}")
    copy.write_bytes(data[:at] + bytes(range(1, 251)) * (size // 250) + end)
    return copy


@pytest.mark.parametrize(
    ("name", "codec", "share", "size"),
    [
        pytest.param("a.mkv", "libx264", 0.3, 1000, id="the reader goes on at the next cluster"),
        pytest.param("a.mkv", "libx264", 0.95, 1000, id="the reader stops before the end"),
        pytest.param("a.mkv", "libx264", 0.6, 0, id="matroska that is cut off"),
        pytest.param("a.webm", "libvpx", 0.6, 0, id="webm that is cut off"),
        pytest.param("a.avi", "libx264", 0.6, 0, id="avi that is cut off"),
        pytest.param("a.ts", "libx264", 0.5, 3000, id="a stream of which packets are broken"),
    ],
)
def test_frames_that_are_lost_in_a_damaged_file_are_named(
    tmp_path: Path, name: str, codec: str, share: float, size: int
) -> None:
    path = clip(tmp_path / name, 400, codec=codec)
    assert probe(path).frames == len(list(read_frames(path))) == 400
    damaged = _damaged(path, share, size)
    with pytest.raises(ArchiveError, match=r"about \d+ of \d+ frames can't be read") as caught:
        probe(damaged)
    assert str(damaged) in str(caught.value)
    lost, total = map(int, re.findall(r"(\d+) of (\d+) frames", str(caught.value))[0])
    assert 0 < lost < 400
    assert total == pytest.approx(400, abs=3)
    with pytest.raises(ArchiveError, match=r"can't be (read|decoded)"):
        list(read_frames(damaged))


@pytest.mark.parametrize("name", ["a.avi", "a.mkv", "a.mp4", "a.ts", "a.webm"])
def test_moments_without_a_frame_are_not_lost(tmp_path: Path, name: str) -> None:
    # As a screen recorder writes it: nothing moves for a second, and later twice for two frames.
    shown = [0, *range(25, 40), *range(42, 60), *range(62, 80)]
    codec = "libvpx" if name.endswith("webm") else "mpeg4"
    path = write_clip(
        tmp_path / name, map(picture, shown), codec=codec, times=[40 * at for at in shown]
    )
    assert [counted(rgb_of(frame)) for frame in read_frames(path)] == shown
    assert probe(path).frames == len(shown)
    assert probe(path).seconds == pytest.approx(3.2, abs=0.1)


def test_frames_that_a_decoder_guessed_are_lost_too(tmp_path: Path) -> None:
    path = _damaged(clip(tmp_path / "a.mp4", 80), 0.5, 250)
    # Its packets are whole: only their content is wrong.
    assert probe(path).frames == 80
    with pytest.raises(ArchiveError, match=r"can't be (read|decoded)"):
        list(read_frames(path))


def test_a_part_that_an_edit_list_leaves_out_is_not_lost(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mp4", 600)
    data = bytearray(path.read_bytes())
    entry = data.index(b"elst") + 12
    # Frames 300 to 399, in units of the film and of the stream.
    data[entry : entry + 8] = struct.pack(">Ii", 4000, 12 * 12800)
    path.write_bytes(data)
    assert probe(path).frames == 100
    assert [counted(rgb_of(frame)) for frame in read_frames(path)] == list(range(300, 400))


def test_a_video_without_frames(tmp_path: Path) -> None:
    import av

    path = tmp_path / "none.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height = 64, 48
        container.start_encoding()
    with pytest.raises(ArchiveError, match="has no frames"):
        probe(path)
    with pytest.raises(ArchiveError, match="has no frames"):
        list(read_frames(path))


def _with_sound_alone(source: Path, target: Path) -> None:
    import av

    with av.open(str(source)) as given, av.open(str(target), "w") as made:
        stream = made.add_stream("pcm_s16le", rate=8000)
        for frame in given.decode(audio=0):
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
