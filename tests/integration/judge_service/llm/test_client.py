"""The chat client against a server that misbehaves in every way, over real HTTP."""

from __future__ import annotations

import asyncio
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of, failure_of
from support.messages import expected_message

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import InvalidInputError, UnavailableError
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat import Sampling
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint, SenderName
from hallujudge.judge_service.settings.connection import read_secret
from hallujudge.judge_service.settings.judge_settings import (
    JudgeSettings,
    LlmSettings,
    SmallSettings,
)


@pytest.fixture(params=["http", "openai", "azure"])
def sender(request: pytest.FixtureRequest) -> SenderName:
    """What sends: the same faults have the same outcome with each."""
    return cast("SenderName", request.param)


async def test_every_sampling_parameter_is_sent_and_the_key_too() -> None:
    async with llm.ScriptedLlm(llm.saying("hi")) as server:
        client = client_of(server, dialect="vllm")
        answer = await client.ask(REQUEST)
        await client.close()
    assert answer.reply.content == "hi"
    assert answer.usage.prompt_tokens == 100
    assert server.headers[0]["authorization"] == "Bearer sk-secret-123"
    assert server.requests[0] == {
        "model": "m",
        "messages": REQUEST.messages,
        "max_tokens": 8,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "n": 1,
        "stream": False,
        "logprobs": True,
        "top_logprobs": 8,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }


async def test_openai_gets_its_own_names_and_refused_parameters_are_left_out() -> None:
    async with llm.ScriptedLlm(llm.saying("hi")) as server:
        sampling = Sampling(omit=("temperature", "seed"), top_logprobs=0)
        client = client_of(server, dialect="openai", sampling=sampling)
        await client.ask(REQUEST)
        await client.close()
    sent = server.requests[0]
    assert sent["max_completion_tokens"] == 8
    assert not {"temperature", "seed", "max_tokens", "top_k", "top_logprobs"} & set(sent)
    assert sent["logprobs"] is False


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (llm.always(llm.error(500, "boom")), FailureKind.SERVER),
        (llm.always(llm.error(503)), FailureKind.SERVER),
        (llm.always(llm.error(429, "slow down")), FailureKind.RATE),
        (llm.always(llm.Reply(reset=True)), FailureKind.CONNECTION),
        (llm.always(llm.Reply(body=b'{"choices": [', cut=5)), FailureKind.CONNECTION),
        (llm.always(llm.Reply(body=b'{"choices": [{"mess')), FailureKind.NOT_THE_API),
        (llm.always(llm.as_json({"choices": []})), FailureKind.BAD_REPLY),
        (llm.always(llm.as_json({"answer": "supported"})), FailureKind.NOT_THE_API),
        (
            llm.always(llm.as_json({"choices": [{"message": {"content": 7}}]})),
            FailureKind.BAD_REPLY,
        ),
        (llm.always(llm.as_json({"choices": [{"message": {}}]})), FailureKind.BAD_REPLY),
        (llm.always(llm.as_json([1, 2])), FailureKind.NOT_THE_API),
        (llm.always(llm.Reply(body=b"<html>hello</html>")), FailureKind.NOT_THE_API),
        (llm.always(llm.Reply(body=b"[" * 200_000)), FailureKind.NOT_THE_API),
    ],
)
async def test_transient_faults_are_retried_and_no_more_often_than_allowed(
    step: llm.Step, kind: FailureKind, sender: SenderName
) -> None:
    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(
            server, world, sender=sender, retry=RetryPolicy(attempts=3, outage_seconds=0)
        )
        failure = await failure_of(client)
    assert failure.kind is kind
    assert "3 attempts" in failure.detail
    assert "Error:" not in failure.detail
    assert server.chats == 3
    assert world.slept == [0.25, 0.5]


async def test_an_answer_after_faults_is_an_answer(sender: SenderName) -> None:
    steps = (llm.always(llm.error(500)), llm.always(llm.Reply(reset=True)), llm.saying("fine"))
    async with llm.ScriptedLlm(*steps) as server:
        client = client_of(server, sender=sender)
        answer = await client.ask(REQUEST)
        await client.close()
    assert answer.reply.content == "fine"
    assert (client.statistics.calls, client.statistics.retries) == (3, 2)
    assert dict(client.statistics.failures) == {"JUDGE_SERVER_ERROR": 1, "JUDGE_UNREACHABLE": 1}


