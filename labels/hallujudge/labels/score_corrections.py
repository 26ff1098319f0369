"""Each score of a run: raw, corrected, and which of them to report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Literal

from hallujudge.metrics import Metric, Score
from hallujudge.metrics.calibration import (
    LEAST_INFORMATION,
    JudgeAccuracy,
    JudgedClaims,
    ScoreEstimate,
    rogan_gladen,
)
from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore, Choice
from hallujudge.metrics.calibration.prediction_powered import (
    Corrected,
    ExpectedErrors,
    expected_errors,
    prediction_powered,
)
from hallujudge.sdk.archives.json_files import amount

from .labelled_claims import Sample, Sampling, differs_from_run
from .verdicts import DecidedItem

FEW_LABELS = 20
"""With fewer labels, no correction is recommended: its interval says next to nothing."""

LEAST_IN_GROUP = 30
"""Labels that a group needs to be corrected."""

_UNLABELLED = {
    "claim": "No claim that counts in it is labelled.",
    "item": "Whole items were not drawn for labelling; plan labels of items to correct it.",
}


def calibrated_scores(
    metric: Metric,
    scores: Mapping[str, Score],
    items: Sequence[DecidedItem],
    sampling: Sampling,
    accuracy: Mapping[str, JudgeAccuracy],
    confidence: float,
) -> dict[str, CalibratedScore]:
    """Return the scores of a run or group that labels can correct.

    Args:
        metric: The metric.
        scores: The raw scores.
        items: The items of the run or group.
        sampling: The labels, and how they were drawn.
        accuracy: Column -> the judge's sensitivity and specificity over the whole run.
        confidence: Confidence level of the intervals.
    """
    by_name = {score.name: score for score in metric.scores}
    out = {}
    for column in metric.judged:
        for name in column.scores:
            sample = Sample.of(metric, by_name[name], column, items, sampling) if items else None
            found = accuracy.get(column.column)
            out[name] = _calibrated(scores[name], column.of, sample, sampling, found, confidence)
    return out


def _calibrated(
    raw: Score,
    of: Literal["claim", "item"],
    sample: Sample | None,
    sampling: Sampling,
    accuracy: JudgeAccuracy | None,
    confidence: float,
) -> CalibratedScore:
    estimate = _estimate(raw)
    if sample is None or accuracy is None or not sample.claims.labelled.any():
        reason = _UNLABELLED[of]
        return CalibratedScore(name=raw.name, raw=estimate, reason=reason)
    claims, effects = sample.claims, sample.effects
    corrected = prediction_powered(claims, effects, confidence=confidence)
    alone = None
    # With a plan there is no estimate by labels alone, since its strata are made of verdicts.
    if sampling.plan is None:
        alone = prediction_powered(claims, effects, confidence=confidence, verdicts=False)
    # Sensitivity and specificity are those of verdicts; a mean of probabilities has none.
    size = _size(raw, confidence)
    other = (
        None
        if sample.soft
        else rogan_gladen(claims, effects, accuracy, raw_size=size, confidence=confidence)
    )
    count = int(claims.labelled.sum())
    errors = (
        expected_errors(raw.value, corrected, confidence)
        if corrected is not None and raw.value is not None
        else None
    )
    choice, reason = _choice(sample, corrected, other, accuracy, sampling, raw, errors, of)
    return CalibratedScore(
        name=raw.name,
        raw=estimate,
        corrected=_estimate(corrected),
        run_low=corrected.run_low if corrected else None,
        run_high=corrected.run_high if corrected else None,
        # Rounded, since the last digits differ by library and the file is deterministic.
        tuning=round(corrected.tuning, 12) if corrected else None,
        rogan_gladen=other,
        labels_alone=_estimate(alone),
        labels=count,
        recommended=choice,
        reason=reason,
        raw_error=round(errors.raw, 12) if errors else None,
        corrected_error=round(errors.corrected, 12) if errors else None,
        influence=_influence(sample, corrected),
    )


def _influence(sample: Sample, corrected: Corrected | None) -> dict[str, float]:
    if corrected is None:
        return {}
    parts = zip(sample.clusters, corrected.influence.tolist(), strict=True)
    # Without zeros, which add nothing to a comparison of two runs.
    return {cluster: part for cluster, number in parts if (part := round(number, 12))}


def _estimate(found: Score | Corrected | None) -> ScoreEstimate | None:
    if found is None or found.value is None:
        return None
    return ScoreEstimate(value=found.value, ci_low=found.ci_low, ci_high=found.ci_high)


def _size(score: Score, confidence: float) -> float:
    """Return how many independent claims a raw score is worth, from its interval's width."""
    if score.value is None or score.ci_low is None or score.ci_high is None:
        return float(max(score.n, 1))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    # The binomial sample that would have this interval: clusters make it smaller than n.
    error = (score.ci_high - score.ci_low) / (2 * z)
    binomial = score.value * (1 - score.value)
    return binomial / error**2 if error > 0 and binomial > 0 else float(max(score.n, 1))


