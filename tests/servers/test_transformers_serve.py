"""The judge at `transformers serve`, with a model that answers in one word by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import real_servers as real
from support import scripted_llm as llm

pytestmark = pytest.mark.timeout(1800)

NAME = "transformers serve 5.24.0"


@pytest.fixture(scope="module", params=["supported", ""], ids=["one-word", "random"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[real.RealServer]:
    programs = real.environment("transformers")
    folder, port = tmp_path_factory.mktemp("transformers"), real.free_port()
    model = real.tiny_llama(programs / "python", folder / "model", says=request.param)
    command = (
        *(programs / "transformers", "serve", model, "--device", "cpu"),
        *("--host", "127.0.0.1", "--port", str(port)),
    )
    with real.started(command, folder / "log", port, model=str(model)) as started:
        yield started


@pytest.fixture
def says(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["server"])


def test_verdicts_are_those_of_own_requests(
    server: real.RealServer, says: str, tmp_path: Path
) -> None:
    found = real.scored(server, tmp_path, "--dialect", "plain")
    verdicts = {claim["verdict"] for claim in found.claims}
    which = "a model of one word" if says else "random weights"
    real.figure(NAME, f"{which}: {found.agreement}, verdicts {sorted(verdicts)}; no constraints")
    assert found.equal == len(found.claims) == 24
    if says:
        assert verdicts == {says}
        assert found.returncode == 0
    else:  # nonsense is never a verdict
        assert verdicts == {"unscored"}
        assert found.reasons <= {"REPLY_OUT_OF_CHOICE", "REPLY_TRUNCATED"}
    assert {claim.get("margin") for claim in found.claims} == {None}
    assert "choice_share" not in found.said


def test_doctor_says_that_it_ignores_constraints(server: real.RealServer) -> None:
    found = real.doctor(server)
    assert found["dialect"] == "ok found by itself: llm.dialect=plain llm.constraint=json_schema"
    assert found["answer"].startswith("ok")
    assert found["structured output"].startswith("FAILED the server accepts the constraint and")
    assert found["log-probabilities"].startswith("absent not reported")
    assert found["repeatability"].startswith("ok")
    # They are shown in the dialect that was found.
    assert "Unexpected fields" not in found["pictures"]


def test_doctor_names_what_to_set_in_place_of_vllms_dialect(server: real.RealServer) -> None:
    found = real.doctor(server, "--dialect", "vllm")
    real.figure(NAME, f"doctor --dialect vllm: {found['settings']}")
    assert found["answer"].startswith("FAILED")
    assert found["settings"] == (
        "FAILED set llm.dialect=plain llm.constraint=json_schema; the server then answers, but "
        "does not enforce the choices"
    )


def test_vllms_parameters_are_refused_as_the_scripted_server_does(
    server: real.RealServer,
) -> None:
    reply = server.chat(top_k=0, min_p=0.0, repetition_penalty=1.0)
    assert reply.status == llm.UNKNOWN_FIELDS_AT_TRANSFORMERS.status
    assert "Unexpected fields in the request: {" in reply.text


def test_an_unknown_model_is_refused(server: real.RealServer) -> None:
    reply = server.chat(model="nope")
    assert reply.status == 400
    assert "Server is pinned to" in reply.text


def test_a_prompt_that_is_too_long_is_answered_all_the_same(server: real.RealServer) -> None:
    assert server.chat("word " * 5000, max_tokens=2).status == 200
