"""Parsers of VidHalluc's answers where both variants read them, and where only one does."""

from __future__ import annotations

import pytest

from hallujudge.metrics import Answer, AnswersItem
from hallujudge.metrics import vidhalluc as parsers
from hallujudge.metrics.answers.choices import all_chosen
from hallujudge.metrics.answers.orders import order_of_two
from hallujudge.metrics.answers.yes_no import first_yes_no
from hallujudge.metrics.vidhalluc import VidhallucBqaMetric

choices_corrected = all_chosen("ABCD", "letters, or choices")
OPTIONS = {"A": "running", "B": "running on a track", "C": "skiing", "D": "painting a fence"}


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("Yes.", "yes", "yes"),
        (" NO, it is not.", "no", "no"),
        ("Yes .", "yes", "yes"),
        ("Yes it is", None, "yes"),
        ("**Yes**", None, "yes"),
        ("No\nYes", None, "no"),
        ("Answer: No", None, "no"),
        ("Yesterday", None, None),
        ("", None, None),
    ],
)
def test_yes_or_no(text: str, published: str | None, corrected: str | None) -> None:
    assert parsers.yes_no_before_marks(text) == published
    assert first_yes_no(text) == corrected


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("A, C", "A, C", "A, C"),
        ("AC", None, "A, C"),
        ("d", None, "D"),
        ("option_D", None, "D"),
        ("A person is skiing.", "A", "C"),
        ("Running on a track.", "A", "B"),
        ("A. running; C. skiing", "A, C", "A, C"),
        ("B-roll of skiing", "B", "C"),
        ("Not A but C.", "A, C", "C"),
        ("The answer is B and D", "B, D", "B, D"),
        ("running and skiing", "A", "A, C"),
        ("A. running\nB. no\nC. skiing\nD. no\n\nAnswer: A, C", "A, B, C, D", "A, C"),
        ("B and D are not shown.\nAnswers: **A** and **C**\nD is not.", "A, B, C, D", "A, C"),
        ("I am not sure.", None, None),
        ("", None, None),
    ],
)
def test_letters(text: str, published: str | None, corrected: str | None) -> None:
    answer = Answer(response=text, label="AC", options=OPTIONS)
    for parse, wanted in (
        (parsers.choices_published, published),
        (choices_corrected, corrected),
    ):
        found = parse(answer)
        assert (found.value, found.right) == (wanted, wanted == "A, C")


def test_the_order_of_a_files_choices_decides_only_as_released() -> None:
    answer = Answer("Running on a track", label="B", options=OPTIONS, fields={"order": "B A C D"})
    assert parsers.choices_published(answer).value == "B"


def test_no_letter_is_right_where_the_label_has_none_only_as_released() -> None:
    answer = Answer(response="None of these.", label="None", options=OPTIONS)
    assert parsers.choices_published(answer).right
    assert not choices_corrected(answer).right


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("AB", "AB", "AB"),
        ("AB.", None, "AB"),
        ("B, A", None, "BA"),
        ("Action B -> Action A", "BA", "BA"),
        ("Action A before Action B.", "AB", "AB"),
        ("Action B happens after Action A.", "BA", "AB"),
        ("Before Action A, Action B takes place.", "AB", "BA"),
        ("After Action A, Action B takes place.", "AB", "AB"),
        ("Action A strengthens, action B ends it.", "AB", "AB"),
        ("Action B (pouring tea) is seen, action A follows.", "B)A", "BA"),
        ("Action A happens, then action B. Then action B again.", "BB", "AB"),
        ("Action B is preceded by action A.", "BA", "AB"),
        ("Action A is followed by action B.", "AB", "AB"),
        ("Action A follows action B.", "AB", "BA"),
        ("B) happens before A)", None, "BA"),
        ("B happens after A.", None, "AB"),
        ("First B happens, and then A", None, "BA"),
        ("A man opens a box. He sits in a B chair.", None, None),
        ("a) action b b) action a", ")B)A", "BA"),
        ("The order is BA.", None, "BA"),
        ("Answer: BA", None, "BA"),
        ("顺序是BA", None, "BA"),
        ('{"order": ["B", "A"]}', None, "BA"),
        ("Action A: open the box. Action B: take the key. Order: BA", "AB", "BA"),
        ("Action A starts at 5s and action B at 2s. The order is B then A.", "AB.", "BA"),
        ("The man takes the key (Action B), then opens the box (Action A).", "BA", "BA"),
        ("Action B happens first.", "B", "BA"),
        ("A is second.", None, "BA"),
        ("Action A comes last", "A", "BA"),
        ("Action A does not come first.", "A", None),
        ("AB or BA", None, None),
        ("Action A: first he opens the box.", "A", None),
        ("It is not clear.", None, None),
        ("Action A", "A", None),
        ("", None, None),
    ],
)
def test_orders(text: str, published: str | None, corrected: str | None) -> None:
    assert parsers.order_by_patterns(text) == published
    assert order_of_two(text) == corrected


@pytest.mark.parametrize("clips", [["a"], ["a", "b"], ["c"], ["c", "d"]])
def test_equal_answers_about_other_clips_keep_their_names(clips: list[str]) -> None:
    metric = VidhallucBqaMetric(variant="corrected")
    for names in (["x", "y"][: len(clips)], clips):
        answers = tuple(Answer(response="Yes.", label="yes", name=name) for name in names)
        made = metric.score(AnswersItem(id="1", answers=answers))
        assert [verdict.name for verdict in made.evidence.answers] == names
        assert made.scores == {"accuracy": 1}
