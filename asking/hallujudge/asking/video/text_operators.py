"""Operators on text (mode III): caption injection, and subtitle corruption of SRT and WebVTT files.

Yang et al., 2026, appendix A.5. Captions are lines drawn on random segments of a video: four in
five have nothing to do with it, and one misleads about the question. The paper's lines are not
public; the irrelevant ones here are ours. In subtitles, characters are substituted, deleted and
inserted, and times are shifted by 0.5 to 2.0 seconds. The paper gives no rate of errors; ours is
one character in ten.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from av import VideoFrame
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from hallujudge.sdk.archives.local_files import read_bytes
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.media.frame_colours import Colours, frame_of_planes, planes_of
from hallujudge.sdk.media.video_files import VideoInfo

from .frame_operators import FrameChange, Parameters

CAPTION_KINDS = ("mixed", "irrelevant", "misleading")
"""The kinds of captions: ``mixed`` has one misleading line in five, the others are for Table A4."""

IRRELEVANT_LINES = (
    "The library closes at six on Fridays.",
    "A new recipe for lentil soup is on page twelve.",
    "The ferry to the island leaves twice a day.",
    "Our neighbours painted their fence last spring.",
    "The concert was moved to the small hall.",
    "Please return the umbrella to the front desk.",
    "Tickets for the museum can be ordered by post.",
    "The choir rehearses on the second floor.",
    "Rain is expected in the hills tomorrow morning.",
    "The bakery around the corner has fresh rye bread.",
    "Her grandfather collected stamps from Norway.",
    "The train on platform four is ten minutes late.",
    "This season's tomatoes are larger than usual.",
    "The committee meets again in October.",
    "A lost scarf was handed in at the ticket office.",
    "The lighthouse was built of granite.",
    "Remember to water the fern in the hallway.",
    "The chess club is looking for new members.",
    "He learned to play the cello at school.",
    "The bridge is closed for repairs until May.",
    "Most of the letters were written in pencil.",
    "The exchange rate hardly moved this week.",
    "An old map of the harbour hangs in the lobby.",
    "The spelling of the street's name was corrected.",
)
"""Lines that have nothing to do with a video."""

# The least number that can be mixed 4 to 1, as in appendix A.5.
_SEGMENTS = 5
# One line in five misleads.
_PARTS = 5
# Share of its slot, an equal part of the video, that a segment takes.
_SHORTEST, _LONGEST = 0.4, 0.8
# Pillow's own font has Latin letters only; Latin Extended-B ends here.
_LAST_LATIN = 0x24F
# How opaque the box behind the letters is, of 256.
_BOX = 160
# Both colours of anything grey, as letters and box are.
_GREY = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionSettings:
    """What is drawn."""

    misleading: Sequence[str] = ()
    """Lines that mislead about the video's question."""
    kind: str = "mixed"
    """One of :data:`CAPTION_KINDS`."""
    font: Path | None = None
    """File of a font; None for Pillow's own, which has Latin letters."""

    @property
    def font_name(self) -> str | None:
        """The font as manifests name it."""
        return str(self.font) if self.font else None


def draw_captions(draw: Random, info: VideoInfo, settings: CaptionSettings) -> Parameters:
    """Return the captions of a file: when each is shown, and what it says.

    Without misleading lines, those of a ``mixed`` file are irrelevant too.

    Raises:
        InvalidInputError: Misleading lines are needed, or a line has letters that the font lacks.
    """
    misleading = list(settings.misleading)
    if settings.kind == "misleading" and not misleading:
        raise InvalidInputError("there are no misleading lines for it; give --misleading")
    kinds = _kinds(draw, settings.kind if misleading else "irrelevant")
    irrelevant = _drawn(draw, IRRELEVANT_LINES, kinds.count("irrelevant"))
    lines = {"irrelevant": irrelevant, "misleading": _drawn(draw, misleading, len(kinds))}
    slot = info.seconds / _SEGMENTS
    shown = []
    for place, kind in enumerate(kinds):
        length = slot * (_SHORTEST + draw.random() * (_LONGEST - _SHORTEST))
        start = slot * place + draw.random() * (slot - length)
        text = lines[kind].pop()
        checked_letters([text], settings.font)
        span = {"start": round(start, 3), "end": round(start + length, 3)}
        shown.append({**span, "kind": kind, "text": text})
    return {"captions": shown, "font": settings.font_name}


def checked_letters(lines: Iterable[str], font: object) -> None:
    """Check that a font has the letters of lines.

    Raises:
        InvalidInputError: There is no font, and Pillow's own lacks a letter.
    """
    for text in lines:
        # Pillow draws an empty box for a letter that a font lacks, and raises nothing.
        if font is None and (strange := [c for c in text if ord(c) > _LAST_LATIN and c.isalpha()]):
            raise InvalidInputError(
                f"the line {text!r:.60} has the letter {strange[0]!r}, which Pillow's font lacks; "
                "give a font that has it with --font"
            )


