"""The vLLM supervisor against a stand-in that says what it was called with, and misbehaves."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm, scripted_vllm
from support.messages import expected_message
from support.threads import PATIENCE, until

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError, UnavailableError
from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.vllm import VllmRun, VllmServer, vllm_server
from hallujudge.judge_service.llm.vllm_serving import AddedArguments
from hallujudge.judge_service.settings.judge_settings import (
    JudgeKeys,
    JudgeSettings,
    LlmSettings,
    VllmSettings,
)
from hallujudge.metrics.framework.claims import Triplet

STAND_IN = (sys.executable, str(Path(scripted_vllm.__file__)))
ITEM = JudgeRequestItem(
    id="1",
    claims=(Triplet("man", "riding", "horse"), Triplet("dog", "on", "horse")),
    reference_triplets=(Triplet("man", "riding", "horse"),),
)


class Supervised:
    """A supervisor of the stand-in, with what it told."""

    def __init__(self, folder: Path, environ: dict[str, str], **options: Any) -> None:
        self.told: list[str] = []
        names = VllmSettings.__dataclass_fields__.keys() & options.keys()
        own = {"socket": 0, **{name: options.pop(name) for name in names}}
        self.server = VllmServer(
            VllmRun(
                serving=VllmSettings(model="some/model", **own),
                data_folder=folder / "data",
                executable=options.pop("executable", STAND_IN),
                backoff_seconds=options.pop("backoff_seconds", 0.05),
                poll_seconds=0.05,
                startup_seconds=options.pop("startup_seconds", PATIENCE),
                **options,
            ),
            environ=dict(os.environ) | environ,
            progress=self.told.append,
        )

    async def __aenter__(self) -> Supervised:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    @property
    def log(self) -> str:
        return self.server.log_path.read_text()


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A zombie whose new parent hasn't looked yet is dead too.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_it_starts_waits_for_health_serves_and_stops(tmp_path: Path) -> None:
    async with Supervised(
        tmp_path,
        {"STAND_IN_READY": "0.4"},
        tensor_parallel_size=2,
        max_model_len=4096,
        added=AddedArguments(others=("--dtype", "float32")),
    ) as run:
        process = run.server.pid
        assert process is not None
        settings = ChatSettings(endpoint=run.server.endpoint, model="some/model", dialect="vllm")
        judge = LlmJudge("llm", ChatClient(settings))
        await judge.prepare()
        (judged,) = await judge.judge([ITEM])
        await judge.close()
        assert [v.verdict.value for v in judged.verdicts] == ["supported", "not_supported"]
        assert judge.identity.server == "vllm 0.32.0"
        key = run.server.endpoint.key.reveal()
        assert len(key) > 30
    assert not lives(process)
    called = '["serve", "some/model", "--host", "127.0.0.1", "--port", '
    assert called in run.log
    assert expected_message("judge_service.llm.vllm:tensor-parallel-size-enable-prefix-caching-enable") in run.log  # fmt: skip # noqa: E501
    assert "disable_any_whitespace" in run.log
    assert expected_message("judge_service.llm.vllm:dtype-float") in run.log
    assert key not in run.log
    assert expected_message("judge_service.llm.vllm:starts-its-log-is") in run.told[0]
    assert "healthy after" in run.told[-1]


async def test_the_judges_of_a_server_with_its_own_vllm(tmp_path: Path) -> None:
    settings = JudgeSettings(
        vllm=VllmSettings(
            model="some/model",
            command=shlex.join(STAND_IN),
            arguments="--dtype 'a b'",
            quantization="fp8",
            batch_invariant=1,
        ),
        llm=LlmSettings(timeout_seconds=7),
    )
    told: list[str] = []
    environ = dict(os.environ)
    server = vllm_server(settings, environ=environ, data_folder=tmp_path, progress=told.append)
    await server.start()
    factory = JudgeFactory(settings, JudgeKeys(), server.endpoint)
    assert factory.llm().client.settings.endpoint.timeout_seconds == 7
    await factory.prepare()
    (judged,) = await factory.judge("llm").judge([ITEM])
    assert judged.verdicts[0].verdict.value == "supported"
    assert str(factory.llm().identity) == "some/model (vllm 0.32.0)"
    log = (tmp_path / "vllm.log").read_text()
    assert '"--max-model-len", "auto", "--quantization", "fp8", ' in log
    # vLLM's key guards a part of its routes only, so no other user may reach its socket.
    socket = Path(server.endpoint.socket)
    assert f'["serve", "some/model", "--uds", "{socket}", ' in log
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert '"--dtype", "a b"]' in log
    given = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
    assert {b"VLLM_BATCH_INVARIANT=1", b"HF_HUB_OFFLINE=1"} <= set(given)
    await factory.close()
    await server.stop()
    assert not socket.parent.exists()
    both = JudgeSettings(vllm=VllmSettings(model="m"), llm=LlmSettings(url="http://127.0.0.1:1/v1"))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.llm.vllm:vllm-is-m-which-starts-server"),
    ):
        vllm_server(both, environ=environ, data_folder=tmp_path, progress=told.append)


async def test_it_is_started_again_with_growing_waits_until_it_works(tmp_path: Path) -> None:
    environ = {"STAND_IN_FAIL": "2", "STAND_IN_COUNT": str(tmp_path / "count")}
    async with Supervised(tmp_path, environ) as run:
        assert run.server.starts == 3
    again = [line for line in run.told if "starting it again" in line]
    assert [line.split("vllm ")[1].split(" while")[0] for line in again] == [
        "ended with status 3"
    ] * 2


async def test_it_is_given_up_with_the_end_of_its_log(tmp_path: Path) -> None:
    environ = {"STAND_IN_FAIL": "99", "STAND_IN_COUNT": str(tmp_path / "count")}
    run = Supervised(tmp_path, environ, restarts=2)
    with pytest.raises(
        UnavailableError,
        match=expected_message("judge_service.llm.vllm:ended-with-status-times-out-of-memory"),
    ):
        await run.server.start()
    assert (tmp_path / "count").read_text() == "xxx"


@pytest.mark.parametrize("socket", [0, 1])
async def test_one_that_dies_while_it_serves_comes_back_at_the_same_address(
    tmp_path: Path, socket: int
) -> None:
    async with Supervised(tmp_path, {}, socket=socket) as run:
        address, process = run.server.endpoint, run.server.pid
        assert process is not None
        os.kill(process, signal.SIGKILL)
        await until(lambda: sum("healthy" in line for line in run.told) == 2)
        assert run.server.endpoint == address
        settings = ChatSettings(
            endpoint=run.server.endpoint, model="m", retry=RetryPolicy(attempts=1, outage_seconds=0)
        )
        judge = LlmJudge("llm", ChatClient(settings))
        (judged,) = await judge.judge([ITEM])
        await judge.close()
        assert judged.verdicts[0].verdict.value == "supported"
    assert any("ended with status -9" in line for line in run.told)


async def test_one_that_hangs_is_killed_and_started_again(tmp_path: Path) -> None:
    environ = {"STAND_IN_CHILD": str(tmp_path / "child")}
    quick = {"probe_seconds": 0.2, "failed_probes": 2, "stop_seconds": 0.5}
    async with Supervised(tmp_path, environ, **quick) as run:
        first = run.server.pid
        assert first is not None
        child = int((tmp_path / "child").read_text())
        os.killpg(first, signal.SIGSTOP)
        await until(lambda: sum("healthy" in line for line in run.told) == 2)
        assert run.server.pid != first
        await until(lambda: not lives(first) and not lives(child))
    (line,) = [line for line in run.told if "did not answer 2 looks at its health" in line]
    assert "starting it again" in line


async def test_one_that_answers_its_probes_is_left_alone(tmp_path: Path) -> None:
    paths = tmp_path / "paths"
    environ = {"STAND_IN_PATHS": str(paths)}
    async with Supervised(tmp_path, environ, probe_seconds=1, failed_probes=2) as run:
        await until(lambda: paths.exists() and paths.read_text().count("/health") > 3)
        assert run.server.starts == 1


def impatient(run: Supervised) -> LlmJudge:
    """Return a judge that makes each call once, and waits for nothing."""
    settings = ChatSettings(
        endpoint=run.server.endpoint,
        model="some/model",
        dialect="vllm",
        retry=RetryPolicy(attempts=1, outage_seconds=0, give_up_after=0.1),
    )
    return LlmJudge("llm", ChatClient(settings), server="vllm")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_claims_wait_while_it_is_started_again(tmp_path: Path, number: int) -> None:
    environ = {"STAND_IN_READY": "1"}
    async with Supervised(tmp_path, environ, probe_seconds=0.2, failed_probes=2) as run:
        judge = impatient(run)
        await judge.judge([ITEM])
        assert run.server.pid is not None
        os.killpg(run.server.pid, number)
        judged = await judge.fresh().judge([ITEM])
        assert judge.client.statistics.failures.total() <= 2, "calls that were under way"
        await judge.close()
    assert [v.verdict.value for v in judged[0].verdicts] == ["supported", "not_supported"]
    assert run.server.starts == 2


async def test_a_claim_that_ends_it_again_and_again_is_unscored(tmp_path: Path) -> None:
    async with Supervised(tmp_path, {"STAND_IN_FATAL": '"dog"'}, probe_seconds=0.2) as run:
        judge = impatient(run)
        (judged,) = await judge.judge([ITEM])
        await judge.close()
        # The claim is given up at its third end, which the supervisor may see a moment later.
        await until(lambda: run.server.starts == 4)
    good, fatal = judged.verdicts
    assert good.verdict.value == "supported"
    assert fatal.reason == "JUDGE_UNREACHABLE"
    assert "3 times" in fatal.detail


async def test_one_that_is_given_up_ends_runs_at_once(tmp_path: Path) -> None:
    async with Supervised(tmp_path, broken_later(tmp_path), restarts=1) as run:
        (tmp_path / "count").unlink()
        assert run.server.pid is not None
        os.killpg(run.server.pid, signal.SIGKILL)
        judge = impatient(run)
        with pytest.raises(UnavailableError, match="is given up after 1 restart"):
            await judge.judge([ITEM])
        await judge.close()


def broken_later(folder: Path) -> dict[str, str]:
    """Return the environment of a stand-in that fails once its count of starts is deleted."""
    (folder / "count").write_text("x" * 9)
    return {"STAND_IN_FAIL": "9", "STAND_IN_COUNT": str(folder / "count")}


async def test_long_starts_are_no_time_of_health(tmp_path: Path) -> None:
    """A start takes longer than the time of health after which restarts are forgotten."""
    async with Supervised(tmp_path, broken_later(tmp_path), restarts=2, stable_seconds=0.01) as run:
        (tmp_path / "count").unlink()
        assert run.server.pid is not None
        os.killpg(run.server.pid, signal.SIGKILL)
        await until(lambda: "given up after 2 restarts" in run.told[-1] or run.server.starts > 4)
        assert run.server.starts == 3


async def test_stopping_ends_what_it_started_and_nothing_else(tmp_path: Path) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "3600")
    child_file = tmp_path / "child"
    environ = {"STAND_IN_CHILD": str(child_file), "STAND_IN_STUBBORN": "1"}
    async with Supervised(tmp_path, environ, stop_seconds=0.5) as run:
        process = run.server.pid
        assert process is not None
        child = int(child_file.read_text())
        assert lives(child)
    assert not lives(process)
    await until(lambda: not lives(child))
    assert bystander.returncode is None
    bystander.kill()
    await bystander.wait()


async def test_one_that_never_gets_healthy_is_stopped(tmp_path: Path) -> None:
    run = Supervised(tmp_path, {"STAND_IN_READY": "60"}, startup_seconds=1.0, restarts=0)
    with pytest.raises(
        UnavailableError,
        match=expected_message("judge_service.llm.vllm:not-healthy-after-its-log-is"),
    ):
        await run.server.start()
    assert not run.server.running


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    run = Supervised(tmp_path, {}, executable=("no-such-program",))
    with pytest.raises(
        MissingExtraError, match=expected_message("judge_service.errors:needs-the-extra-vllm")
    ):
        await run.server.start()


def test_a_model_cannot_be_an_option(tmp_path: Path) -> None:
    serving = VllmSettings(model="--trust-remote-code")
    settings = VllmRun(serving=serving, data_folder=tmp_path)
    with pytest.raises(InvalidInputError, match="begins with a dash"):
        settings.arguments(1)


async def test_the_doctor_sees_what_a_server_can_do() -> None:
    def ignores(number: int, body: scripted_llm.Body) -> scripted_llm.Reply:
        if "France" in scripted_llm.prompt_of(body):
            return scripted_llm.completion("Paris")
        return scripted_llm.completion("relation" if number % 2 else "object2")

    def good(_number: int, body: scripted_llm.Body) -> scripted_llm.Reply:
        if "France" in scripted_llm.prompt_of(body):
            return scripted_llm.completion('{"verdict":"zyzzyva"}')
        top = [{"token": "relation", "logprob": -0.1}, {"token": "supported", "logprob": -3}]
        logprobs = {"content": [{**top[0], "top_logprobs": top}]}
        return scripted_llm.completion("relation", logprobs=logprobs)

    expected = {
        good: {"model": True, "answer": True, "verdict": True, "structured output": True,
               "log-probabilities": True, "extraction": True, "repeatability": True},
        ignores: {"model": True, "answer": True, "verdict": True, "structured output": False,
                  "settings": None, "log-probabilities": None, "extraction": True,
                  "repeatability": False},
        scripted_llm.always(scripted_llm.error(401)): {"model": True, "answer": False},
    }  # fmt: skip
    for step, checks in expected.items():
        async with scripted_llm.ScriptedLlm(step) as server:
            from hallujudge.judge_service.llm.http import Endpoint

            settings = ChatSettings(endpoint=Endpoint(url=server.url), model="m")
            judge = LlmJudge("llm", ChatClient(settings))
            seen = {check.name: check.ok for check in await check_endpoint(judge)}
            await judge.close()
        assert seen == checks
