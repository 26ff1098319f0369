"""Corrupted subtitles: what is read, which characters are wrong, and how far times are shifted."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from random import Random

import pytest

from hallujudge.asking.video.text_operators import (
    Subtitles,
    SubtitleSettings,
    corrupted,
    draw_corruption,
    plain_text,
    read_subtitles,
)
from hallujudge.sdk.errors import ArchiveError

SRT = """1
00:00:01,000 --> 00:00:02,500
<i>The man opens
the door.</i>

2
00:00:04,000 --> 00:00:05,500 X1:10 X2:20
{\\an8}He walks &amp; sits down.
"""
VTT = """WEBVTT - a title

NOTE 00:01.000 --> 00:02.000 is no subtitle

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start
The man opens the door.

01:00:04.000 --> 01:00:05.500
He sits down.
"""


def read(folder: Path, text: str, name: str = "a.srt", encoding: str = "utf-8") -> Subtitles:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return read_subtitles(path)


def wrong(found: Subtitles, seed: int = 0, errors: float = 0.1) -> Subtitles:
    return corrupted(found, draw_corruption(Random(seed), SubtitleSettings(errors=errors)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_srt_is_read_and_written_back(tmp_path: Path, encoding: str, ends: str) -> None:
    found = read(tmp_path, SRT.replace("\n", ends), encoding=encoding)
    assert [(cue.start, cue.end) for cue in found.cues] == [(1000, 2500), (4000, 5500)]
    assert [plain_text(cue.text) for cue in found.cues] == [
        "The man opens\nthe door.",
        "He walks & sits down.",
    ]
    assert found.to_text() == SRT


def test_vtt_is_read_and_written_back(tmp_path: Path) -> None:
    found = read(tmp_path, VTT, "a.vtt")
    assert [(cue.head, cue.start) for cue in found.cues] == [("intro", 1000), ("", 3_604_000)]
    assert found.to_text() == VTT.replace(
        "00:01.000 --> 00:02.500", "00:00:01.000 --> 00:00:02.500"
    )
    again = wrong(found)
    assert again.blocks[:3] == found.blocks[:3], "a note is not shown"
    assert again.cues[0].settings == " align:start"


def many(count: int = 400) -> str:
    text = "The quick brown fox jumps over the lazy dog."
    blocks = []
    for number in range(count):
        start, end = (f"{number // 10:02}:{number % 10 * 6 + late:02},000" for late in (0, 3))
        blocks.append(f"{number + 1}\n00:{start} --> 00:{end}\n{text}\n")
    return "\n".join(blocks)


def test_each_subtitle_is_shifted_by_half_a_second_to_two(tmp_path: Path) -> None:
    found = read(tmp_path, many())
    again = wrong(found)
    shifts = [new.start - old.start for old, new in zip(found.cues, again.cues, strict=True)]
    assert all(new.end - new.start == 3000 for new in again.cues)
    assert all(500 <= abs(shift) <= 2000 for shift in shifts)
    assert min(new.start for new in again.cues) >= 0
    early = sum(shift < 0 for shift in shifts)
    assert 150 < early < 250
    sizes = [abs(shift) for shift in shifts]
    assert min(sizes) < 600
    assert max(sizes) > 1900
    assert 1150 < sum(sizes) / len(sizes) < 1350


@pytest.mark.parametrize("errors", [0.0, 0.05, 0.1, 0.3])
def test_characters_are_substituted_deleted_and_inserted(tmp_path: Path, errors: float) -> None:
    found = read(tmp_path, many())
    again = wrong(found, errors=errors)
    counts = {"replace": 0, "delete": 0, "insert": 0, "equal": 0}
    for old, new in zip(found.cues, again.cues, strict=True):
        for kind, a, b, c, d in SequenceMatcher(
            None, old.text, new.text, autojunk=False
        ).get_opcodes():
            counts[kind] += max(b - a, d - c)
    total = sum(len(cue.text) for cue in found.cues)
    made = counts["replace"] + counts["delete"] + counts["insert"]
    assert made / total == pytest.approx(errors, rel=0.15)
    if errors == 0.1:
        assert all(0.2 < counts[kind] / made < 0.45 for kind in ("replace", "delete", "insert"))


def test_marks_and_line_breaks_stay(tmp_path: Path) -> None:
    again = wrong(read(tmp_path, SRT), errors=1.0)
    first, second = (cue.text for cue in again.cues)
    assert first.startswith("<i>")
    assert first.endswith("</i>")
    assert first.count("\n") == 1
    assert second.startswith("{\\an8}")
    assert "&amp;" in second
    assert "The man opens" not in first


def test_wrong_letters_are_of_the_language(tmp_path: Path) -> None:
    text = "1\n00:00:03,000 --> 00:00:04,000\nЧеловек открывает дверь и входит в комнату.\n"
    found = wrong(read(tmp_path, text), errors=0.5).cues[0].text
    assert found != read(tmp_path, text).cues[0].text
    assert not any("a" <= c <= "z" for c in found)


def test_a_seed_decides(tmp_path: Path) -> None:
    found = read(tmp_path, SRT)
    assert wrong(found, 1) == wrong(found, 1) != wrong(found, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no subtitles"),
        ("WEBVTT\n\nNOTE nothing\n", "has no subtitles"),
        ("1\nsoon --> later\nHello\n", "not followed by times"),
        ("1\n00:00:05,000 --> 00:00:02,000\nHello\n", "ends before it starts"),
    ],
)
def test_bad_subtitles_have_a_sentence_each(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        read(tmp_path, text)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="save it as UTF-8"):
        read(tmp_path, SRT.replace("door", "Tür"), encoding="latin-1")
