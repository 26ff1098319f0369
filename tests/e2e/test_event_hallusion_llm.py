"""EventHallusion with a language model as judge of descriptions, over real HTTP."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.choice_judge import blocks_of, scripted, step
from support.messages import expected_message
from support.qa_running import assert_refused, bytes_of, report_of
from support.running import ServerProcess, here, read_rows

JUDGE = step({"runs": "yes", "sleeps": "no"}, "DESCRIPTION")
# Split -> description, given judgement, and whether it is right.
VIDEOS: dict[str, list[tuple[str, str, str | None]]] = {
    "entire": [("A dog runs.", "Yes. It does.", "yes"), ("A dog sleeps.", "Yes.", "no")],
    "interleave": [("A cat runs.", "No.", "yes"), ("REFUSE", "Yes.", None)],
    "misleading": [("", "", None), ("A man sleeps.", "I can't tell.", "no")],
}


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def archive(folder: Path, **change: Any) -> Path:
    about = {"event_info": {"caption": "The dog runs.", "unexpected": "It falls."}}
    asked = {"qa": [{"question": "Is it so?", "answer": "No.", "prediction": "No."}]}
    made = {
        split: {
            f"{split}_{number}": {**about, **asked, "desc": text, "judgement": given, **change}
            for number, (text, given, _) in enumerate(videos)
        }
        for split, videos in VIDEOS.items()
    }
    path = folder / "predictions.json"
    path.write_text(json.dumps(made))
    return path


def score(folder: Path, out: str, *more: str | Path) -> Any:
    given = ("--responses", folder / "predictions.json", "--out", folder / out)
    return here("score", "event-hallusion", *given, "--judgements", "llm", *more)


def test_each_split_has_its_prompt_and_a_server_writes_the_same_bytes(tmp_path: Path) -> None:
    archive(tmp_path)
    with scripted(JUDGE) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        kept = (*flags, "--verdict-cache", str(tmp_path / "verdicts.sqlite"))
        run = score(tmp_path, "here", *kept)
        assert run.returncode == 0
        assert (
            expected_message(
                "sdk.cli.score_execution:judged-descriptions-have-no-verdict-such-descriptions"
            )
            in run.stderr
        )
        assert "1 judged description is left out: JUDGE_REFUSED 1" in run.stderr
        asked = list(server.requests)
        assert len(asked) == 5, "an empty description is not sent"
        remote = ServerProcess(*kept, "--data-folder", str(tmp_path / "data"))
        try:
            assert score(tmp_path, "there", "--server", remote.address).returncode == 0
        finally:
            code, said = remote.stop()
    assert (code, "Traceback" in said) == (0, False)
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    events = {blocks_of(body)["DESCRIPTION"]: blocks_of(body)["EVENT"] for body in asked}
    assert (events["A dog runs."], events["A cat runs."]) == ("The dog runs.", "It falls.")
    assert len({body["messages"][0]["content"] for body in asked}) == 3
    lines = read_rows(tmp_path / "here" / "items.jsonl")
    parsed = [{a["name"]: a["answer"] for a in line["evidence"]["answers"]} for line in lines]
    judged = [answers.get("description") for answers in parsed]
    assert judged == [choice for videos in VIDEOS.values() for *_, choice in videos]
    assert [line["evidence"].get("given") for line in lines] == [
        "yes", "yes", "no", "yes", None, None,
    ]  # fmt: skip
    (part,) = lines[3]["evidence"]["judging"]
    assert part["declined"]["JUDGE_REFUSED"]["claims"] == 1
    run = here("analyze", tmp_path / "here", "--format", "json")
    table = json.loads(run.stdout)["analyses"]["given_judgements"]["rows"]
    agreements = {row["split"]: (row["items"], row["agreement"]) for row in table}
    assert agreements == {"all": (3, 1 / 3), "entire": (2, 0.5), "interleave": (1, 0.0)}
    assert (
        expected_message("studies.analysis.agreement:of-scored-items-lack-one-of-the") in run.stderr
    )
    report = report_of(tmp_path / "here")
    # An empty description counts as wrong in `published`; what the judge failed at does not count.
    assert report["scores"]["description_accuracy"]["value"] == 2 / 5
    assert (
        "judgements:llm|judge:tiny (vllm 0.32.0),event-hallusion-entire-1@" in (report["signature"])
    )


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.completion(None, reasoning="Hm."), "REPLY_ONLY_THOUGHT"),
        (llm.completion("<think>Hm.</think>"), "REPLY_ONLY_THOUGHT"),
        (llm.completion(None, reasoning="Hm.", finish="length"), "REPLY_TRUNCATED"),
    ],
)
def test_a_thought_alone_is_no_judgement(
    tmp_path: Path, variant: str, reply: llm.Reply, reason: str
) -> None:
    archive(tmp_path, desc="A dog runs.")
    with scripted(llm.always(reply)) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--variant", variant)
        run = score(tmp_path, "out", *flags)
    report = report_of(tmp_path / "out")
    assert report["scores"]["description_accuracy"]["n"] == 0
    assert report["scores"]["question_accuracy"]["n"] == 6
    assert reason in run.stdout + run.stderr
    archive(tmp_path, desc="A dog runs.", qa=[])
    with scripted(llm.always(reply)) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--variant", variant)
        score(tmp_path, "alone", *flags)
    assert report_of(tmp_path / "alone")["coverage"]["reasons"] == {reason: 6}


def test_failed_judgements_do_not_count_in_corrected(tmp_path: Path) -> None:
    archive(tmp_path)
    with scripted(JUDGE) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--variant", "corrected")
        assert score(tmp_path, "out", *flags).returncode == 0
    scores = report_of(tmp_path / "out")["scores"]
    assert (scores["description_accuracy"]["value"], scores["description_accuracy"]["n"]) == (
        0.5,
        4,
    )
    assert scores["question_accuracy"]["n"] == 6


def test_a_video_of_which_only_the_judge_could_speak_has_its_reason(tmp_path: Path) -> None:
    archive(tmp_path, qa=[], desc="REFUSE")
    with scripted(JUDGE) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--variant", "corrected")
        assert score(tmp_path, "out", *flags).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"JUDGE_REFUSED": 6}


def test_own_prompts_are_for_all_splits_or_for_one(tmp_path: Path) -> None:
    archive(tmp_path)
    texts = {"all": "Any. {{event}} {{description}}", "one": "One. {{event}} {{description}}"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with scripted(llm.saying("yes")) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--prompt", tmp_path / "all")
        own = ("--prompt-interleave", tmp_path / "one")
        assert score(tmp_path, "out", *flags, *own).returncode == 0
        sent = [llm.prompt_of(body)[:4] for body in server.requests]
    assert sorted(sent) == ["Any."] * 3 + ["One."] * 2
    hashes = [f"own@{sha256(texts[name].encode()).hexdigest()}" for name in ("all", "one", "all")]
    assert "+".join(hashes) in report_of(tmp_path / "out")["signature"]


def test_what_a_judge_lacks_is_named(tmp_path: Path) -> None:
    archive(tmp_path, event_info=None)
    flags = ("--llm-url", "http://127.0.0.1:1/v1", "--llm-model", "tiny")
    assert score(tmp_path, "out", *flags).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"REFERENCE_MISSING": 6}
    missing = ("--prompt-entire", tmp_path / "nothing.txt")
    assert_refused(score(tmp_path, "out", *flags, *missing), "--prompt-entire", "nothing.txt")


def test_an_estimate_counts_the_descriptions(tmp_path: Path) -> None:
    archive(tmp_path)
    with scripted(JUDGE) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--estimate")
        run = score(tmp_path, "out", *flags)
        assert server.chats == 0
    assert run.stdout.startswith(
        expected_message("sdk.cli.output:llm-calls-answered-by-the-cache-repeated")
    )


def test_both_variants_ask_once(tmp_path: Path) -> None:
    archive(tmp_path)
    with scripted(JUDGE) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--variant", "both")
        assert score(tmp_path, "out", *flags).returncode == 0
        assert server.chats == 5 + 1, "only the refusal is asked again"


def test_a_judge_that_never_answers_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HALLUJUDGE_LLM_ATTEMPTS")
    archive(tmp_path)
    with scripted(llm.always(llm.error(503, "loading"))) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--give-up-after", "0.2")
        run = score(tmp_path, "out", *flags)
    assert run.returncode == 1
    assert "503" in run.stderr
    assert not (tmp_path / "out" / "report.json").exists()


def planted(_number: int, body: llm.Body) -> llm.Reply:
    text = blocks_of(body)["DESCRIPTION"]
    if text == "REFUSE":
        return llm.completion(None, refusal="I'd rather not.")
    return llm.stating({"yes": 0.8, "no": 0.2} if "runs" in text else {"no": 0.6, "yes": 0.3})


def test_descriptions_count_by_their_probability(tmp_path: Path) -> None:
    archive(tmp_path)
    with scripted(planted) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--soft")
        run = score(tmp_path, "out", *flags)
    assert run.returncode == 0, run.stderr
    report = report_of(tmp_path / "out")
    found = report["scores"]["description_accuracy"]["value"]
    # An empty description counts as wrong in `published`; what the judge failed at does not count.
    assert found == pytest.approx((0.8 + 1 / 3 + 0.8 + 0 + 1 / 3) / 5, abs=1e-6)
    assert report["scores"]["question_accuracy"]["value"] == 1
    assert "judgements:llm|soft:yes|judge:tiny" in report["signature"]
    note = "1 of 5 descriptions have no probability and count by their verdict"
    assert any(note in each for each in report["notes"])
    lines = read_rows(tmp_path / "out" / "items.jsonl")
    probabilities = [line["evidence"].get("probability") for line in lines]
    assert probabilities == [0.8, 0.333333, 0.8, None, None, 0.333333]
    assert lines[1]["scores"]["description_accuracy"] == 0.333333
    assert here("label", "plan", tmp_path / "out", "-n", "3").returncode == 0
    labels = tmp_path / "labels.jsonl"
    rows = [{"item": line["id"], "claim": 1, "label": "supported"} for line in lines]
    labels.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    told = here("calibrate", tmp_path / "out", "--labels", labels, "--format", "json")
    calibrated = json.loads(told.stdout)["scores"]["description_accuracy"]
    assert calibrated["raw"]["value"] == found
    assert calibrated["corrected"]["value"] == 1


def test_probabilities_need_a_judge_that_states_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(tmp_path)
    given = ("--responses", tmp_path / "predictions.json", "--out", tmp_path / "out", "--soft")
    run = here("score", "event-hallusion", *given)
    assert_refused(run, "--soft is about a judge, but no judge is asked", "--judgements")
    monkeypatch.setenv("HALLUJUDGE_LLM_OMIT", "top_logprobs")
    run = score(tmp_path, "out", "--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "m", "--soft")
    assert_refused(run, "--soft needs probabilities, and the judge 'llm' gives none; use a lang")
