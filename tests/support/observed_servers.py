"""Servers whose metrics page and traces are looked at."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from support import scripted_llm as llm
from support.threads import PATIENCE

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem


@asynccontextmanager
async def running(engine: Engine | None = None, **settings: Any) -> AsyncIterator[RunningServer]:
    server = await start(from_names(ServerSettings, {"port": 0, **names_of(settings)}), engine)
    try:
        yield server
    finally:
        await server.stop(0)


async def page(server: RunningServer, path: str = "/metrics") -> tuple[int, str]:
    def read() -> tuple[int, str]:
        url = f"http://{server.metrics_address}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(read)


async def samples(server: RunningServer) -> dict[tuple[str, str], float]:
    """Return the samples by name and the values of their labels."""
    _, text = await page(server)
    return {
        (sample.name, "/".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@asynccontextmanager
async def judging(**settings: Any) -> AsyncIterator[RunningServer]:
    """A server with a language model."""
    async with llm.ScriptedLlm(model="judge-model") as at:
        judges = JudgeSettings(
            llm=LlmSettings(url=at.url, model="judge-model", price_prompt=1, price_completion=2)
        )
        resources = Resources(lambda: JudgeFactory(judges))
        try:
            async with running(Engine(resources), **settings) as server:
                yield server
        finally:
            await resources.close()


ITEM = TriHeItem(
    id="1",
    group_id="a",
    question="What?",
    claims=(Triplet("man", "riding", "horse"),),
    reference_triplets=(Triplet("man", "riding", "horse"),),
)
JUDGED = ScoreSpec(metric="tri-he", options={"judge": "llm"})
