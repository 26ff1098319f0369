"""VQA by judge: the VQA score, judgements of the file, and what archives hold."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from msgspec import structs

from hallujudge.metrics import Answer
from hallujudge.metrics.answers.answer_text import most_frequent
from hallujudge.metrics.vqa import BENCHMARK
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError

PEOPLE = ["cat"] * 6 + ["Kitten"] * 3 + ["dog"]


@pytest.mark.parametrize(
    ("judgement", "people", "score"),
    [
        ("cat", PEOPLE, 1),
        ("kitten", PEOPLE, (3 * 2 / 3 + 7) / 10),
        ("dog", PEOPLE, 9 * (1 / 3) / 10),
        ("<NAN>", PEOPLE, None),
        ("cat", ["Cat."], 1),
        ("dog", ["cat"], None),
    ],
)
def test_the_vqa_score_leaves_each_person_out(
    judgement: str, people: list[str], score: float | None
) -> None:
    fields = {"judgement": judgement, "accepted": json.dumps(people)}
    found = BENCHMARK.variants[0].parse(Answer(response="It is.", fields=fields))
    assert found.credit == (None if score is None else pytest.approx(score))


def test_answers_are_offered_once_the_most_frequent_first() -> None:
    assert most_frequent(["dog", "Cat", "cat.", "bird", "CAT"]) == ("Cat", "dog", "bird")


def parsed(judgement: str) -> tuple[str | None, bool]:
    answer = BENCHMARK.trial.answers[0]
    found = BENCHMARK.variants[0].parse(
        structs.replace(answer, fields={**answer.fields, "judgement": judgement})
    )
    return found.value, found.right


@pytest.mark.parametrize(
    ("judgement", "value", "right"),
    [
        ("board", "board", True),
        (' "Surfboard." ', "surfboard", True),
        ("<NAN>", "<NAN>", False),
        ("<nan>.", "<NAN>", False),
        ("NaN", "<NAN>", False),
        ("It matches: board", None, False),
        ("skateboard", None, False),
        ("", None, False),
        ("1", None, False),
        ("#1", "surfboard", True),
        ("#2", "board", True),
        ("#3", None, False),
        ("#0", None, False),
    ],
)
def test_judgements_name_an_answer_or_none(judgement: str, value: str | None, right: bool) -> None:
    assert parsed(judgement) == (value, right)


def test_scores_equal_a_plain_count() -> None:
    rng = random.Random(5)
    words = ["cat", "dog", "bus", "2", "red"]
    rows: list[dict[str, Any]] = []
    points, matched, judged = 0.0, 0, 0
    for number in range(60):
        people = rng.choices(words, k=rng.choice((1, 10)))
        said = rng.choice([*words, "<NAN>", "Who knows?"])
        rows.append(
            {"id": number, "response": "It is.", "direct_answers": people, "judgement": said}
        )
        if said not in {*people, "<NAN>"}:
            continue
        judged += 1
        matched += said in people
        others = [people[:at] + people[at + 1 :] for at in range(len(people))]
        shares = [min(1, rest.count(said) / 3) for rest in others]
        points += (said in people) if len(people) == 1 else sum(shares) / len(shares)
    with Client.embedded() as client:
        report = client.score("vqa", responses=rows)
    assert report["vqa_score"].value == pytest.approx(points / judged)
    assert report["accuracy"].value == pytest.approx(matched / judged)
    assert report["unparsed_rate"].value == pytest.approx((60 - judged) / 60)
    assert report.coverage.reasons == {"NO_VERDICT": 60 - judged}


def test_released_files_are_read() -> None:
    given = [{"question_id": 7, "response": "A cat."}]
    people: dict[str, dict[str, object]] = {
        "A-OKVQA": {"direct_answers": PEOPLE, "choices": ["a", "b", "c", "d"]},
        "VQAv2": {"answers": [{"answer": text, "answer_id": 1} for text in PEOPLE]},
    }
    for own in people.values():
        asked = [{"question_id": 7, "image_id": 3, "question": "What is it?", **own}]
        [item] = read_items("vqa", given, asked)
        assert (item.group_id, item.label, item.question) == ("3", "cat", "What is it?")  # type: ignore[attr-defined]  # the family's items
    gqa = {"7": {"imageId": "n1", "question": "What is it?", "answer": "cat"}}
    options = InputOptions(key_map={"accepted": "answer"})
    [item] = read_items("vqa", given, gqa, options=options)
    assert (item.group_id, item.label) == ("n1", "cat")  # type: ignore[attr-defined]  # as above


@pytest.mark.parametrize("people", [[], ["cat", None], [["cat"]], {"a": 1}, ["", "?"], True])
def test_answers_that_are_no_texts_are_refused(people: object) -> None:
    row = {"id": 1, "response": "A cat.", "direct_answers": people}
    with pytest.raises(ArchiveError, match=r"direct_answers|answers of people"):
        read_items("vqa", [row], None)
