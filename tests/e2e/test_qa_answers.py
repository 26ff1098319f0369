"""Answers read askew and files mixed up in silence: cases that were once wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.qa_running import assert_refused, here, report_of, values_of
from support.qa_samples import write_lines

from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, PopeMetric, Tally
from hallujudge.metrics.answers import read_choice, read_free_answer
from hallujudge.metrics.infact.analysis import overconfidence
from hallujudge.metrics.pope.build import article_of, build_pope
from hallujudge.metrics.vidhal.metric import VidhalMcqaMetric, VidhalOrderingMetric

THINGS = ("dog", "cat", "bus", "car")
QUESTIONS: list[dict[str, Any]] = [
    {
        "question_id": n,
        "image": f"{n}.jpg",
        "text": f"Is there a {thing} in the image?",
        "label": ("yes", "no")[n % 2],
    }
    for n, thing in enumerate(THINGS, 1)
]
LINE: dict[str, Any] = {
    "question_id": "q1",
    "operator": "base",
    "dimension": "factuality",
    "category": "fluid mechanics reasoning",
    "order_sensitive": False,
    "label": "A",
    "response": "A",
}
RIGHT = {row["question_id"]: row["label"].title() for row in QUESTIONS}


def pope(folder: Path, answers: Sequence[Mapping[str, Any]], *more: str | Path) -> Any:
    return here(
        *("score", "pope", "--responses", write_lines(folder / "a.jsonl", answers)),
        *("--references", write_lines(folder / "q.jsonl", QUESTIONS), "--out", folder / "out"),
        *more,
    )


def infact(folder: Path, lines: Sequence[Mapping[str, Any]]) -> Any:
    path = write_lines(folder / "lines.jsonl", lines)
    return here("score", "infact", "--responses", path, "--out", folder / "out")


def answer(row: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    number = row["question_id"]
    return {"question_id": number, "text": RIGHT[number], **more}


def test_an_answer_without_its_id_is_not_joined_by_its_place(tmp_path: Path) -> None:
    answers = [answer(row) for row in QUESTIONS]
    del answers[1]["question_id"]
    assert_refused(pope(tmp_path, answers), "line 2", "question_id")
    questions = [dict(row) for row in QUESTIONS]
    del questions[2]["question_id"]
    path = write_lines(tmp_path / "odd.jsonl", questions)
    run = pope(tmp_path, [answer(row) for row in QUESTIONS], "--references", path)
    assert_refused(run, "line 3", "question_id")


@pytest.mark.parametrize("key", ["prompt", "question"])
def test_answers_of_another_split_are_refused(tmp_path: Path, key: str) -> None:
    # The ids of POPE's splits are all 1 to 3,000: an id alone does not tell them apart.
    asked = [row["text"] for row in QUESTIONS]
    same = [
        answer(row, **{key: f"<image>\n{text.upper()} Answer yes or no."})
        for row, text in zip(QUESTIONS, asked, strict=True)
    ]
    assert pope(tmp_path, same).returncode == 0
    mixed = [dict(row) for row in same]
    mixed[2][key] = "Is there a dining table in the image?"
    assert_refused(pope(tmp_path, mixed), "3", "dining table", "bus", "--join id")
    assert pope(tmp_path, mixed, "--join", "id").returncode == 0


def test_answers_in_another_order_are_refused(tmp_path: Path) -> None:
    own = [{"question": row["text"], "answer": RIGHT[row["question_id"]]} for row in QUESTIONS]
    assert pope(tmp_path, own, "--join", "order").returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 1
    assert_refused(pope(tmp_path, own[::-1], "--join", "order"), "car", "dog", "--join text")
    bare = [{"answer": row["answer"]} for row in own]
    (tmp_path / "one_line.json").write_text(json.dumps(bare))
    run = pope(tmp_path, own, "--responses", tmp_path / "one_line.json", "--join", "order")
    assert run.returncode == 0, run.stderr


def test_a_label_beside_a_prediction_is_not_the_answer(tmp_path: Path) -> None:
    # VLMEvalKit's records: `answer` is the label, `prediction` what the model wrote.
    rows = [
        {"question_id": q["question_id"], "answer": q["label"].title(), "prediction": "no"}
        for q in QUESTIONS
    ]
    assert pope(tmp_path, rows).returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 0.5
    path = write_lines(tmp_path / "alone.jsonl", rows)
    run = here("score", "pope", "--responses", path, "--out", tmp_path / "alone")
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "alone")["accuracy"] == 0.5


@pytest.mark.parametrize("text", [["Yes"], "Yes"])
def test_logs_of_lmms_eval(tmp_path: Path, text: object) -> None:
    rows = [
        {
            "doc_id": n,
            "target": q["label"],
            "filtered_resps": text,
            "pope_accuracy": {
                "question_id": q["question_id"],
                "score": 1.0,
                "prediction": "yes",
                "ground_truth": q["label"],
            },
        }
        for n, q in enumerate(QUESTIONS)
    ]
    assert pope(tmp_path, rows[::-1]).returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 0.5
    path = write_lines(tmp_path / "alone.jsonl", rows)
    run = here("score", "pope", "--responses", path, "--out", tmp_path / "alone")
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "alone")["yes_ratio"] == 1


def test_ids_in_messages_stay_on_one_line(tmp_path: Path) -> None:
    rows = [{"image": q["image"], "question": "What is it?", "answer": "Yes"} for q in QUESTIONS]
    run = pope(tmp_path, rows)
    assert_refused(run, "1.jpg: What is it?")
    assert run.stderr.count("\n") == 1


def test_all_parsers_side_by_side(tmp_path: Path) -> None:
    said = ["Yes.", "NO", "isn't", None]
    rows = [answer(row) | {"text": text} for row, text in zip(QUESTIONS, said, strict=True)]
    run = pope(tmp_path, rows, "--all-parsers", "--variant", "strict")
    assert run.returncode == 3, run.stderr
    table = json.loads((tmp_path / "out" / "parsers.json").read_text())
    assert list(table) == ["published", "opera", "lmms-eval", "vlmevalkit", "strict"]
    assert table["strict"] == {
        name: pytest.approx(value) for name, value in values_of(tmp_path / "out").items()
    }
    assert [table[name]["yes_ratio"] for name in ("published", "opera", "vlmevalkit")] == [
        1.0,
        1 / 3,
        1 / 3,
    ]
    assert table["lmms-eval"]["unparsed_rate"] == pytest.approx(2 / 3)
    assert "every parser" in run.stdout
    assert "vlmevalkit" in run.stdout
    assert pope(tmp_path, rows).returncode == 3
    assert not (tmp_path / "out" / "parsers.json").exists(), "another run's table"


def test_display_orders_of_more_videos_are_noted(tmp_path: Path) -> None:
    display = {f"v{n}": {"A": "2", "B": "1"} for n in range(3)}
    for name, content in (
        ("options", display),
        ("answers", {"v0": "B", "v1": "A"}),
        ("videos", [{"video": f"v{n}", "captions": {"1": "x", "2": "y"}} for n in range(2)]),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    run = here(
        *("score", "vidhal-mcqa", "--responses", tmp_path / "answers"),
        *("--references", tmp_path / "videos", "--options", tmp_path / "options"),
        *("--out", tmp_path / "out"),
    )
    assert run.returncode == 0, run.stderr
    assert "no annotations for 1 of the videos with a display order: v2" in run.stderr


@pytest.mark.parametrize("letter", ["A", "B", "D"])
@pytest.mark.parametrize(
    "way",
    [
        "The answer is: {}.",
        "\\boxed{{{}}}",
        "$\\boxed{{\\text{{{}}}}}$",
        "<answer>{}</answer>",
        "<think>Both B and C move.</think><answer>{}</answer>",
        "I would choose {}.",
        "I choose {}",
        "It must be {}!",
        "{} is correct.",
        "{} because the door opens.",
        "The correct option is **{}**.",
        "Answer - {}",
    ],
)
def test_every_letter_is_read_alike(way: str, letter: str) -> None:
    assert read_choice(way.format(letter)).choice == letter
    options = dict(zip("ABCD", ("one", "two", "three", "four"), strict=True))
    assert read_choice(way.format(letter), options).choice == letter


@pytest.mark.parametrize(
    "text", ["A dog runs.", "A man and a dog", "I see a cat", "A", "I", "the answer is a dog"]
)
def test_words_are_no_letters(text: str) -> None:
    assert read_choice(text).choice == ("A" if text == "A" else "I" if text == "I" else None)


@pytest.mark.parametrize("said", ["B", "(B)", "Answer: B", "The correct option is B."])
def test_a_letter_says_nothing_where_options_are_unknown(said: str) -> None:
    assert read_free_answer(said, "opening the door").choice is None


def test_a_letter_and_a_label_in_words_is_unread(tmp_path: Path) -> None:
    run = infact(tmp_path, [{**LINE, "label": "opening the door", "response": "B"}])
    assert run.returncode == 3, run.stderr
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"BASE_UNPARSED": 1}


def test_a_label_that_is_no_option_makes_no_answer_wrong(tmp_path: Path) -> None:
    given = {**LINE, "label": "E", "options": ["closing it", "opening it"]}
    assert infact(tmp_path, [given]).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"LABEL_INVALID": 1}
    for label in ("B", "opening it", "(B) opening it"):
        rows = [{**given, "label": label, "response": "Opening it."}]
        assert infact(tmp_path, rows).returncode == 0
        assert values_of(tmp_path / "out")["base_accuracy"] == 1


@pytest.mark.parametrize(
    ("said", "right"),
    [("B", 1), ("(B)", 1), ("Opening the door.", 1), ("A", 0), ("closing it", 0), ("Answer: A", 0)],
)
def test_a_label_that_has_its_letter_before_it(tmp_path: Path, said: str, right: int) -> None:
    for label in ("B. opening the door", "(B) opening the door"):
        assert infact(tmp_path, [{**LINE, "label": label, "response": said}]).returncode == 0
        assert values_of(tmp_path / "out")["base_accuracy"] == right


def test_sure_by_its_number_is_overconfident_whatever_it_says(tmp_path: Path) -> None:
    # A.4 asks for the confidence first.
    split = overconfidence([(0.9, True), (0.5, True), (None, True), (0.3, False), (0.5, False)])
    assert (split.hallucination_like, split.knowledge_gap_like, split.other) == (1, 3, 1)
    said = "B, but I'm not sure"
    assert infact(tmp_path, [{**LINE, "response": said, "confidence": 0.9}]).returncode == 0
    values = values_of(tmp_path / "out")
    assert (values["overconfident_share"], values["knowledge_gap_share"]) == (1, 0)


@pytest.mark.parametrize(
    ("key", "value"), [("dimension", "faithfulness"), ("category", "scene text recognition")]
)
def test_lines_of_a_question_that_disagree(tmp_path: Path, key: str, value: str) -> None:
    other = {**LINE, "operator": "shuffle", key: value}
    assert_refused(infact(tmp_path, [LINE, other]), "q1", key)
    bare = {name: text for name, text in LINE.items() if name != key}
    assert infact(tmp_path, [bare, other]).returncode == 0
    assert value in report_of(tmp_path / "out")["groups"][key]


@pytest.mark.parametrize(
    ("name", "article"),
    [
        ("x-ray", "an"),
        ("MRI scan", "an"),
        ("SUV", "an"),
        ("UFO", "a"),
        ("TV", "a"),
        ("tv", "a"),
        ("t-shirt", "a"),
        ("u-turn sign", "a"),
        ("usb drive", "a"),
        ("urinal", "a"),
        ("urn", "an"),
        ("8 ball", "an"),
        ("18-wheeler", "an"),
        ("1 euro coin", "a"),
        ("80s jacket", "an"),
        ("éclair", "an"),
        ('"apple" logo', "an"),
        ("ouija board", "a"),
        ("onesie", "a"),
        ("ID card", "an"),
        ("umbrella", "an"),
        ("unicorn", "a"),
    ],
)
def test_articles_by_sound(name: str, article: str) -> None:
    assert article_of(name) == article


def test_an_article_that_begins_a_sentence() -> None:
    built = build_pope(
        {"1": ["umbrella"], "2": ["dog"]},
        sampling="random",
        questions_per_image=2,
        template="A <object>, yes or no?",
    )
    assert [row.text for row in built.questions[:2]] == [
        "An umbrella, yes or no?",
        "A dog, yes or no?",
    ]


def test_adding_one_by_one_or_at_once() -> None:
    metric = PopeMetric(variant="strict")
    results = []
    for n, said in enumerate(["Yes", "No", "?", None] * 25):
        scored = metric.score_answer(said or "", "yes")
        results.append(
            ItemResult(
                id=str(n),
                group_id=str(n // 7),
                outcome=Outcome.SCORED if scored.readable else Outcome.UNSCORED,
                reason="" if scored.readable else "ANSWER_UNPARSED" if said else "RESPONSE_MISSING",
                statistics=() if said is None else scored.statistics,
                fields={"model": "ab"[n % 2]},
            )
        )
    one, whole = Tally(metric, ["model"]), Tally(metric, ["model"])
    for result in results:
        one.add(result)
    whole.add_all(results[:33])
    whole.add_all([])
    whole.add_all(results[33:])
    reports = [tally.finish(IntervalSettings(), version="0").to_text() for tally in (one, whole)]
    assert reports[0] == reports[1]


def test_totals_over_display_orders_of_every_shape() -> None:
    metric = VidhalOrderingMetric()
    said = ["A, B", "B, A, C", "B, C", "B, A, C", "A, B, C"]
    shown = [
        {"A": 1, "B": 2},
        {"A": 1, "B": 2, "C": 3},
        {"B": 2, "C": 1},
        {"C": 3, "B": 2, "A": 1},
        {"A": 1, "B": 2, "D": 3},
    ]
    rows = [metric.score_answer(a, (), d).statistics for a, d in zip(said, shown, strict=True)]
    got = metric.total(said, shown)
    assert [got["ndcg"], got["invalid"]] == pytest.approx([sum(r[i] for r in rows) for i in (0, 1)])
    assert got["commonest"] == 2
    alike = metric.total(said[1::2], shown[1::2])
    assert alike["ndcg"] == pytest.approx(
        2 * metric.score_answer(said[1], (), shown[1]).statistics[0]
    )


def test_choices_of_millions_of_videos_stay_small() -> None:
    assert VidhalMcqaMetric().folds, "whole numbers whose sums are all that counts"