@pytest.mark.parametrize("header", ["Retry-After", "llm_provider-retry-after"])
async def test_retry_after_is_waited_for(sender: SenderName, header: str) -> None:
    reply = llm.error(429, "slow down", **{header: "7"})
    async with llm.ScriptedLlm(llm.always(reply), llm.saying("ok")) as server:
        world = World()
        client = client_of(server, world, sender=sender)
        await client.ask(REQUEST)
        await client.close()
    assert world.now >= 7
    assert world.now < 8.5


async def test_a_retry_after_that_is_a_date_is_understood(sender: SenderName) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    reply = llm.error(429, **{"Retry-After": date})
    async with llm.ScriptedLlm(llm.always(reply), llm.saying("ok")) as server:
        world = World()
        client = client_of(server, world, sender=sender)
        await client.ask(REQUEST)
        await client.close()
    assert 28 <= world.now <= 35


async def test_a_retry_after_beyond_the_longest_wait_is_not_waited_for(sender: SenderName) -> None:
    reply = llm.error(429, **{"Retry-After": "86400"})
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        world = World()
        failure = await failure_of(client_of(server, world, sender=sender))
    assert failure.kind is FailureKind.RATE
    assert failure.retry_after == 86400
    assert (world.slept, server.chats) == ([], 1)


