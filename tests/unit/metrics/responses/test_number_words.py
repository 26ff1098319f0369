"""Numbers in words: which number they name, and how much of a text is one."""

from __future__ import annotations

import re

import pytest

from hallujudge.metrics.responses.number_words import NUMBER_WORDS, number_named


@pytest.mark.parametrize(
    ("text", "found", "number"),
    [
        ("zero dogs", "zero", 0),
        ("seven dogs", "seven", 7),
        ("seventeen dogs", "seventeen", 17),
        ("seventy dogs", "seventy", 70),
        ("seventy-seven dogs", "seventy-seven", 77),
        ("seventy seven dogs", "seventy seven", 77),
        ("twenty, seven", "twenty", 20),
        ("twenty-teen", "twenty", 20),
    ],
)
def test_the_longest_number_at_the_start_is_found(text: str, found: str, number: float) -> None:
    match = re.match(rf"{NUMBER_WORDS}\b", text)
    assert match is not None
    assert match[0] == found
    assert number_named(found) == number


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("-1.5", -1.5), ("Thirty-Two", 32)])
def test_digits_and_capitals_name_numbers_too(text: str, number: float) -> None:
    assert number_named(text) == number
