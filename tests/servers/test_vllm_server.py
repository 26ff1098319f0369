"""The judge at vLLM's CPU build: one that Hallujudge starts, and one that runs already."""

from __future__ import annotations

import http.client
import json
import math
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import real_servers as real
from support import scripted_llm as llm
from support.extraction_schemas import ANSWERS, schemas, wrong_answers
from support.running import ServerProcess, read_rows
from support.tri_he_samples import report_of, score

pytestmark = pytest.mark.timeout(3600)

NAME = "vLLM 0.32.0 (CPU)"
# Arguments for a small machine; the others are ours, or vLLM's own.
SMALL = ("--dtype", "float32", "--enforce-eager", "--max-num-seqs", "16")
_THOUGHT_TOKENS = 100
VARIABLES = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = real.environment("vllm")
    return real.tiny_llama(programs / "python", tmp_path_factory.mktemp("vllm") / "model")


@pytest.fixture(scope="module")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.RealServer]:
    """A model that thinks for more tokens than an answer takes, with a reasoning parser."""
    programs, port = real.environment("vllm"), real.free_port()
    folder = tmp_path_factory.mktemp("thinking")
    model = real.tiny_llama(
        programs / "python", folder / "model", says="supported", thinks=_THOUGHT_TOKENS
    )
    command = (
        *(programs / "vllm", "serve", model, "--served-model-name", "tiny"),
        *("--reasoning-parser", "deepseek_r1", "--host", "127.0.0.1", "--port", str(port), *SMALL),
    )
    with real.started(command, folder / "log", port, **VARIABLES) as started:
        yield started


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[real.RealServer]:
    """A server that was started without us, with nothing but vLLM's own settings."""
    port = real.free_port()
    command = (
        *(real.environment("vllm") / "vllm", "serve", model, "--served-model-name", "tiny"),
        *("--host", "127.0.0.1", "--port", str(port), *SMALL),
    )
    with real.started(command, model.parent / "log", port, **VARIABLES) as started:
        yield started


