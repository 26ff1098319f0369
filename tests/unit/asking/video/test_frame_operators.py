"""What operators do to frames, measured on the frames that a reader decodes afterwards."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.sizes import further
from support.video_clips import Frame, clip, counted, picture, shown, times, write_clip

from hallujudge.asking.video.degrading import compress, compression_parameters
from hallujudge.asking.video.frame_operators import (
    BlurSettings,
    NoiseSettings,
    Step,
    blur,
    draw_blur,
    draw_noise,
    draw_shuffle,
    draw_steps,
    line_kernel,
    noise,
    reorder,
)
from hallujudge.asking.video.text_operators import (
    IRRELEVANT_LINES,
    CaptionSettings,
    captions,
    draw_captions,
)
from hallujudge.asking.video.video_writer import STILLS, Encoding, VideoWriter
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.media.frame_colours import planes_of, rgb_of
from hallujudge.sdk.media.video_files import probe, read_frames

LOSSLESS = Encoding(options={"preset": "ultrafast", "qp": "0"})


def brightness(path: Path) -> NDArray[np.float64]:
    """Return the brightness of all pixels, from 0 to 255."""
    return np.stack([brightness_of(frame) for frame in read_frames(path)])


def brightness_of(frame: Any) -> NDArray[np.float64]:
    planes = planes_of(frame)
    return (planes[: len(planes) * 2 // 3].astype(float) - 16) * 255 / 219


def grey(value: int = 128, size: tuple[int, int] = (180, 320)) -> Frame:
    return np.full((*size, 3), value, np.uint8)


def changed(
    source: Path, change: Callable[[Any], Any], encoding: Encoding = LOSSLESS
) -> list[Frame]:
    target = source.with_name("changed.mp4")
    with VideoWriter(target, probe(source), encoding) as writer:
        for frame in read_frames(source):
            writer.write(change(frame))
    return shown(target)


@pytest.mark.parametrize("sigma", [5.0, 20.0, 40.0])
def test_noise_has_mean_zero_its_spread_and_a_bound(tmp_path: Path, sigma: float) -> None:
    source = write_clip(tmp_path / "a.mp4", [grey()] * 6)
    parameters = draw_noise(Random(1), NoiseSettings(sigma=sigma))
    changed(source, noise(parameters))
    added = brightness(tmp_path / "changed.mp4") - brightness(source)
    # Colours have half the resolution in a file, which averages their noise.
    expected = sigma * math.sqrt(0.299**2 + 0.587**2 + 0.114**2)
    assert abs(added.mean()) < 0.1
    # A normal distribution that is cut at three deviations has 0.9866 of its spread.
    assert added.std() == pytest.approx(0.9866 * expected, rel=0.02)
    assert np.abs(added).max() <= 3 * sigma + 2
    frames = added.reshape(6, -1)
    assert abs(np.corrcoef(frames[0], frames[1])[0, 1]) < 0.02, "frames have the same noise"


def test_noise_of_colours_is_bounded_before_any_encoder() -> None:
    import av

    frame = av.VideoFrame.from_ndarray(np.full((270, 320), 128, np.uint8), "yuv420p")
    frame.pts, frame.time_base = 0, Fraction(1, 25)
    added = brightness_of(noise({"sigma": 20.0, "limit": 30, "start": 3})(frame)) - 130.4
    assert 20 <= np.abs(added).max() <= 31
    still = noise({"sigma": 0.0, "limit": 0, "start": 3})
    assert np.abs(rgb_of(still(frame)).astype(int) - rgb_of(frame)).max() <= 1


@pytest.mark.parametrize(("width", "height"), [(320, 180), (322, 182), (62, 34)])
def test_noise_is_normal_and_of_its_seed_at_every_width(width: int, height: int) -> None:
    """Rows of some widths are filled up in memory, and the filling takes no random numbers."""
    import av

    def noisy(start: int) -> NDArray[np.float64]:
        planes = np.full((height * 3 // 2, width), 128, np.uint8)
        frame = av.VideoFrame.from_ndarray(planes, "yuv420p")
        frame.pts, frame.time_base = 0, Fraction(1, 25)
        return brightness_of(noise({"sigma": 20.0, "limit": 60, "start": start})(frame))

    first = noisy(3)
    assert (first == noisy(3)).all()
    assert (first != noisy(4)).mean() > 0.9
    added = (first - 130.4).ravel()
    spread = added.std()
    shares = [(np.abs(added) < k * spread).mean() for k in (0.5, 1, 2)]
    assert shares == pytest.approx([0.383, 0.683, 0.954], abs=0.03)
    assert abs(np.corrcoef(added[:-1], added[1:])[0, 1]) < 0.08


def test_blur_spreads_an_edge_over_its_length(tmp_path: Path) -> None:
    edge = grey(40)
    edge[:, 160:] = 200
    source = write_clip(tmp_path / "a.mp4", [edge] * 2)
    for length in (7, 13, 21):
        (frame, _) = changed(source, blur({"length": length, "angle": 0.0}))
        row = frame[100].mean(axis=1)
        ramp = np.flatnonzero((row > 46) & (row < 194))
        assert length - 3 <= len(ramp) <= length, length
        assert abs((ramp[0] + ramp[-1] + 1) / 2 - 160) <= 1
        # Along the edge, nothing changes.
        (frame, _) = changed(source, blur({"length": length, "angle": 90.0}))
        assert np.abs(frame[60:120].astype(int) - edge[60:120]).mean() < 2


def test_blur_equals_a_plain_mean_along_the_line(tmp_path: Path) -> None:
    rows, columns = np.mgrid[:96, :128]
    waves = 128 + 60 * np.sin(rows / 5) * np.cos(columns / 7)
    picture = np.asarray(waves, np.uint8)
    source = write_clip(tmp_path / "a.mp4", [np.repeat(picture[..., None], 3, 2)])
    before = shown(source)[0].astype(float)
    parameters = draw_blur(Random(5), BlurSettings(shortest=15, longest=15))
    after = changed(source, blur(parameters))[0].astype(float)
    kernel = line_kernel(15, math.radians(parameters["angle"]))
    expected = np.zeros((40, 60, 3))
    for (down, across), count in kernel.items():
        expected += count * before[28 + down : 68 + down, 34 + across : 94 + across] / 15
    assert np.abs(after[28:68, 34:94] - expected).mean() < 1.5


@pytest.mark.parametrize("angle", [0, 30, 45, 90, 151.3])
def test_a_line_has_its_points_and_its_direction(angle: float) -> None:
    kernel = line_kernel(11, math.radians(angle))
    assert sum(kernel.values()) == 11
    first, last = max(combinations(kernel, 2), key=lambda pair: math.dist(*pair))
    found = math.degrees(math.atan2(first[0] - last[0], last[1] - first[1])) % 180
    assert min(abs(found - angle), 180 - abs(found - angle)) < 8


def test_compression_keeps_its_share_of_the_bitrate(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    texture = draw.integers(0, 255, (180, 1200, 3), np.uint8)
    frames = (texture[:, 3 * n : 3 * n + 320] // 4 + 90 for n in range(100))
    source = write_clip(tmp_path / "a.mp4", frames, crf=18)
    info = probe(source)
    compress(info, tmp_path / "b.mp4", compression_parameters(info, 0.1519))
    found = probe(tmp_path / "b.mp4")
    assert found.frames == 100
    assert found.bit_rate / info.bit_rate == pytest.approx(0.1519, rel=0.05)
    before, after = np.stack(shown(source)[::25]), np.stack(shown(tmp_path / "b.mp4")[::25])
    assert np.abs(before.astype(int) - after).mean() > 1, "nothing was lost"


@pytest.mark.parametrize(
    "count", [40, further("test_compression_of_a_short_noisy_clip_comes_close", 60)]
)
def test_compression_of_a_short_noisy_clip_comes_close(tmp_path: Path, count: int) -> None:
    """The encoder jumps between bitrates there, so that a later attempt may be further away."""
    draw = np.random.default_rng(0)

    def frame(index: int) -> Frame:
        moved = picture(index, 640, 360).astype(int) + draw.integers(-4, 5, (360, 640, 3))
        return moved.clip(0, 255).astype(np.uint8)

    info = probe(write_clip(tmp_path / "a.mp4", map(frame, range(count)), crf=14))
    compress(info, tmp_path / "b.mp4", compression_parameters(info, 0.1519))
    assert probe(tmp_path / "b.mp4").bit_rate / info.bit_rate == pytest.approx(0.1519, rel=0.04)


def reordered(source: Path, operator: str, parameters: dict[str, Any]) -> list[int]:
    target = source.with_name(f"{operator}.mp4")
    reorder(probe(source), target, operator, parameters, STILLS)
    return [counted(frame) for frame in shown(target)]


def test_reverse_is_the_order_from_end_to_start(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", 70)
    assert reordered(source, "reverse", {}) == list(range(69, -1, -1))
    assert times(tmp_path / "reverse.mp4") == times(source)


def test_frames_that_depend_on_each_other_are_not_reordered(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", 10)
    with pytest.raises(InvalidInputError, match="the option g with the value 1"):
        reorder(probe(source), tmp_path / "b.mp4", "reverse", {}, Encoding())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4"]


def test_a_decoder_without_the_container_finds_each_frame_too(tmp_path: Path) -> None:
    """Shuffled neighbours may have one ``idr_pic_id``, so that delimiters must part them."""
    import av

    source = clip(tmp_path / "a.mp4", 60)
    order = reordered(source, "shuffle", {"start": 4})
    stream = tmp_path / "a.h264"
    with av.open(str(tmp_path / "shuffle.mp4")) as container:
        (video,) = container.streams.video
        bare = av.bitstream.BitStreamFilterContext("h264_mp4toannexb", video)
        stream.write_bytes(
            b"".join(bytes(p) for packet in container.demux(video) for p in bare.filter(packet))
        )
    assert [counted(frame) for frame in shown(stream)] == order


def test_reverse_mirrors_the_times_of_a_variable_rate(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mkv", 5, times=[0, 40, 80, 500, 540])
    assert reordered(source, "reverse", {}) == [4, 3, 2, 1, 0]
    # Frame 2 was shown for 420 ms, and is so again.
    found = np.diff(times(tmp_path / "reverse.mp4"))
    assert found[1:] == pytest.approx([0.04, 0.42, 0.04], abs=2e-3)


def test_shuffle_shows_each_frame_once_in_random_order(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", 90)
    orders = [reordered(source, "shuffle", dict(draw_shuffle(Random(s)))) for s in (1, 1, 2)]
    assert sorted(orders[0]) == list(range(90))
    assert orders[0] == orders[1] != orders[2]
    assert sum(abs(a - b) == 1 for a, b in pairwise(orders[0])) < 10
    assert times(tmp_path / "shuffle.mp4") == times(source)


def test_steps_are_exchanged_and_what_is_between_them_stays(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", 50)
    steps = [Step(start=0.2, end=0.6), Step(start=0.8, end=1.0), Step(start=1.0, end=1.8)]
    drawn = draw_steps(Random(1), steps)
    assert sorted(drawn["order"]) == [0, 1, 2] != drawn["order"]
    found = reordered(source, "procedural_counterfactual", {**drawn, "order": [2, 0, 1]})
    lead, first, gap, second, third, end = (
        list(range(a, b)) for a, b in [(0, 5), (5, 15), (15, 20), (20, 25), (25, 45), (45, 50)]
    )
    assert found == [*lead, *third, *gap, *first, *second, *end]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "there are 0 steps"),
        ([(0, 1)], "there are 1 steps"),
        ([(0, 1), (0.5, 2)], "overlaps"),
        ([(0, 1), (2, 2)], "empty"),
        ([(-1, 1), (2, 3)], "empty or overlaps"),
        ([(0, 1), (float("nan"), 3)], "empty or overlaps"),
    ],
)
def test_steps_that_are_none_are_refused(steps: list[tuple[float, float]], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        draw_steps(Random(1), [Step(start=a, end=b) for a, b in steps])


def test_a_step_after_the_end_is_refused(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", 10)
    given = {"steps": [[0, 0.2], [3.0, 4.0]], "order": [1, 0]}
    with pytest.raises(InvalidInputError, match=r"no frame lies in the step from 3\.0 to 4\.0 s"):
        reordered(source, "procedural_counterfactual", given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4"]


FEW = "test_few_frames_are_held_however_long_a_video_is"


@pytest.mark.parametrize(
    "operator", ["shuffle", "motion_blur", further(FEW, "reverse"), further(FEW, "gaussian_noise")]
)
def test_few_frames_are_held_however_long_a_video_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str
) -> None:
    """Memory is counted in frames that exist while a frame is written."""
    import av

    held: list[int] = []
    write = VideoWriter.write

    def counting(self: VideoWriter, frame: Any) -> None:
        held.append(sum(type(each) is av.VideoFrame for each in gc.get_objects()))
        write(self, frame)

    monkeypatch.setattr(VideoWriter, "write", counting)
    # What exists already is left out, so that counting is quick.
    gc.collect()
    gc.freeze()
    most = {}
    for frames in (20, 120):
        source = clip(tmp_path / f"{frames}.mp4", frames)
        held.clear()
        if operator in ("reverse", "shuffle"):
            reordered(source, operator, {"start": 1})
        else:
            change = noise if operator == "gaussian_noise" else blur
            given = {"sigma": 9.0, "limit": 27, "start": 1, "length": 9, "angle": 3.0}
            changed(source, change(given))
        assert len(held) == frames
        most[frames] = max(held)
    gc.unfreeze()
    assert most[120] <= most[20] <= 6


def test_captions_are_drawn_in_their_segments_only(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mp4", [grey(100)] * 100)
    parameters = draw_captions(Random(2), probe(source), CaptionSettings(misleading=["It closes."]))
    drawn = parameters["captions"]
    assert [each["kind"] for each in drawn].count("misleading") == 1
    assert len(drawn) == 5
    assert all(0 <= each["start"] < each["end"] <= 4.0 for each in drawn)
    assert all(a["end"] <= b["start"] for a, b in pairwise(drawn))
    texts = [each["text"] for each in drawn if each["kind"] == "irrelevant"]
    assert len(set(texts)) == 4
    assert set(texts) <= set(IRRELEVANT_LINES)
    frames = changed(source, captions(parameters))
    for index, frame in enumerate(frames):
        inside = any(each["start"] <= index / 25 < each["end"] for each in drawn)
        low, high = frame[90:].min(), frame[90:].max()
        assert bool(low < 60 and high > 200) is inside, index
        # The upper half stays as it is.
        assert np.abs(frame[:90].astype(int) - 100).max() <= 4


def test_kinds_of_captions(tmp_path: Path) -> None:
    info = probe(clip(tmp_path / "a.mp4", 50))
    for kind in ("irrelevant", "misleading"):
        settings = CaptionSettings(misleading=["One.", "Two."], kind=kind)
        found = draw_captions(Random(1), info, settings)["captions"]
        assert {each["kind"] for each in found} == {kind}
    # Without misleading lines there are none in a mixed file.
    found = draw_captions(Random(1), info, CaptionSettings())["captions"]
    assert {each["kind"] for each in found} == {"irrelevant"}
    with pytest.raises(InvalidInputError, match="--misleading"):
        draw_captions(Random(1), info, CaptionSettings(kind="misleading"))
    settings = CaptionSettings(misleading=["門が閉まる"], kind="misleading")
    with pytest.raises(InvalidInputError, match="--font"):
        draw_captions(Random(1), info, settings)


def test_long_captions_are_wrapped_into_the_frame(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mp4", [grey(100)] * 2)
    text = "A very long sentence that has nothing to do with what the video shows at all. " * 2
    given = {"captions": [{"start": 0.0, "end": 9.0, "text": text}], "font": None}
    frame = changed(source, captions(given))[0]
    white = np.argwhere(frame.min(axis=2) > 180)
    assert white[:, 1].min() > 3
    assert white[:, 1].max() < 316
    assert len({row // 13 for row in white[:, 0]}) > 3, "one line"