@pytest.mark.parametrize(("status", "says"), [(401, "set the right key"), (404, "model name 'm'")])
async def test_a_rejected_key_or_an_unknown_model_stops_at_once_and_is_tried_again_later(
    status: int, says: str, sender: SenderName
) -> None:
    rejected = True

    def step(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.error(status, "bad key sk-secret-123") if rejected else llm.completion("ok")

    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(server, world, sender=sender)
        for _ in range(3):
            with pytest.raises(InvalidInputError, match=says) as caught:
                await client.ask(REQUEST)
        assert server.chats == 1
        rejected = False
        world.now += 31
        assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()
    assert "sk-secret" not in str(caught.value)
    assert f"HTTP {status}: bad key ***" in str(caught.value)
    assert caught.value.reason in ("JUDGE_AUTH_FAILED", "JUDGE_MODEL_UNKNOWN")


async def test_a_remembered_rejection_keeps_nothing_of_the_calls_that_it_ends() -> None:
    depths = []
    async with llm.ScriptedLlm(llm.always(llm.error(401, "bad key"))) as server:
        client = client_of(server)
        for _ in range(4):
            with pytest.raises(InvalidInputError) as caught:
                await client.ask(REQUEST)
            cause = caught.value.__cause__
            assert cause is not None
            depths.append(len(traceback.extract_tb(cause.__traceback__)))
        await client.close()
    assert server.chats == 1
    assert depths[1] == depths[2] == depths[3]


REJECTED = [
    (llm.error(401, "bad key"), FailureKind.AUTH),
    (llm.error(404, "no route"), FailureKind.MODEL),
    (llm.error(302, "log in"), FailureKind.MODEL),
    (llm.completion("ok", model="cheaper"), FailureKind.OTHER_MODEL),
]


@pytest.mark.parametrize(("reply", "kind"), REJECTED)
async def test_a_judge_that_has_answered_is_waited_for_when_it_rejects_calls(
    reply: llm.Reply, kind: FailureKind, sender: SenderName
) -> None:
    rejections = 20

    def step(number: int, _body: llm.Body) -> llm.Reply:
        return reply if 1 < number <= 1 + rejections else llm.completion("ok")

    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(server, world, sender=sender)
        await client.ask(REQUEST)
        answers = await asyncio.gather(*(client.ask(REQUEST) for _ in range(30)))
        await client.close()
    assert len(answers) == 30
    assert server.chats == 1 + rejections + 30
    assert dict(client.statistics.failures) == {kind.value: rejections}


@pytest.mark.parametrize(("reply", "kind"), REJECTED)
async def test_a_judge_that_rejects_calls_for_long_ends_the_run_by_its_own_words(
    reply: llm.Reply, kind: FailureKind
) -> None:
    async with llm.ScriptedLlm(llm.saying("ok"), llm.always(reply)) as server:
        world = World()
        client = client_of(
            server, world, retry=RetryPolicy(outage_seconds=1e6, give_up_after=300.0)
        )
        await client.ask(REQUEST)
        with pytest.raises(
            UnavailableError,
            match=expected_message("judge_service.llm.call_policy:answered-no-call-for-2"),
        ) as caught:
            await client.ask(REQUEST)
        await client.close()
    assert caught.value.metadata["cause"] == kind.value
    assert world.now >= 300


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_exchanged_in_its_file_costs_no_call(
    tmp_path: Path, status: int
) -> None:
    right = "old-key"

    def step(number: int, _body: llm.Body) -> llm.Reply:
        sent = server.headers[number - 1]["authorization"]
        return llm.completion("ok") if sent == f"Bearer {right}" else llm.error(status, "bad key")

    file = tmp_path / "key"
    file.write_text("old-key\n")
    key = read_secret({"LLM_KEY_FILE": str(file)}, "LLM_KEY")
    async with llm.ScriptedLlm(step) as server:
        world = World()
        settings = ChatSettings(endpoint=Endpoint(url=server.url, key=key), model="m")
        client = ChatClient(settings, None, world.tools())
        await client.ask(REQUEST)
        right = "new-key"
        file.write_text("new-key\n")
        answers = await asyncio.gather(*(client.ask(REQUEST) for _ in range(20)))
        await client.close()
    assert [answer.reply.content for answer in answers] == ["ok"] * 20
    assert (world.slept, dict(client.statistics.failures)) == ([], {})


async def test_a_key_file_that_is_gone_leaves_the_key_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old-key")
    key = read_secret({"LLM_KEY_FILE": str(file)}, "LLM_KEY")
    file.unlink()
    steps = (llm.saying("ok"), llm.always(llm.error(401, "wait")), llm.saying("ok"))
    async with llm.ScriptedLlm(*steps) as server:
        settings = ChatSettings(endpoint=Endpoint(url=server.url, key=key), model="m")
        client = ChatClient(settings, None, World().tools())
        for _ in range(2):
            assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()
    assert {sent["authorization"] for sent in server.headers} == {"Bearer old-key"}


async def test_a_prompt_that_is_always_rejected_fails_alone() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        odd = llm.prompt_of(body) == "odd"
        return llm.error(404, "no route") if odd else llm.completion("ok")

    odd = replace(REQUEST, messages=[{"role": "user", "content": "odd"}])
    async with llm.ScriptedLlm(step) as server:
        client = client_of(server)
        await client.ask(REQUEST)
        call = asyncio.ensure_future(client.ask(odd))
        while not call.done():
            assert (await client.ask(REQUEST)).reply.content == "ok"
        with pytest.raises(CallFailedError, match=r"no route.*5 attempts"):
            await call
        await client.close()


async def test_one_callers_rejected_prompt_ends_no_other_callers_first_calls() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        odd = llm.prompt_of(body) == "odd"
        return llm.error(404, "no route") if odd else llm.completion("ok")

    odd = replace(REQUEST, messages=[{"role": "user", "content": "odd"}])
    async with llm.ScriptedLlm(step) as server:
        client = client_of(server)
        with acting_as(Caller(id="key:ana", name="ana")), pytest.raises(InvalidInputError):
            await client.ask(odd)
        with acting_as(Caller(id="key:ben", name="ben")):
            assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()


async def test_with_a_fallback_only_a_rejected_key_ends_the_run() -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(404, "no model m"))) as server:
        client = client_of(server)
        for _ in range(2):
            with pytest.raises(CallFailedError, match="no model m"):
                await client.ask(REQUEST, has_fallback=True)
        await client.close()
    assert server.chats == 1
    async with llm.ScriptedLlm(llm.always(llm.error(401, "bad key"))) as server:
        client = client_of(server)
        with pytest.raises(InvalidInputError, match="HALLUJUDGE_LLM_API_KEY"):
            await client.ask(REQUEST, has_fallback=True)
        await client.close()


@pytest.mark.parametrize(
    "reply", [llm.error(403, "not this one"), llm.error(400, "not this one", "content_filter")]
)
async def test_a_refused_prompt_concerns_its_own_call_only(
    reply: llm.Reply, sender: SenderName
) -> None:
    async with llm.ScriptedLlm(llm.always(reply), llm.saying("ok")) as server:
        client = client_of(server, sender=sender)
        with pytest.raises(CallFailedError, match="not this one") as caught:
            await client.ask(REQUEST)
        assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()
    assert caught.value.kind is FailureKind.REFUSED


