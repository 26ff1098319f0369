"""Answers of models that repeat themselves without end, which their parsers read in one pass."""

from __future__ import annotations

import pytest

from hallujudge.metrics.answers.choices import read_choice
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS

# Parsers that take the square of this many steps would not end within the time of a test.
_SIZE = 20_000
_OPTIONS = {"A": "a dog", "B": "two", "C": "the red car"}
_LOOPS = ("\n", " ", "wait ", "Wait, ", "no ", "not yes ", "so, ", "A. ", "- ", "actually, ", "! ")
_BEGINNINGS = ("", "The answer is yes", "Answer", "La réponse est", "Therefore", "Option")


@pytest.mark.parametrize("begun", _BEGINNINGS)
@pytest.mark.parametrize("loop", _LOOPS)
def test_an_answer_in_a_loop_is_read(begun: str, loop: str) -> None:
    text = begun + loop * (_SIZE // len(loop)) + "x"
    for parse in YES_NO_PARSERS.values():
        assert parse(text) in ("yes", "no", None)
    assert read_choice(text, _OPTIONS).choice in (*_OPTIONS, None)


@pytest.mark.parametrize("loop", ["wait ", "Wait, ", "wait, no, wait, ", "hold on... "])
def test_what_follows_the_last_correction_counts(loop: str) -> None:
    again = loop * (_SIZE // len(loop))
    assert YES_NO_PARSERS["first-word"](f"No. {again}yes") == "yes"
    assert read_choice(f"(A). {again}the answer is B", _OPTIONS).choice == "B"
