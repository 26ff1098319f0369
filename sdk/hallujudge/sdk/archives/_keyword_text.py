"""Released keyword files: four lists in one text, such as ``Object list 1: [dog, toy]``."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import ArchiveError
from ._csv import decoded, read_bytes

__all__ = ["LISTS", "parse_keyword_text", "read_keyword_text"]

LISTS = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
"""The four lists, in the order of the released files."""

_MAX_BYTES = 1 << 20
_LABEL = re.compile(
    r"^[\s*#\-•]*(?P<kind>object|action|behaviou?r)s?\s+list\s*(?P<number>\d+)\s*\**\s*:\**(?P<rest>.*)$",
    re.IGNORECASE,
)
_SIDES = {"1": "reference", "2": "predicted"}
_QUOTED = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?:,|$)""")


def read_keyword_text(path: Path) -> dict[str, tuple[str, ...]]:
    """The four lists of a file.

    Raises:
        ArchiveError: A list is missing or stands twice; file and line are named.
    """
    text, _ = decoded(read_bytes(path, _MAX_BYTES))
    return parse_keyword_text(text, place=str(path))


def parse_keyword_text(text: str, *, place: str) -> dict[str, tuple[str, ...]]:
    """The four lists of a text.

    Line ends of any kind, further colons, brackets left out or never closed, empty lists, quoted
    words and lists over several lines are read; lines that belong to no list are left out. Nothing
    is evaluated.

    Raises:
        ArchiveError: A list is missing, stands twice, or has another number; its line is named.
    """
    raw: dict[str, str] = {}
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _LABEL.match(line)
        if match is None:
            if current and _is_open(raw[current]):
                raw[current] += f" {line.strip()}"
            continue
        current = _name(match, f"{place} line {number}")
        if current in raw:
            raise ArchiveError(
                f"{place} line {number}: the list {match[0].split(':')[0].strip()!r} stands twice"
            )
        raw[current] = match["rest"].strip()
    missing = [name for name in LISTS if name not in raw]
    if missing:
        last = len(text.splitlines())
        raise ArchiveError(
            f"{place} line {last}: the file ends without {_shown(missing[0])} "
            f"({', '.join(missing)} missing); a list that names nothing is written []"
        )
    return {name: _keywords(raw[name]) for name in LISTS}


def _name(match: re.Match[str], place: str) -> str:
    side = _SIDES.get(match["number"])
    if side is None:
        raise ArchiveError(f"{place}: list {match['number']}: 1 is the human's, 2 the model's")
    return f"{side}_{'objects' if match['kind'].lower() == 'object' else 'behaviors'}"


def _shown(name: str) -> str:
    side, _, kind = name.partition("_")
    number = "1" if side == "reference" else "2"
    return f"'{'Object' if kind == 'objects' else 'Action'} list {number}: [...]'"


def _is_open(value: str) -> bool:
    """Whether the list goes on in the next line."""
    return not value or (value.startswith("[") and "]" not in value)


def _keywords(value: str) -> tuple[str, ...]:
    inner = value.strip()
    if inner.startswith("[") and "]" in inner:
        inner = inner[1 : inner.rindex("]")]
    inner = inner.strip("[] \t")
    words: list[str] = []
    while inner:
        quoted = _QUOTED.match(inner)
        if quoted is not None:
            words.append(quoted[1][1:-1])
            inner = inner[quoted.end() :]
        else:
            word, _, inner = inner.partition(",")
            words.append(word)
    return tuple(filter(None, (" ".join(word.split()) for word in words)))
