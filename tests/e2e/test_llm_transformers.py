"""The judge against a real server process: transformers' own, with a tiny Llama made at random.

Such a model writes nonsense, and this server ignores every constraint: what counts is that real
HTTP, a real chat template and a real tokenizer work, and that nonsense is never a verdict.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import make_tiny_llama

from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.metrics.framework.claims import Triplet

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).with_name("transformers")
MAKE_MODEL = Path(make_tiny_llama.__file__)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    for package in ("torch", "transformers", "fastapi", "uvicorn"):
        pytest.importorskip(package, reason="pip install 'transformers[serving]' torch")
    if not COMMAND.exists():
        pytest.skip("no transformers command beside this python")
    folder = str(tmp_path_factory.mktemp("llama"))
    subprocess.run([sys.executable, MAKE_MODEL, folder], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    arguments = ["serve", folder, "--device", "cpu", "--host", "127.0.0.1", "--port", port]
    process = subprocess.Popen(
        [str(COMMAND), *arguments],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(int(port), process)
        yield f"http://127.0.0.1:{port}/v1", folder
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        if process.poll() is not None:
            pytest.fail(f"transformers serve ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    pytest.fail("transformers serve was not up after two minutes")


async def test_nonsense_from_a_real_server_is_never_a_verdict(server: tuple[str, str]) -> None:
    url, model = server
    settings = ChatSettings(endpoint=Endpoint(url=url), model=model, dialect="plain")
    judge = LlmJudge("llm", ChatClient(settings))
    claims = tuple(Triplet("man", "riding", name) for name in ("horse", "bike", "<|eot_id|>x"))
    item = JudgeRequestItem(id="1", claims=claims, reference_triplets=(claims[0],))
    (judged,) = await judge.judge([item])
    checks = {check.name: check.ok for check in await check_endpoint(judge)}
    await judge.close()
    await asyncio.sleep(0)
    assert {verdict.verdict.value for verdict in judged.verdicts} == {"unscored"}
    assert {verdict.reason for verdict in judged.verdicts} <= {
        "REPLY_OUT_OF_CHOICE",
        "REPLY_TRUNCATED",
    }
    usage = judge.client.statistics.usage
    assert usage.prompt_tokens > 100 * usage.calls
    assert usage.completion_tokens > 0
    assert checks["answer"] is True
    assert checks["repeatability"] is True
    assert checks["structured output"] is False
