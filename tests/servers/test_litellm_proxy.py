"""The judge at LiteLLM's proxy, which stands before a real llama-server and a scripted one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import real_servers as real
from support import scripted_llm as llm

pytestmark = pytest.mark.timeout(1800)

NAME = "LiteLLM 1.106.12"
KEY = "sk-of-the-proxy-1234"
FAILS = {"too-long": 400, "quota": 429, "filter": 400, "busy": 429}
CONFIG = """
model_list:
{models}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false, num_retries: 0}}
router_settings: {{disable_cooldowns: true, num_retries: 0}}
"""
MODEL = (
    "- {{model_name: {name}, litellm_params: {{model: openai/{name}, api_base: {url}, "
    "api_key: none}}}}"
)
WITHOUT_SCHEMAS = "gpt-4"
"""A name of whose models LiteLLM knows that they take no schema."""


def failing(_number: int, body: llm.Body) -> llm.Reply:
    """Fail as OpenAI and Azure do, by the model's name."""
    return {
        "too-long": llm.error(
            400, "This model's maximum context length is 9 tokens", "context_length_exceeded"
        ),
        "quota": llm.error(429, "You exceeded your current quota.", "insufficient_quota"),
        "filter": llm.error(
            400,
            "The response was filtered due to the prompt triggering Azure OpenAI's content "
            "management policy. Please modify your prompt and retry.",
            "content_filter",
        ),
        "busy": llm.error(429, "Rate limit reached", "rate_limit_exceeded", **{"Retry-After": "1"}),
    }[body["model"]]


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.RealServer]:
    made_by, programs = real.environment("transformers"), real.environment("llama")
    folder, port = tmp_path_factory.mktemp("llama"), real.free_port()
    model = real.tiny_llama(made_by / "python", folder / "model")
    file = real.tiny_gguf(programs / "python", model, folder / "model.gguf")
    command = (programs / "python", real.SCRIPTS / "serve_gguf.py", file, str(port))
    with real.started(command, folder / "log", port) as started:
        yield started


@pytest.fixture(scope="module")
def server(
    backend: real.RealServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[real.RealServer]:
    programs = real.environment("litellm")
    folder, port = tmp_path_factory.mktemp("litellm"), real.free_port()
    scripted = llm.ScriptedLlm(failing)
    stop = scripted.in_thread()
    addresses = dict.fromkeys(("tiny", WITHOUT_SCHEMAS), backend.url) | {
        **dict.fromkeys(FAILS, scripted.url)
    }
    models = "\n".join(MODEL.format(name=name, url=url) for name, url in addresses.items())
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(models=models, key=KEY))
    command = (
        *(programs / "litellm", "--config", config, "--host", "127.0.0.1"),
        *("--port", str(port), "--telemetry", "False"),
    )
    try:
        with real.started(
            command, folder / "log", port, key=KEY, LITELLM_LOCAL_MODEL_COST_MAP="True"
        ) as started:
            yield started
    finally:
        stop()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_API_KEY", KEY)


def run(folder: Path, server: real.RealServer, model: str, *more: str) -> tuple[int, str]:
    """Score claims; return the exit code and what was said."""
    folder.mkdir(exist_ok=True)
    done = real.judged(folder, *server.asked_for(model), "--give-up-after", "20", *more)
    return done.returncode, done.stdout + done.stderr


def test_verdicts_are_those_of_own_requests(server: real.RealServer, tmp_path: Path) -> None:
    found = real.scored(server, tmp_path, "--dialect", "plain")
    unscored = sum(claim["verdict"] == "unscored" for claim in found.claims)
    real.figure(f"{NAME} before llama-server", f"{found.agreement}, {unscored} unscored")
    assert found.equal == len(found.claims) == 24
    # llama-server lists none of the choices for random weights.
    assert 0.0 not in [c["margin"] for c in found.claims]


