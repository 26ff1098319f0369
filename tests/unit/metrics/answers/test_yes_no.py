"""Yes or no: the same awkward answers under every parser."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.metrics import OptionError
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS, yes_no_parser

ROOT = Path(__file__).resolve().parents[4]
PARSERS = ("published", "opera", "lmms-eval", "vlmevalkit", "strict")
# One letter for each parser, in that order: y, n, or - where the parser cannot tell.
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


@pytest.mark.repo
def test_the_page_shows_what_each_parser_reads() -> None:
    page = (ROOT / "docs/decisions/answer-parsing.md").read_text(encoding="utf-8")
    heading = "| answer | " + " | ".join(PARSERS) + " |\n"
    rows = page.partition(heading)[2].partition("\n\n")[0].splitlines()[1:]
    assert len(rows) > 10
    for row in rows:
        answer, *shown = (cell.strip() for cell in row.strip("|").split("|"))
        text = "" if answer == "(empty)" else answer.strip("`")
        assert shown == [YES_NO_PARSERS[name](text) or "-" for name in PARSERS], answer


def test_unknown_parser() -> None:
    with pytest.raises(
        OptionError,
        match=expected_message("sdk.audit.audit:published-opera-lmms-eval-vlmevalkit-strict"),
    ):
        yes_no_parser("helm")


def test_long_answers_are_not_kept() -> None:
    answer = "Yes, " + "there is a dog and " * 5000
    assert yes_no_parser("published")(answer) == "yes"
    assert yes_no_parser("vlmevalkit")(answer) == "yes"
