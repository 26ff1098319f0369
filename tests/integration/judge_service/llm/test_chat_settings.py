"""Which dialect is found where none is set: vLLM names itself, other servers don't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.llm_judges import item, judge_of

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.judges.single_checks import check_sight
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.judge_settings import JudgeSettings

# As real servers send them, seen at vLLM 0.32.0, llama-server b11549, LiteLLM 1.106.12 and
# transformers serve 5.24.0, which lists no model before its first call.
VLLM, LLAMA, LITELLM = "vllm", "llamacpp", "openai"


class Server(llm.ScriptedLlm):
    """A server that says what it is."""

    def __init__(self, owner: str = "", version: str = "", *steps: llm.Step) -> None:
        super().__init__(*steps, version=version)
        self.owner = owner
        self.refuses = 0

    def _other(self, path: str) -> llm.Reply:
        if self.refuses:
            return llm.error(self.refuses)
        if path == "/version" and not self.version:
            return llm.error(404, "File Not Found")
        if path.endswith("/models"):
            models = [{"id": "m", "object": "model", "owned_by": self.owner}] if self.owner else []
            return llm.as_json({"object": "list", "data": models})
        return super()._other(path)


def guessing(server: Server, **options: Any) -> LlmJudge:
    guesses: Any = {"is_dialect_guessed": True, "is_constraint_guessed": True}
    return judge_of(server, dialect="vllm", **guesses, **options)


def sent(server: Server) -> str:
    """Return the dialect of the last request."""
    body = server.requests[-1]
    assert ("top_k" in body) is ("structured_outputs" in body) is not ("response_format" in body)
    return "vllm" if "top_k" in body else "plain"


@pytest.mark.parametrize(
    ("owner", "version", "dialect"),
    [
        (VLLM, "0.32.0", "vllm"),
        (VLLM, "", "vllm"),  # behind a proxy that lets only /v1 pass
        ("", "0.32.0", "vllm"),
        (LLAMA, "", "plain"),
        (LITELLM, "", "plain"),
        ("", "", "plain"),  # transformers serve before its first call
    ],
)
async def test_a_server_says_whether_it_is_vllm(owner: str, version: str, dialect: str) -> None:
    async with Server(owner, version) as server:
        judge = guessing(server)
        await judge.prepare()
        signature = judge.identity.signature
        (judged,) = await judge.judge([item()])
        other = guessing(server)
        checks = {check.name: check for check in await check_endpoint(other)}
        await other.close()
        await judge.close()
    assert all(verdict.verdict.value != "unscored" for verdict in judged.verdicts)
    assert sent(server) == dialect
    constraint = {"vllm": "structured_outputs", "plain": "json_schema"}[dialect]
    assert f'constraint="{constraint}"' in signature or f"constraint={constraint}" in signature
    assert f"llm.dialect={dialect} llm.constraint={constraint}" in checks["dialect"].detail
    assert checks["dialect"].ok


async def test_a_dialect_that_is_set_is_kept() -> None:
    async with Server(LLAMA) as server:
        judge = judge_of(server, dialect="vllm")
        await judge.judge([item()])
        checks = [check.name for check in await check_endpoint(judge)]
        await judge.close()
    assert sent(server) == "vllm"
    assert "dialect" not in checks


@pytest.mark.parametrize("status", [503, 429, 401])
async def test_a_server_that_does_not_say_is_asked_again_by_the_next_run(status: int) -> None:
    async with Server(LLAMA) as server:
        judge = guessing(server)
        found = []
        for refuses in (status, 0):
            server.refuses = refuses
            await judge.prepare()
            found.append(judge.client.settings.dialect)
        await judge.close()
    assert found == ["vllm", "plain"]


async def test_the_dialect_does_not_change_while_calls_are_under_way() -> None:
    found: list[str] = []
    async with Server(LLAMA) as server:
        judge = guessing(server, retry=RetryPolicy(attempts=2))

        async def look() -> None:
            await judge.client.settle()
            found.append(judge.client.settings.dialect)

        server.refuses = 503
        await judge.prepare()
        server.refuses = 0
        asked = judge.client.ask(judge.request_of(judge.questions(item())[0]))
        judge.client.servers[0].sender = _Looking(judge.client.servers[0].sender, look)
        await asked
        await look()
        await judge.close()
    assert found == ["vllm", "plain"]
    assert sent(server) == "vllm"


class _Looking:
    """A sender that does something while a call is under way."""

    def __init__(self, sender: Any, work: Any) -> None:
        self._sender, self._work = sender, work

    async def post(self, path: str, body: Any) -> bytes:
        work, self._work = self._work, None
        if work is not None:
            await work()
        sent: bytes = await self._sender.post(path, body)
        return sent

    async def get(self, path: str) -> bytes:
        got: bytes = await self._sender.get(path)
        return got

    async def close(self) -> None:
        await self._sender.close()


async def test_a_run_whose_replies_are_kept_needs_no_server(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    async with Server(LLAMA) as server:
        first = guessing(server, cache=cache, store=cache)
        await first.prepare()
        before = await first.judge([item()])
        await first.close()
    again = guessing(server, cache=cache, store=cache)
    await again.prepare()
    after = await again.judge([item()])
    await again.close()
    await cache.close()
    assert again.identity.signature == first.identity.signature
    assert [each.verdicts for each in after] == [each.verdicts for each in before]


def without_schemas(number: int, body: llm.Body) -> llm.Reply:
    """Refuse schemas as LiteLLM does for models that it knows not to take any."""
    if "response_format" in body:
        return llm.NO_SCHEMAS_AT_LITELLM
    return llm.by_scene_graph(number, body)


async def test_a_constraint_that_is_refused_is_left_out_before_anything_is_signed(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    cache = VerdictCache(tmp_path / "c")
    async with Server(LITELLM, "", without_schemas) as server:
        judge = guessing(server, cache=cache, store=cache)
        await judge.prepare()
        signature, asked = judge.identity.signature, server.chats
        (judged,) = await judge.judge([item()])
        checked = guessing(server)
        found = {check.name: check for check in await check_endpoint(checked)}
        again = guessing(server, cache=cache, store=cache)
        before = server.chats
        await again.prepare()
        assert server.chats == before
        for each in (judge, checked, again):
            await each.close()
    await cache.close()
    assert asked == 2
    assert "constraint=none" in signature == judge.identity.signature == again.identity.signature
    assert all(verdict.verdict.value != "unscored" for verdict in judged.verdicts)
    assert "refuses the constraint json_schema and is called without one" in caplog.text
    assert found["dialect"].detail.endswith("llm.constraint=none; the server refuses constraints")


async def test_a_server_that_takes_the_constraint_is_asked_one_short_question() -> None:
    async with Server(LLAMA) as server:
        judge = guessing(server)
        await judge.prepare()
        await judge.prepare()
        await judge.close()
    (body,) = server.requests
    assert "response_format" in body
    assert body["max_tokens"] == 16


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_what_is_refused_with_and_without_a_constraint_is_no_matter_of_it(
    status: int,
) -> None:
    def refusing(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.error(status, "no such thing")

    async with Server(LLAMA, "", refusing) as server:
        judge = guessing(server)
        await judge.prepare()
        await judge.close()
    assert "constraint=json_schema" in judge.identity.signature
    assert judge.client.settings.is_constraint_guessed


async def test_nothing_is_asked_for_an_estimate_or_without_a_guess() -> None:
    async with Server(LLAMA) as server:
        judges = guessing(server), guessing(server, constraint="none")
        await judges[0].prepare(asks=False)
        await judges[0].recall([item()])
        await judges[1].prepare()
        for judge in judges:
            await judge.close()
    assert not server.chats


async def test_pictures_are_shown_in_the_dialect_that_is_found() -> None:
    async with Server(LLAMA, "", llm.saying("blue")) as server:
        judge = guessing(server)
        check = await check_sight(judge.client)
        await judge.close()
    assert check.detail.startswith("not seen: of a picture that is all yellow it says blue")
    assert sent(server) == "plain"


async def test_a_schema_of_another_form_that_is_refused_still_ends_the_run() -> None:
    def refusing(number: int, body: llm.Body) -> llm.Reply:
        if number > 1:
            return llm.error(400, "unknown field")
        return llm.by_scene_graph(number, body)

    async with Server(LLAMA, "", refusing) as server:
        judge = guessing(server)
        await judge.prepare()
        with pytest.raises(InvalidInputError, match="refused another question with the same words"):
            await judge.judge([item()])
        await judge.close()


@pytest.mark.parametrize(
    ("settings", "guessed"),
    [
        ({}, True),
        ({"llm.dialect": "vllm"}, False),
        ({"llm.url": "https://api.openai.com/v1"}, False),
        ({"batch.requests": "requests.jsonl"}, False),
    ],
)
async def test_when_a_dialect_is_guessed(
    tmp_path: Path, settings: dict[str, str], guessed: bool
) -> None:
    if "batch.requests" in settings:
        settings = {"batch.requests": str(tmp_path / "requests.jsonl")}
    given = {"llm.url": "http://localhost:1/v1", "llm.model": "m", **settings}
    judge = JudgeFactory(from_names(JudgeSettings, given)).llm()
    found = judge.client.settings
    assert found.is_dialect_guessed is found.is_constraint_guessed is guessed
    await judge.close()
