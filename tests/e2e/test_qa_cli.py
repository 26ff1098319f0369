"""POPE, VidHal and INFACT on the command line: right numbers, and one clear line where not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from oracles import answers_published as oracle
from support.messages import expected_message
from support.qa_running import assert_refused, report_of, values_of
from support.qa_samples import infact_lines, infact_questions, write_lines
from support.running import here, read_rows

QUESTIONS: list[dict[str, Any]] = [
    {"question_id": n, "image": f"{n // 2}.jpg", "text": f"Is there a {thing}?", "label": label}
    for n, (thing, label) in enumerate(
        [("dog", "yes"), ("cat", "no"), ("bus", "yes"), ("car", "no")]
    )
]
ANSWERS: list[dict[str, Any]] = [
    {"question_id": n, "text": text} for n, text in enumerate(["Yes", "No", "no", "Not sure"])
]


def pope(
    folder: Path, answers: Any, *more: str | Path, questions: Any = QUESTIONS
) -> subprocess.CompletedProcess[str]:
    return here(
        *("score", "pope", "--responses", write_lines(folder / "answers.jsonl", answers)),
        *("--references", write_lines(folder / "questions.jsonl", questions)),
        *("--out", folder / "out", "--overwrite"),
        *more,
    )


def test_order_does_not_matter(tmp_path: Path) -> None:
    assert pope(tmp_path, ANSWERS).returncode == 0
    first = (tmp_path / "out" / "report.json").read_bytes()
    assert pope(tmp_path, ANSWERS[::-1], questions=QUESTIONS[1:] + QUESTIONS[:1]).returncode == 0
    assert (tmp_path / "out" / "report.json").read_bytes() == first
    # "Not sure" holds none of No, no and not, and is a yes.
    wanted = oracle.pope([row["text"] for row in ANSWERS], [q["label"] for q in QUESTIONS])
    assert values_of(tmp_path / "out") == {
        **{
            name: pytest.approx(wanted[name])
            for name in wanted
            if name not in {"tp", "fp", "tn", "fn"}
        },
        "unparsed_rate": 0,
    }


def test_what_strict_cannot_read_is_unscored(tmp_path: Path) -> None:
    run = pope(tmp_path, ANSWERS, "--variant", "strict")
    assert run.returncode == 3, run.stderr
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {"ANSWER_UNPARSED": 1}
    assert report["coverage"]["scored"] == 3
    assert report["scores"]["accuracy"] == {**report["scores"]["accuracy"], "value": 2 / 3, "n": 3}
    assert report["scores"]["unparsed_rate"]["value"] == 0.25
    assert report["coverage"]["bounds"]["accuracy"] == {"best": 0.75, "worst": 0.5}
    row = read_rows(tmp_path / "out" / "items.jsonl")[3]
    assert (row["outcome"], row["evidence"]["answers"][0]["answer"]) == ("unscored", None)


@pytest.mark.parametrize(
    ("parser", "accuracy", "unparsed"),
    [("published", 0.5, 0), ("opera", 0.5, 0), ("lmms-eval", 0.5, 0.25), ("vlmevalkit", 0.5, 0.25)],
)
def test_parsers(tmp_path: Path, parser: str, accuracy: float, unparsed: float) -> None:
    assert pope(tmp_path, ANSWERS, "--parser", parser).returncode == 0
    values = values_of(tmp_path / "out")
    assert (values["accuracy"], values["unparsed_rate"]) == (accuracy, unparsed)


def test_reader_is_an_alias_of_parser_that_help_does_not_show(tmp_path: Path) -> None:
    ended = pope(tmp_path, ANSWERS, "--reader", "lmms-eval")
    assert ended.returncode == 0
    assert ended.stderr.startswith("note: the option --reader is deprecated")
    assert report_of(tmp_path / "out")["variant"] == "lmms-eval"
    assert "--reader" not in pope(tmp_path, ANSWERS, "--help").stdout


def test_categories_and_images(tmp_path: Path) -> None:
    questions = [
        {**q, "category": "random" if n < 2 else "popular"} for n, q in enumerate(QUESTIONS)
    ]
    run = pope(tmp_path, ANSWERS, questions=questions)
    assert run.returncode == 0, run.stderr
    groups = report_of(tmp_path / "out")["groups"]
    assert groups["category"]["random"]["accuracy"]["value"] == 1
    rows = read_rows(tmp_path / "out" / "items.jsonl")
    assert [row["group_id"] for row in rows] == ["0.jpg", "0.jpg", "1.jpg", "1.jpg"]


def test_join_by_image_and_text(tmp_path: Path) -> None:
    answers = [
        {"image": q["image"], "question": q["text"], "answer": a["text"]}
        for q, a in zip(QUESTIONS, ANSWERS, strict=True)
    ]
    run = pope(tmp_path, answers[::-1])
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "out")["accuracy"] == 0.5


def test_by_order_only_when_asked(tmp_path: Path) -> None:
    answers = [{"question": "?", "answer": a["text"]} for a in ANSWERS]
    assert_refused(pope(tmp_path, answers), "--join order", "answer, question")
    assert pope(tmp_path, answers, "--join", "order").returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 0.5
    assert_refused(
        pope(tmp_path, answers, "--join", "luck"), "--join luck is unknown", "auto, id, text, order"
    )


def test_answers_that_carry_their_labels(tmp_path: Path) -> None:
    rows = [{**q, "response": a["text"]} for q, a in zip(QUESTIONS, ANSWERS, strict=True)]
    path = write_lines(tmp_path / "all.jsonl", rows)
    run = here("score", "pope", "--responses", path, "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "out")["accuracy"] == 0.5


POPE_BAD = {
    "an answer twice": ([*ANSWERS, ANSWERS[1]], QUESTIONS, ["answered more than once: 1"]),
    "an answer missing": (ANSWERS[:3], QUESTIONS, ["have no answer: 3", "--allow-missing"]),
    "an answer too many": (
        [*ANSWERS, {"question_id": 77, "text": "yes"}],
        QUESTIONS,
        ["that the references lack: 77"],
    ),
    "a question twice": (
        ANSWERS,
        [*QUESTIONS, QUESTIONS[2]],
        ["duplicate questions in the file of questions: 2"],
    ),
    "another label": (
        ANSWERS,
        [*QUESTIONS[:3], {**QUESTIONS[3], "label": "maybe"}],
        ['neither yes nor no: 3 ("maybe")'],
    ),
    "no label": (
        ANSWERS,
        [*QUESTIONS[:3], {**QUESTIONS[3], "label": None}],
        ["neither yes nor no: 3 (null)"],
    ),
    "an answer that is not a text": (
        [*ANSWERS[:3], {"question_id": 3, "text": {"a": 1}}],
        QUESTIONS,
        ["line 4", "not a text"],
    ),
    "an invalid id": (
        [*ANSWERS[:3], {"question_id": None, "text": "yes"}],
        QUESTIONS,
        ["line 4", "is not an id"],
    ),
}


@pytest.mark.parametrize("case", list(POPE_BAD))
def test_bad_pope_input(tmp_path: Path, case: str) -> None:
    answers, questions, said = POPE_BAD[case]
    assert_refused(pope(tmp_path, answers, questions=questions), *said)


def test_what_is_allowed_is_unscored(tmp_path: Path) -> None:
    answers = [*ANSWERS[:3], {"question_id": 77, "text": "yes"}, ANSWERS[0]]
    run = pope(tmp_path, answers, "--allow-missing", "--allow-unknown", "--allow-duplicates")
    assert run.returncode == 3, run.stderr
    coverage = report_of(tmp_path / "out")["coverage"]
    assert coverage["reasons"] == {"REFERENCE_MISSING": 1, "RESPONSE_MISSING": 1}
    assert coverage["scored"] == 4
    rows = read_rows(tmp_path / "out" / "items.jsonl")
    assert [row["id"] for row in rows] == ["0", "1", "2", "77", "0#2", "3"]


def infact(folder: Path, lines: Any, *more: str | Path) -> subprocess.CompletedProcess[str]:
    path = write_lines(folder / "lines.jsonl", lines)
    return here(
        "score", "infact", "--responses", path, "--out", folder / "out", "--overwrite", *more
    )


def test_infact_agrees_with_the_formulas(tmp_path: Path) -> None:
    questions = infact_questions(600)
    path = write_lines(tmp_path / "lines.jsonl", infact_lines(questions))
    run = here("score", "infact", "--responses", path, "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    report = report_of(tmp_path / "out")
    wanted = oracle.infact(questions)
    got = {name: report["scores"][name]["value"] for name in wanted}
    assert got == {name: pytest.approx(value, abs=1e-12) for name, value in wanted.items()}
    right = [q for q in questions if q["runs"]["base"] == q["label"]]
    assert report["scores"]["rr_compression"]["n"] == len(right)
    assert report["scores"]["tss_shuffle"]["n"] == sum(q["order_sensitive"] for q in right)
    leaf = report["groups"]["category"]["entity recognition"]
    some = [q for q in questions if q["category"] == "entity recognition"]
    assert leaf["base_accuracy"]["value"] == pytest.approx(oracle.infact(some)["base_accuracy"])
    assert set(report["groups"]["dimension"]) == {"faithfulness", "factuality"}
    assert len(report["groups"]["level"]) == 6
    wrong = [
        q for q in questions if q["runs"]["base"] != q["label"] and q["confidence"] is not None
    ]
    sure = sum(q["confidence"] >= 0.7 for q in wrong)
    assert report["scores"]["overconfident_share"]["value"] == pytest.approx(sure / len(wrong))


def test_without_a_right_base_answer_there_is_no_score(tmp_path: Path) -> None:
    lines = infact_lines(infact_questions(30))
    for line in lines:
        if line["operator"] == "base":
            line["response"] = "E"
    assert infact(tmp_path, lines).returncode == 0
    values = values_of(tmp_path / "out")
    assert values["base_accuracy"] == 0
    assert values["rr_compression"] is None
    assert values["tss"] is None
    assert values["average"] is None


def test_unread_answers_are_counted(tmp_path: Path) -> None:
    lines = infact_lines(infact_questions(40))
    bases = [line for line in lines if line["operator"] == "base"]
    bases[0]["response"] = "I cannot tell"
    others = [line for line in lines if line["operator"] == "compression"]
    others[0]["response"] = "???"
    run = infact(tmp_path, lines)
    assert run.returncode == 3, run.stderr
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {"BASE_UNPARSED": 1}
    assert report["scores"]["unparsed_rate"]["value"] == pytest.approx(2 / 400)
    assert report["scores"]["base_accuracy"]["n"] == 39
    assert infact(tmp_path, lines, "--unparsed", "wrong").returncode == 0
    assert report_of(tmp_path / "out")["scores"]["base_accuracy"]["n"] == 40


LINE = {
    "question_id": "q1",
    "operator": "base",
    "dimension": "factuality",
    "category": "x",
    "order_sensitive": False,
    "label": "A",
    "response": "A",
}
INFACT_BAD: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "unknown operator": ([LINE, {**LINE, "operator": "rotate"}], ["q1 ('rotate')", "caption_inj"]),
    "no base run": ([{**LINE, "operator": "shuffle"}], ["no base answer: q1"]),
    "operator twice": ([LINE, LINE], ["q1 (base)"]),
    "line id twice": (
        [{**LINE, "id": 5}, {**LINE, "id": 5, "operator": "shuffle"}],
        ["duplicate line ids: 5"],
    ),
    "confidence is NaN": ([{**LINE, "confidence": float("nan")}], ["q1 (nan)"]),
    "confidence is a text": ([{**LINE, "confidence": "NaN"}], ["q1 ('NaN')"]),
    "confidence in percent": ([{**LINE, "confidence": 85}], ["q1 (85)", "0.85"]),
    "two labels": ([LINE, {**LINE, "operator": "shuffle", "label": "B"}], ["another label", "q1"]),
    "no label": (
        [{**LINE, "label": ""}],
        ['labels are neither a text nor a number: q1 (base: "")'],
    ),
    "odd truth": ([{**LINE, "order_sensitive": "often"}], ["order_sensitive", 'q1 ("often")']),
    "odd dimension": ([{**LINE, "dimension": "beauty"}], ['q1 ("beauty")', "faithfulness"]),
    "mixed files": ([LINE, {"question_id": 1, "text": "Yes"}], ["line 2", "operator"]),
}


@pytest.mark.parametrize("case", list(INFACT_BAD))
def test_bad_infact_input(tmp_path: Path, case: str) -> None:
    lines, said = INFACT_BAD[case]
    assert_refused(infact(tmp_path, lines), *said)


def test_questions_are_built(tmp_path: Path) -> None:
    objects = tmp_path / "objects.json"
    objects.write_text(json.dumps({"1": ["dog", "cat"], "2": ["bus"], "3": ["umbrella", "dog"]}))
    given = ("build", "pope", "--objects", objects, "--questions", "2", "--sampling", "popular")
    first, again = tmp_path / "a" / "q.jsonl", tmp_path / "b.jsonl"
    for out in (first, again):
        run = here(*given, "--seed", "4", "--out", out)
        assert run.returncode == 0, run.stderr
    assert first.read_bytes() == again.read_bytes()
    rows = read_rows(first)
    assert [row["label"] for row in rows] == ["yes", "no"] * 3
    assert_refused(here(*given, "--out", first, "--template", "What?"), "{object}")
    assert_refused(here(*given, "--out", first, "--images", "9"), "9 are requested")
    assert_refused(here(*given, "--out", objects), "is one of the inputs; name another file")
    none = tmp_path / "none.json"
    none.write_text('{"1": [], "2": []}')
    refused = here("build", "pope", "--objects", none, "--out", first)
    assert (
        expected_message("asking.builders.pope:no-image-has-an-object-check-the", none)
        in refused.stderr
    )
    odd = ("build", "pope", "--objects", objects, "--questions", "3", "--out", first)
    assert_refused(here(*odd), "--questions of pope: 3 is not an even number")
    objects.write_text('{"1": "dog"}')
    assert_refused(here(*given, "--out", first), "not a list of names")


def test_an_unknown_answer_parser_is_named_as_it_was_typed(tmp_path: Path) -> None:
    run = here("score", "pope", "-r", "a.jsonl", "--parser", "helm", "-o", tmp_path)
    assert run.returncode == 2
    assert "--parser or --variant is 'helm'; choose from published, opera" in run.stderr
    assert "both" not in run.stderr


def test_an_unknown_variant_gets_all_that_can_be_given(tmp_path: Path) -> None:
    given = ("score", "chair", "-r", "a.jsonl", "--variant", "corect", "-o", tmp_path)
    assert_refused(
        here(*given),
        "--variant is 'corect'; did you mean 'corrected'? Choose from published, corrected, both",
    )
