"""Open answers that a judge compares with accepted ones."""

from __future__ import annotations

import pytest

from hallujudge.metrics.answers.open_answers import (
    VqaMatch,
    match_of_number,
    offered_answers,
    vqa_score,
)


def test_open_answers() -> None:
    answers = ["cat"] * 6 + ["kitten"] * 3 + ["dog"]
    offered = offered_answers(answers)
    assert offered == ("cat", "kitten", "dog")
    assert match_of_number(" 2\n", offered).answer == "kitten"
    assert match_of_number("0", offered) == VqaMatch(answer=None, read=True)
    for noise in ("it is a cat", "4", "-1", "", "²", "1 2"):
        assert not match_of_number(noise, offered).read
    assert vqa_score("cat", answers) == 1
    assert vqa_score("kitten", answers) == pytest.approx((3 * 2 / 3 + 7) / 10)
    assert vqa_score("dog", answers) == pytest.approx(9 * (1 / 3) / 10)
    assert vqa_score(None, answers) == 0
