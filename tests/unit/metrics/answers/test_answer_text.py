"""The text of answers: lists and objects in cells of tables, and numbers in words."""

from __future__ import annotations

import re

import pytest

from hallujudge.metrics.answers.answer_items import listed, with_lists
from hallujudge.metrics.answers.answer_text import NUMBER_WORDS, number_named


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('{"a": 1}', {"a": 1}),
        ("['a', \"b's\"]", ["a", "b's"]),
        ("['a' 'b']", "['a' 'b']"),
        ("[sic", "[sic"),
    ],
)
def test_a_cell_is_the_list_that_json_or_python_prints(cell: str, held: object) -> None:
    assert listed(cell) == held


def test_only_cells_under_the_keys_are_taken_apart() -> None:
    record = {"qa": "[1]", "response": "[1]", "text": "2"}
    assert with_lists(record, ("qa", "text", "absent")) == {**record, "qa": [1]}
    assert with_lists(record, ("absent",)) is record


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
