"""Answers that name one of several options, and free answers."""

from __future__ import annotations

import pytest

from hallujudge.metrics.answers.answer_text import says_it_is_unsure
from hallujudge.metrics.answers.choices import parse_as_labelled, read_choice, read_free_answer
from hallujudge.metrics.answers.closed_questions import Answer

ORGANS = {"A": "Stomach", "B": "Liver", "C": "Lungs"}


CHOICES = [
    ("B", "B"),
    ("b", "B"),
    ("(B)", "B"),
    ("[b]", "B"),
    ("B.", "B"),
    ("**B**", "B"),
    ("Ｂ", "B"),
    ("B) Liver", "B"),
    ("(B) Liver", "B"),
    ("B: because it is red", "B"),
    ("B, because it is red", "B"),
    ("Answer: B", "B"),
    ("answer: b", "B"),
    ("The answer is (B).", "B"),
    ("The correct option is B", "B"),
    ("Option A is correct", "A"),
    ("I would choose option C.", "C"),
    ("Liver", "B"),
    ("liver.", "B"),
    ("It is the liver.", "B"),
    ("I think B", "B"),
    ("A man walks by", None),
    ("A. Liver", None),
    ("A, B", None),
    ("A or B", None),
    ("Answer: A or B", None),
    ("Liver or lungs", None),
    ("It is not the liver", None),
    ("It is not B", None),
    ("D", None),
    ("", None),
    ("I cannot tell", None),
    ("我不知道", None),
]


@pytest.mark.parametrize(("answer", "wanted"), CHOICES, ids=[repr(a) for a, _ in CHOICES])
def test_choices(answer: str, wanted: str | None) -> None:
    assert read_choice(answer, ORGANS).choice == wanted


@pytest.mark.parametrize("letter", ["A", "B", "D"])
@pytest.mark.parametrize(
    "way",
    [
        "{}。",
        "答案是{}",
        "正确答案是{}。",
        "答案：{}，因为图中有猫",
        "选{}",
        "选择{}。C不对。",
        "不选C，选{}",
        "答案不是C，是{}",
        "{}选项",
        "「{}」",
        "答えは{}です",
        "正解は{}。",
        "정답은 {}입니다",
        "답: {}",
        "คำตอบคือ{}",
        "Ответ: {}",
        "La respuesta es {}.",
        "{}。C不对。",
    ],
)
def test_letters_are_read_in_other_scripts(way: str, letter: str) -> None:
    assert read_choice(way.format(letter)).choice == letter


@pytest.mark.parametrize(
    "text", ["A和B", "A、B", "选A还是B", "答案是A或C", "图中有A和B", "AはBより"]
)
def test_two_letters_in_other_scripts_are_no_choice(text: str) -> None:
    assert read_choice(text).choice is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A.\n\nB is not right because it is red", "A"),
        ("A. B isn't right", "A"),
        ("B\n\nExplanation: A is wrong.", "B"),
        ("It's not A or B; it's C.", "C"),
        ("It isn't B, it is C", "C"),
        ("The answer is not A but B", "B"),
        ("Neither A nor B; C", "C"),
        ("Not A. B.", "B"),
        ("A.\nB.", None),
        ("A\nB", None),
        ("A. B is right too", None),
        ("It's not A or B.", None),
        ("A is wrong, B is right", None),
    ],
)
def test_options_that_are_ruled_out_are_not_chosen(text: str, wanted: str | None) -> None:
    assert read_choice(text).choice == wanted


THINGS = {"A": "a red car", "B": "a blue bus", "C": "two dogs"}


@pytest.mark.parametrize(
    "text",
    [
        "A: no. B: yes, it is blue. C: no.",
        "| Option | Seen |\n|---|---|\n| A | ✗ |\n| B | ✓ |\n| C | ✗ |",
        "- A: not visible\n- B: correct\n- C: not visible",
        "A) Incorrect. B) Correct. C) Incorrect. So the answer is B.",
        "A. a red car\nB. a blue bus\nC. two dogs\n\nAnswer: a blue bus",
        "It's B rather than A.",
        "B instead of option A",
        "选项A是错误的，选项B是正确的。",
        "- A: there is no car\n- C: no dogs\n\nLa respuesta correcta es B.",
        "A和C都不对。\n\n答案是B。",
        "{'answer': 'B'}",
        "So \\(B\\)",
        "option b",
        "The answer is: b",
    ],
)
def test_what_is_said_of_each_option_is_read(text: str) -> None:
    assert read_choice(text, THINGS).choice == "B"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A: yes. B: yes. C: no.", None),
        ("A: no. B: no. C: no.", None),
        ("A. No", None),
        ("B. No", "B"),
        ("B. No, there is none", "B"),
    ],
)
def test_options_that_say_yes_and_no_are_no_verdicts(text: str, wanted: str | None) -> None:
    options = THINGS if "C" in text else {"A": "Yes", "B": "No"}
    assert read_choice(text, options).choice == wanted