async def test_the_reply_of_another_model_is_not_accepted(sender: SenderName) -> None:
    async with llm.ScriptedLlm(llm.saying("ok", model="cheaper")) as server:
        client = client_of(server, sender=sender)
        with pytest.raises(
            InvalidInputError,
            match=expected_message("judge_service.llm.client:asked-for-m-the-reply-is-from"),
        ):
            await client.ask(REQUEST)
        await client.close()
        allowed = client_of(server, sender=sender, reply_models=("Cheaper",))
        assert (await allowed.ask(REQUEST)).reply.content == "ok"
        await allowed.close()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (llm.error(400, "no such parameter"), FailureKind.REFUSED_REQUEST),
        (llm.error(422, "wrong"), FailureKind.REFUSED_REQUEST),
        (llm.error(400, "x", "context_length_exceeded"), FailureKind.TOO_LONG),
        (llm.error(400, "This model's maximum context length is 8"), FailureKind.TOO_LONG),
        (llm.error(413, "large"), FailureKind.REFUSED_REQUEST),
        (llm.TOO_LONG_AT_LLAMA, FailureKind.TOO_LONG),
        (llm.TOO_LONG_AT_LITELLM, FailureKind.TOO_LONG),
        (llm.NO_IMAGES_AT_LLAMA, FailureKind.REFUSED_REQUEST),
        (llm.error(429, "pay", "insufficient_quota"), FailureKind.QUOTA),
        (llm.QUOTA_AT_LITELLM, FailureKind.QUOTA),
        (llm.error(402, "pay"), FailureKind.QUOTA),
        (llm.as_json({"error": {"message": "pay", "code": 402}}), FailureKind.QUOTA),
    ],
)
async def test_what_would_fail_again_is_not_repeated(
    reply: llm.Reply, kind: FailureKind, sender: SenderName
) -> None:
    async with llm.ScriptedLlm(llm.to_prompts(reply)) as server:
        failure = await failure_of(client_of(server, sender=sender))
    assert failure.kind is kind
    assert [llm.is_own_question(body) for body in server.requests].count(False) == 1


async def test_a_slow_drip_ends_at_the_deadline(sender: SenderName) -> None:
    slow = llm.completion("supported")
    drip = llm.Reply(body=slow.body, headers=slow.headers, drip=0.05)
    async with llm.ScriptedLlm(llm.always(drip)) as server:
        client = client_of(
            server, sender=sender, timeout=1.0, retry=RetryPolicy(attempts=1, outage_seconds=0)
        )
        failure = await failure_of(client)
    assert failure.kind is FailureKind.TIMEOUT


async def test_an_endless_answer_is_not_read_to_its_end(sender: SenderName) -> None:
    big = llm.Reply(body=b" " * 300_000)
    async with llm.ScriptedLlm(llm.always(big)) as server:
        client = client_of(
            server,
            sender=sender,
            max_reply_bytes=100_000,
            retry=RetryPolicy(attempts=1, outage_seconds=0),
        )
        failure = await failure_of(client)
    assert failure.kind is FailureKind.NOT_THE_API
    assert "100000" in failure.detail


async def test_no_server_at_the_address(sender: SenderName) -> None:
    async with llm.ScriptedLlm() as server:
        client = client_of(server, sender=sender, retry=RetryPolicy(attempts=2, outage_seconds=0))
    failure = await failure_of(client)
    assert failure.kind is FailureKind.CONNECTION
    assert (
        expected_message("judge_service.llm.http:no-connection-to-connection-refused", server.port)
        in failure.detail
    )


async def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        proxy = f"http://ana:secret-pw@127.0.0.1:{server.port}"
        endpoint = Endpoint(url="https://judge.invalid/v1", proxy=proxy)
        retry = RetryPolicy(attempts=1)
        client = ChatClient(ChatSettings(endpoint=endpoint, model="m", retry=retry))
        failure = await failure_of(client)
    assert "secret-pw" not in failure.detail
    assert failure.kind is FailureKind.CONNECTION


async def test_a_proxy_is_asked_for_the_address() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        endpoint = Endpoint(url="http://judge.invalid/v1", proxy=f"http://127.0.0.1:{server.port}")
        client = ChatClient(ChatSettings(endpoint=endpoint, model="m"))
        assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()
    assert server.paths == ["http://judge.invalid/v1/chat/completions"]


@pytest.mark.parametrize("given", [True, False])
async def test_the_judges_proxy_is_that_of_its_setting_or_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1" if given else server.root)
        settings = JudgeSettings(
            llm=LlmSettings(
                url="http://judge.invalid/v1", model="m", proxy=server.root if given else ""
            ),
            small=SmallSettings(url="http://small.invalid/v1"),
        )
        factory = JudgeFactory(settings)
        for judge in (factory.llm(), factory.served("bespoke-minicheck")):
            assert (await judge.client.ask(REQUEST)).reply.content == "ok"
        await factory.close()
    at = [f"http://{name}.invalid/v1/chat/completions" for name in ("judge", "small")]
    assert server.paths == at
