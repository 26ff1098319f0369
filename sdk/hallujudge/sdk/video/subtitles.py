"""Subtitle corruption (mode III): wrong letters and shifted times in SRT and WebVTT files.

Yang et al., 2026, appendix A.5: characters are substituted, deleted and inserted, and subtitles
are shifted by 0.5 to 2.0 seconds. The paper gives no rate of errors; ours is one character in ten.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ..archives.local_files import read_bytes
from ..errors import ArchiveError

if TYPE_CHECKING:
    from .frame_operators import Parameters

SUFFIXES = (".srt", ".vtt")
"""Kinds of subtitle files."""

_STAMP = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = re.compile(rf"(?P<start>{_STAMP})[ \t]*-->[ \t]*(?P<end>{_STAMP})(?P<rest>.*)")
# Marks of SRT, WebVTT and SubStation, and named characters such as &amp;.
_MARK = re.compile(r"<[^<>]*>|\{[^{}]*\}|&\w+;")
_BLANK = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """A subtitle."""

    head: str
    """Lines before the times: its number or name."""
    start: int
    """When it is shown, in milliseconds."""
    end: int
    """When it goes."""
    settings: str
    """What follows the times, such as its position."""
    text: str
    """What it says, with line breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtitles:
    """A file of subtitles."""

    blocks: tuple[Cue | str, ...]
    """Subtitles, and blocks that are none, such as WebVTT's header and notes, in their order."""
    is_vtt: bool
    """Whether it is WebVTT."""

    @property
    def cues(self) -> tuple[Cue, ...]:
        """The subtitles alone."""
        return tuple(block for block in self.blocks if isinstance(block, Cue))

    def to_text(self) -> str:
        """Return the file's text, with line feeds."""
        parts = [self._shown(b) if isinstance(b, Cue) else b for b in self.blocks]
        return "\n\n".join(parts) + "\n"

    def _shown(self, cue: Cue) -> str:
        start, end = (_stamp(time, "." if self.is_vtt else ",") for time in (cue.start, cue.end))
        head = f"{cue.head}\n" if cue.head else ""
        return f"{head}{start} --> {end}{cue.settings}\n{cue.text}".rstrip("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtitleSettings:
    """How much is wrong."""

    errors: float = 0.1
    """Share of characters that are wrong."""
    shortest: float = 0.5
    """Smallest shift, in seconds."""
    longest: float = 2.0
    """Largest shift."""


def read_subtitles(path: Path) -> Subtitles:
    """Read a file of subtitles.

    Raises:
        ArchiveError: It is not UTF-8 or UTF-16, has no subtitles, or one ends before it starts.
    """
    text = _text(path).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    is_vtt = text.startswith("WEBVTT")
    blocks = tuple(_block(part, path, is_vtt) for part in _BLANK.split(text) if part.strip())
    found = Subtitles(blocks=blocks, is_vtt=is_vtt)
    if not found.cues:
        raise ArchiveError(f"{path} has no subtitles; give a file of SRT or WebVTT")
    return found


def _text(path: Path) -> str:
    data = read_bytes(path)
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as err:
        raise ArchiveError(f"{path} is not UTF-8; save it as UTF-8") from err


def _block(part: str, path: Path, is_vtt: bool) -> Cue | str:
    lines = part.strip("\n").split("\n")
    # WebVTT's notes may show times.
    if is_vtt and lines[0].split(" ")[0] in ("WEBVTT", "NOTE", "STYLE", "REGION"):
        return "\n".join(lines)
    for place, line in enumerate(lines):
        if times := _TIMES.fullmatch(line.strip()):
            start, end = _milliseconds(times["start"]), _milliseconds(times["end"])
            if end < start:
                raise ArchiveError(
                    f"{path}: {line.strip()!r:.60} ends before it starts; correct it"
                )
            return Cue(
                head="\n".join(lines[:place]),
                start=start,
                end=end,
                settings=times["rest"],
                text="\n".join(lines[place + 1 :]),
            )
    if is_vtt:
        return "\n".join(lines)
    raise ArchiveError(
        f"{path}: {lines[0]!r:.60} is not followed by times such as "
        "00:00:01,000 --> 00:00:02,500; correct it"
    )


def _milliseconds(stamp: str) -> int:
    clock, _, rest = stamp.replace(",", ".").partition(".")
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return 1000 * seconds + int(rest.ljust(3, "0"))


def _stamp(time: int, point: str) -> str:
    seconds, rest = divmod(time, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{rest:03}"


def plain_text(text: str) -> str:
    """Return a subtitle's text without marks such as ``<i>``."""
    return _MARK.sub(lambda mark: unescape(mark[0]) if mark[0][0] == "&" else "", text)


def draw_corruption(draw: Random, settings: SubtitleSettings) -> Parameters:
    """Return how much of a file is wrong, and where its random numbers start."""
    return {
        "errors": settings.errors,
        "shortest": settings.shortest,
        "longest": settings.longest,
        "start": draw.getrandbits(64),
    }


def corrupted(subtitles: Subtitles, parameters: Parameters) -> Subtitles:
    """Return subtitles with wrong characters, each of them shifted on its own.

    Half are too early and half too late. One that would start before the video is too late.
    """
    draw = Random(parameters["start"])  # noqa: S311 - no secret
    texts = (plain_text(cue.text) for cue in subtitles.cues)
    # Wrong letters are of the language of the file.
    letters = sorted({c.lower() for text in texts for c in text if c.isalpha()}) or ["e"]

    def changed(cue: Cue) -> Cue:
        low, high = parameters["shortest"], parameters["longest"]
        shift = round(1000 * (low + draw.random() * (high - low)))
        if draw.random() < 0.5 and shift <= cue.start:
            shift = -shift
        text = "".join(_wrong(cue.text, parameters["errors"], letters, draw))
        return replace(cue, start=cue.start + shift, end=cue.end + shift, text=text)

    blocks = tuple(changed(b) if isinstance(b, Cue) else b for b in subtitles.blocks)
    return replace(subtitles, blocks=blocks)


def _wrong(text: str, errors: float, letters: list[str], draw: Random) -> Iterator[str]:
    """Yield the parts of a text with wrong characters; marks stay."""
    end = 0
    for mark in _MARK.finditer(text):
        yield from (_mistaken(c, errors, letters, draw) for c in text[end : mark.start()])
        yield mark[0]
        end = mark.end()
    yield from (_mistaken(c, errors, letters, draw) for c in text[end:])


def _mistaken(character: str, errors: float, letters: list[str], draw: Random) -> str:
    """Return what stands in place of a character: itself, another, none, or two."""
    # Without line breaks a text would not fit on the screen.
    if character == "\n" or draw.random() >= errors:
        return character
    kind = int(draw.random() * 3)
    others = [letter for letter in letters if letter != character.lower()] or letters
    other = others[int(draw.random() * len(others))]
    return (other, "", character + other)[kind]
