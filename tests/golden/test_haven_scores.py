"""HAVEN: which grades are right, groups, the figures of our sums, and a judge's two calls."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support import scripted_llm as llm
from support.choice_judge import blocks_of, scripted
from support.qa_running import report_of
from support.qa_samples import write_lines
from support.running import ServerProcess, here, read_rows

from hallujudge.metrics import AnswersItem, Report
from hallujudge.metrics.haven import BENCHMARK
from hallujudge.sdk import Client
from hallujudge.sdk.archives import read_items


@pytest.mark.parametrize(
    ("text", "paper", "corrected"),
    [
        ("1", True, True),
        ("0", False, False),
        # The grader's text is stored as it is, and only the text 1 is right.
        ("1.", False, True),
        ("0.", False, False),
        ("Correct", False, True),
        ("Incorrect", False, False),
        ("The prediction is correct: 1", False, True),
        ("The prediction is incorrect: 0", False, False),
        ("It is not correct.", False, False),
        # What a failed call leaves, and grades that say neither, or both.
        ("F", False, None),
        (" ", False, None),
        ("10", False, None),
        ("1.5", False, None),
        ("Correct or incorrect?", False, None),
    ],
)
def test_grades_are_read_exactly_and_as_they_are_meant(
    text: str, *, paper: bool, corrected: bool | None
) -> None:
    first = BENCHMARK.trial.answers[0]
    answer = structs.replace(first, fields={**first.fields, "judgement": text})
    assert BENCHMARK.variant("paper").parse(answer).right is paper
    found = BENCHMARK.variant("corrected").parse(answer)
    assert (None if found.value is None else found.right) is corrected


def record(number: int, grade: str | None, group: str = "g", **more: Any) -> dict[str, Any]:
    return {
        **{"Index": number, "Question": "Is the man sewing?", "Answer": "No"},
        **{"Causes": "Conflict with prior", "Aspects": "Event", "Form": "Binary-choice"},
        **{"Video Path": f"video {group}", "Group_id": group, "Model Answer": "No."},
        **{"Correctness": grade, **more},
    }


def scored(records: list[dict[str, Any]], variant: str = "paper") -> Report:
    with Client.embedded() as client:
        return client.score("haven", responses=records, variant=variant)


def test_failed_calls_and_empty_grades_are_wrong_or_unscored() -> None:
    records = [record(1, "1"), record(2, "F"), record(3, ""), record(4, "0")]
    paper = scored(records)
    assert (paper.scores["accuracy"].value, paper.coverage.unscored) == (0.25, 0)
    assert any(note.startswith("2 grades, F among them, are not the text") for note in paper.notes)
    corrected = scored(records, "corrected")
    assert corrected.scores["accuracy"].value == 0.5
    assert corrected.coverage.reasons == {"NO_VERDICT": 2}


def test_an_answer_without_a_grade_is_unscored_in_both() -> None:
    without = {k: v for k, v in record(2, None).items() if k != "Correctness"}
    for variant in ("paper", "corrected"):
        report = scored([record(1, "1"), without], variant)
        assert report.coverage.reasons == {"VERDICT_NULL": 1}
        assert report.scores["accuracy"].value == 1.0


def test_only_groups_of_several_graded_answers_are_consistent_or_not() -> None:
    grades = {"a": ["1", "1"], "b": ["0", "0"], "c": ["1", "0"], "d": ["1"], "e": ["1", "F"]}
    held = [(group, grade) for group, given in grades.items() for grade in given]
    records = [record(n, grade, group) for n, (group, grade) in enumerate(held)]
    paper, corrected = (scored(records, variant).scores for variant in ("paper", "corrected"))
    assert paper["groups_of_several_all_right"].value == 0.25
    assert paper["groups_of_several_with_one_verdict"].value == 0.5
    # The group e has one grade that can be read.
    assert corrected["groups_of_several_all_right"].value == pytest.approx(1 / 3)
    assert corrected["groups_of_several_with_one_verdict"].value == pytest.approx(2 / 3)


def test_answers_without_a_group_are_in_none() -> None:
    records = [{**record(n, "1"), "Group_id": None} for n in range(3)]
    scores = scored(records).scores
    assert scores["accuracy"].value == 1.0
    assert scores["groups_of_several_all_right"].value is None


# File -> its role, metric and number of records.
RECOGNISED = {
    "haven/drawn_1_eval_result.json": ("responses", "haven", 260),
}


DRAWS = ("drawn_1", "drawn_2")
GROUPED = ("groups_of_several_all_right", "groups_of_several_with_one_verdict")
EXACT = 1e-9


def figures_of(file: Path, out: Path, *more: str) -> Any:
    run = here("score", "haven", "-r", file, "-o", out, *more)
    assert run.returncode in (0, 3), run.stderr
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_our_sums(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report = figures_of(goldens / f"haven/{draw}_eval_result.json", tmp_path, *server)
    known = json.loads((goldens / "haven/expected.json").read_text())[draw]
    wanted = known["scores"]
    found = {name: report["scores"][name]["value"] for name in ("accuracy", *GROUPED)}
    assert found == pytest.approx({name: wanted[name] for name in found}, abs=EXACT)
    assert report["coverage"] == report["coverage"] | {"items": known["items"], "unscored": 0}
    for field in ("cause", "aspect", "form"):
        groups = report["groups"][field]
        values = {name: group["accuracy"]["value"] for name, group in groups.items()}
        assert values == pytest.approx(wanted[f"by_{field}"], abs=EXACT), field


@pytest.mark.parametrize("draw", DRAWS)
def test_corrected_gives_the_figures_of_a_plain_loop(
    goldens: Path, tmp_path: Path, draw: str
) -> None:
    file = goldens / f"haven/{draw}_eval_result.json"
    report = figures_of(file, tmp_path, "--variant", "corrected")
    meant = {"1": 1, "0": 0, "Correct": 1, "Incorrect": 0, "The prediction is incorrect: 0": 0}
    meant |= {"1.": 1, "0.": 0, "The prediction is correct: 1": 1}
    items = json.loads(file.read_text())
    grades = [(row["Group_id"], meant.get(row["Correctness"])) for row in items]
    by_group = defaultdict(list)
    for group, grade in grades:
        if grade is not None:
            by_group[group].append(grade)
    known = [grade for _, grade in grades if grade is not None]
    several = [held for held in by_group.values() if len(held) > 1]
    assert report["coverage"]["unscored"] == len(items) - len(known)
    wanted = {
        "accuracy": sum(known) / len(known),
        GROUPED[0]: sum(map(all, several)) / len(several),
        GROUPED[1]: sum(len(set(held)) == 1 for held in several) / len(several),
    }
    found = {name: report["scores"][name]["value"] for name in wanted}
    assert found == pytest.approx(wanted, abs=EXACT)
    assert report["scores"][GROUPED[0]]["n"] == len(several)


def test_a_judge_grades_answers_of_a_group_whatever_the_file_says(tmp_path: Path) -> None:
    records = [
        {
            **{"Index": n, "Question": f"Is thing {n} there?", "Answer": "No", "Causes": "c"},
            **{"Aspects": "Event", "Form": "Binary-choice", "Video Path": "v", "Group_id": "g"},
            **{"Model Answer": text, "Extract Answer": "F", "Correctness": "F"},
        }
        for n, text in enumerate(["No.", "I think it is."])
    ]

    def step(_number: int, body: llm.Body) -> llm.Reply:
        return llm.completion("0" if "I think it is." in llm.prompt_of(body) else "1")

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    try:
        run = here(
            *("score", "haven", "-r", write_lines(tmp_path / "answers.jsonl", records)),
            *("--judgements", "llm", "-o", tmp_path / "out"),
            *("--llm-url", server.url, "--llm-model", "m"),
        )
    finally:
        stop()
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    values = {name: score["value"] for name, score in report["scores"].items()}
    assert (values["accuracy"], values["groups_of_several_all_right"]) == (0.5, 0.0)
    assert "|judgements:llm|" in report["signature"]
    assert llm.prompt_of(server.requests[0]).count("REFERENCE") == 2


# Response -> what is extracted from it.
REASONED = {
    "He holds a needle, yet he draws. So it is not sewing.": "no",
    "It moves left at first, and then right, the second option.": "B. It moves right",
    "It can't be told from the frames.": "no answer",
}
SHORT = "A cat sits on a mat."


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def reasoned(number: int, form: str, reference: str, response: str) -> dict[str, Any]:
    return {
        **{"Index": number, "Question": f"What of video {number}?", "Answer": reference},
        **{"Causes": "c", "Aspects": "Event", "Form": form, "Video Path": "v", "Group_id": "g"},
        **{"Model Answer": response, "Extract Answer": "F", "Correctness": "F"},
    }


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    references = ("No", "A. It moves left", "no answer")
    forms = ("Binary-choice", "Multiple-choice", "Multiple-choice")
    rows = zip(forms, references, REASONED, strict=True)
    records = [reasoned(number, *row) for number, row in enumerate(rows)]
    records.append(reasoned(3, "Short-answer", "A cat", SHORT))
    return write_lines(tmp_path / "answers.jsonl", records)


def grade(blocks: dict[str, str]) -> str:
    same = blocks["REFERENCE"].lower() == blocks["RESPONSE"].lower()
    return "1" if same or blocks["RESPONSE"] == SHORT else "0"


def judge(_number: int, body: llm.Body) -> llm.Reply:
    blocks = blocks_of(body)
    # Only who grades sees the reference.
    return llm.completion(grade(blocks) if "REFERENCE" in blocks else REASONED[blocks["RESPONSE"]])


def judged(
    file: Path, out: Path, *more: str | Path, judgements: str = "llm", variant: str = "two-calls"
) -> Any:
    given = ("--responses", file, "--judgements", judgements, "--variant", variant)
    return here("score", "haven", *given, *more, "--out", out)


def test_what_is_extracted_is_graded_here_and_at_a_server(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        cache = ("--verdict-cache", tmp_path / "verdicts.sqlite")
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        run = judged(answers, tmp_path / "here", *flags, *cache)
        assert run.returncode == 0, run.stderr
        asked = list(map(blocks_of, server.requests))
        # Replies that are kept cost nothing, and make the same files.
        assert judged(answers, tmp_path / "again", *flags, *cache).returncode == 0
        assert server.chats == len(asked)
        remote = ServerProcess(*flags)
        try:
            run = judged(answers, tmp_path / "there", "--server", remote.address)
            assert run.returncode == 0, run.stderr
        finally:
            remote.stop()
        assert server.chats == 2 * len(asked)
    graded = [blocks["RESPONSE"] for blocks in asked if "REFERENCE" in blocks]
    extracted = [blocks["RESPONSE"] for blocks in asked if "REFERENCE" not in blocks]
    assert sorted(extracted) == sorted(REASONED)
    # Short answers are graded as they are, and no grader sees the reasoning.
    assert sorted(graded) == sorted([*REASONED.values(), SHORT])
    items = (tmp_path / "here/items.jsonl").read_bytes()
    assert items == (tmp_path / "again/items.jsonl").read_bytes()
    report = report_of(tmp_path / "here")
    assert report["scores"]["accuracy"]["value"] == 0.75
    there = report_of(tmp_path / "there")
    assert (report["scores"], report["signature"]) == (there["scores"], there["signature"])
    signature = report["signature"]
    assert "haven|var:two-calls|judgements:llm|" in signature
    assert "haven-1@" in signature
    assert "haven-extract-1@" in signature
    first, *_, last = read_rows(tmp_path / "here/items.jsonl")
    assert first["evidence"]["answers"][0]["how"] == "exact grade: 'no'"
    assert [row["evidence"]["judging"][0]["calls"] for row in (first, last)] == [2, 1]
    assert report["judging"][0]["calls"] == len(asked)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.completion(" "), "REPLY_OUT_OF_CHOICE"),
        (llm.completion("no, because", finish="length"), "REPLY_TRUNCATED"),
        (llm.completion(None, refusal="I can't."), "JUDGE_REFUSED"),
    ],
)
def test_an_answer_that_is_not_extracted_is_not_graded(
    answers: Path, tmp_path: Path, reply: llm.Reply, reason: str
) -> None:
    def refusing(number: int, body: llm.Body) -> llm.Reply:
        blocks = blocks_of(body)
        return reply if blocks["RESPONSE"] == next(iter(REASONED)) else judge(number, body)

    with scripted(refusing) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        run = judged(answers, tmp_path / "out", *flags)
        assert run.returncode == 3, run.stderr
        graded = [b["RESPONSE"] for b in map(blocks_of, server.requests) if "REFERENCE" in b]
    assert "no" not in graded
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {reason: 1}
    assert report["scores"]["accuracy"]["value"] == pytest.approx(2 / 3)
    first, *_ = read_rows(tmp_path / "out/items.jsonl")
    assert "no answer is extracted: " in first["detail"]


def test_the_fallback_grades_what_it_extracts_itself(
    answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(_number: int, body: llm.Body) -> llm.Reply:
        blocks = blocks_of(body)
        return llm.completion(grade(blocks) if "REFERENCE" in blocks else "")

    with scripted(empty) as server, scripted(judge, model="big") as second:
        monkeypatch.setenv("HALLUJUDGE_FALLBACK_URL", second.url)
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--fallback-model", "big")
        run = judged(answers, tmp_path / "out", *flags, judgements="router")
        assert run.returncode == 0, run.stderr
        assert second.chats == 2 * len(REASONED)
    first, *_, last = read_rows(tmp_path / "out/items.jsonl")
    found = [(part["judge"], part["answered"]) for part in first["evidence"]["judging"]]
    assert found == [("llm", 0), ("fallback", 1)]
    assert [part["judge"] for part in last["evidence"]["judging"]] == ["llm"]


def test_an_estimate_counts_both_calls(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--estimate")
        run = judged(answers, tmp_path / "out", *flags)
        assert server.chats == 0
    assert f"{2 * len(REASONED) + 1} calls" in run.stdout


def test_a_judge_that_writes_no_text_is_refused(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--llm-api", "scoring")
        run = judged(answers, tmp_path / "out", *flags)
        assert (run.returncode, server.chats) == (2, 0)
    assert "--llm-api is 'scoring', which writes no text to judge; set it to chat" in run.stderr


def test_other_variants_grade_responses_in_one_call(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        run = judged(answers, tmp_path / "out", *flags, variant="paper")
        assert run.returncode == 0, run.stderr
        asked = [blocks_of(body)["RESPONSE"] for body in server.requests]
    assert sorted(asked) == sorted([*REASONED, SHORT])
    report = report_of(tmp_path / "out")
    assert json.dumps(report["scores"]["accuracy"]["value"]) == "0.25"
    assert "haven-extract" not in report["signature"]


def test_a_question_has_no_verdict_on_the_answer() -> None:
    """It would be one on another model's answer."""
    place = {"Causes": "a", "Aspects": "b", "Form": "c", "Video Path": "v.mp4"}
    question = {"id": "1", "Question": "What?", "Answer": "A dog.", **place, "judgement": "1"}
    [item] = read_items("haven", [{"id": "1", "Model Answer": "A cat."}], [question])
    assert isinstance(item, AnswersItem)
    assert not item.answers[0].fields["judgement"]
