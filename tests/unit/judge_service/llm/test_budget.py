"""Limits that a budget accepts."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.budget import Budget, Prices


def test_limits_are_not_negative() -> None:
    with pytest.raises(InvalidInputError, match="max_calls is -1"):
        Budget(max_calls=-1)
    with pytest.raises(
        InvalidInputError, match=expected_message("judge_service.access.spending:max-cost-is-nan")
    ):
        Budget(max_cost=float("nan"), prices=Prices(prompt=1, completion=1))
