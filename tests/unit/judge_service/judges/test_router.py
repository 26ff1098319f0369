"""Routers that cannot be made."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.judges.router import Router
from hallujudge.judge_service.llm.client import ChatClient, ChatSettings
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.settings.connection import Secret


def test_routers_need_judges_of_different_names() -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.judges.router:different-names-got-none"),
    ):
        Router([])
    endpoint = Endpoint(url="http://127.0.0.1:1/v1", key=Secret("k"))
    judge = LlmJudge("a", ChatClient(ChatSettings(endpoint=endpoint, model="m")))
    with pytest.raises(InvalidInputError, match="got a, a"):
        Router([judge, judge])
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.judges.llm_judge:claims-per-call-is"),
    ):
        LlmJudge("a", judge.client, claims_per_call=0)
