"""Who decided in a run: sums over items, and the sentence about a cascade."""

from __future__ import annotations

from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Tally, TriHeMetric
from hallujudge.metrics.framework.report import JudgeShare, JudgingCounts, cascade_notes
from hallujudge.metrics.tri_he import TriHeEvidence


def part(
    judge: str, answered: int, calls: int = 0, cost: float | None = None, **declined: int
) -> Any:
    return {
        "judge": judge,
        "answered": answered,
        "declined": {reason: {"claims": n, "detail": ""} for reason, n in declined.items()},
        "calls": calls,
        "prompt_tokens": 100 * calls,
        "cached_tokens": 0,
        "completion_tokens": calls,
        "latency_seconds": 0.1 * calls,
        "cost": cost,
        "reused": 2 * calls,
    }


ITEMS = [
    (part("matcher", 3, MARGIN_TOO_SMALL=1), part("llm", 1, 1, 0.1)),
    (part("matcher", 5),),
    (part("matcher", 0, MARGIN_TOO_SMALL=1), part("llm", 0, JUDGE_TIMEOUT=1)),
]


def counted(*items: Any) -> JudgingCounts:
    counts = JudgingCounts()
    for item in items:
        counts.add(item)
    return counts


def test_parts_of_items_are_summed_in_any_number_of_parts() -> None:
    whole = counted(*ITEMS)
    parts = counted(ITEMS[0])
    parts.merge(JudgingCounts.of(counted(*ITEMS[1:]).to_json()))
    assert parts.shares() == whole.shares()
    matcher, llm = whole.shares()
    assert (matcher.decided, matcher.escalated, matcher.asked, matcher.cost) == (8, 2, 10, None)
    assert llm == JudgeShare(
        judge="llm",
        decided=1,
        declined={"JUDGE_TIMEOUT": 1},
        calls=1,
        prompt_tokens=100,
        completion_tokens=1,
        cost=0.1,
        reused=2,
    )


def test_the_note_says_who_decided_and_what_was_saved() -> None:
    [note] = cascade_notes(counted(*ITEMS).shares())
    assert note == (
        expected_message("metrics.framework.report:cascade-matcher-decided-of-verdicts-of-had")
    )
    assert cascade_notes(counted(ITEMS[1]).shares()) == ()


@pytest.mark.parametrize("outcome", Outcome)
def test_reports_have_the_parts_of_scored_and_unscored_items(outcome: Outcome) -> None:
    metric = TriHeMetric(judge="j")
    result = ItemResult(
        id="1",
        group_id="1",
        outcome=outcome,
        reason="NO_VERDICTS" if outcome is Outcome.UNSCORED else "",
        statistics=() if outcome is Outcome.UNSCORED else (1, *(0,) * 9),
        evidence=TriHeEvidence(claims=(), judging=ITEMS[0]),
    )
    first, second = Tally(metric), Tally(metric)
    first.add(result)
    second.merge_bytes(first.to_bytes())
    report = second.finish(IntervalSettings(), version="0")
    assert [share.judge for share in report.judging] == ["matcher", "llm"]
    assert report.notes[0].startswith("Cascade: matcher decided 3 of 4 (75.0%)")
    assert report.to_json()["judging"] == [share.to_json() for share in report.judging]
