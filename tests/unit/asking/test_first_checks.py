"""Parameters of requests: how they are read, checked, and stated in signatures."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hallujudge.asking.first_checks import checked_parameters, parsed_parameters, shown_parameters
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0.9", 0.9),
        ("true", True),
        ("null", None),
        ("low", "low"),
        ('"false"', "false"),
        ('"False"', "False"),
        ("", ""),
        ("a=b", "a=b"),
        ("NaN", "NaN"),
        ("[1,", "[1,"),
        ('{"a": [1]}', {"a": [1]}),
    ],
)
def test_a_value_is_json_or_else_a_text(text: str, value: JsonValue) -> None:
    assert parsed_parameters([f"x={text}"]) == {"x": value}


def test_dots_nest() -> None:
    given = ["a.b.c=1", "a.b.d=2", 'a.e={"f": 3}', "a.e.g=4"]
    assert parsed_parameters(given) == {"a": {"b": {"c": 1, "d": 2}, "e": {"f": 3, "g": 4}}}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"model": "x"}, "request parameter model: the model is named by AskRun(model=…)"),
        ({"seed": float("nan")}, "request parameter seed: its value can't be sent as JSON"),
        ({"seed": object()}, "request parameter seed: its value can't be sent as JSON"),
        ({7: 1}, "request parameter 7: a name is a text"),
    ],
)
def test_parameters_from_python_are_checked(parameters: Mapping[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        checked_parameters(parameters)
    assert str(refused.value).startswith(said)


def test_runs_with_other_values_state_other_parameters() -> None:
    def shown(value: JsonValue) -> str:
        [one] = shown_parameters({"a": {"b": value}})
        return one

    assert shown_parameters({}) == []
    assert shown_parameters({"top_p": 0.9, "seed": 7}) == ["seed=7", "top_p=0.9"]
    assert [shown(value) for value in (False, None, "low", 1.5)] == [
        *("a.b=false", "a.b=null", "a.b=low", "a.b=1.5")
    ]
    # What a signature can't show, or what would look like another value, is a hash.
    hashed: list[JsonValue] = [
        "false",
        "7",
        "a,b=1|v:9",
        "x\ny",
        "",
        "word " * 99,
        [],
        {},
        ["low"],
        [1, 2],
    ]
    stated = [shown(value) for value in hashed]
    assert all(len(one) == len("a.b=#12345678") and one.startswith("a.b=#") for one in stated)
    assert len(set(stated)) == len(hashed)
