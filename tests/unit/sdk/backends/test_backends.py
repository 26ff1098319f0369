"""What the backends share."""

from __future__ import annotations

import pytest

from hallujudge.sdk import Client, Timeouts
from hallujudge.sdk.errors import InvalidInputError


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_progress_timeout_that_is_not_above_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="progress_timeout is"):
        Timeouts(progress_timeout=seconds)


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_reconnect_timeout_below_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="reconnect_timeout is"):
        Timeouts(reconnect_timeout=seconds)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"llm_url": "http://127.0.0.1:9/v1"}, r"llm_url is llm\.url now"),
        ({"llm.link": "http://127.0.0.1:9/v1"}, r"'llm\.link' is not a setting"),
        ({"llm.attempts": "many"}, r"llm\.attempts \(from argument\) is 'many'; give a number"),
    ],
)
def test_a_mistaken_setting_is_told_before_a_judge_is_asked(
    settings: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        Client.embedded(settings)
