"""Rewards over HTTP, as OpenRLHF asks for them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.http_calls import post, serving

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.server.http.compatible_calls import RewardCall
from hallujudge.judge_service.server.server import RunningServer
from hallujudge.metrics.responses.leftovers import response_in
from hallujudge.sdk.rewards import Reward

_CHAIR = "/rewards/openrlhf?metric=chair&score=chair_i"
PROMPT = "Describe it."
TEXTS = ["A cat and a dog.", "A cat.", "A view.", ""]


def asked(texts: list[str], labels: list[Any]) -> dict[str, Any]:
    query = [f"<s>{PROMPT} {text}</s>" for text in texts]
    return {"query": query, "prompts": [PROMPT] * len(texts), "labels": labels}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[RunningServer]:
    async with serving(max_batch_items=5) as running:
        yield running


@pytest.mark.asyncio(loop_scope="module")
async def test_rewards_are_those_of_the_python_adapter(server: RunningServer) -> None:
    reward = Reward("chair", "chair_i")
    expected = reward([*TEXTS, "A cat."], [*[["cat"]] * 4, None])
    await asyncio.to_thread(reward.scorer.close)
    labels = [["cat"], '["cat"]', {"referenceObjects": {"values": ["cat"]}}, ["cat"], None]
    found = await post(server, _CHAIR + "&unscored=-1", asked([*TEXTS, "A cat."], labels))
    assert found.status == 200, found.body
    rewards = [-1.0 if value is None else value for value in expected]
    missing = [float(value is None) for value in expected]
    assert found.json == {
        "rewards": rewards,
        "scores": rewards,
        "extra_logs": {"unscored": missing},
    }


@pytest.mark.asyncio(loop_scope="module")
async def test_labels_of_questions(server: RunningServer) -> None:
    body = asked(["Yes.", "No."], ["yes", {"label": "yes"}])
    found = await post(server, "/rewards/openrlhf?metric=pope&score=accuracy", body)
    assert (found.status, found.json.get("rewards")) == (200, [1.0, 0.0]), found.body


async def test_labels_of_scene_graphs() -> None:
    call = RewardCall("metric=tri-he&score=hallu_q", most=2)
    triplets = [{"subject": "dog", "relation": "on", "object": "grass"}]
    labels = [[["dog", "on", "grass"]], triplets]

    async def body() -> AsyncGenerator[bytes, None]:
        yield json.dumps(asked(["A dog."] * 2, labels)).encode()

    [request] = [json.loads(raw) async for raw in call.requests(body())]
    assert [item["tri_he"]["referenceTriplets"] for item in request["items"]] == [
        {"values": triplets}
    ] * 2


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("address", "body", "wrong"),
    [
        ("/rewards/openrlhf", asked(["A"], [[]]), "metric"),
        ("/rewards/openrlhf?metric=chair&score=mean_words", asked(["A"], [[]]), "mean_words"),
        (_CHAIR + "&unscored=nan", asked(["A"], [[]]), "unscored"),
        (_CHAIR + "&colour=red", asked(["A"], [[]]), "colour"),
        (_CHAIR, {"queries": [], "labels": []}, "queries"),
        (_CHAIR, [1], "list"),
        (_CHAIR, b"{", "JSON"),
        (_CHAIR, {**asked(["A"], [[]]), "labels": []}, "0 labels"),
        (_CHAIR, asked(["A"] * 6, [[]] * 6), "6 elements"),
        (_CHAIR, asked(["A"], ["[cat"]), "cat"),
        (_CHAIR, asked(["A"], [7]), "7"),
        (_CHAIR, asked(["A"], [[7]]), "referenceObjects"),
        (_CHAIR, b'{"query": [' + b"0," * 1_000_001 + b"0]}", "values"),
    ],
)
async def test_wrong_requests_are_refused(
    server: RunningServer, address: str, body: object, wrong: str
) -> None:
    found = await post(server, address, body)
    assert found.status == 400, found.body
    assert wrong in found.json["message"]


async def test_callers_need_a_key_as_for_other_calls(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "trainer", scopes=[Scope.SCORE])
    other = create_key(keys, "other", scopes=[Scope.EXTRACT])
    # What a client sends for http://hallujudge:KEY@host, where it takes nothing but an address.
    basic = {one: base64.b64encode(f"hallujudge:{one}".encode()).decode() for one in (key, other)}
    given = json.dumps(asked(["A cat."], [["cat"]])).encode()
    async with serving(keys_file=str(keys)) as server:
        for header, status in (
            ("", 401),
            ("Basic !", 401),
            (f"Basic {basic[other]}", 403),
            (f"Basic {basic[key]}", 200),
            (f"Bearer {key}", 200),
        ):
            headers = {"authorization": header} if header else {}
            assert (await post(server, _CHAIR, given, **headers)).status == status


@pytest.mark.parametrize(
    ("query", "prompt", "response"),
    [
        ("<s> What? A cat.</s> <pad><pad>\n", "What?", " A cat."),
        ("A cat.", "What?", "A cat."),
        ("", "", ""),
        ("<pad><pad>", "", ""),
        ("Yes</p>", "", "Yes</p>"),
    ],
)
def test_the_response_in_a_query(query: str, prompt: str, response: str) -> None:
    assert response_in(query, prompt) == response