def test_doctor_finds_the_dialect(server: real.RealServer) -> None:
    found = real.doctor(server)
    assert found["dialect"] == "ok found by itself: llm.dialect=plain llm.constraint=json_schema"
    assert found["structured output"] == "ok enforced"
    assert found["extraction"].startswith("ok")


def test_doctor_names_what_to_set_in_place_of_vllms_dialect(server: real.RealServer) -> None:
    found = real.doctor(server, "--dialect", "vllm")
    real.figure(f"{NAME} before llama-server", f"doctor --dialect vllm: {found['settings']}")
    assert found["settings"].startswith("FAILED set llm.dialect=plain llm.constraint=json_schema")


def test_a_model_that_takes_no_schema_is_asked_without_one(
    server: real.RealServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = replace(server, model=WITHOUT_SCHEMAS)
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string"}}}
    assert plain.chat(response_format=form).is_like(llm.NO_SCHEMAS_AT_LITELLM)
    found = real.scored(plain, tmp_path, "--dialect", "plain", "--constraint", "none")
    real.figure(f"{NAME}, a model that refuses schemas", f"{found.agreement}; asked without one")
    assert found.equal == len(found.claims) == 24
    assert "constraint=none" in found.report["signature"]
    # Nothing but the choices is a verdict, and random weights write none.
    assert found.reasons <= {"REPLY_OUT_OF_CHOICE", "REPLY_TRUNCATED", "JUDGE_BAD_REPLY"}
    assert "refuses the constraint json_schema and is called without one" in caplog.text
    assert real.doctor(plain)["dialect"].startswith(
        "ok found by itself: llm.dialect=plain llm.constraint=none"
    )


def test_vllms_parameters_are_passed_on(server: real.RealServer) -> None:
    reply = server.chat(top_k=0, min_p=0.0, structured_outputs={"choice": ["zyzzyva"]})
    # llama-server ignores what is vLLM's.
    assert reply.status == 200 or reply.is_like(llm.UNREAD_AT_LLAMA)


def test_a_wrong_key_and_an_unknown_model_end_the_run_at_once(
    server: real.RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.chat(model="nope/x").is_like(llm.UNKNOWN_MODEL_AT_LITELLM)
    returncode, said = run(tmp_path, server, "nope/x")
    assert returncode == 2
    assert "Invalid model name passed in model=nope/x" in said
    assert server.post("chat/completions", {}, key="sk-wrong").is_like(llm.REJECTED_KEY_AT_LITELLM)
    monkeypatch.setenv("HALLUJUDGE_LLM_API_KEY", "sk-wrong")
    returncode, said = run(tmp_path / "other", server, "tiny")
    assert returncode == 2
    assert "No connected db." in said


@pytest.mark.parametrize(
    ("model", "reason"),
    [("too-long", "PROMPT_TOO_LONG"), ("quota", "JUDGE_QUOTA_EXHAUSTED"), ("filter", "JUDGE_REFU")],
)
def test_what_it_makes_of_statuses_is_read_by_words(
    server: real.RealServer, tmp_path: Path, model: str, reason: str
) -> None:
    returncode, said = run(tmp_path, server, model)
    reply = server.chat(model=model)
    error = json.loads(reply.text)["error"]
    real.figure(NAME, f"{model}: HTTP {reply.status}, type {error['type']}, code {error['code']}")
    assert reply.status == FAILS[model]
    assert returncode == 3
    assert reason in said


def test_the_wait_that_a_provider_asks_for_is_handed_on_by_another_name(
    server: real.RealServer,
) -> None:
    reply = server.chat(model="busy")
    assert reply.status == 429
    waits = map(reply.headers.get, ("llm_provider-retry-after", "retry-after"))
    assert "1" in waits


def test_decisions_are_not_there(server: real.RealServer, tmp_path: Path) -> None:
    returncode, said = run(tmp_path, server, "tiny", "--llm-api", "decisions")
    assert returncode == 2
    assert "POST decisions" in said
