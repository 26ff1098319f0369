"""The server as a judge model: chat completions with OpenAI's own package."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from support import scripted_llm as llm
from support.http_calls import post, request, serving

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.server.server import RunningServer
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.judge_service.tenancy import Limits
from hallujudge.sdk import AsyncClient

CHAT, MODELS = "/v1/chat/completions", "/v1/models"
CAPTION: dict[str, Any] = {"response": "A cat and a dog.", "reference": ["cat"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[RunningServer]:
    async with serving(max_message_bytes=100_000) as running:
        yield running


def model_at(server: RunningServer, key: str = "none") -> openai.AsyncOpenAI:
    """Return OpenAI's client for a server."""
    return openai.AsyncOpenAI(
        base_url=f"http://{server.http_address}/v1", api_key=key, max_retries=0
    )


def said(text: str) -> dict[str, Any]:
    """Return a body with one message."""
    return {"messages": [{"role": "user", "content": text}]}


async def judged(
    server: RunningServer, model: str, item: object, key: str = "none", **more: Any
) -> dict[str, Any]:
    """Return what the server says of an item."""
    text = item if isinstance(item, str) else json.dumps(item)
    messages: Any = [{"role": "system", "content": "Judge."}, {"role": "user", "content": text}]
    async with model_at(server, key) as client:
        reply = await client.chat.completions.create(model=model, messages=messages, **more)
    content = reply.choices[0].message.content
    assert content is not None
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model == model
    found: dict[str, Any] = json.loads(content)
    return found | {"usage": reply.usage}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_reply_has_score_evidence_and_signature(server: RunningServer) -> None:
    found = await judged(server, "hallujudge/chair", CAPTION)
    async with AsyncClient(server.address) as client:
        report = await client.score(
            "chair", responses={"1": CAPTION["response"]}, references={"1": ["cat"]}
        )
    assert (found["name"], found["score"]) == ("chair_i", report.chair_i)
    assert found["signature"] == report.signature
    assert found["evidence"]["hallucinated"] == [["dog", "dog"]]
    assert found["outcome"] == "scored"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("model", "item", "name", "score"),
    [
        ("hallujudge/chair/corrected", CAPTION, "chair_i", 0.5),
        ("hallujudge/chair?score=recall", CAPTION, "recall", 1),
        (
            "hallujudge/pope",
            {"question": "A dog?", "answer": "Yes.", "label": "yes"},
            "accuracy",
            1,
        ),
        ("hallujudge/pope", {"response": "No.", "reference": "yes"}, "accuracy", 0),
        ("hallujudge/pope", {"answers": [{"response": "No.", "label": "no"}]}, "accuracy", 1),
        (
            "hallujudge/chair",
            {"chair": {"response": "A cat.", "referenceObjects": {"values": ["cat"]}}},
            "chair_i",
            0,
        ),
    ],
)
async def test_metrics_variants_and_forms_of_items(
    server: RunningServer, model: str, item: Mapping[str, Any], name: str, score: float
) -> None:
    found = await judged(server, model, item)
    assert (found["name"], found["score"]) == (name, score)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_unscored_item_has_no_score(server: RunningServer) -> None:
    found = await judged(server, "hallujudge/chair", {"response": None, "reference": ["cat"]})
    assert (found["score"], found["outcome"]) == (None, "unscored")
    assert found["reason"] == "RESPONSE_MISSING"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_message_of_parts_and_a_streamed_reply(server: RunningServer) -> None:
    text = json.dumps(CAPTION)
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    async with model_at(server) as client:
        chunks = await client.chat.completions.create(
            model="hallujudge/chair", messages=messages, stream=True
        )
        content = "".join([one.choices[0].delta.content or "" async for one in chunks])
    assert json.loads(content)["score"] == 0.5


