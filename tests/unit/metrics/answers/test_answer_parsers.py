"""Parsers of answers: the same awkward answers under every reading."""

from __future__ import annotations

import pytest

from hallujudge.metrics import OptionError
from hallujudge.metrics.answers import (
    YES_NO_PARSERS,
    parser_table,
    read_choice,
    read_free_answer,
    read_order,
    read_order_published,
    says_it_is_unsure,
    yes_no_parser,
)

PARSERS = ("published", "opera", "lmms-eval", "vlmevalkit", "strict")
# One letter for each parser, in that order: y, n, or - where the parser can't tell.
AWKWARD = [
    ("Yes", "yyyyy"),
    ("No", "nnnnn"),
    ("yes", "yyyyy"),
    ("no", "nnnnn"),
    ("YES", "yyyyy"),
    ("NO", "ynnnn"),
    ("Yes.", "yy-yy"),
    ("No.", "nn-nn"),
    ("NO.", "yn-nn"),
    ("yes!", "yy-yy"),
    ("no!", "yy-nn"),
    (" Yes ", "yyyyy"),
    (" no ", "nnnnn"),
    ("\nno", "yynnn"),
    ("", "yy---"),
    ("   ", "yy---"),
    (".", "yy---"),
    ("isn't", "yn---"),
    ("There isn't a dog.", "yn---"),
    ("There isn’t a dog.", "yy---"),
    ("Not sure", "yy---"),
    ("I am not sure", "nn---"),
    ("Yes, there is a snowboard", "yy-yy"),
    ("Yes, there is a snowboard in the image.", "yy-yy"),
    ("No, there is no snowboard in the image.", "nn-nn"),
    ("no, yes", "nn---"),
    ("Yes and no", "nn---"),
    ("Yes or no?", "yy---"),
    ("我不知道", "yy---"),
    ("是", "yy---"),
    ("I cannot see the image", "yy---"),
    ("I can't see the image", "yn---"),
    ("There is no car.", "nn-nn"),
    ("There is a car.", "yy---"),
    ("The answer is no", "nn-nn"),
    ("The answer is yes.", "yy-yy"),
    ("Answer: Yes", "yy-yy"),
    ("**Yes**", "yy--y"),
    ("Yes. There is no doubt.", "yn---"),
    ("A dog. No cat.", "yn-n-"),
    ("No idea", "nn-n-"),
    ("yes,no", "yy---"),
    ("No/Yes", "yy---"),
    ("nope", "yy---"),
    ("Yeah", "yy---"),
    ("know", "yy---"),
    ("Yes, but I am not certain", "nn-y-"),
    ("(no)", "yy-nn"),
    ("None", "yy---"),
    ("Yes, it is not hidden", "nn-y-"),
]
MEANING = {"y": "yes", "n": "no", "-": None}


@pytest.mark.parametrize(("answer", "wanted"), AWKWARD, ids=[repr(a) for a, _ in AWKWARD])
def test_awkward_answers(answer: str, wanted: str) -> None:
    got = {name: YES_NO_PARSERS[name](answer) for name in PARSERS}
    assert got == {name: MEANING[mark] for name, mark in zip(PARSERS, wanted, strict=True)}


def test_the_table_shows_every_parser() -> None:
    assert len(AWKWARD) >= 40
    row = parser_table(["Yes."])[0]
    assert row == {
        "answer": "Yes.",
        "published": "yes",
        "opera": "yes",
        "lmms-eval": "",
        "vlmevalkit": "yes",
        "strict": "yes",
    }


def test_unknown_parser() -> None:
    with pytest.raises(OptionError, match="published, opera, lmms-eval, vlmevalkit, strict"):
        yes_no_parser("helm")


def test_long_answers_are_not_kept() -> None:
    answer = "Yes, " + "there is a dog and " * 5000
    assert yes_no_parser("published")(answer) == "yes"
    assert yes_no_parser("vlmevalkit")(answer) == "yes"


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


SHOWN = {"A": "Two men, dancing.", "B": "Three men", "C": "Four men"}
ORDERS = [
    # answer, published, corrected: letters, or what is wrong
    ("A, B, C", "ABC", "ABC"),
    ("C,B,A", "CBA", "CBA"),
    (" B , A , C ", "BAC", "BAC"),
    ('["B", "A", "C"]', "BAC", "BAC"),
    ("C > B > A", "partial", "CBA"),
    ("BAC", "partial", "BAC"),
    ("b, a, c", "unknown", "BAC"),
    ("1. B 2. C 3. A", "partial", "BCA"),
    ("The order is B, A, C.", "unknown", "BAC"),
    ("A, B", "partial", "partial"),
    ("B", "partial", "partial"),
    ("A, A, B", "repeated", "repeated"),
    ("A, B, C, A", "repeated", "repeated"),
    ("A, B, D", "unknown", "unknown"),
    ("", "empty", "empty"),
    ("  ", "empty", "empty"),
    ("I cannot tell", "partial", "unknown"),
    ("Three men\nTwo men, dancing.\nFour men", "BAC", "BAC"),
    ("Four men, then three men", "partial", "partial"),
    ("[" * 5000, "partial", "unknown"),
]


@pytest.mark.parametrize(
    ("answer", "published", "corrected"), ORDERS, ids=[repr(row[0])[:40] for row in ORDERS]
)
def test_orders(answer: str, published: str, corrected: str) -> None:
    for read, wanted in ((read_order_published, published), (read_order, corrected)):
        order = read(answer, SHOWN)
        assert (order.problem or "".join(order.letters)) == wanted, read
        assert order.valid == (sorted(order.letters) == list(SHOWN))
