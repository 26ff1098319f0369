"""The check of small judges."""

from __future__ import annotations

from support.messages import expected_message
from support.word_matchers import WordPairs, small

from hallujudge.judge_service.judges.judge_checks import check_small
from hallujudge.judge_service.judges.several_judges import Router
from hallujudge.judge_service.judges.small_judges import MatcherJudge


def judge(model: WordPairs, **changes: float) -> Router:
    return Router([MatcherJudge(small(model, "factcg", **changes), "factcg")])


async def test_a_small_judge_decides_a_clear_example() -> None:
    check = await check_small(judge(WordPairs(limit=99)))
    assert check.ok
    assert check.detail == expected_message(
        "judge_service.judges.judge_checks:probability-for-stated-claim-probability-for-foreign"
    )


async def test_weights_that_decide_it_wrongly_are_named() -> None:
    check = await check_small(judge(WordPairs(limit=99), small_above=1.0))
    assert check.ok is False
    assert check.detail.startswith(
        expected_message("sdk.cli.installation_checks:decides-clear-example-wrongly-probability")
    )


async def test_a_small_judge_without_a_verdict_fails() -> None:
    check = await check_small(judge(WordPairs(limit=3)))
    assert check.ok is False
    assert check.detail.startswith("CLAIM_TOO_LONG: ")