def _choice(
    sample: Sample,
    corrected: Corrected | None,
    other: ScoreEstimate | None,
    accuracy: JudgeAccuracy,
    sampling: Sampling,
    raw: Score,
    errors: ExpectedErrors | None,
    of: Literal["claim", "item"],
) -> tuple[Choice, str]:
    """Return which estimate to report, and why."""
    count = int(sample.claims.labelled.sum())
    if corrected is None or raw.value is None or errors is None:
        return "raw", "The score is undefined."
    if count < FEW_LABELS:
        few = amount(count, "label says", "labels say")
        return "raw", f"{few} too little; label at least {FEW_LABELS}, better 100."
    # A planned sample differs on purpose: its strata are made of verdicts.
    if sampling.plan is None and differs_from_run(sample):
        # Rogan and Gladen's estimator takes error rates only, which other samples have as well.
        if other is not None:
            return "rogan-gladen", (
                "The labels are no random sample of the run, so that only the judge's error rates "
                "can be taken from them."
            )
        return "raw", (
            "The labels are no random sample of the run, and Rogan and Gladen's estimator "
            f"{_why_undefined(sample, accuracy)}. Plan labels."
        )
    drawn = (
        "It is unbiased for any judge, as labels are a random sample of the run."
        if sampling.plan is not None or sample.claims.labelled.all()
        else "It is unbiased if the labels are a random sample of the run, which no plan says."
    )
    reasons = _reasons(corrected, accuracy, raw.value, sample, errors, of)
    return "ppi++", " ".join([drawn, *reasons])


def _why_undefined(sample: Sample, accuracy: JudgeAccuracy) -> str:
    """Return why Rogan and Gladen's estimator has no value."""
    if sample.soft:
        return "is not defined for probabilities"
    se, sp = accuracy.sensitivity.value, accuracy.specificity.value
    if se is None or sp is None or se + sp < LEAST_INFORMATION:
        return "needs a better judge"
    return "finds no share that fits their error rates: the judge errs otherwise on the run"


def _reasons(
    corrected: Corrected,
    accuracy: JudgeAccuracy,
    raw: float,
    sample: Sample,
    errors: ExpectedErrors,
    of: Literal["claim", "item"],
) -> list[str]:
    out = []
    se, sp = accuracy.sensitivity.value, accuracy.specificity.value
    if se is not None and sp is not None and se + sp < LEAST_INFORMATION:
        out.append(
            f"The judge tells little about {of}s, and the score rests on the labels: its "
            f"sensitivity {se:.2f} and specificity {sp:.2f} sum to {se + sp:.2f}, below "
            f"{LEAST_INFORMATION}, where a guess has 1 and a perfect judge 2."
        )
    out += _errors_not_seen(sample.claims)
    # Bias² = (raw - corrected)² - error² is below error² then (docs/explanation/statistics.md).
    if errors.raw < errors.corrected:
        out.append(_nearer(abs(raw - corrected.value), errors.corrected))
    elif corrected.run_low <= raw <= corrected.run_high:
        out.append("The labels do not show that the raw score is wrong; it may be as close.")
    return out


def _nearer(difference: float, error: float) -> str:
    """Return that the raw score is expected to be nearer, and why the corrected one is reported."""
    return (
        "The raw score is expected to be nearer to labels on all of the run: it differs by "
        f"{difference:.3f}, less than the {math.sqrt(2) * error:.3f} at which both have the same "
        "expected error. Only the corrected score's interval accounts for the judge's errors."
    )


def _errors_not_seen(claims: JudgedClaims) -> Iterator[str]:
    """Yield for each verdict that no label contradicts that its errors are not known.

    In simulations coverage leaves 93 to 97 % where this is likely (docs/explanation/statistics.md).
    """
    for verdict, words in ((False, ("accepts", "hallucinated")), (True, ("rejects", "supported"))):
        here = claims.verdicts == verdict
        drawn = here & claims.labelled
        count = int(drawn.sum())
        if 0 < count < int(here.sum()) and not (claims.labels[drawn] != verdict).any():
            yield (
                f"None of {count:,} labelled claims that the judge {words[0]} is {words[1]}. They "
                "do not show how often it errs there; more labels make the interval more reliable."
            )