class Supervised(ServerProcess):
    """A Hallujudge server with its own vLLM, and a way to ask that vLLM past our client."""

    def __init__(self, model: Path) -> None:
        super().__init__(
            *("--vllm", str(model)),
            HALLUJUDGE_VLLM_COMMAND=str(real.environment("vllm") / "vllm"),
            HALLUJUDGE_VLLM_ARGUMENTS=" ".join(SMALL),
            **VARIABLES,
            **real.FEW_THREADS,
        )
        self.model = str(model)
        pid = self.process.pid
        # Others are worker processes.
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        each = [Path(f"/proc/{child}/cmdline").read_text().split("\0") for child in children]
        (given,) = [arguments for arguments in each if "--uds" in arguments]
        self._socket = given[given.index("--uds") + 1]

    def own(self, body: dict[str, Any]) -> real.Reply:
        """Send a request by a route of the socket that needs no key."""
        connection = _UnixConnection(self._socket)
        text = json.dumps(body | {"model": self.model})
        connection.request("POST", "/invocations", text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        reply = real.Reply(status=answer.status, text=answer.read().decode())
        connection.close()
        return reply


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


@pytest.fixture(scope="module")
def supervised(model: Path) -> Iterator[Supervised]:
    server = Supervised(model)
    yield server
    server.stop()


def test_verdicts_are_those_of_own_requests(server: real.RealServer, tmp_path: Path) -> None:
    found = real.scored(server, tmp_path)
    real.figure(f"{NAME}, as it is started by itself", f"{found.agreement}; choices enforced")
    assert found.equal == len(found.claims) == 24
    assert {claim["verdict"] for claim in found.claims} <= {"supported", "not_supported"}
    assert None not in [claim["margin"] for claim in found.claims]
    assert "(vllm 0.32.0)" in found.report["signature"]
    assert found.report["judging"][0]["choice_share"]["mean"] < 0.5
    assert "would write one of the choices" in found.said


def test_the_first_tokens_are_masked_before_probabilities_are_made(
    server: real.RealServer,
) -> None:
    choices = ["supported", "object1", "object2", "relation"]
    held = server.chat(
        logprobs=True, top_logprobs=20, structured_outputs={"choice": choices}, max_tokens=32
    )
    listed = held.logprobs[0]["top_logprobs"]
    possible = [each for each in listed if each["logprob"] > llm.RULED_OUT]
    assert held.content in choices
    assert math.fsum(math.exp(each["logprob"]) for each in possible) == pytest.approx(1, abs=1e-3)
    for each in possible:
        assert any(choice.startswith(each["token"]) for choice in choices)
    ruled_out = {each["logprob"] for each in held.logprobs[-1]["top_logprobs"]} - {
        held.logprobs[-1]["logprob"]
    }
    assert ruled_out == {llm.RULED_OUT}
    free = server.chat(logprobs=True, top_logprobs=20)
    assert {each["token"] for each in free.logprobs[0]["top_logprobs"]} != {
        each["token"] for each in listed
    }


def test_doctor_finds_all_of_it(server: real.RealServer) -> None:
    found = real.doctor(server)
    expected = "ok found by itself: llm_dialect=vllm llm_constraint=structured_outputs"
    assert found["dialect"] == expected
    assert found["structured output"] == "ok enforced"
    assert found["extraction"] == "ok the schemas of LLM extraction are accepted"
    assert found["repeatability"] == "ok 3 equal answers"
    assert "choice_share 0.0" in found["log-probabilities"]


def test_what_it_refuses(server: real.RealServer, tmp_path: Path) -> None:
    statuses = {
        "unknown model": server.chat(model="nope").status,
        "decisions": server.post("decisions", {"model": "tiny"}).status,
        "too long": server.chat("word " * 9000).status,
        "too many log-probabilities": server.chat(logprobs=True, top_logprobs=21).status,
    }
    real.figure(NAME, f"statuses {statuses}")
    assert statuses == {
        "unknown model": 404,
        "decisions": 404,
        "too long": 400,
        "too many log-probabilities": 400,
    }
    unknown = real.judged(tmp_path, *server.asked_for("nope"))
    assert unknown.returncode == 2
    assert "does not exist" in unknown.stderr
    decisions = real.judged(tmp_path, *server.flags, "--llm-api", "decisions")
    assert decisions.returncode == 2
    assert "POST decisions" in decisions.stderr


def test_scoring_asks_for_probabilities(server: real.RealServer, tmp_path: Path) -> None:
    done = real.judged(tmp_path, *server.flags, "--llm-api", "scoring")
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = row["evidence"]["claims"]
    unlikely = [claim for claim in claims if claim["verdict"] == "unscored"]
    # Random weights give letters next to nothing, to few of them 1 %.
    assert {claim["reason"] for claim in unlikely} == {"REPLY_OUT_OF_CHOICE"}
    assert len(unlikely) >= len(claims) / 2
    assert done.returncode == (3 if len(unlikely) == len(claims) else 0)
    assert "REPLY_OUT_OF_CHOICE" in done.stdout + done.stderr


def test_a_supervised_server_gives_the_verdicts_of_own_requests(
    supervised: Supervised, tmp_path: Path
) -> None:
    answers, graphs = real.claims(20)
    sent = real.exported(tmp_path, "tiny", answers, graphs)
    at = ("--judge", "llm", "--server", supervised.address)
    done = score(tmp_path, answers, *at, graphs=graphs)
    assert done.returncode == 0, done.stderr
    verdicts = real.verdicts_of(tmp_path / "out")
    equal = [
        real.said_by(supervised.own(body)) == verdicts[tuple(llm.claims_of(body)[0])]
        for body in sent
    ]
    (judge,) = report_of(tmp_path / "out")["judging"]
    share = judge["choice_share"]
    real.figure(
        f"{NAME}, serve --vllm",
        f"{sum(equal)} of {len(equal)} verdicts equal to own requests; "
        f"choice_share {share['mean']:.4f} (n {share['n']})",
    )
    assert sum(equal) == len(sent) == 120
    assert share["n"] >= 50


def test_a_thought_that_ends_is_followed_by_a_verdict(
    thinking: real.RealServer, tmp_path: Path
) -> None:
    choices = ["supported", "object1", "object2", "relation"]
    cut = json.loads(thinking.chat(structured_outputs={"choice": choices}, max_tokens=64).text)
    (choice,) = cut["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", None)
    assert choice["message"]["reasoning"]
    done = real.judged(tmp_path, *thinking.flags)
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    verdicts = [claim["verdict"] for claim in row["evidence"]["claims"]]
    (asked,) = row["evidence"]["judging"]
    real.figure(
        f"{NAME}, a model that thinks for {_THOUGHT_TOKENS} tokens",
        f"{verdicts.count('supported')} of {len(verdicts)} verdicts supported, "
        f"{asked['completion_tokens']} completion tokens in {asked['calls']} calls",
    )
    assert verdicts == ["supported"] * 6
    assert asked["completion_tokens"] > 6 * _THOUGHT_TOKENS
    assert None not in [claim["margin"] for claim in row["evidence"]["claims"]]
    found = real.doctor(thinking)
    assert found["answer"].startswith("ok")
    assert found["structured output"] == "ok enforced"
    assert "before the answer" in found["reasoning"]


async def test_xgrammar_takes_the_schemas_and_their_answers_only(tmp_path: Path) -> None:
    python, asked = real.environment("vllm") / "python", tmp_path / "asked.json"
    texts = {name: [ANSWERS[name], *wrong_answers(name)] for name in ANSWERS}
    pairs = [(schema, texts[name]) for name, schema in (await schemas()).items()]
    asked.write_text(json.dumps(pairs))
    found = json.loads(real.run(python, real.SCRIPTS / "ask_xgrammar.py", asked))
    assert found == [[True] + [False] * (len(each) - 1) for each in texts.values()]
    real.figure("xgrammar 0.2.8", f"takes the {len(texts)} schemas of extraction")
