"""Tri-HE's counting: variants, parts, unscored answers, bounds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from support.messages import expected_message

from hallujudge.metrics import (
    IntervalSettings,
    ItemResult,
    Outcome,
    Report,
    Tally,
    UnknownVariantError,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Sentence, Triplet, Verdict
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeMetric

CODES = {
    "y": (Verdict.SUPPORTED, None, ""),
    "1": (Verdict.NOT_SUPPORTED, Part.SUBJECT, ""),
    "2": (Verdict.NOT_SUPPORTED, Part.OBJECT, ""),
    "r": (Verdict.NOT_SUPPORTED, Part.RELATION, ""),
    "n": (Verdict.NOT_SUPPORTED, None, ""),
    "0": (Verdict.UNSCORED, None, UnscoredReason.VERDICT_NULL),
    "x": (Verdict.UNSCORED, None, "JUDGE_TIMEOUT"),
}


def claims(codes: str) -> tuple[ClaimVerdict, ...]:
    """One claim for each letter."""
    return tuple(
        ClaimVerdict(triplet=Triplet("a", "b", "c"), verdict=verdict, part=part, reason=reason)
        for verdict, part, reason in (CODES[code] for code in codes)
    )


def report(answers: Sequence[tuple[str, str]], variant: str = "published") -> Report:
    """The report over (image, codes) pairs."""
    metric = TriHeMetric(variant=variant, judge="test")
    tally = Tally(metric, ["image"])
    for number, (image, codes) in enumerate(answers):
        verdicts = claims(codes)
        problem = metric.unscored_reason(verdicts)
        if problem:
            result = ItemResult(
                id=str(number), group_id=image, outcome=Outcome.UNSCORED, reason=problem[0]
            )
        else:
            scored = metric.score_answer(verdicts)
            result = ItemResult(
                id=str(number),
                group_id=image,
                outcome=Outcome.SCORED,
                statistics=scored.statistics,
                scores=scored.scores,
                fields={"image": image},
            )
        tally.add(result)
    return tally.finish(IntervalSettings(), version="0")


def test_rates_are_means_over_questions_and_over_images() -> None:
    found = report([("a", "yyyn"), ("a", "nn"), ("b", "y")])
    assert found.hallu_q == pytest.approx((0.25 + 1 + 0) / 3)
    assert found.hallu_i == pytest.approx(((0.25 + 1) / 2 + 0) / 2)
    assert found["hallu_q"].n == 3
    assert found["hallu_i"].n == 2
    assert found.totals["claims"] == 7
    assert list(found.scores) == [
        "hallu_q",
        "hallu_i",
        "object_hallu_q",
        "object_hallu_i",
        "relation_hallu_q",
        "relation_hallu_i",
    ]
    assert found.groups["image"]["a"]["hallu_i"].value == pytest.approx(0.625)


def test_null_verdicts_dilute_only_in_published() -> None:
    answers = [("a", "yn00")]
    assert report(answers).hallu_q == pytest.approx(0.25)
    assert report(answers, "corrected").hallu_q == pytest.approx(0.5)


def test_a_claim_without_part_counts_as_relation_only_in_published() -> None:
    answers = [("a", "1nry")]
    published, corrected = report(answers), report(answers, "corrected")
    assert published.object_hallu_q == corrected.object_hallu_q == pytest.approx(0.25)
    assert published.relation_hallu_q == pytest.approx(0.5)
    assert corrected.relation_hallu_q == pytest.approx(0.25)
    assert published.hallu_q == corrected.hallu_q == pytest.approx(0.75)


def test_an_object_wins_over_a_relation() -> None:
    assert Part.of([Part.RELATION, Part.OBJECT]) is Part.OBJECT
    assert Part.of([Part.OBJECT, Part.SUBJECT]) is Part.SUBJECT
    assert Part.of([Part.RELATION]) is Part.RELATION
    assert Part.of([]) is None


@pytest.mark.parametrize("variant", TriHeMetric.variant_names())
def test_answers_without_claims_are_unscored(variant: str) -> None:
    found = report([("a", ""), ("b", "n")], variant)
    assert found.hallu_q == 1
    assert found.coverage.reasons == {"NO_CLAIMS": 1}
    assert found.coverage.bounds["hallu_q"].best == pytest.approx(0.5)


def test_answers_without_any_verdict() -> None:
    answers = [("a", "00"), ("b", "n")]
    assert report(answers).hallu_q == pytest.approx(0.5)
    assert report(answers).coverage.unscored == 0
    assert report(answers, "corrected").coverage.reasons == {"NO_VERDICTS": 1}
    for variant in TriHeMetric.variant_names():
        found = report([("a", "x0"), ("b", "xx"), ("c", "y")], variant)
        assert found.coverage.reasons == {"NO_VERDICTS": 2}, "a failed judge is never a score"
        assert found.hallu_q == 0


def test_nothing_scored_gives_no_score() -> None:
    found = report([("a", "")])
    assert found.hallu_q is None
    assert found.hallu_i is None
    with pytest.raises(ValueError, match="has no score"):
        TriHeMetric(judge="j").score_answer(())


def test_signature_and_variant() -> None:
    metric = TriHeMetric(variant="corrected", judge="published/minilm@53aa", extractor="rules-3")
    expected = "tri-he|var:corrected|extract:rules-3|judge:published/minilm@53aa"
    assert str(metric.signature) == expected
    with pytest.raises(UnknownVariantError, match="published, corrected"):
        TriHeMetric(variant="best", judge="j")


def test_evidence_as_items_files_hold_it() -> None:
    verdict = ClaimVerdict(
        triplet=Triplet("a", "b", "c"),
        verdict=Verdict.NOT_SUPPORTED,
        part=Part.OBJECT,
        score=0.25,
        margin=-0.35,
        judge="matcher",
        references=(Triplet("d", "e", "f"),),
        span=(0, 5),
        within_words=2,
        prediction_error=True,
    )
    missing = ClaimVerdict(
        triplet=Sentence("All."), verdict=Verdict.UNSCORED, reason="REFERENCE_MISSING", detail="why"
    )
    line = TriHeEvidence(claims=(verdict, missing), human_scores=(0.5, 1.0)).to_json()
    assert line["human_scores"] == [0.5, 1.0]
    assert line["claims"] == [
        {
            "triplet": ["a", "b", "c"],
            "span": [0, 5],
            "within_words": 2,
            "verdict": "not_supported",
            "part": "object",
            "prediction_error": True,
            "score": 0.25,
            "margin": -0.35,
            "judge": "matcher",
            "references": [["d", "e", "f"]],
        },
        {
            "triplet": ["All."],
            "span": None,
            "within_words": None,
            "verdict": "unscored",
            "part": None,
            "prediction_error": False,
            "score": None,
            "margin": None,
            "judge": "",
            "references": [],
            "reason": "REFERENCE_MISSING",
            "detail": "why",
        },
    ]


@pytest.mark.parametrize(
    ("variant", "value", "best", "worst"),
    [("published", 1 / 4, 1 / 4, 3 / 4), ("corrected", 1 / 2, 1 / 4, 3 / 4)],
)
def test_bounds_show_what_claims_without_a_verdict_could_change(
    variant: str, value: float, best: float, worst: float
) -> None:
    """Four claims: one supported, one not, two without a verdict; no answer is unscored."""
    metric = TriHeMetric(variant=variant, judge="j")
    verdicts = [
        ClaimVerdict(triplet=Triplet("a", "is", str(n)), verdict=verdict)
        for n, verdict in enumerate(
            (Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.UNSCORED, Verdict.UNSCORED)
        )
    ]
    made = metric.score_answer(verdicts)
    tally = Tally(metric)
    tally.add(
        ItemResult(
            id="1",
            group_id="i",
            outcome=Outcome.SCORED,
            statistics=made.statistics,
            scores=made.scores,
        )
    )
    found = tally.finish(IntervalSettings(), version="x")
    assert found.coverage.unscored == 0
    assert found.hallu_q == pytest.approx(value)
    for name in ("hallu_q", "hallu_i"):
        bound = found.coverage.bounds[name]
        assert bound.best == pytest.approx(best)
        assert bound.worst == pytest.approx(worst)
    assert found.coverage.bounds["object_hallu_q"].best == 0
    assert found.coverage.bounds["object_hallu_q"].worst == pytest.approx(1 / 2)


def stated(verdict: Verdict, score: float | None, judge: str = "llm") -> ClaimVerdict:
    part = Part.OBJECT if verdict is Verdict.NOT_SUPPORTED else None
    triplet = Triplet("a", "b", "c")
    return ClaimVerdict(triplet=triplet, verdict=verdict, part=part, score=score, judge=judge)


@pytest.mark.parametrize(("variant", "claims"), [("published", 6), ("corrected", 5)])
def test_soft_claims_count_by_their_probability(variant: str, claims: int) -> None:
    yes, no = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED
    verdicts = [
        stated(yes, 0.9),
        stated(no, 0.25, "hhem"),
        stated(no, None),
        stated(yes, None),
        # The score of a matcher is a similarity.
        stated(no, 0.4, "matcher"),
        stated(Verdict.UNSCORED, None),
    ]
    metric = TriHeMetric(variant=variant, judge="j", soft="yes")
    scored = metric.score_answer(verdicts)
    names = [column.name for column in metric.columns]
    row = dict(zip(names, scored.statistics, strict=True))
    assert row["hallucinated"] == pytest.approx(0.1 + 0.75 + 1 + 0 + 1)
    assert row["claims"] == claims
    assert (row["without_probability"], row["hallucinated_objects"]) == (3, 3)
    assert scored.scores["hallu_q"] == row["rate"] == row["hallucinated"] / claims
    assert "|soft:yes|judge:j" in str(metric.signature)
    unjudged, note = metric.notes_on(row)
    counted = "count as not hallucinated" if variant == "published" else "left out of the rates"
    assert unjudged.startswith("1 claim of a scored answer has no verdict; such claims ")
    assert counted in unjudged
    assert (
        expected_message("metrics.framework.metric:of-claims-have-no-probability-and-count") in note
    )

    hard = TriHeMetric(variant=variant, judge="j")
    assert hard.score_answer(verdicts).scores["hallu_q"] == pytest.approx(3 / claims)
    assert hard.notes_on(row) == (unjudged,)
    assert metric.notes_on(dict.fromkeys(row, 0.0)) == ()
    assert "soft" not in str(hard.signature)


def test_the_definition_leaves_prediction_errors_out_of_the_rates() -> None:
    # Section 3.1 separates prediction errors from hallucinations; the judges of section 3.3 don't.
    said = (*claims("y1r"), replace(claims("r")[0], prediction_error=True))
    of = {
        name: TriHeMetric(variant=name, judge="test").score_answer(said).scores
        for name in TriHeMetric.variant_names()
    }
    assert of["published"] == of["corrected"]
    assert of["published"]["hallu_q"] == pytest.approx(3 / 4)
    assert of["definition"]["hallu_q"] == pytest.approx(2 / 4)
    assert of["definition"]["object_hallu_q"] == pytest.approx(1 / 4)
    assert of["definition"]["relation_hallu_q"] == pytest.approx(1 / 4)
    soft = TriHeMetric(variant="definition", judge="test", soft="yes")
    assert soft.score_answer(said).scores["hallu_q"] == pytest.approx(2 / 4)
