"""The settings that ``doctor`` tries where a server does not enforce the choices."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support import scripted_llm as llm
from support.llm_judges import judge_of

from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat import Sampling


def like_llama(number: int, body: llm.Body) -> llm.Reply:
    """Enforce JSON schemas, and read nothing of vLLM's."""
    return _by_schema(number, body) if "response_format" in body else llm.completion("Well, yes.")


def like_transformers(_number: int, body: llm.Body) -> llm.Reply:
    """Refuse vLLM's parameters, and ignore constraints."""
    if "top_k" in body:
        return llm.UNKNOWN_FIELDS_AT_TRANSFORMERS
    return llm.completion("supported")


def ignores(_number: int, _body: llm.Body) -> llm.Reply:
    return llm.completion("supported")


def _by_schema(_number: int, body: llm.Body) -> llm.Reply:
    schema = body["response_format"]["json_schema"]["schema"]
    if "verdict" not in schema["properties"]:
        return llm.completion('{"triplets":[', finish="length")
    word = schema["properties"]["verdict"]["enum"][0]
    return llm.completion(f'{{"verdict":"{word}"}}')


def old_llama(number: int, body: llm.Body) -> llm.Reply:
    """The same, with a converter that does not take the schemas of extraction."""
    if "triplets" in str(body.get("response_format")):
        return llm.UNKNOWN_ESCAPE_AT_LLAMA
    return like_llama(number, body)


async def checks_of(step: llm.Step, **options: Any) -> dict[str, tuple[bool | None, str]]:
    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, sampling=Sampling(top_logprobs=0), **options)
        found = {check.name: (check.ok, check.detail) for check in await check_endpoint(judge)}
        await judge.close()
    return found


@pytest.mark.parametrize(
    ("step", "ok", "said"),
    [
        (like_llama, False, "set llm.dialect=plain llm.constraint=json_schema; the server then en"),
        (like_transformers, False, "set llm.dialect=plain llm.constraint=json_schema; the server"),
        (ignores, None, "was found that makes it enforce the choices"),
        (llm.always(llm.error(500, "no")), False, "was found with which the server answers"),
    ],
)
async def test_the_settings_that_work_are_named(step: llm.Step, ok: bool | None, said: str) -> None:
    found = await checks_of(step, dialect="vllm")
    assert found["settings"][0] is ok
    assert said in found["settings"][1]


@pytest.mark.parametrize(
    ("content", "said"),
    [("supported", "asked for 'zyzzyva' only, it replied 'supported'"), ("", "its reply is empty")],
)
async def test_what_a_server_that_ignores_a_constraint_replied(content: str, said: str) -> None:
    ok, detail = (await checks_of(llm.saying(content), dialect="vllm"))["structured output"]
    assert ok is False
    assert "accepts the constraint and ignores it" in detail
    assert said in detail


async def test_a_constraint_is_enforced_also_where_logits_are_reported() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        word = body["structured_outputs"]["choice"][0]
        return llm.completion(word, logprobs={"content": [llm.place({word: 2.5})]})

    found = await checks_of(step, dialect="vllm")
    assert found["structured output"] == (True, "enforced")
    assert "--logprobs-mode raw_logits" in found["verdict"][1]
    assert "settings" not in found


@pytest.mark.parametrize("status", [401, 404, 429])
async def test_none_are_tried_where_no_dialect_helps(status: int) -> None:
    found = await checks_of(llm.always(llm.error(status)), dialect="vllm")
    assert "settings" not in found
    assert found["answer"][0] is False


async def test_a_server_that_takes_a_call_and_does_not_answer_is_waited_for_once() -> None:
    def step(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.Reply(hold=asyncio.Event())

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, dialect="vllm", retry=RetryPolicy(attempts=2))
        found = {check.name: check.detail for check in await check_endpoint(judge, patience=0.5)}
        await judge.close()
    assert server.chats == 1
    assert list(found) == ["model", "answer"]
    assert "none in 0.5 s: the server takes the call and does not answer" in found["answer"]
    assert "llm.timeout_seconds" in found["answer"]


async def test_none_are_tried_where_no_call_was_answered_in_time() -> None:
    retry = RetryPolicy(attempts=50, give_up_after=20)
    found = await checks_of(llm.always(llm.error(408)), dialect="vllm", retry=retry)
    assert list(found) == ["model", "answer"]
    assert "answered no call for 20 s" in found["answer"][1]


async def test_settings_that_work_are_left() -> None:
    found = await checks_of(like_llama, dialect="plain")
    assert "settings" not in found
    assert found["structured output"] == (True, "enforced")
    assert found["extraction"][0] is True


async def test_a_server_that_refuses_the_schemas_of_extraction() -> None:
    found = await checks_of(old_llama, dialect="plain")
    assert found["structured output"][0] is True
    ok, detail = found["extraction"]
    assert ok is False
    assert "failed to parse grammar" in detail


async def test_white_space_in_json_is_no_sign_of_a_constraint_that_is_ignored() -> None:
    # llama.cpp's grammar of a schema allows it, and small models like it.
    def spacious(number: int, body: llm.Body) -> llm.Reply:
        reply = json.loads(like_llama(number, body).body)
        content = reply["choices"][0]["message"]["content"]
        return llm.completion(content.replace('":"', '":\n  \t "').replace('"}', '"\n }'))

    found = await checks_of(spacious, dialect="plain")
    assert found["structured output"] == (True, "enforced")
