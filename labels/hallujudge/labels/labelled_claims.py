"""The labelled claims of a run as arrays, and warnings about the labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hallujudge.metrics import Metric, ScoreDefinition
from hallujudge.metrics.calibration import Effects, JudgeAccuracy, JudgedClaims, effects_of
from hallujudge.metrics.framework.arrays import FloatArray
from hallujudge.metrics.framework.columns_and_scores import JudgedColumn
from hallujudge.sdk.archives.json_files import amount

from .human_labels import Label, MatchedLabels
from .label_plans import By, LabelPlan, Unit, units_of
from .verdicts import DecidedItem, divisor

# Share of labelled items with all claims labelled, from which on items were drawn, not claims.
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The labels of a run, and how they were drawn."""

    labels: MatchedLabels
    """By claim and by item, of all annotators together."""
    by: By
    """What was drawn."""
    plan: LabelPlan | None
    """The plan; None if labels came without one."""
    chosen: frozenset[tuple[str, int | None]]
    """The units that the plan drew."""

    def stratum(self, unit: Unit) -> int:
        """Return the stratum of a unit; 0 without a plan."""
        return self.plan.stratum_of(unit) if self.plan else 0

    def counts(self, unit: Unit) -> bool:
        """Return whether a label of the unit counts: without a plan every one does."""
        # Labels beyond the plan were chosen by people, and are not a random sample.
        return self.plan is None or unit[:2] in self.chosen


