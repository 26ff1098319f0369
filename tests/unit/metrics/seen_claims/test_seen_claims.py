"""Scores of seen claims: counts, bounds of what has no verdict, and probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Report, Tally
from hallujudge.metrics.framework.claims import ClaimVerdict, Triplet, Verdict
from hallujudge.metrics.framework.results import Picture, UnscoredReason
from hallujudge.metrics.seen_claims import SeenClaimsItem, SeenClaimsMetric
from hallujudge.metrics.seen_claims.claim_words import kind_of

DOG, BROWN, TWO, SOFA = (
    Triplet("dog", "is", "present"),
    Triplet("dog", "is", "brown"),
    Triplet("dogs", "is", "2"),
    Triplet("dog", "on", "sofa"),
)
RIGHT, WRONG, NONE = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.UNSCORED


def verdict(claim: Triplet, said: Verdict, score: float | None = None) -> ClaimVerdict:
    reason = UnscoredReason.CLAIM_NOT_VISIBLE if said is NONE else ""
    return ClaimVerdict(
        triplet=claim, verdict=said, score=score, judge="llm", reason=reason, kind=kind_of(claim)
    )


def report_of(
    responses: Sequence[Sequence[ClaimVerdict]], soft: str = "no", unscored: int = 0
) -> Report:
    metric = SeenClaimsMetric(judge="j", soft=soft)
    tally = Tally(metric, ())
    for number, verdicts in enumerate(responses):
        made = metric.score_response(verdicts)
        tally.add(
            ItemResult(
                id=str(number),
                group_id=str(number),
                outcome=Outcome.SCORED,
                statistics=made.statistics,
                scores=made.scores,
            )
        )
    for number in range(unscored):
        tally.add(
            ItemResult(
                id=f"u{number}",
                group_id=f"u{number}",
                outcome=Outcome.UNSCORED,
                reason=UnscoredReason.NO_CLAIMS,
            )
        )
    return tally.finish(IntervalSettings(), version="0", settings={}, notes=())


TWO_RESPONSES = [
    [verdict(DOG, RIGHT), verdict(BROWN, WRONG), verdict(TWO, WRONG), verdict(SOFA, RIGHT)],
    [verdict(DOG, RIGHT)],
]


def test_scores_are_those_of_their_formulas() -> None:
    scores = {name: score.value for name, score in report_of(TWO_RESPONSES).scores.items()}
    assert scores == {
        "claim_hallucination": 2 / 5,
        "response_hallucination": (2 / 4 + 0) / 2,
        "clean_responses": 1 / 2,
        "object_hallucination": 0.0,
        "attribute_hallucination": 1.0,
        "count_hallucination": 1.0,
        "relation_hallucination": 0.0,
        # No response is about a video.
        "timed_hallucination": None,
        "untimed_hallucination": None,
    }


def test_claims_about_a_moment_of_a_video_are_counted_apart() -> None:
    said = [(DOG, RIGHT, "0:12"), (BROWN, WRONG, "0:12"), (TWO, WRONG, "start"), (SOFA, WRONG, "")]
    claims = [structs.replace(verdict(claim, word), moment=at) for claim, word, at in said]
    claims.append(structs.replace(verdict(DOG, NONE), moment="end"))
    report = report_of([claims, TWO_RESPONSES[1]])
    assert report.scores["timed_hallucination"].value == pytest.approx(2 / 3)
    assert report.scores["untimed_hallucination"].value == 1.0
    assert report.scores["claim_hallucination"].value == pytest.approx(3 / 5)
    bound = report.coverage.bounds["timed_hallucination"]
    assert (bound.best, bound.worst) == (2 / 4, 3 / 4)


def test_what_cannot_be_seen_is_in_the_bounds_and_in_no_score() -> None:
    report = report_of([[verdict(DOG, RIGHT), verdict(SOFA, NONE)], [verdict(BROWN, WRONG)]])
    assert report.scores["claim_hallucination"].value == 1 / 2
    assert report.scores["clean_responses"].value == 1 / 2
    assert report.scores["relation_hallucination"].value is None
    bounds = report.coverage.bounds
    for name, best, worst in (
        ("claim_hallucination", 1 / 3, 2 / 3),
        ("response_hallucination", 1 / 2, 3 / 4),
        ("clean_responses", 1 / 2, 0.0),
    ):
        assert bounds[name].best == pytest.approx(best)
        assert bounds[name].worst == pytest.approx(worst)
    assert any("CLAIM_NOT_VISIBLE" in note for note in report.notes)


def test_an_unscored_response_is_clean_at_best_and_all_wrong_at_worst() -> None:
    bounds = report_of(TWO_RESPONSES, unscored=1).coverage.bounds
    assert bounds["clean_responses"].best == pytest.approx(2 / 3)
    assert bounds["clean_responses"].worst == pytest.approx(1 / 3)
    # It may have as many claims as the longest scored one, four.
    assert bounds["claim_hallucination"].best == pytest.approx(2 / 9)
    assert bounds["claim_hallucination"].worst == pytest.approx(6 / 9)


def test_probabilities_count_in_place_of_verdicts() -> None:
    responses = [[verdict(DOG, RIGHT, 0.9), verdict(BROWN, WRONG, 0.2)], [verdict(SOFA, WRONG)]]
    report = report_of(responses, soft="yes")
    assert report.scores["claim_hallucination"].value == pytest.approx((0.1 + 0.8 + 1) / 3)
    assert report.scores["clean_responses"].value == 0.0
    assert any("1 of 3 claims have no probability" in note for note in report.notes)


def test_without_a_verdict_there_is_no_score() -> None:
    metric = SeenClaimsMetric(judge="j")
    assert metric.unscored_reason([verdict(DOG, NONE)]) == (
        UnscoredReason.NO_VERDICTS,
        "none of 1 claims has a verdict: CLAIM_NOT_VISIBLE",
    )
    with pytest.raises(ValueError, match="has no score"):
        metric.score_response([])


def test_an_items_reference_is_its_picture() -> None:
    def shown(data: bytes) -> SeenClaimsItem:
        picture = Picture(data=data, media_type="image/png", width=1, height=1)
        return SeenClaimsItem(id="1", response="A dog.", pictures=(picture,))

    one, other = shown(b"one").records(), shown(b"other").records()
    assert one.reference != other.reference
    # No hash and no message has the picture's bytes.
    assert "b'one" not in repr(shown(b"one"))
