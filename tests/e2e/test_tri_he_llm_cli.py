"""Tri-HE with a language model as extractor or judge, on the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.qa_running import analyses_of
from support.qa_samples import write_lines
from support.running import ServerProcess, assert_refused, here, read_rows
from support.tri_he_samples import FALSE, TRUE, answer, flags, report_of, score

from hallujudge.sdk.errors import OutputError
from hallujudge.sdk.runs.folder import RunFolder
from hallujudge.sdk.runs.parts import Part

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


def test_claims_without_verdict_never_pass_unseen(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    ran = score(tmp_path, answers, *flags(model), "--max-calls", "1")
    assert ran.returncode == 0, ran.stderr
    missing = sum(
        claim["verdict"] == "unscored"
        for row in read_rows(tmp_path / "out" / "items.jsonl")
        for claim in row["evidence"]["claims"]
    )
    said = expected_message("metrics.tri_he:claims-of-scored-answers-have-no-verdict", missing)
    assert said in " ".join(ran.stdout.split())
    assert any(said in note for note in report_of(tmp_path / "out")["notes"])
    assert missing == 3
    assert "no verdict" not in score(tmp_path, answers, *flags(model)).stdout


BOTH = ("-f", "table", "-f", "html")


@pytest.mark.usefixtures("prices")
def test_every_view_says_who_decided_and_what_was_paid(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    ran = score(tmp_path, answers, *flags(model), *BOTH)
    [share] = report_of(tmp_path / "out")["judging"]
    told = expected_message(
        "sdk.report.report_text:what-a-judge-gave-and-took",
        *(share["decided"], share["calls"], share["prompt_tokens"], share["completion_tokens"]),
        f"{share['cost']:.4f}",
        share["reused"],
    )
    # Three items share two replies, which were paid for once.
    assert (share["decided"], share["calls"], share["reused"], model.chats) == (6, 2, 4, 2)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    markdown = here("report", tmp_path / "out", "--format", "markdown").stdout
    for text in (ran.stdout, here("report", tmp_path / "out").stdout, page):
        assert told in " ".join(text.split())
    assert told in markdown.replace("\\", "")
    tokens = share["prompt_tokens"] + share["completion_tokens"]
    paid = f", 2 calls, {tokens} tokens, cost {share['cost']:.4f}, verdicts: llm 6"
    assert ran.stderr.splitlines()[-1].startswith("scored 3 of 3 (100 %), ")
    assert ran.stderr.splitlines()[-1].endswith(paid)
    for path in (tmp_path / "out").iterdir():
        if path.name != "verdicts.sqlite":
            path.unlink()
    again = score(tmp_path, answers, *flags(model), *BOTH)
    assert (
        expected_message("sdk.runs.scoring:replies-that-were-paid-for-are-used-again", 2)
        in again.stderr
    )
    assert "6 replies from the cache, verdicts: llm 6" in again.stderr.splitlines()[-1]
    assert again.stdout == ran.stdout


def test_a_run_without_a_judge_says_nothing_of_replies(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    score(tmp_path, [answer("1", TRUE)], *flags(model))
    caption = write_lines(tmp_path / "c.jsonl", [{"image_id": "1", "caption": "A dog."}])
    objects = write_lines(tmp_path / "o.jsonl", [{"image_id": "1", "objects": ["dog"]}])
    for path in (tmp_path / "out").iterdir():
        if path.name != "verdicts.sqlite":
            path.unlink()
    ran = here("score", "chair", "-r", caption, "-R", objects, "-o", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    assert "replies" not in ran.stderr


def test_a_resumed_run_says_what_is_not_paid_again(
    tmp_path: Path, model: llm.ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [answer("1", [f"dog {n}", "near", "horse"], question=f"{n}?") for n in range(130)]
    add = RunFolder.add

    def stopped(self: RunFolder, part: Part) -> None:
        if self.written:
            raise OutputError("the disk is full")
        add(self, part)

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "add", stopped)
        assert score(tmp_path, answers, *flags(model)).returncode == 1
    paid = model.chats
    resumed = score(tmp_path, answers, *flags(model), "--resume")
    told = " ".join(resumed.stderr.split())
    assert expected_message("sdk.cli.score_execution:kept-and-not-paid-again") in told
    assert (
        expected_message("sdk.runs.scoring:replies-that-were-paid-for-are-used-again", paid) in told
    )
    assert f"{paid - 128} replies from the cache, verdicts: llm 130" in told
    assert model.chats == 130


def test_claims_that_the_budget_did_not_pay_are_counted(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    ran = score(tmp_path, answers, *flags(model), "--max-calls", "1", *BOTH)
    told = expected_message("sdk.report.report_text:scored-items-with-claims-that-were-not-paid")
    for text in (ran.stdout, (tmp_path / "out" / "report.html").read_text("utf-8")):
        assert told in " ".join(text.split())


@pytest.mark.usefixtures("prices")
def test_a_judge_card_without_labels_has_shares_and_costs(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    score(tmp_path, [answer("1", TRUE, FALSE)], *flags(model))
    card = ("judge", "card", tmp_path / "out")
    shown = here(*card)
    assert (shown.returncode, "llm" in shown.stdout) == (0, True), shown.stderr
    assert expected_message("labels.label_commands:agreement-needs-labels") in shown.stderr
    assert json.loads(here(*card, "--format", "json").stdout) == {
        "judging": report_of(tmp_path / "out")["judging"]
    }
    for option in (("--flips", "5"), ("--out", tmp_path / "card.json")):
        assert_refused(
            here(*card, *option),
            expected_message("labels.report_card:what-a-card-needs"),
        )
    missing = here(*card, "--labels", tmp_path / "none.jsonl", "--reference", tmp_path / "out")
    assert_refused(missing, expected_message("labels.report_card:not-both"))


def test_an_estimate_says_what_it_leaves_out(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    ran = score(tmp_path, [answer("1", TRUE)], "--estimate")
    assert expected_message("sdk.cli.score_execution:no-calls-no-language-model") in ran.stdout
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
    analyses, notes = analyses_of(tmp_path / "out")
    assert expected_message("sdk.cli.score_execution:of-claims-are-left-out") in notes
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


def test_a_second_run_beside_the_first_repeats_it_without_a_call(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    answers = [answer("1", TRUE, FALSE)]
    first = score(tmp_path, answers, *flags(model), "--out", tmp_path / "first")
    assert first.returncode == 0, first.stderr
    paid = model.chats
    second = score(tmp_path, answers, *flags(model), "--out", tmp_path / "second")
    assert second.returncode == 0, second.stderr
    assert model.chats == paid
    said = f"known from the runs beside {tmp_path / 'second'}; 0 calls were paid for now"
    assert said in second.stderr
    # The second folder is whole: it needs the first one no longer.
    (tmp_path / "first" / "verdicts.sqlite").unlink()
    third = score(tmp_path, answers, *flags(model), "--out", tmp_path / "third")
    assert model.chats == paid
    assert third.stdout.replace("third", "second") == second.stdout
    # A file that is named holds all that is known.
    own = ("--verdict-cache", tmp_path / "own.sqlite")
    fourth = score(tmp_path, answers, *flags(model), *own, "--out", tmp_path / "fourth")
    assert fourth.returncode == 0, fourth.stderr
    assert model.chats == 2 * paid


@pytest.mark.parametrize("kind", ["a link", "writable by others", "a pipe"])
def test_verdicts_beside_that_others_may_have_written_are_not_used(
    tmp_path: Path, model: llm.ScriptedLlm, kind: str
) -> None:
    answers, runs = [answer("1", TRUE, FALSE)], tmp_path / "runs"
    first = score(tmp_path, answers, *flags(model), "--out", runs / "first")
    assert first.returncode == 0, first.stderr
    paid, kept = model.chats, runs / "first" / "verdicts.sqlite"
    if kind == "writable by others":
        kept.chmod(0o666)
    else:
        moved = kept.rename(tmp_path / "moved.sqlite")
        if kind == "a link":
            kept.symlink_to(moved)
        else:
            os.mkfifo(kept)
    second = score(tmp_path, answers, *flags(model), "--out", runs / "second")
    assert second.returncode == 0, second.stderr
    assert model.chats == 2 * paid


def test_a_file_beside_that_is_no_cache_is_not_looked_up(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "verdicts.sqlite").write_text("no database")
    done = score(tmp_path, [answer("1", TRUE, FALSE)], *flags(model))
    assert done.returncode == 0, done.stderr
    assert "other" not in done.stderr