def sampling_of(
    items: Sequence[DecidedItem], labels: MatchedLabels, plan: LabelPlan | None
) -> Sampling:
    """Return how labels were drawn: by the plan, or as they look without one."""
    if plan is not None:
        chosen = frozenset((unit.item, unit.claim) for unit in plan.units)
        return Sampling(labels=labels, by=plan.by, plan=plan, chosen=chosen)
    whole = some = 0
    for item in items:
        known = sum((item.id, claim.index) in labels.claims for claim in item.claims)
        if known or item.id in labels.items:
            some += 1
            # None is known where the item was labelled as a whole.
            whole += known in (0, len(item.claims))
    # Claims drawn one by one rarely cover an item, so items that mostly are covered were drawn.
    by: By = "item" if some and whole >= _NEARLY_ALL * some else "claim"
    return Sampling(labels=labels, by=by, plan=None, chosen=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The claims, or items, of one judged column."""

    claims: JudgedClaims
    """Their verdicts and labels."""
    effects: Effects
    """What they add to the score."""
    clusters: tuple[str, ...]
    """Names of the clusters, in the order of their numbers."""
    margins: FloatArray
    """How sure the judge is of each claim; NaN if unknown."""
    soft: bool
    """Whether the run counts probabilities instead of verdicts."""

    @classmethod
    def of(
        cls,
        metric: Metric,
        score: ScoreDefinition,
        column: JudgedColumn,
        items: Sequence[DecidedItem],
        sampling: Sampling,
    ) -> Sample | None:
        """Return the sample of a score; None if labels were not drawn for it.

        Verdicts on whole items can only be corrected if items were drawn: items whose claims all
        happen to be labelled have few claims.
        """
        if column.of == "item" and sampling.by == "claim":
            return None
        # Clusters without any claim keep their numbers: they count in the score's denominator.
        rows = [_judged(item, column, sampling) for item in items]
        every = [each for row in rows for each in row]
        places = {cluster: at for at, cluster in enumerate(dict.fromkeys(i.cluster for i in items))}
        of_item = np.array([places[item.cluster] for item in items], dtype=np.intp)
        sizes = [len(row) for row in rows]
        cluster_of = np.repeat(of_item, sizes)
        amounts = np.array([each.amount for each in every], dtype=np.float64)
        # Claims of an item that was drawn came together, and are one unit; else each is its own.
        claims = JudgedClaims(
            verdicts=np.array([each.verdict for each in every], dtype=bool),
            labels=np.array([each.label for each in every], dtype=np.float64),
            clusters=cluster_of,
            units=np.repeat(np.arange(len(items)), sizes)
            if sampling.by == "item"
            else np.arange(len(cluster_of)),
            strata=np.array([each.stratum for each in every], dtype=np.intp),
        )
        sums = _fixed(metric, column, items, rows, of_item, len(places))
        effects = effects_of(
            metric, score, sums, adds=[(column.column, amounts)], cluster_of=cluster_of
        )
        return cls(
            claims=claims,
            effects=effects,
            clusters=tuple(places),
            margins=np.array([each.margin for each in every], dtype=np.float64),
            # By what counts and not by the run's settings: judges without probabilities count
            # verdicts in soft runs too.
            soft=any(each.counted != each.verdict for each in every),
        )


def labelled_samples(
    metric: Metric, items: Sequence[DecidedItem], sampling: Sampling
) -> Iterator[tuple[JudgedColumn, Sample]]:
    """Yield the samples that have a label, with their columns; those of claims come first."""
    by_name = {score.name: score for score in metric.scores}
    # The first sample stands for the run in kappa and in cards, which are about claims.
    for column in sorted(metric.judged, key=lambda column: column.of == "item"):
        found = Sample.of(metric, by_name[column.scores[0]], column, items, sampling)
        if found is not None and found.claims.labelled.any():
            yield column, found


class _Judged(NamedTuple):
    """A claim, or an item, with its verdict and its label."""

    verdict: bool
    counted: float
    """As how much of a hallucinated claim the run counts it."""
    label: float
    """1 hallucinated, 0 not, NaN without a label that counts."""
    amount: float
    """What it adds to the column of its item if it is hallucinated."""
    stratum: int
    margin: float
    """NaN if unknown."""


def _judged(item: DecidedItem, column: JudgedColumn, sampling: Sampling) -> list[_Judged]:
    """Return the verdicts of one item that a column counts."""
    labels, sign = sampling.labels, -1.0 if column.supported else 1.0
    if column.of == "item":
        return [
            _Judged(
                verdict=whole.hallucinated,
                counted=float(whole.hallucinated),
                label=_number(labels.items.get(item.id) if sampling.counts(whole) else None),
                amount=sign,
                stratum=sampling.stratum(whole),
                margin=_number(whole.margin),
            )
            for whole in units_of([item], "item")
        ]
    amount = sign / divisor(item.statistics, column.divided_by)
    claims = [claim for claim in item.claims if claim.hallucinated is not None]
    units = units_of([item], "claim")
    # A claim has the stratum, and the chance to be drawn, of the item that it came with.
    drawn = units_of([item], "item") * len(units) if sampling.by == "item" else units
    return [
        _Judged(
            verdict=unit.hallucinated,
            counted=claim.counted,
            label=_number(
                labels.claims.get((item.id, claim.index)) if sampling.counts(of) else None
            ),
            amount=amount * claim.weight,
            stratum=sampling.stratum(of),
            margin=_number(unit.margin),
        )
        for claim, unit, of in zip(claims, units, drawn, strict=True)
    ]


def _number(known: float | None) -> float:
    return float("nan") if known is None else float(known)


def _fixed(
    metric: Metric,
    column: JudgedColumn,
    items: Sequence[DecidedItem],
    rows: Sequence[Sequence[_Judged]],
    of_item: np.ndarray[tuple[int], np.dtype[np.intp]],
    clusters: int,
) -> dict[str, FloatArray]:
    """Return sums by cluster without the verdicts: as if no claim were hallucinated."""

    def summed(numbers: Sequence[float]) -> FloatArray:
        weights = np.array(numbers, dtype=np.float64)
        return np.bincount(of_item, weights=weights, minlength=clusters).astype(np.float64)

    sums = {
        each.name: summed([item.statistics[each.name] for item in items]) for each in metric.columns
    }
    sums[metric.unit] = summed([1.0] * len(items))
    # The run's sums include its verdicts; effects_of puts verdicts or labels in their place.
    sums[column.column] -= summed([sum(e.amount * e.counted for e in row) for row in rows])
    return sums


# Of 50 labels, two or three show an error of the judge (docs/decisions/calibration.md).
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
    # A finite run: the share of all its claims can't differ from that of the run.
    left = 1 - drawn / len(claims.labels)
    error = math.sqrt(share * (1 - share) / drawn * left)
    found = float(claims.verdicts[claims.labelled].mean())
    # 1 / drawn is one label: a handful of labels is not called far off for a single one.
    return abs(found - share) > _FAR * error + 1 / drawn


def notes_of(sample: Sample, sampling: Sampling, accuracy: JudgeAccuracy) -> Iterator[str]:
    """Yield warnings about the labels, one sentence each."""
    labels = sampling.labels
    count = int(sample.claims.labelled.sum())
    if count < _FEW:
        few = amount(count, "label", "labels")
        yield f"{few}: intervals are wide, and few errors of the judge are seen."
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
        yield from _plan_notes(sampling)
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
            f"{amount(count, 'label was', 'labels were')} given to another run; labels are joined "
            "by item, claim and text, and count only if both runs have the same claims."
        )


def _plan_notes(sampling: Sampling) -> Iterator[str]:
    assert sampling.plan is not None, "checked by the caller"
    labels = sampling.labels
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