@pytest.mark.parametrize("text", ["two", "There are two dogs.", "I count 2", "\n2 dogs\n"])
def test_numbers_in_words_choose_among_numbers(text: str) -> None:
    assert read_choice(text, {"A": "1", "B": "2", "C": "3"}).choice == "B"
    assert read_choice(text, {"A": "one", "B": "two", "C": "three"}).choice == "B"
    assert read_choice("two dogs and three cats", {"A": "1", "B": "2", "C": "3"}).choice is None


NUMBERS = {"A": "two", "B": "three", "C": "four", "D": "five"}


@pytest.mark.parametrize(
    "text",
    [
        "A. two\nB. three\nC. four\nD. five\n\nAnswer: B",
        "Options: A) two B) three C) four D) five. I choose B.",
        "The options are A, B, C and D. I'd go with B.",
        "Let's see:\n\nA. two - no\nB. three - yes\nC. four - no\n\nThe correct answer is B.",
        "- A: two. Incorrect.\n- B: three. Correct.\n- C: four. Incorrect.\n\n**B**",
        "A: wrong\nB: right\nC: wrong\n\nSo, B.",
        "Option A is wrong. Option C is wrong. The answer: B",
        "Looking at option A: two, wrong. Option B: three. So the best option is B.",
        "B is the correct answer; A and C are wrong.",
        "It could be A or C, but the answer is B, not C.",
        "Answer A is wrong. The answer is B.",
        "A... wait, no. B",
        "A. Wait, the answer is B.",
        "Either A or B. Hmm, wait: B.",
        "A. Actually, B.",
        "The answer is A. Sorry, B, since there are three.",
        "Is it A? No, B.",
        "- [ ] A\n- [x] B\n- [ ] C",
        "answer b",
    ],
)
def test_the_conclusion_of_an_answer_counts(text: str) -> None:
    assert read_choice(text, NUMBERS).choice == "B"


@pytest.mark.parametrize(
    "text",
    [
        "A. two\nB. three\nC. four\nD. five",
        "A. two. The answer is B.",
        "The answer is A. The answer is B.",
        "N/A",
        "Answer: N/A",
        "If they wait, the answer is A or B.",
        "A. no, B. no, C. yes",
        "A. No, B is wrong.",
    ],
)
def test_an_answer_without_one_conclusion_is_no_choice(text: str) -> None:
    assert read_choice(text, NUMBERS).choice is None


def test_options_with_letters_in_other_scripts_are_texts() -> None:
    options = {"A": "T恤", "B": "裙子"}
    assert read_choice("T恤", options).choice == "A"


def test_the_longer_of_two_nested_options_is_meant() -> None:
    options = {"A": "left", "B": "top left", "C": "right"}
    assert read_choice("it is at the top left", options).choice == "B"
    assert read_choice("13", {"A": "3", "B": "13"}).choice == "B"


def test_choices_without_options() -> None:
    assert read_choice("Answer: D").choice == "D"
    assert read_choice("a running dog").choice is None


def test_free_answers() -> None:
    assert read_free_answer("The dog is CHASING a cat", "chasing").choice == "chasing"
    assert read_free_answer("The dog is not chasing a cat", "chasing").choice != "chasing"
    assert read_free_answer("Running", "chasing").choice == "running"
    assert read_free_answer("I don't know", "chasing").choice is None
    assert says_it_is_unsure("It is hard to tell.")
    assert not says_it_is_unsure("It is a dog.")


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
def test_words_are_not_letters(text: str) -> None:
    assert read_choice(text).choice == ("A" if text == "A" else "I" if text == "I" else None)


@pytest.mark.parametrize("said", ["B", "(B)", "Answer: B", "The correct option is B."])
def test_a_letter_is_not_an_answer_where_options_are_unknown(said: str) -> None:
    assert read_free_answer(said, "opening the door").choice is None


@pytest.mark.parametrize(
    ("response", "label", "options", "value", "right"),
    [
        ("(B)", "B", {}, "B", True),
        ("Yes.", "yes", {}, "yes", True),
        ("No.", " Yes", {}, "no", False),
        ("B", "B. opening the door", {}, "B", True),
        ("a red car", "a red car", {}, "a red car", True),
        ("red", "A", {"A": "red", "B": "blue"}, "A", True),
        ("???", "A", {"A": "red", "B": "blue"}, None, False),
    ],
)
def test_an_answer_is_parsed_in_the_way_that_its_label_is_written(
    response: str, label: str, options: dict[str, str], value: str | None, right: bool
) -> None:
    found = parse_as_labelled(Answer(response=response, label=label, options=options))
    assert (found.value, found.right) == (value, right)
