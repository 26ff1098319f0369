"""What a reviewer found in Tri-HE, as a user meets it: each case went wrong once."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import ServerProcess, read_rows
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, here, report_of, score

PARAPHRASED = {"object1": "person", "relation": "is", "object2": "happy"}
STATED = {"object1": "man", "relation": "riding", "object2": "horse"}


def extracting(_number: int, body: llm.Body) -> llm.Reply:
    """A model that takes two claims from any text, one of them in its own words."""
    if "<<<RESPONSE" in llm.prompt_of(body):
        return llm.completion(json.dumps({"triplets": [STATED, PARAPHRASED]}))
    return llm.honest(0, body)


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


def own_file(path: Path, **instance: object) -> Path:
    """Tri-HE's own layout, of one image with one question."""
    entry = {"question": "What?", "answer": "A dog.", **instance}
    path.write_text(json.dumps({"7": {"instance": [entry], "triplets": SCENE, "object": []}}))
    return path


def test_answers_of_the_papers_file_are_read_as_answers(tmp_path: Path) -> None:
    archive = own_file(
        tmp_path / "own.json", llava="A man is riding a horse.", llava_triplets=[FALSE]
    )
    for kind, claims in (("--responses", [TRUE]), ("--claims", [FALSE])):
        out = tmp_path / kind
        ran = here("score", "tri-he", kind, archive, "--model-key", "llava", "--out", out)
        assert ran.returncode == 0, ran.stderr
        (line,) = read_rows(out / "items.jsonl")
        assert [claim["triplet"] for claim in line["evidence"]["claims"]] == claims
        extractor = "rules-1" if kind == "--responses" else "given"
        assert f"|extract:{extractor}|" in report_of(out)["signature"]


def test_a_model_key_of_another_layout_is_refused(tmp_path: Path) -> None:
    texts = [{"image_id": "1", "response": "A man.", "llava": "A dog."}]
    ran = score(tmp_path, texts, "--model-key", "llava", kind="--responses")
    assert ran.returncode == 2
    assert "--text-key" in ran.stderr


def test_claims_that_come_with_answers_are_told_of(tmp_path: Path) -> None:
    texts = [
        {"image_id": "1", "response": "A man is riding a horse."},
        {"image_id": "2", "response": "A dog.", "claims": [FALSE]},
    ]
    ran = score(tmp_path, texts, kind="--responses")
    assert "1 of 2 answers bring claims" in ran.stderr
    assert "bring claims" not in score(tmp_path, [answer("1", TRUE)]).stderr


def test_answers_without_their_graph_may_be_left_unscored(tmp_path: Path) -> None:
    texts = write_lines(
        tmp_path / "a.jsonl",
        [
            {"image_id": 1, "response": "A man is riding a horse.", "triplets": SCENE},
            {"image_id": 2, "response": "A man is riding a horse."},
            {"image_id": 3, "response": "A man is riding a horse.", "triplets": None},
        ],
    )
    given = ("score", "tri-he", "--responses", texts, "--out", tmp_path / "out")
    assert here(*given).returncode == 2
    assert here(*given, "--allow-unknown").returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"REFERENCE_MISSING": 2}


def test_claims_that_are_null_are_missing_claims(tmp_path: Path) -> None:
    assert score(tmp_path, [answer("1", TRUE), answer("2") | {"claims": None}]).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"CLAIMS_MISSING": 1}


