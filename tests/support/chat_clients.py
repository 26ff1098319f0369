"""Chat clients of a scripted server, with a clock that only sleeping advances."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support import scripted_llm as llm
from support.threads import PATIENCE

from hallujudge.judge_service.llm.budget import Budget
from hallujudge.judge_service.llm.call_policy import Tools
from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError
from hallujudge.judge_service.llm.http import Endpoint, SenderName
from hallujudge.judge_service.settings.connection import Secret

REQUEST = ChatRequest(messages=[{"role": "user", "content": "hello"}], max_tokens=8)


class World:
    """A clock that only its sleep advances; the sleep does not wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def tools(self) -> Tools:
        return Tools(clock=lambda: self.now, random=lambda: 0.5, sleep=self.sleep)


def client_of(
    server: llm.ScriptedLlm,
    world: World | None = None,
    budget: Budget | None = None,
    sender: SenderName = "http",
    **options: Any,
) -> ChatClient:
    endpoint = Endpoint(
        url=server.root if sender == "azure" else server.url,
        sender=sender,
        deployment="deployed" if sender == "azure" else "",
        api_version="2024-10-21" if sender == "azure" else "",
        key=Secret("sk-secret-123"),
        timeout_seconds=options.pop("timeout", PATIENCE),
        max_reply_bytes=options.pop("max_reply_bytes", 1 << 20),
    )
    settings = ChatSettings(endpoint=endpoint, model="m", **options)
    return ChatClient(settings, budget, (world or World()).tools())


async def failure_of(client: ChatClient) -> CallFailedError:
    with pytest.raises(CallFailedError) as caught:
        await client.ask(REQUEST)
    await client.close()
    return caught.value
