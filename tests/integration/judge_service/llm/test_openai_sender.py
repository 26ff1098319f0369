"""OpenAI's package as sender: addresses, headers and credentials of OpenAI and Azure.

Azure's errors are those of its reference ("Azure OpenAI Service REST API reference", errors) and of
the package's own fixtures: ``code`` may be a status in words or a number in a text.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of, failure_of

from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError
from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_servers import OpenAISender
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint, Sender, SenderName
from hallujudge.judge_service.settings.connection import Secret, hosted_by, read_secret

ONCE = RetryPolicy(attempts=1, outage_seconds=0)
FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content "
        "management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        },
    }
}


async def answer_of(endpoint: Endpoint) -> str:
    client = ChatClient(ChatSettings(endpoint=endpoint, model="m", retry=ONCE))
    try:
        return (await client.ask(REQUEST)).reply.content
    finally:
        await client.close()


def azure(status: int, code: str, message: str, **headers: str) -> llm.Reply:
    return llm.as_json({"error": {"code": code, "message": message}}, status, **headers)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (azure(429, "429", "have exceeded call rate limit"), FailureKind.RATE),
        (azure(429, "insufficient_quota", "quota"), FailureKind.QUOTA),
        (azure(500, "InternalServerError", "Backend returned unexpected"), FailureKind.SERVER),
        (azure(408, "Timeout", "The operation was timeout."), FailureKind.TIMEOUT),
        (llm.as_json(FILTERED, 400), FailureKind.REFUSED),
        (azure(400, "context_length_exceeded", "too many"), FailureKind.TOO_LONG),
        (azure(400, "OperationNotSupported", "does not work"), FailureKind.REFUSED_REQUEST),
        (llm.Reply(body=b"{'choices'"), FailureKind.NOT_THE_API),
    ],
)
async def test_azures_errors(reply: llm.Reply, kind: FailureKind) -> None:
    async with llm.ScriptedLlm(llm.to_prompts(reply)) as server:
        failure = await failure_of(client_of(server, sender="azure", retry=ONCE))
    assert failure.kind is kind


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (azure(401, "401", "Access denied due to invalid subscription key"), "JUDGE_AUTH_FAILED"),
        (
            llm.as_json({"statusCode": 401, "message": "Unauthorized. Access token is"}, 401),
            "JUDGE_AUTH_FAILED",
        ),
        (azure(404, "DeploymentNotFound", "The API deployment"), "JUDGE_MODEL_UNKNOWN"),
    ],
)
async def test_azures_wrong_keys_and_deployments(reply: llm.Reply, reason: str) -> None:
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        client = client_of(server, sender="azure")
        with pytest.raises(InvalidInputError) as caught:
            await client.ask(REQUEST)
        await client.close()
    assert caught.value.reason == reason


async def test_azure_has_addresses_and_headers_of_its_own() -> None:
    async with llm.ScriptedLlm(llm.saying("ok", model="m-2024-11-20")) as server:
        common: dict[str, Any] = {"key": Secret("sk-1"), "sender": "azure"}
        version: dict[str, Any] = {"api_version": "2024-10-21"}
        named = Endpoint(url=server.root, deployment="mine", **common, **version)
        # Without one, the model's name is the deployment's; the newer addresses have no version.
        for endpoint in (
            named,
            Endpoint(url=f"{server.root}/", **common, **version),
            Endpoint(url=f"{server.root}/openai/v1/", **common),
        ):
            assert await answer_of(endpoint) == "ok"
    assert server.paths == [
        "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        "/openai/deployments/m/chat/completions?api-version=2024-10-21",
        "/openai/v1/chat/completions",
    ]
    assert [headers.get("api-key") for headers in server.headers] == ["sk-1", "sk-1", None]
    assert server.headers[2]["authorization"] == "Bearer sk-1"


async def test_azure_without_version_or_credentials_says_what_is_missing() -> None:
    with pytest.raises(InvalidInputError, match=r"azure\.api_version"):
        await answer_of(Endpoint(url="http://127.0.0.1:1", sender="azure", key=Secret("k")))
    with pytest.raises(InvalidInputError, match="AZURE_OPENAI_API_KEY"):
        await answer_of(Endpoint(url="http://127.0.0.1:1", sender="azure", api_version="1"))


async def test_a_token_of_entra_replaces_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    scopes: list[str] = []

    def provider(_credential: object, scope: str) -> Any:
        scopes.append(scope)
        return lambda: "token-1"

    found: dict[str, Any] = {
        "azure": ModuleType("azure"),
        "azure.identity": SimpleNamespace(
            DefaultAzureCredential=object, get_bearer_token_provider=provider
        ),
    }
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        endpoint = Endpoint(url=server.root, sender="azure", api_version="1", entra=True)
        for name in found:
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtraError, match="needs the extra azure"):
            await answer_of(endpoint)
        for name, module in found.items():
            monkeypatch.setitem(sys.modules, name, module)
        assert await answer_of(endpoint) == "ok"
    assert server.headers[0]["authorization"] == "Bearer token-1"
    assert "api-key" not in server.headers[0]
    assert scopes == ["https://cognitiveservices.azure.com/.default"]


async def test_organization_and_project_come_from_the_environment_and_no_key_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-server")
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        assert await answer_of(Endpoint(url=server.url, sender="openai")) == "ok"
    sent = server.headers[0]
    assert (sent["openai-organization"], sent["openai-project"]) == ("org-1", "proj-1")
    assert "authorization" not in sent


async def test_proxies_come_from_the_environment_or_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        given = Endpoint(url="http://one.invalid/v1", sender="openai", proxy=server.root)
        assert await answer_of(given) == "ok"
        monkeypatch.setenv("HTTP_PROXY", server.root)
        assert await answer_of(Endpoint(url="http://two.invalid/v1", sender="openai")) == "ok"
    assert server.paths == [f"http://{name}.invalid/v1/chat/completions" for name in ("one", "two")]


async def test_a_key_exchanged_in_its_file_and_texts_that_utf_8_cannot_encode(
    tmp_path: Path,
) -> None:
    right = "old-key"

    def step(number: int, body: llm.Body) -> llm.Reply:
        sent = server.headers[number - 1]["authorization"]
        said = llm.completion(llm.prompt_of(body))
        return said if sent == f"Bearer {right}" else llm.error(401, f"bad {sent}")

    file = tmp_path / "key"
    file.write_text("old-key")
    key = read_secret({"LLM_KEY_FILE": str(file)}, "LLM_KEY")
    odd = type(REQUEST)(messages=[{"role": "user", "content": "a\ud800b"}], max_tokens=1)
    async with llm.ScriptedLlm(step) as server:
        endpoint = Endpoint(url=server.url, sender="openai", key=key)
        client = ChatClient(ChatSettings(endpoint=endpoint, model="m"), None, World().tools())
        assert (await client.ask(odd)).reply.content == "a?b"
        right = "new-key"
        file.write_text("new-key")
        assert (await client.ask(odd)).reply.content == "a?b"
        await client.close()
    assert dict(client.statistics.failures) == {}


async def test_a_cancelled_call_leaves_its_connection() -> None:
    async with llm.ScriptedLlm(llm.always(llm.Reply(delay=60))) as server:
        client = client_of(server, sender="openai")
        asked = asyncio.ensure_future(client.ask(REQUEST))
        while not server.in_flight:
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        while not server.abandoned:
            await asyncio.sleep(0)
        await client.close()
    assert client.statistics.failures == {}


async def test_a_missing_or_old_package_is_said_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import openai

    endpoint = Endpoint(url="http://127.0.0.1:1/v1", sender="openai")
    sender: Sender = OpenAISender(endpoint)
    monkeypatch.delattr(openai.AsyncOpenAI, "decisions")
    with pytest.raises(InvalidInputError, match=r"pip install 'openai>=3\.54'"):
        await sender.post("decisions", {"model": "m", "input": "", "questions": []})
    with pytest.raises(CallFailedError, match="does not call /tokenize"):
        await sender.post("/tokenize", {})
    await sender.close()
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match="pip install 'openai>=2'"):
        await OpenAISender(endpoint).get("models")


@pytest.mark.parametrize(("sender", "ok"), [("openai", True), ("azure", None)])
async def test_doctor_looks_for_the_model_where_models_are_listed(
    sender: SenderName, ok: bool | None
) -> None:
    async with llm.ScriptedLlm(model="m") as server:
        judge = LlmJudge("llm", client_of(server, sender=sender))
        checks = {check.name: check.ok for check in await check_endpoint(judge)}
        await judge.close()
    assert checks["model"] is ok
    assert checks["answer"]
    assert checks["verdict"]
    assert server.paths[0] == "/v1/models" if ok else "/deployments/" in server.paths[0]


@pytest.mark.parametrize(
    ("url", "whose"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://lab.openai.azure.com", "azure"),
        ("https://lab.services.ai.azure.com/openai/v1", "azure"),
        ("https://api.openai.com.evil.example/v1", ""),
        ("http://notapi.openai.com/v1", ""),
        ("http://localhost:8000/v1", ""),
        ("nonsense", ""),
    ],
)
def test_whose_service_an_address_is(url: str, whose: str) -> None:
    assert hosted_by(url) == whose
