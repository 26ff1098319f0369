"""Parsers of orders of options: ``B, A, C``, ``B > A > C``, lists, or captions in order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from .answer_text import MAX_KEPT_CHARS, folded, plain


class ParsedOrder(NamedTuple):
    """The parsed order of an answer."""

    letters: tuple[str, ...]
    """The parsed options in order; only a part if the order is invalid."""
    problem: str
    """Why it is not an order of all options: ``empty``, ``partial``, ``repeated``, ``unknown``; or
    empty."""

    @property
    def valid(self) -> bool:
        """Return whether the order names every option once."""
        return not self.problem


def read_order_published(response: str, options: Mapping[str, str]) -> ParsedOrder:
    """Parse an order as VidHal's script does: shown letters, separated by commas.

    The released evaluation gives 0 to orders that are too short. It stops with an error at a part
    that is not a letter, and scores an order that repeats one as partly right. Here both are
    invalid, as in the paper's text. It also stops at captions in place of letters; here they are
    parsed.

    Args:
        response: What the model wrote; the items of a list joined by ``, `` or by line ends.
        options: Letter -> caption.
    """
    parts = [part.strip() for part in _parts(response, ",")]
    if not any(parts):
        return ParsedOrder((), "empty")
    if all(part in options for part in parts):
        return _judged(tuple(parts), options)
    by_text = _by_text(response, options)
    if by_text is not None:
        return _judged(by_text, options)
    return ParsedOrder(
        tuple(part for part in parts if part in options),
        "partial" if len(parts) < len(options) else "unknown",
    )


def read_order(response: str, options: Mapping[str, str]) -> ParsedOrder:
    """Parse an order however it is written.

    Letters in either case, separated by anything (``B > A > C``, ``1. B 2. A 3. C``, ``BAC``), also
    after words such as ``the order is``; lists; captions in order.

    Args:
        response: What the model wrote.
        options: Letter -> caption.
    """
    frozen = tuple(options.items())
    if len(response) > MAX_KEPT_CHARS:
        return _read(response, frozen)
    return _kept(response, frozen)


_SEPARATED = re.compile(r"(?<![\w'])([A-Za-z])(?![\w'])")
_RUN_TOGETHER = re.compile(r"(?<![\w'])[A-Z]{2,26}(?![\w'])")
_LEAD_IN = re.compile(r"^.*?\b(?:order|ranking|answer|sequence)\b[^:\n]*?(?::|\bis\b)", re.I | re.S)


def _read(response: str, options: tuple[tuple[str, str], ...]) -> ParsedOrder:
    table = dict(options)
    text = plain(response)
    if not text:
        return ParsedOrder((), "empty")
    # Captions first, and no lead-in, because their words may look like letters ("a").
    by_text = _by_text(response, table)
    if by_text is not None:
        return _judged(by_text, table)
    letters = _letters(_LEAD_IN.sub("", text, count=1), table)
    if not letters:
        return ParsedOrder((), "unknown")
    return _judged(tuple(letters), table)


_kept = lru_cache(maxsize=1 << 15)(_read)


def _letters(text: str, options: Mapping[str, str]) -> list[str]:
    known = {letter.upper(): letter for letter in options}
    joined = _RUN_TOGETHER.findall(text)
    if len(joined) == 1 and set(joined[0]) <= set(known):
        return [known[letter] for letter in joined[0]]
    found = _SEPARATED.findall(text)
    if not _only_letters(text):
        # In running text a lower-case letter, or an "A" that isn't followed by a mark, is a word.
        found = [x for x in found if x.isupper()]
    return [known.get(letter.upper(), letter.upper()) for letter in found]


def _only_letters(text: str) -> bool:
    return all(len(word) == 1 or word.isdigit() for word in re.findall(r"\w+", text))


def _parts(response: str, mark: str) -> list[str]:
    text = response.strip()
    if text.startswith("["):
        try:
            loaded = json.loads(text)
        except (ValueError, RecursionError):
            loaded = None
        if isinstance(loaded, list) and all(isinstance(part, str) for part in loaded):
            return loaded
    return response.split(mark)


def _by_text(response: str, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the order of the captions in the answer; None if it contains none."""
    texts = {folded(caption): letter for letter, caption in options.items() if folded(caption)}
    lines = _parts(response, "\n")
    named = [texts[line] for line in map(folded, lines) if line in texts]
    if len(named) > 1 and len(named) == sum(1 for line in lines if line.strip()):
        return tuple(named)
    padded = f" {folded(response)} "
    places = sorted(
        (padded.find(f" {text} "), letter)
        for text, letter in texts.items()
        if f" {text} " in padded
    )
    return tuple(letter for _, letter in places) or None


def _judged(letters: tuple[str, ...], options: Mapping[str, str]) -> ParsedOrder:
    if any(letter not in options for letter in letters):
        return ParsedOrder(letters, "unknown")
    if len(set(letters)) < len(letters):
        return ParsedOrder(letters, "repeated")
    if len(letters) < len(options):
        return ParsedOrder(letters, "partial")
    return ParsedOrder(letters, "")
