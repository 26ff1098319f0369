"""Caption injection (mode III): lines of text drawn on random segments of a video.

Yang et al., 2026, appendix A.5: four lines in five have nothing to do with the video, and one
misleads about the question. The paper's lines are not public; the irrelevant ones here are ours.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ..errors import InvalidInputError
from .video_files import frame_of_planes, planes_of

if TYPE_CHECKING:
    from av import VideoFrame

    from .frame_operators import FrameChange, Parameters
    from .video_files import VideoInfo

CaptionKind: TypeAlias = Literal["mixed", "irrelevant", "misleading"]
CAPTION_KINDS: tuple[CaptionKind, ...] = ("mixed", "irrelevant", "misleading")

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

_SEGMENTS = 5
# One line in five misleads.
_PARTS = 5
# Share of its slot, an equal part of the video, that a segment takes.
_SHORTEST, _LONGEST = 0.4, 0.8
# Pillow's own font has Latin letters only.
_LAST_LATIN = 0x24F
# Brightness of letters and of the box behind them, and how opaque the box is, of 256.
_WHITE, _BLACK, _BOX = 235, 16, 160
_GREY = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionSettings:
    """What is drawn."""

    misleading: Sequence[str] = ()
    """Lines that mislead about the video's question."""
    kind: CaptionKind = "mixed"
    """``mixed`` has one misleading line in five; the others are for Table A4."""
    font: Path | None = None
    """File of a font; None for Pillow's own, which has Latin letters."""


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
    return {"captions": shown, "font": str(settings.font) if settings.font else None}


def checked_letters(lines: Iterable[str], font: object) -> None:
    """Check that a font has the letters of lines.

    Raises:
        InvalidInputError: There is no font, and Pillow's own lacks a letter.
    """
    for text in lines:
        if font is None and (strange := [c for c in text if ord(c) > _LAST_LATIN and c.isalpha()]):
            raise InvalidInputError(
                f"the line {text!r:.60} has the letter {strange[0]!r}, which Pillow's font lacks; "
                "give a font that has it with --font"
            )


def _kinds(draw: Random, kind: CaptionKind) -> list[str]:
    if kind != "mixed":
        return [kind] * _SEGMENTS
    kinds = ["irrelevant"] * _SEGMENTS
    for place in _places(draw, _SEGMENTS)[: _SEGMENTS // _PARTS]:
        kinds[place] = "misleading"
    return kinds


def _drawn(draw: Random, lines: Sequence[str], count: int) -> list[str]:
    """Return lines in random order; each once before any is repeated."""
    found: list[str] = []
    while lines and len(found) < count:
        found += [lines[place] for place in _places(draw, len(lines))]
    return found[:count]


def _places(draw: Random, count: int) -> list[int]:
    """Return places in random order, by draws that no release of Python changes."""
    return sorted(range(count), key=[draw.random() for _ in range(count)].__getitem__)


def captions(parameters: Parameters) -> FrameChange:
    """Return what draws captions at the bottom of the frames in their segments."""
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
            size = frame.width, frame.height
            drawn[place] = _Drawn.of(shown[place]["text"], size, parameters["font"])
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
    def of(cls, text: str, size: tuple[int, int], font: str | None) -> _Drawn:
        """Draw a text for frames of a size."""
        width, height = size
        points = max(12, height // 16)
        face = _face(font, points)
        pen = ImageDraw.Draw(Image.new("L", (1, 1)))
        wrapped = _wrapped(text, lambda line: pen.textlength(line, font=face), width * 0.9)
        left, above, right, below = pen.multiline_textbbox((0, 0), wrapped, face, align="center")
        margin = points // 3
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
        opacity = box + covered * (256 - box) // 255
        mixed = (covered * _WHITE + (255 - covered) * _BLACK) // 255
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
