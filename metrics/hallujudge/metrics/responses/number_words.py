"""Numbers in words, up to ninety-nine."""

from __future__ import annotations

import re

_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORTH = {word: number for number, word in enumerate(("zero", *_ONES, *_TEENS))}
_WORTH |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}

# Tens come first, so that "twenty-five" is not read as five.
NUMBER_WORDS = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[-\s](?:{'|'.join(_ONES)}))?|{'|'.join((*_TEENS, *_ONES))}|zero)"
)
"""A regular expression of a number in words, in small letters."""


def number_named(text: str) -> float:
    """Return the number that digits, or words such as "thirty-two", name."""
    words = re.split(r"[-\s]", text.lower())
    return float(sum(_WORTH[word] for word in words) if words[0] in _WORTH else text)


_NUMBER = re.compile(rf"(?<![\w.])(?:\d+|{NUMBER_WORDS})(?!\w)", re.IGNORECASE)


def numbers_in(text: str) -> set[float]:
    """Return the whole numbers that a text names, in digits or in words."""
    return {number_named(found) for found in _NUMBER.findall(text)}


def is_number(text: str) -> bool:
    """Return whether a text is a whole number, in digits or in words."""
    return _NUMBER.fullmatch(text) is not None
