"""Released keyword files: four lists in one text, such as ``Object list 1: [dog, toy]``."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import ArchiveError
from .local_files import read_bytes
from .tables import decoded

__all__ = ["LISTS", "parse_keyword_text", "read_keyword_text"]

LISTS = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
"""The four lists, in the order of the released files."""

_MAX_BYTES = 1 << 20
_LABEL = re.compile(
    r"^[\s*#\-•]*(?P<kind>object|action|behaviou?r)s?\s+list\s*(?P<number>\d+)\s*\**\s*:\**(?P<rest>.*)$",
    re.IGNORECASE,
)
_SIDES = {"1": "reference", "2": "predicted"}
_BULLET = re.compile(r"(?:[-*•]|\d+[.)])\s+")
_BRACKET = re.compile(r"[\[\]]")
_ESCAPED = re.compile(r"\\(['\"\\])")
_QUOTED = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?:,|$)""")


def read_keyword_text(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the four keyword lists of a file.

    Raises:
        ArchiveError: A list is missing or appears twice; the message names file and line.
    """
    text, _ = decoded(read_bytes(path, _MAX_BYTES))
    return parse_keyword_text(text, place=str(path))


def parse_keyword_text(text: str, *, place: str) -> dict[str, tuple[str, ...]]:
    """Return the four keyword lists of a text.

    Line ends of any kind, further colons, brackets left out or never closed, empty lists, quoted
    words, lists over several lines and a word a line behind bullets are read; lines that belong to
    no list are left out. Nothing is evaluated.

    Raises:
        ArchiveError: A list is missing, appears twice, has another number, or two lists are in
            one; its line is named.
    """
    raw: dict[str, str] = {}
    places: dict[str, str] = {}
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _LABEL.match(line)
        if match is None:
            if current:
                raw[current] = _continued(raw[current], line.strip())
            continue
        current = _name(match, f"{place} line {number}")
        if current in raw:
            raise ArchiveError(
                f"{place} line {number}: the list {match[0].split(':')[0].strip()!r} appears twice"
            )
        raw[current], places[current] = match["rest"].strip(), f"{place} line {number}"
    missing = [name for name in LISTS if name not in raw]
    if missing:
        last = len(text.splitlines()) or 1
        raise ArchiveError(
            f"{place} line {last}: the file ends without {_shown(missing[0])} "
            f"({', '.join(missing)} missing); write an empty list as []"
        )
    return {name: _keywords(_inner(raw[name], places[name])) for name in LISTS}


def _name(match: re.Match[str], place: str) -> str:
    side = _SIDES.get(match["number"])
    if side is None:
        raise ArchiveError(
            f"{place}: list {match['number']}: the number must be 1 (human) or 2 (model)"
        )
    return f"{side}_{'objects' if match['kind'].lower() == 'object' else 'behaviors'}"


def _shown(name: str) -> str:
    side, _, kind = name.partition("_")
    number = "1" if side == "reference" else "2"
    return f"'{'Object' if kind == 'objects' else 'Action'} list {number}: [...]'"


def _continued(value: str, line: str) -> str:
    """Return the list with the next line appended, if that line continues it."""
    bullet = _BULLET.match(line)
    if bullet and (not value or value.endswith(",")):
        return f"{value} {line[bullet.end() :].rstrip(',')},"
    is_open = not value or ("[" in value and "]" not in value)
    return f"{value} {line}".strip() if is_open else value


def _inner(value: str, place: str) -> str:
    """Return the text between the brackets, or all of it if there are none."""
    before, bracket, rest = value.partition("[")
    if not bracket or (before.strip() and not before.rstrip().endswith(":")):
        return value.strip("[] \t")  # words without brackets, or with a stray one at an end
    depth, end = 1, len(rest)
    for mark in _BRACKET.finditer(rest):
        depth += 1 if mark[0] == "[" else -1
        if not depth:
            end = mark.start()
            break
    if _BRACKET.search(rest, end + 1):
        raise ArchiveError(
            f"{place}: text after the end of the list: {value!r:.80}; write one list per line"
        )
    return rest[:end]


def _keywords(inner: str) -> tuple[str, ...]:
    words: list[str] = []
    while inner:
        quoted = _QUOTED.match(inner)
        if quoted is not None:
            words.append(_ESCAPED.sub(r"\1", quoted[1][1:-1]))
            inner = inner[quoted.end() :]
        else:
            word, _, inner = inner.partition(",")
            words.append(word)
    return tuple(filter(None, (" ".join(word.split()) for word in words)))
