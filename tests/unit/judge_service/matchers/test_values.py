"""Settings of matchers."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.matchers.matcher_interface import MatcherSettings


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "best"}, "protocol"),
        ({"backend": "gpu"}, "backend"),
        ({"parts": "some"}, "parts"),
        ({"keep_above": 1.5}, "keep_above"),
        ({"support_above": float("nan")}, "support_above"),
        ({"small_above": -0.1}, "small_above"),
        ({"top": 0}, "top"),
        ({"threads": -1}, "threads"),
        ({"cached_vectors": -1}, "cached_vectors"),
        ({"protocol": "nli"}, "small_model"),
    ],
)
def test_settings_are_checked(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field) as caught:
        MatcherSettings(**changes)
    assert [violation.field for violation in caught.value.violations] == [field]
