"""Warnings about labels: too few, not random, unknown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hallujudge.metrics.calibration.judge_accuracy import JudgeAccuracy

from ..labels import Label, MatchedLabels
from .samples import Sample, Sampling

__all__ = ["differs_from_run", "notes_of", "other_run_note"]

_FEW = 50
# Below it, labels support no conclusions (Krippendorff, Reliability in Content Analysis, Human
# Communication Research 30, 2004).
_LEAST_ALPHA = 0.667
# Standard errors by which the share of a verdict may differ between labelled claims and all.
_FAR = 3.0


def differs_from_run(sample: Sample) -> bool:
    """Return whether the judge rejects labelled claims more or less often than others.

    A random sample differs so far, three standard errors, once in 370 times.
    """
    claims = sample.claims
    drawn, share = int(claims.labelled.sum()), float(claims.verdicts.mean())
    if not drawn or share in (0, 1):
        return False
    left = 1 - drawn / len(claims.labels)
    error = math.sqrt(share * (1 - share) / drawn * left)
    found = float(claims.verdicts[claims.labelled].mean())
    return abs(found - share) > _FAR * error + 1 / drawn


def notes_of(
    sample: Sample, labels: MatchedLabels, sampling: Sampling, accuracy: JudgeAccuracy
) -> Iterator[str]:
    """Yield warnings about the labels, one sentence each."""
    count = int(sample.claims.labelled.sum())
    if count < _FEW:
        yield f"{count} labels: intervals are wide, and few errors of the judge are seen."
    if sampling.plan is None and not sample.claims.labelled.all():
        yield (
            "No plan says how the labels were drawn; corrected scores assume a random sample of "
            "the run. Use hallujudge label plan."
        )
        if differs_from_run(sample):
            yield (
                "The judge's verdicts on labelled claims differ from its verdicts on all claims by "
                "more than chance: the labels are no random sample of the run."
            )
    elif sampling.plan is not None:
        yield from _plan_notes(sampling, labels)
    for name, rate in (("hallucinated", accuracy.sensitivity), ("other", accuracy.specificity)):
        if not rate.n:
            yield f"No {name} claim is labelled, so that the judge's errors on them are unknown."
    if sample.soft:
        yield (
            "The raw scores count probabilities. The correction takes the verdicts behind them, "
            "and sensitivity and specificity are those of the verdicts."
        )
    if labels.unknown:
        yield (
            "Labels of items or claims that the run does not have do not count: "
            f"{labels.unknown:,}."
        )
    if labels.unsure:
        yield f"Claims or items without a majority of labels do not count: {labels.unsure:,}."
    if labels.alpha is not None and labels.alpha < _LEAST_ALPHA:
        yield (
            f"The annotators agree too little to conclude much (Krippendorff's alpha "
            f"{labels.alpha:.2f}; {_LEAST_ALPHA} is the usual minimum, 0 is chance): corrected "
            "scores rest on labels that are themselves in doubt. Check the instructions, and label "
            "what they disagree about again."
        )


def other_run_note(labels: Sequence[Label], signature: str) -> Iterator[str]:
    """Yield a warning about labels that name another run."""
    count = sum(label.signature not in ("", signature) for label in labels)
    if count:
        yield (
            f"{count:,} labels were given to another run; they are joined by item, claim and text, "
            "and count only if both runs have the same claims."
        )


def _plan_notes(sampling: Sampling, labels: MatchedLabels) -> Iterator[str]:
    assert sampling.plan is not None, "checked by the caller"
    known = {*labels.claims, *((item, None) for item in labels.items)}
    missing = sum((unit.item, unit.claim) not in known for unit in sampling.plan.units)
    if missing:
        yield (
            f"{missing:,} of {len(sampling.plan.units):,} planned units have no label; if "
            "hard ones were left out, the corrected scores are biased."
        )
    own = labels.claims if sampling.by == "claim" else {(item, None) for item in labels.items}
    if extra := len(set(own) - sampling.chosen):
        yield (
            f"{extra:,} labels are of {sampling.by}s that the plan did not draw; they do not count."
        )
