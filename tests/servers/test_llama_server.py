"""The judge at two llama-servers: an older one as a program, and a newer one from a package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import real_servers as real
from support import scripted_llm as llm
from support.extraction_schemas import schemas
from support.tri_he_samples import report_of

pytestmark = pytest.mark.timeout(1800)

PROMPTS = ("Which city is the capital of France?", "Name a colour.", "Is snow white?", "Who?")
VERSIONS = {"program": "llama-server 571d0d5", "package": "llama-server b11549 (xllamacpp)"}


@pytest.fixture(scope="module", params=VERSIONS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[real.RealServer]:
    made_by, programs = real.environment("transformers"), real.environment("llama")
    folder, port = tmp_path_factory.mktemp("llama"), real.free_port()
    model = real.tiny_llama(made_by / "python", folder / "model")
    file = real.tiny_gguf(programs / "python", model, folder / "model.gguf")
    commands = {
        "program": (
            *(programs / "llama-server-vulkan", "-m", file, "--alias", "tiny"),
            *("-c", "16384", "-np", "2", "-t", "1", "--port", str(port)),
        ),
        "package": (programs / "python", real.SCRIPTS / "serve_gguf.py", file, str(port)),
    }
    with real.started(commands[request.param], folder / "log", port) as started:
        yield started


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return VERSIONS[request.node.callspec.params["server"]]


def test_verdicts_are_those_of_own_requests(
    server: real.RealServer, name: str, tmp_path: Path
) -> None:
    found = real.scored(server, tmp_path, "--dialect", "plain")
    unscored = [claim for claim in found.claims if claim["verdict"] == "unscored"]
    margins = [claim["margin"] for claim in found.claims if claim["verdict"] != "unscored"]
    absent = sum(margin is None for margin in margins)
    real.figure(
        name,
        f"{found.agreement}, {len(unscored)} unscored; choices enforced; "
        f"{absent} of {len(margins)} margins absent",
    )
    assert found.equal == len(found.claims) == 24
    # Random weights may fill JSON with white space, and llama.cpp may not read its own reply.
    assert found.reasons <= {"REPLY_TRUNCATED", "JUDGE_BAD_REPLY"}
    assert len(unscored) < 24
    # Random weights list no choice among the likeliest tokens, so that nothing is known of others.
    assert 0.0 not in margins
    assert all((claim["margin"] is None) is (claim["score"] is None) for claim in found.claims)
    assert found.report["judging"][0]["choice_share"]["mean"] < 0.5
    assert found.report["signature"].count("json_schema") == 1


def test_doctor_finds_the_dialect_and_that_choices_are_enforced(server: real.RealServer) -> None:
    found = real.doctor(server)
    assert found["dialect"] == "ok found by itself: llm.dialect=plain llm.constraint=json_schema"
    assert found["answer"].startswith("ok")
    assert found["structured output"] == "ok enforced"
    assert found["extraction"] == "ok the schemas of LLM extraction are accepted"
    # Its log-probabilities are those before the constraint.
    assert "choice_share 0.0" in found["log-probabilities"]


def test_doctor_names_what_to_set_in_place_of_vllms_dialect(
    server: real.RealServer, name: str
) -> None:
    found = real.doctor(server, "--dialect", "vllm")
    real.figure(name, f"doctor --dialect vllm: {found['settings']}")
    assert found["settings"] == (
        "FAILED set llm.dialect=plain llm.constraint=json_schema; the server then enforces the "
        "choices"
    )


def test_log_probabilities_are_those_before_the_constraint(server: real.RealServer) -> None:
    schema = {"type": "string", "enum": ["zyzzyva"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    # A free reply may be one that it can't read, at which it fails.
    asked = {"logprobs": True, "top_logprobs": 8}
    replies = ((each, server.chat(each, **asked)) for each in PROMPTS)
    prompt, free = next(pair for pair in replies if pair[1].status == 200)
    held = server.chat(prompt, **asked, response_format=form, max_tokens=32)
    assert held.status == 200
    first, other = free.logprobs[0], held.logprobs[0]
    assert {each["token"] for each in first["top_logprobs"]} == {
        each["token"] for each in other["top_logprobs"]
    }
    assert all(-9999 < each["logprob"] <= 0 for each in other["top_logprobs"])


def test_what_it_refuses_is_what_the_scripted_server_says(server: real.RealServer) -> None:
    assert server.chat("word " * 9000).is_like(llm.TOO_LONG_AT_LLAMA)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    parts = [{"type": "text", "text": "What is seen?"}, image]
    shown = server.chat(messages=[{"role": "user", "content": parts}])
    assert shown.is_like(llm.NO_IMAGES_AT_LLAMA)


def test_a_prompt_that_is_too_long_is_named(server: real.RealServer, tmp_path: Path) -> None:
    scene = [[f"thing {n}", "beside", "other thing"] for n in range(2000)]
    done = real.judged(tmp_path, *server.flags, scene=scene)
    assert done.returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"NO_VERDICTS": 1}
    assert "PROMPT_TOO_LONG" in done.stdout + done.stderr


def test_another_model_is_not_taken_for_the_one_that_was_asked(
    server: real.RealServer, tmp_path: Path
) -> None:
    done = real.judged(tmp_path, *server.asked_for("gpt-x"))
    assert done.returncode == 2
    assert "asked for 'gpt-x', the reply is from 'tiny'" in done.stderr


def test_scoring_ends_at_once_though_the_server_answers_chats(
    server: real.RealServer, name: str, tmp_path: Path
) -> None:
    cache = ("--verdict-cache", str(tmp_path / "verdicts.sqlite"))
    assert real.judged(tmp_path, *server.flags, *cache).returncode == 0
    done = real.judged(tmp_path, *server.flags, *cache, "--llm-api", "scoring")
    real.figure(name, f"--llm-api scoring: {done.stderr.strip().splitlines()[-1][:200]}")
    assert done.returncode == 2
    assert "which vLLM has for models that generate text" in done.stderr


def test_asking_a_model_that_reads_text_only_about_an_image_ends_at_once(
    server: real.RealServer, tmp_path: Path
) -> None:
    done = real.asked(server, tmp_path)
    assert done.returncode == 3
    assert "1 without an answer: MODEL_REQUEST_REFUSED" in done.stderr
    assert "image input is not supported" in done.stderr


def test_an_older_release_refuses_classes_of_characters(server: real.RealServer, name: str) -> None:
    schema = {"type": "string", "pattern": r'^[^\s"\\]+$'}
    form = {"type": "json_schema", "json_schema": {"name": "word", "schema": schema}}
    reply = server.chat(response_format=form)
    assert reply.is_like(llm.UNKNOWN_ESCAPE_AT_LLAMA) is (name == VERSIONS["program"])


async def test_schemas_of_extraction_are_taken(server: real.RealServer) -> None:
    for name, schema in (await schemas()).items():
        form = {"name": name, "schema": json.loads(schema)}
        form = {"type": "json_schema", "json_schema": form}
        reply = server.chat(response_format=form, max_tokens=16)
        # A reply that is cut off may be one that it can't read.
        assert reply.status == 200 or reply.is_like(llm.UNREAD_AT_LLAMA), reply.text
