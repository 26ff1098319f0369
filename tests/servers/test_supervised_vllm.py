"""vLLM's CPU build under our supervision: its arguments, its verdicts, and its hanging."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import real_servers as real
from support.real_vllm import NAME, Supervised, supervising
from support.running import cli, here
from support.tri_he_samples import report_of, score

pytestmark = pytest.mark.timeout(3600)

GOLDENS = Path(
    os.environ.get("HALLUJUDGE_GOLDENS")
    or Path(__file__).resolve().parents[2].parent / "shared" / "goldens"
)
# A busy machine takes seconds for a reply.
TIMEOUT = "30"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = real.environment("vllm")
    return real.tiny_llama(programs / "python", tmp_path_factory.mktemp("vllm") / "model")


@pytest.fixture(scope="module")
def supervised(model: Path) -> Iterator[Supervised]:
    server = Supervised(
        model,
        "--served-model-name judge --structured-outputs-config.enable_in_reasoning true",
        HALLUJUDGE_LLM_TIMEOUT_SECONDS=TIMEOUT,
    )
    yield server
    server.stop()


def test_its_verdicts_are_those_of_own_requests(supervised: Supervised, tmp_path: Path) -> None:
    answers, graphs = real.claims(20)
    sent = real.exported(tmp_path, "judge", answers, graphs, "--dialect", "vllm")
    at = ("--judge", "llm", "--server", supervised.address)
    done = score(tmp_path, answers, *at, graphs=graphs)
    assert done.returncode == 0, done.stderr
    equal = real.equal_choices(tmp_path / "out", ((body, supervised.own(body)) for body in sent))
    (judge,) = report_of(tmp_path / "out")["judging"]
    share = judge["choice_share"]
    real.figure(
        f"{NAME}, serve --vllm",
        f"{equal} of {len(sent)} verdicts equal to own requests; "
        f"choice_share {share['mean']:.4f} (n {share['n']})",
    )
    assert equal == len(sent) == 120
    assert share["n"] >= 50
    # The prompts of an image begin alike.
    assert judge["cached_tokens"] > judge["prompt_tokens"] / 2
    assert f"prompt tokens, {judge['cached_tokens']:,} of them cached" in " ".join(
        done.stdout.split()
    )


def test_a_name_and_a_dotted_argument_are_merged_with_ours(supervised: Supervised) -> None:
    given = supervised.arguments
    assert given.count("--structured-outputs-config") == 1
    config = given[given.index("--structured-outputs-config") + 1]
    assert config == (
        '{"backend":"guidance","disable_any_whitespace":true,"enable_in_reasoning":true}'
    )
    assert given[given.index("--served-model-name") + 1] == "judge"


@pytest.mark.skipif(
    not (GOLDENS / "tri_he").is_dir(),
    reason="golden data absent: set HALLUJUDGE_GOLDENS to its folder",
)
def test_the_golden_claims(supervised: Supervised, tmp_path: Path) -> None:
    claims, graphs = GOLDENS / "tri_he" / "matcher_claims.jsonl", GOLDENS / "tri_he" / "tri-he.json"
    done = here(
        *("score", "tri-he", "--claims", claims, "--references", graphs, "--out", tmp_path / "out"),
        *("--judge", "llm", "--server", supervised.address),
    )
    assert done.returncode == 0, done.stderr
    (judge,) = report_of(tmp_path / "out")["judging"]
    sent = real.requests_of(tmp_path, "judge", claims, graphs, "--dialect", "vllm")
    equal = real.equal_choices(tmp_path / "out", ((body, supervised.own(body)) for body in sent))
    share = judge["choice_share"]
    real.figure(
        f"{NAME}, serve --vllm",
        f"{judge['decided']} golden claims have verdicts; {equal} of {len(sent)} requests have "
        f"that of an own request; choice_share {share['mean']:.4f} "
        f"(n {share['n']})",
    )
    assert (judge["decided"], equal) == (580, len(sent))
    assert share["n"] >= 50


def test_one_that_hangs_is_started_again_and_no_claim_is_lost(
    supervised: Supervised, tmp_path: Path
) -> None:
    answers, graphs = real.claims(9)
    before = supervised.vllm
    os.killpg(before, signal.SIGSTOP)
    at = ("--judge", "llm", "--server", supervised.address)
    done = score(tmp_path, answers, *at, graphs=[g | {"note": "other"} for g in graphs])
    assert done.returncode == 0, done.stderr
    (judge,) = report_of(tmp_path / "out")["judging"]
    assert judge["decided"] == 54
    assert supervised.vllm != before
    assert "http://localhost" not in supervised.errors_so_far() + done.stderr
    real.figure(f"{NAME}, serve --vllm", "stopped by SIGSTOP: 54 of 54 verdicts after a restart")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--api-key other", "--api-key"),
        ("--uds /tmp/other", "--uds"),
        ("--logprobs-mode raw_logits", "--logprobs-mode raw_logits"),
        ("--max-logprobs=5", "--max-logprobs 5"),
        ("--structured-outputs-config none", "--structured-outputs-config"),
    ],
)
def test_arguments_that_leave_no_answer_are_refused_by_name(
    arguments: str, named: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in supervising(arguments).items():
        monkeypatch.setenv(name, value)
    done = cli("serve", "--port", "0", "--vllm", str(model))
    assert done.returncode == 2
    assert named in done.stderr
    assert "serves at" not in done.stdout


def test_one_that_refuses_every_call_is_not_served(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = "--chat-template \"{{ raise_exception('no talk') }}\""
    for name, value in supervising(template).items():
        monkeypatch.setenv(name, value)
    done = cli("serve", "--port", "0", "--vllm", str(model))
    real.figure(f"{NAME}, refuses every call", done.stderr.strip().splitlines()[-1][:160])
    assert done.returncode in (1, 2)
    assert "no talk" in done.stderr
    assert "serves at" not in done.stdout
