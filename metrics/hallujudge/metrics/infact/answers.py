"""Parsers of INFACT's answers, one by one and in columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..answers import YES_NO_PARSERS, read_choice, read_free_answer, says_it_is_unsure
from ..errors import OptionError

__all__ = ["RIGHT", "UNREAD", "WRONG", "ParsedRun", "outcomes_of", "read_run"]

WRONG, RIGHT, UNREAD = range(3)


class ParsedRun(NamedTuple):
    """A parsed answer and its correctness."""

    answer: str | None
    """The parsed answer; None if it could not be parsed."""
    correct: bool | None
    """Whether it equals the label; None for an unparsed answer."""
    how: str
    """The rule that parsed it, or why none did."""
    unsure: bool
    """Whether the answer expresses uncertainty."""


_LETTER = re.compile(r"[\s(\[]*([A-Za-z])[\s)\].:]*")
# "B. opening the door"; few questions have more than eight options, and "J. K. Rowling" is a name.
_LETTER_AND_TEXT = re.compile(r"\s*[(\[]?([A-Ha-h])[)\].:]\s+(\S.*)", re.DOTALL)


@lru_cache(maxsize=1 << 15)
def read_run(response: str, label: str, options: tuple[tuple[str, str], ...]) -> ParsedRun:
    """Parse one answer.

    With options, the shared parser of choices is used. Without options, the label decides: a
    letter, ``yes`` or ``no`` (by the strict parser), or free text. A label such as ``B. opening the
    door`` matches its letter and its text.

    Args:
        response: What the model wrote.
        label: The right answer.
        options: Letter -> text; empty if unknown.
    """
    answer, right, how = _answer(response, label, dict(options))
    return ParsedRun(answer, None if answer is None else right, how, says_it_is_unsure(response))


def _answer(response: str, label: str, options: Mapping[str, str]) -> tuple[str | None, bool, str]:
    letter = _LETTER.fullmatch(label)
    if options:
        wanted = read_choice(label, options).choice
        reading = read_choice(response, options)
        return reading.choice, reading.choice == wanted, reading.how
    if letter:
        reading = read_choice(response)
        return reading.choice, reading.choice == letter[1].upper(), reading.how
    if label.strip().casefold() in ("yes", "no"):
        said = YES_NO_PARSERS["strict"](response)
        return said, said == label.strip().casefold(), "strict"
    if lettered := _LETTER_AND_TEXT.fullmatch(label):
        reading = read_choice(response)
        if reading.choice is not None:
            return reading.choice, reading.choice == lettered[1].upper(), reading.how
        label = lettered[2]
    reading = read_free_answer(response, label)
    return reading.choice, reading.choice == read_free_answer(label, label).choice, reading.how


def outcomes_of(rows: Sequence[str], labels: Sequence[str], unread: int) -> bytes:
    """Return one byte for each answer: wrong, right or unparsed."""
    if len(rows) != len(labels):
        raise OptionError("infact", "answers", f"{len(rows)} answers to {len(labels)} questions")
    if not set(labels) <= set(_LETTERS):
        correct = _Known(lambda pair: _correct_code(pair[0], pair[1], unread))
        return bytes(map(correct.__getitem__, zip(rows, labels, strict=True)))
    import numpy as np

    # If labels are letters, the chosen letter does not depend on the label.
    chosen = np.frombuffer(bytes(map(_Known(_letter_code).__getitem__, rows)), dtype=np.uint8)
    wanted = np.frombuffer("".join(labels).encode(), dtype=np.uint8)
    found = np.where(chosen == wanted, RIGHT, np.where(chosen == 0, unread, WRONG))
    return found.astype(np.uint8).tobytes()


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Known(dict[Any, int]):
    """Cache of bounded size: key -> code."""

    def __init__(self, find: Callable[[Any], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Any) -> int:
        code = self._find(key)
        if len(self) < (1 << 16):
            self[key] = code
        return code


def _letter_code(response: str) -> int:
    choice = read_choice(response).choice
    return ord(choice) if choice else 0


def _correct_code(response: str, label: str, unread: int) -> int:
    correct = read_run(response, label, ()).correct
    return unread if correct is None else int(correct)