def _kinds(draw: Random, kind: str) -> list[str]:
    if kind != "mixed":
        return [kind] * _SEGMENTS
    kinds = ["irrelevant"] * _SEGMENTS
    for place in places(draw, _SEGMENTS)[: _SEGMENTS // _PARTS]:
        kinds[place] = "misleading"
    return kinds


def _drawn(draw: Random, lines: Sequence[str], count: int) -> list[str]:
    """Return lines in random order; each once before any is repeated."""
    found: list[str] = []
    while lines and len(found) < count:
        found += [lines[place] for place in places(draw, len(lines))]
    return found[:count]


def places(draw: Random, count: int) -> list[int]:
    """Return places in random order, by draws that no release of Python changes."""
    return sorted(range(count), key=[draw.random() for _ in range(count)].__getitem__)


def captions(parameters: Parameters) -> FrameChange:
    """Return what draws captions at the bottom of the frames in their segments."""
    # Files of subtitles need not be in the order of their times.
    shown = sorted(parameters["captions"], key=lambda caption: caption["start"])
    starts = [caption["start"] for caption in shown]
    drawn: dict[int, _Drawn] = {}

    def change(frame: VideoFrame) -> VideoFrame:
        time = float(frame.pts * frame.time_base)
        # Subtitles may overlap: the one that started last is drawn.
        place = bisect_right(starts, time) - 1
        if place < 0 or time >= shown[place]["end"]:
            return frame
        if place not in drawn:
            # They follow each other: the text of the one before is not needed again.
            drawn.clear()
            drawn[place] = _Drawn.of(shown[place]["text"], frame, parameters["font"])
        return frame_of_planes(drawn[place].on(planes_of(frame), frame.height), frame)

    return change


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A text that was drawn: what is mixed into the rows at the bottom of a frame."""

    top: int
    """First row; even."""
    opacity: NDArray[np.uint16]
    """How much of a pixel is replaced, of 256."""
    brightness: NDArray[np.uint16]
    """By which brightness, times the opacity."""

    @classmethod
    def of(cls, text: str, like: VideoFrame, font: str | None) -> _Drawn:
        """Draw a text for frames of the size and colours of one: white letters in a black box."""
        width, height = like.width, like.height
        black, white = Colours.of(like).black_and_white
        # Letters of subtitles: a sixteenth of the height, and readable in small videos.
        points = max(12, height // 16)
        face = _face(font, points)
        pen = ImageDraw.Draw(Image.new("L", (1, 1)))
        # A twentieth of the width stays free at either side, as of the height below.
        wrapped = _wrapped(text, lambda line: pen.textlength(line, font=face), width * 0.9)
        left, above, right, below = pen.multiline_textbbox((0, 0), wrapped, face, align="center")
        margin = points // 3
        # Even, as is the top row below: colours have half as many rows.
        tall = min(height, int(below - above + 2 * margin + 1) // 2 * 2)
        wide = min(width, int(right - left + 2 * margin))
        letters = Image.new("L", (width, tall))
        ImageDraw.Draw(letters).multiline_text(
            ((width - right + left) / 2 - left, margin - above), wrapped, 255, face, align="center"
        )
        covered = np.asarray(letters, np.uint16)
        box = np.zeros((tall, width), np.uint16)
        start = (width - wide) // 2
        box[:, start : start + wide] = _BOX
        # In 256ths, so that mixing is a shift; white letters are opaque.
        opacity = box + covered * (256 - box) // 255
        mixed = (covered * white + (255 - covered) * black) // 255
        # A twentieth of the height stays free below, as players leave it for subtitles.
        top = max(0, height - tall - height // 20) // 2 * 2
        return cls(top=top, opacity=opacity, brightness=mixed * opacity)

    def on(self, planes: NDArray[np.uint8], height: int) -> NDArray[np.uint8]:
        """Return the planes of a frame in yuv420p with the text."""
        tall, width = self.opacity.shape
        found = planes.copy()
        rows = slice(self.top, self.top + tall)
        kept = found[rows].astype(np.uint16) * (256 - self.opacity)
        found[rows] = (kept + self.brightness) >> 8
        colours = found[height:].reshape(2, height // 2, width // 2)
        half = self.opacity[::2, ::2]
        rows = slice(self.top // 2, (self.top + tall) // 2)
        mixed = colours[:, rows].astype(np.uint16) * (256 - half) + half * np.uint16(_GREY)
        colours[:, rows] = mixed >> 8
        return found


def _face(font: str | None, points: int) -> Any:
    if font is None:
        return ImageFont.load_default(points)
    try:
        return ImageFont.truetype(font, points)
    except OSError as err:
        raise InvalidInputError(f"{font} is not a font: {err}; give a TrueType font") from err


def _wrapped(text: str, width_of: Any, most: float) -> str:
    """Return a text in lines of a width; a longer word has a line of its own."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer) > most:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


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

    # The shifts are those of appendix A.5, which gives no rate of errors.
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
    # Some editors on Windows save UTF-16, which its mark tells.
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
    # Digits after the point count from the left: .5 is half a second.
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
    return {**asdict(settings), "start": draw.getrandbits(64)}


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
    """Return the text that replaces a character: itself, another one, none, or two."""
    # Without line breaks a text would not fit on the screen.
    if character == "\n" or draw.random() >= errors:
        return character
    # Replaced, dropped and doubled equally often.
    kind = int(draw.random() * 3)
    others = [letter for letter in letters if letter != character.lower()] or letters
    other = others[int(draw.random() * len(others))]
    return (other, "", character + other)[kind]