@pytest.mark.asyncio(loop_scope="module")
async def test_models_are_metrics_and_their_variants(server: RunningServer) -> None:
    async with model_at(server) as client:
        names = [one.id async for one in client.models.list()]
    assert {"hallujudge/chair", "hallujudge/chair/corrected", "hallujudge/pope"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        ({"model": "gpt-4o"}, 400, "invalid_input", "hallujudge/METRIC"),
        ({"model": "hallujudge/chiar"}, 404, "model_not_found", "chair"),
        ({"model": "hallujudge/chair/none"}, 400, "invalid_input", "none"),
        ({"model": "hallujudge/chair?colour=red"}, 400, "invalid_input", "colour"),
        ({"model": "hallujudge/chair?score=f2"}, 400, "invalid_input", "'f2'"),
        ({"messages": []}, 400, "invalid_input", "last message"),
        ({"messages": [{"role": "user", "content": "Hello"}]}, 400, "invalid_input", "'Hello'"),
        ({"messages": [{"role": "user", "content": "[1]"}]}, 400, "invalid_input", "JSON"),
        ({"n": 2}, 400, "invalid_input", "n is 2"),
        ([1], 400, "invalid_input", "list"),
        (b"{", 400, "invalid_input", "JSON"),
        (
            {"messages": [{"role": "user", "content": "x" * 100_001}]},
            413,
            "message_too_large",
            "bytes",
        ),
        (
            {"messages": [{"role": "user", "content": '{"response": "A", "colour": 1}'}]},
            400,
            "malformed_message",
            "colour",
        ),
    ],
)
async def test_errors_have_openais_form(
    server: RunningServer, body: Any, status: int, code: str, said: str
) -> None:
    usual = {
        "model": "hallujudge/chair",
        "messages": [{"role": "user", "content": json.dumps(CAPTION)}],
    }
    found = await post(server, CHAT, usual | body if isinstance(body, dict) else body)
    error = found.json["error"]
    assert (found.status, error["code"]) == (status, code), found.body
    assert said in error["message"]
    assert error["type"] == ("rate_limit_error" if status == 413 else "invalid_request_error")


@pytest.mark.asyncio(loop_scope="module")
async def test_other_paths_and_methods(server: RunningServer) -> None:
    found = await post(server, "/v1/embeddings", {})
    assert (found.status, found.json["error"]["code"]) == (404, "unimplemented")
    found = await request(server, "GET", CHAT, b"", {})
    assert (found.status, found.headers["allow"]) == (405, "POST")
    assert (await post(server, MODELS, {})).status == 405


async def test_keys_and_their_limits_are_those_of_other_calls(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "harness", scopes=[Scope.SCORE], limits=Limits(calls_per_minute=1))
    other = create_key(keys, "other", scopes=[Scope.EXTRACT])
    async with serving(keys_file=str(keys)) as server:
        with pytest.raises(openai.AuthenticationError) as caught:
            await judged(server, "hallujudge/chair", CAPTION)
        assert caught.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            async with model_at(server) as client:
                await client.models.list()
        with pytest.raises(openai.PermissionDeniedError):
            await judged(server, "hallujudge/chair", CAPTION, other)
        assert (await judged(server, "hallujudge/chair", CAPTION, key))["score"] == 0.5
        with pytest.raises(openai.RateLimitError) as limited:
            await judged(server, "hallujudge/chair", CAPTION, key)
        assert int(limited.value.response.headers["retry-after"]) > 0


async def test_budgets_of_keys_bind_the_judges_behind_a_metric(tmp_path: Path) -> None:
    keys, limits = tmp_path / "keys.json", Limits(judge_calls_per_day=1)
    key = create_key(keys, "harness", scopes=[Scope.SCORE, Scope.JUDGE], limits=limits)
    triplet = ["man", "riding", "horse"]
    async with llm.ScriptedLlm(llm.by_scene_graph) as at:
        settings = JudgeSettings(llm=LlmSettings(url=at.url, model="tiny"), outage_seconds=0)
        ledger = Ledger(tmp_path / "spending.sqlite")
        factory = JudgeFactory(settings, ledger=ledger)
        async with serving(Engine(Resources(lambda: factory)), keys_file=str(keys)) as server:
            model = "hallujudge/tri-he?judge=llm&extractor=given"
            items = [
                {
                    "response": "A man rides a horse.",
                    "reference": [triplet],
                    "claims": {
                        "values": [dict(zip(("subject", "relation", "object"), claim, strict=True))]
                    },
                }
                for claim in (triplet, ["man", "riding", "cow"])
            ]
            first = await judged(server, model, items[0], key)
            second = await judged(server, model, items[1], key)
        await factory.close()
        ledger.close()
    assert (first["score"], first["usage"].prompt_tokens > 0) == (0.0, True)
    assert (second["score"], second["outcome"]) == (None, "unscored")
