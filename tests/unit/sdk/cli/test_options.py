"""Options of servers and judges, which several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.running import assert_refused, here

import hallujudge.judge_service.__main__ as service
from hallujudge.sdk.cli import main
from hallujudge.sdk.cli.options import JudgeOptions


def score(folder: Path, *more: str) -> list[str | Path]:
    (folder / "a.jsonl").write_text(
        '{"question_id": 1, "answer": "Yes", "label": "yes", "image": "1.jpg"}\n'
    )
    return ["score", "pope", "-r", folder / "a.jsonl", "-o", folder / "out", *more]


@pytest.mark.parametrize("flag", ["--tls-ca", "--tls-cert", "--tls-key", "--api-key-file"])
def test_what_is_for_a_server_is_not_ignored_without_one(tmp_path: Path, flag: str) -> None:
    said = f"{flag} is for a server, and none is named; add --server, or leave it out"
    assert_refused(here(*score(tmp_path, flag, "nowhere")), said)
    assert_refused(here("doctor", flag, "nowhere"), said)


@pytest.mark.parametrize(
    ("flag", "other"), [("--tls-cert", "--tls-key"), ("--tls-key", "--tls-cert")]
)
def test_half_a_pair_is_named(tmp_path: Path, flag: str, other: str) -> None:
    given = score(tmp_path, "--server", "localhost:1", flag, "x.pem")
    assert_refused(here(*given), f"{flag} is given without {other}; give both or neither")


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:port", "localhost:99999", "localhost:0", ":50051"]
)
def test_an_address_needs_a_port(tmp_path: Path, address: str) -> None:
    said = f"the server's address '{address}' has no port from 1 to 65535; give HOST:PORT"
    assert_refused(here(*score(tmp_path, "--server", address)), said)


@pytest.mark.parametrize(
    "address", ["http://ana:secret@h:1", "https://h:1?key=secret", "ana:secret@h", "h?key=secret"]
)
def test_no_refused_address_shows_its_password(tmp_path: Path, address: str) -> None:
    done = here(*score(tmp_path, "--server", address))
    assert done.returncode == 2
    assert "secret" not in done.stderr


def test_several_servers_are_one_setting() -> None:
    options = JudgeOptions(llm_url=["http://gpu1/v1", "http://gpu2/v1"], llm_model="m")
    assert options.given() == {"llm_url": "http://gpu1/v1,http://gpu2/v1", "llm_model": "m"}


def test_what_is_not_given_is_no_setting() -> None:
    assert JudgeOptions(llm_url=[]).given() == {}


def test_serve_sets_what_vllm_is_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mapping[str, object]] = []
    monkeypatch.setattr(service, "run_server", lambda given, _config: seen.append(given))
    options = ["--tensor-parallel-size", "2", "--max-model-len", "8192", "--quantization", "fp8"]
    assert main(["serve", "--vllm", "m", *options, "--vllm-download", "--batch-invariant"]) == 0
    assert main(["serve", "--vllm", "m"]) == 0
    given = {name: value for name, value in seen[0].items() if name.startswith("vllm")}
    assert given == {
        "vllm.model": "m",
        "vllm.tensor_parallel_size": 2,
        "vllm.max_model_len": 8192,
        "vllm.quantization": "fp8",
        "vllm.download": 1,
        "vllm.batch_invariant": 1,
    }
    # A flag that is not given leaves its setting to the environment and the file.
    assert (seen[1]["vllm.download"], seen[1]["access.allow_anonymous"]) == (None, None)