def test_claims_without_verdict_never_pass_unseen(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    ran = score(tmp_path, answers, *flags(model), "--max-calls", "1")
    assert ran.returncode == 0, ran.stderr
    missing = sum(
        claim["verdict"] == "unscored"
        for row in read_rows(tmp_path / "out" / "items.jsonl")
        for claim in row["evidence"]["claims"]
    )
    assert f"{missing} claims of scored answers have no verdict" in ran.stderr
    assert missing == 3
    assert "no verdict" not in score(tmp_path, answers, *flags(model)).stderr


def test_an_estimate_says_what_it_leaves_out(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    assert "nothing would be asked" in score(tmp_path, [answer("1", TRUE)], "--estimate").stdout
    texts = [{"image_id": "1", "response": "A man is riding a horse."}]
    more = (*flags(model), "--extractor", "llm", "--verdict-cache", str(tmp_path / "cache"))
    ran = score(tmp_path, texts, *more, "--estimate", kind="--responses")
    assert ran.stdout.startswith("llm extractor: 1 calls (0 answered by the cache")
    assert "llm: 0 calls" in ran.stdout
    assert "turn out to make" in ran.stderr
    assert model.chats == 0
    score(tmp_path, texts, *more, kind="--responses")
    asked = model.chats
    ran = score(tmp_path, texts, *more, "--estimate", kind="--responses")
    assert ran.stdout.startswith("llm extractor: 0 calls (1 answered by the cache")
    assert f"llm: 0 calls ({asked - 1} answered by the cache" in ran.stdout
    assert "turn out to make" not in ran.stderr
    assert model.chats == asked > 1


def test_a_trend_over_the_claims_whose_place_is_known(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    texts = [{"image_id": "1", "response": "A man is riding a horse."}]
    ran = score(tmp_path, texts, *flags(model), "--extractor", "llm", kind="--responses")
    assert ran.returncode == 0, ran.stderr
    analyses, notes = analysed(tmp_path / "out")
    assert "1 of 2 claims are left out" in notes
    (row,) = analyses["trend"]["rows"]
    assert (row["claims"], row["hallu_q"]) == (1, 0.0)


def test_likes_and_dislikes_have_no_ratio(tmp_path: Path) -> None:
    people = [[-1, 1], [1, -1], [-1, -1], [1, 1]]
    answers = [answer(str(n), TRUE, human_score=given) for n, given in enumerate(people)]
    assert score(tmp_path, answers).returncode == 0
    rows = analysed(tmp_path / "out")[0]["krippendorff_alpha"]["rows"]
    alphas = {row["level"]: row["alpha"] for row in rows}
    assert alphas["nominal"] == pytest.approx(0.125)
    assert alphas["ratio"] is None


def test_annotators_agree_on_unscored_answers_too(tmp_path: Path) -> None:
    answers = [
        answer("1", TRUE, human_score=[1, 1]),
        answer("2", FALSE, human_score=[2, 2]),
        answer("3", human_score=[3, 1]),
    ]
    assert score(tmp_path, answers).returncode == 3
    analyses, notes = analysed(tmp_path / "out")
    assert [row["answers"] for row in analyses["krippendorff_alpha"]["rows"]] == [3] * 4
    assert analyses["human_agreement"]["rows"][0]["answers"] == 2
    assert "1 of 3 answers with human scores are unscored" in notes
    interval = analyses["krippendorff_alpha"]["rows"][2]["alpha"]
    ratings = [1, 1, 2, 2, 3, 1]
    observed, expected = (3 - 1) ** 2 * 2 / 6, 2 * statistics.variance(ratings)
    assert interval == pytest.approx(1 - observed / expected)


@pytest.mark.parametrize("wrong", [1e200, -1e300, [1, 1e10]])
def test_scores_beyond_any_scale(tmp_path: Path, wrong: object) -> None:
    ran = score(tmp_path, [answer("1", TRUE, human_score=wrong)])
    assert ran.returncode == 2
    assert "human_score" in ran.stderr


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("items.jsonl", '"human_scores": [4.0]', '"human_scores": ["inf"]'),
        ("items.jsonl", '"human_scores": [4.0]', '"human_scores": [1e400]'),
        ("items.jsonl", '"outcome": "scored"', '"outcome": "good"'),
        ("report.json", '"variant": "published"', '"variant": "bogus"'),
    ],
)
def test_a_run_that_was_changed(tmp_path: Path, file: str, old: str, new: str) -> None:
    answers = [answer(n, TRUE, human_score=4.0) for n in "12"]
    assert score(tmp_path, answers).returncode == 0
    path = tmp_path / "out" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    ran = here("analyze", tmp_path / "out")
    assert ran.returncode == 2, ran.stdout
    assert ran.stderr.startswith("error: ")


def test_a_long_answer_takes_seconds(tmp_path: Path) -> None:
    texts = [{"image_id": "1", "response": "A man is riding a brown horse near a tree. " * 4_600}]
    assert len(texts[0]["response"]) > 190_000
    start = time.process_time()
    assert score(tmp_path, texts, kind="--responses").returncode == 0
    assert time.process_time() - start < 15
    (line,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = line["evidence"]["claims"]
    assert len(claims) > 10_000
    for claim in (claims[0], claims[-1]):
        before = texts[0]["response"][: claim["span"][1]]
        assert claim["within_words"] == len(before.split())


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
    assert all(claim["held_against"] == graph for claim in line["evidence"]["claims"])
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
    assert claim["detail"].endswith("no ?")


@pytest.mark.parametrize("order", ["", "fallback"])
def test_an_order_of_judges_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("HALLUJUDGE_JUDGE_ORDER", order)
    ran = score(tmp_path, [answer("1", TRUE)], "--judge", "router")
    assert ran.returncode == 2
    assert "set fallback_model" in ran.stderr
