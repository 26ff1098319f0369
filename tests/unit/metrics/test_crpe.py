"""CRPE: what both released rules make of answers, and which answers are one question."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.metrics import Answer
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.crpe import BENCHMARK
from hallujudge.metrics.framework.published import published_rows
from hallujudge.sdk import Client, InputOptions, Report

OPTIONS = ("cart", "cup", "cup of tea", "t-shirt")
LETTERS = "ABCD"
Q = "What is there?\nA. cart\nB. cup\nC. cup of tea\nD. t-shirt\nReply with one letter."
READ = {
    "the letter alone": ("B", "B", ("B", "B", "B")),
    "a full stop": ("B.", "B", (None, "B", "B")),
    "brackets": ("(B)", "B", (None, "B", "B")),
    "a letter and its text": ("B. cup", "B", (None, "B", "B")),
    "a small letter": ("b", "B", ("b", "B", "B")),
    "the text alone": ("cart", "A", (None, "A", "A")),
    "a sentence about the letter": ("The answer is B.", "B", (None, None, "B")),
    "a text that begins with another option": ("cup of tea", "C", (None, "B", "C")),
    "a hyphen that the filter removes": ("D. t-shirt", "D", (None, None, "D")),
    "a denial names its option": ("It is not the cart, but who knows.", "A", (None, "A", None)),
    "marks of an answer": ("<answer>B</answer>", "B", (None, "B", None)),
    "a thought": ("<think>C?</think>B", "B", (None, "B", None)),
    "a closing mark alone": ("It may be C.</think>\nB", "B", (None, None, None)),
}


@pytest.mark.parametrize("surprise", READ)
def test_what_is_read(surprise: str) -> None:
    text, label, (published, harness, corrected) = READ[surprise]
    answer = Answer(response=text, label=label, question=Q)
    found = [variant.parse(answer).value for variant in BENCHMARK.variants]
    # Thoughts and marks come off before the corrected variant reads an answer.
    assert (
        found[: 2 if "<" in text else 3]
        == [published, harness, corrected][: 2 if "<" in text else 3]
    )


def question(number: int, turn: int, category: str = "object") -> dict[str, Any]:
    lines = [f"{LETTERS[(n + turn) % 4]}. {option}" for n, option in enumerate(OPTIONS)]
    return {
        **{"question_id": 4 * number + turn, "image": f"{number}.jpg", "category": category},
        **{"text": "\n".join(["What is there?", *sorted(lines)]), "correct_option": LETTERS[turn]},
    }


QUESTIONS = [question(number, turn) for number in range(2) for turn in range(4)]


def scored(
    texts: dict[int, str], variant: str = "published", questions: Any = QUESTIONS, **inputs: Any
) -> Report:
    answers = [{"question_id": n, "text": text} for n, text in texts.items()]
    with Client.embedded() as client:
        return client.score(
            "crpe",
            responses=answers,
            references=questions,
            variant=variant,
            inputs=InputOptions(**inputs),
        )


RIGHT = {n: LETTERS[n % 4] for n in range(8)}
ONE_WRONG = {**RIGHT, 5: "D"}


def test_four_right_answers_are_a_right_question_and_lmms_eval_counts_each() -> None:
    assert scored(ONE_WRONG).accuracy == 1 / 2
    assert scored(ONE_WRONG, "lmms-eval").accuracy == 7 / 8
    assert scored(ONE_WRONG, "corrected").accuracy == 1 / 2


def test_lines_that_changed_places_change_the_released_score_alone() -> None:
    # The wrong answer stands among those to the first question, another one takes its place.
    moved = {n: ONE_WRONG[n] for n in (0, 5, 2, 3, 4, 1, 6, 7)}
    two_wrong = {**moved, 6: "A"}
    assert scored(two_wrong).accuracy == 0
    assert scored(two_wrong, "corrected").accuracy == 1 / 2
    assert scored(two_wrong, "lmms-eval").accuracy == 6 / 8


def test_the_script_prints_no_figure_of_several_categories() -> None:
    questions = [*QUESTIONS[:4], *(question(1, turn, "subject") for turn in range(4))]
    report = scored(ONE_WRONG, questions=questions)
    assert report.accuracy is None
    by_category = {name: of["accuracy"].value for name, of in report.groups["category"].items()}
    assert by_category == {"object": 1, "subject": 0}


def test_a_number_of_answers_that_is_no_multiple_of_four_has_no_released_score() -> None:
    texts = {n: RIGHT[n] for n in range(7)}
    with_gap = scored(texts, questions=QUESTIONS[:7])
    assert (with_gap.accuracy, with_gap.answer_accuracy) == (None, 1)
    corrected = scored(texts, "corrected", QUESTIONS[:7])
    assert (corrected.accuracy, corrected["accuracy"].n) == (1, 1)


def test_an_unread_answer_leaves_its_question_out_of_the_corrected_variant() -> None:
    report = scored({**RIGHT, 6: "I cannot say."}, "corrected")
    assert (report.accuracy, report["accuracy"].n) == (1, 1)
    assert (report.unparsed_rate, report.coverage.unscored) == (1 / 8, 1)


def test_an_answer_that_is_there_twice_is_refused_or_shifts_the_questions() -> None:
    answers = [{"question_id": n, "text": RIGHT[n]} for n in (0, 0, 1, 2, 3, 4, 5, 6)]
    with Client.embedded() as client:
        twice = client.score(
            "crpe",
            responses=answers,
            references=QUESTIONS[:7],
            inputs=InputOptions(allow_duplicates=True),
        )
    assert (twice.answer_accuracy, twice["accuracy"].n) == (1, 2)


def test_a_label_of_several_letters_makes_every_answer_wrong() -> None:
    answer = Answer(response="A", label="AB", question=Q)
    assert not BENCHMARK.variants[0].parse(answer).right


def test_an_option_pattern_in_the_stem_is_an_option_of_lmms_eval() -> None:
    asked = Q.replace("What is there?", "Which is plan B. the cat")
    answer = Answer(response="the cat", label="B", question=asked)
    assert BENCHMARK.variants[1].parse(answer).right


def test_an_empty_answer_is_wrong() -> None:
    assert scored({**RIGHT, 0: ""}).accuracy == 1 / 2
    assert scored({**RIGHT, 0: ""}, "lmms-eval").accuracy == 7 / 8


@pytest.mark.parametrize(("variant", "words"), [("published", "order"), ("lmms-eval", "each")])
def test_a_note_says_which_of_the_two_numbers_accuracy_is(variant: str, words: str) -> None:
    assert any(
        note.startswith("accuracy") and words in note for note in scored(RIGHT, variant).notes
    )


def test_a_published_row_has_the_figures_of_its_table() -> None:
    rows = {row.name: row.scores for row in published_rows(metric_of(BENCHMARK))}
    assert rows["asmv2-predicate"].items() >= {"accuracy": 0.5895}.items()
