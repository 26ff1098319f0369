"""Tri-HE with a language model as extractor or judge, on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.running import ServerProcess, here, read_rows
from support.tri_he_samples import FALSE, TRUE, answer, score

PARAPHRASED = {"object1": "person", "relation": "is", "object2": "happy"}


STATED = {"object1": "man", "relation": "riding", "object2": "horse"}


def extracting(_number: int, body: llm.Body) -> llm.Reply:
    """A model that takes two claims from any text, one of them in its own words."""
    if "<<<RESPONSE" in llm.prompt_of(body):
        return llm.completion(json.dumps({"triplets": [STATED, PARAPHRASED]}))
    return llm.by_scene_graph(0, body)


@pytest.fixture
def model() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm(extracting)
    stop = server.in_thread()
    yield server
    stop()


def flags(server: llm.ScriptedLlm) -> tuple[str, ...]:
    return ("--judge", "llm", "--llm-url", server.url, "--llm-model", "m")


def analysed(out: Path) -> tuple[dict[str, Any], str]:
    ran = here("analyze", out, "--json")
    assert ran.returncode == 0, ran.stderr
    analyses: dict[str, Any] = json.loads(ran.stdout)["analyses"]
    return analyses, ran.stderr


def test_claims_without_verdict_never_pass_unseen(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    ran = score(tmp_path, answers, *flags(model), "--max-calls", "1")
    assert ran.returncode == 0, ran.stderr
    missing = sum(
        claim["verdict"] == "unscored"
        for row in read_rows(tmp_path / "out" / "items.jsonl")
        for claim in row["evidence"]["claims"]
    )
    assert (
        expected_message("sdk.cli.score_command:claims-of-scored-answers-have-no-verdict", missing)
        in ran.stderr
    )
    assert missing == 3
    assert "no verdict" not in score(tmp_path, answers, *flags(model)).stderr


def test_an_estimate_says_what_it_leaves_out(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    ran = score(tmp_path, [answer("1", TRUE)], "--estimate")
    assert expected_message("sdk.cli.score_command:no-calls-no-language-model") in ran.stdout
    texts = [{"image_id": "1", "response": "A man is riding a horse."}]
    more = (*flags(model), "--extractor", "llm", "--verdict-cache", str(tmp_path / "cache"))
    ran = score(tmp_path, texts, *more, "--estimate", kind="--responses")
    assert ran.stdout.startswith(
        expected_message("sdk.cli.output:llm-extractor-calls-answered-by-the-cache")
    )
    assert "llm: 0 calls" in ran.stdout
    assert (
        expected_message("sdk.cli.output:the-claims-of-responses-are-not-extracted") in ran.stdout
    )
    assert model.chats == 0
    score(tmp_path, texts, *more, kind="--responses")
    asked = model.chats
    ran = score(tmp_path, texts, *more, "--estimate", kind="--responses")
    assert ran.stdout.startswith(
        expected_message("sdk.cli.output:llm-extractor-calls-answered-by-the-cache-2")
    )
    assert (
        expected_message("sdk.cli.output:llm-calls-answered-by-the-cache-2", asked - 1)
        in ran.stdout
    )
    assert "not extracted" not in ran.stdout
    assert model.chats == asked > 1


def test_a_trend_over_the_claims_whose_place_is_known(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    texts = [{"image_id": "1", "response": "A man is riding a horse."}]
    ran = score(tmp_path, texts, *flags(model), "--extractor", "llm", kind="--responses")
    assert ran.returncode == 0, ran.stderr
    analyses, notes = analysed(tmp_path / "out")
    assert expected_message("sdk.cli.score_command:of-claims-are-left-out") in notes
    (row,) = analyses["trend"]["rows"]
    assert (row["claims"], row["hallu_q"]) == (1, 0.0)


def test_large_graphs_at_a_server(
    tmp_path: Path, model: llm.ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few long triplets make as large a message as many short ones, sooner.
    graph = [[f"dog {n}", "near", f"tree {n} {'y' * 1_500}"] for n in range(120)]
    graphs = [{"image_id": "1", "triplets": graph}]
    claims = [[f"dog {n % 120}", ("near", "on")[n % 2], graph[n % 120][2]] for n in range(500)]
    assert sum(len(triplet[2]) for triplet in graph) * len(claims) > 64 << 20
    settings = {"LLM_URL": model.url, "LLM_MODEL": "m", "LLM_CLAIMS_PER_CALL": "100"}
    # With a cache, both runs show the times of the calls that the first one made.
    for name, value in (settings | {"VERDICT_CACHE": str(tmp_path / "verdicts")}).items():
        monkeypatch.setenv(f"HALLUJUDGE_{name}", value)
    left = []
    server = ServerProcess()
    try:
        for address in ((), ("--server", server.address)):
            ran = score(tmp_path, [answer("1", *claims)], "--judge", "llm", *address, graphs=graphs)
            assert ran.returncode == 0, ran.stderr
            left.append(
                [(tmp_path / "out" / name).read_bytes() for name in ("report.json", "items.jsonl")]
            )
    finally:
        server.stop()
    assert left[0] == left[1]
    (line,) = read_rows(tmp_path / "out" / "items.jsonl")
    assert line["evidence"]["scene_graph"] == graph, "once, not with each claim"
    assert all(claim["references"] == [] for claim in line["evidence"]["claims"])
    assert line["scores"]["hallu_q"] == 0.5


def test_half_a_character_from_a_model_stops_no_run(tmp_path: Path) -> None:
    broken = {"object1": "man\ud800", "relation": "riding", "object2": "horse"}

    def step(_number: int, body: llm.Body) -> llm.Reply:
        if "<<<RESPONSE" in llm.prompt_of(body):
            return llm.completion(json.dumps({"triplets": [broken]}))
        return llm.error(400, "no \ud800")

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    try:
        texts = [{"image_id": "1", "response": "A man is riding a horse."}]
        more = (*flags(server), "--extractor", "llm")
        ran = score(tmp_path, texts, *more, kind="--responses")
    finally:
        stop()
    assert ran.returncode == 3, ran.stderr
    (line,) = read_rows(tmp_path / "out" / "items.jsonl")
    (claim,) = line["evidence"]["claims"]
    assert claim["triplet"] == ["man\ufffd", "riding", "horse"]
    assert claim["reason"] == "JUDGE_REQUEST_REFUSED"
    assert claim["detail"].endswith("HTTP 400: no")


@pytest.mark.parametrize("order", ["", "fallback"])
def test_an_order_of_judges_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("HALLUJUDGE_JUDGE_ORDER", order)
    ran = score(tmp_path, [answer("1", TRUE)], "--judge", "router")
    assert ran.returncode == 2
    assert (
        expected_message("judge_service.engine.judge_options:the-fallback-needs-fallback-model")
        in ran.stderr
    )
