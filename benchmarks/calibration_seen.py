"""Seen claims of a judge that errs at known rates, corrected; bench_calibration.py prints them.

Runs go the whole way: verdicts become statistics of the metric, labels of drawn claims correct its
scores as ``hallujudge calibrate`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from calibration_simulations import Tried

from hallujudge.labels.human_labels import Label
from hallujudge.labels.run_calibration import calibrate_items
from hallujudge.labels.verdicts import DecidedClaim, DecidedItem
from hallujudge.metrics import ItemResult, Outcome, Report, Tally
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Verdict
from hallujudge.metrics.framework.intervals import IntervalSettings
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.seen_claims import SeenClaimsMetric

if TYPE_CHECKING:
    pass

__all__ = ["print_seen"]

RESPONSES, MOST_CLAIMS, LABELS, SHARE = 200, 6, 100, 0.25
NOT_VISIBLE = 0.05
"""Share of claims that the judge can't see, whatever the truth is."""
JUDGES = ((0.9, 0.95), (0.8, 0.9), (0.7, 0.8))
"""Sensitivity and specificity."""
SCORES = ("claim_hallucination", "response_hallucination")
_METRIC = SeenClaimsMetric(judge="simulated")
_COLUMNS = [column.name for column in _METRIC.columns]


class _Run(NamedTuple):
    """A drawn run, and the truth of its claims with a verdict."""

    report: Report
    items: list[DecidedItem]
    truths: list[list[bool]]

    def share(self, name: str) -> float:
        """Return the score if people had labelled every claim with a verdict."""
        if name == "claim_hallucination":
            return sum(map(sum, self.truths)) / sum(map(len, self.truths))
        return float(np.mean([sum(each) / len(each) for each in self.truths]))


def print_seen(samples: int) -> None:
    """Print the table of corrected scores."""
    print(
        "| sensitivity + specificity | score | covers: images | covers: run | bias | error |"
        " raw's error | width / labels alone |\n|:---|:---|---:|---:|---:|---:|---:|---:|"
    )
    for judge in JUDGES:
        tried = simulated(judge, samples)
        for name in SCORES:
            ours, alone, raw = (tried[name, kind] for kind in ("ppi++", "labels", "raw"))
            print(
                f"| {judge[0]} + {judge[1]} | `{name}` | {ours.coverage:.1f} |"
                f" {ours.coverage_run:.1f} | {ours.bias:+.2f} | {ours.error:.1f} |"
                f" {raw.error:.1f} | {ours.width / alone.width:.2f} |",
                flush=True,
            )


def simulated(judge: tuple[float, float], samples: int) -> dict[tuple[str, str], Tried]:
    """Return what each estimate of each score did."""
    rng = np.random.default_rng([58, round(100 * sum(judge))])
    kinds = ("raw", "ppi++", "labels")
    tried = {(name, kind): Tried(truth=SHARE) for name in SCORES for kind in kinds}
    for _ in range(samples):
        run = _drawn(rng, judge)
        labels = _labelled(rng, run)
        found = calibrate_items(run.report, _METRIC, run.items, labels)
        for name in SCORES:
            score = found.scores[name]
            assert score.raw is not None, "claims have verdicts"
            assert score.corrected is not None, "claims have labels"
            assert score.labels_alone is not None, "no plan drew them"
            assert score.run_low is not None, "as the corrected score"
            assert score.run_high is not None, "as the corrected score"
            tried[name, "raw"].add(score.raw.value, score.raw.value, score.raw.value)
            for kind, one in (("ppi++", score.corrected), ("labels", score.labels_alone)):
                tried[name, kind].add(one.value, one.ci_low or 0.0, one.ci_high or 1.0)
            truth = run.share(name)
            tried[name, "ppi++"].held_run.append(score.run_low <= truth <= score.run_high)
    return tried


def _drawn(rng: np.random.Generator, judge: tuple[float, float]) -> _Run:
    """Return a run; each response has a share of its own, as claims of one picture are alike."""
    tally, items, truths = Tally(_METRIC, ()), list[DecidedItem](), list[list[bool]]()
    for number in range(RESPONSES):
        share = rng.beta(4 * SHARE, 4 * (1 - SHARE))
        truth = rng.random(rng.integers(2, MOST_CLAIMS + 1)) < share
        verdicts = [_verdict(rng, judge, wrong=bool(wrong)) for wrong in truth]
        known = [bool(t) for t, v in zip(truth, verdicts, strict=True) if v is not _NONE]
        if not known:
            continue
        claims = [
            ClaimVerdict(triplet=Sentence("x"), verdict=v, reason=_REASON[v]) for v in verdicts
        ]
        made = _METRIC.score_response(claims)
        name = str(number)
        tally.add(
            ItemResult(
                id=name,
                group_id=name,
                outcome=Outcome.SCORED,
                statistics=made.statistics,
                scores=made.scores,
            )
        )
        items.append(_decided(name, made.statistics, verdicts))
        truths.append(known)
    report = tally.finish(IntervalSettings(), version="0", settings={}, notes=())
    return _Run(report, items, truths)


_NONE = Verdict.UNSCORED
_REASON = {
    Verdict.SUPPORTED: "",
    Verdict.NOT_SUPPORTED: "",
    _NONE: UnscoredReason.CLAIM_NOT_VISIBLE.value,
}


def _verdict(rng: np.random.Generator, judge: tuple[float, float], *, wrong: bool) -> Verdict:
    if rng.random() < NOT_VISIBLE:
        return _NONE
    sensitivity, specificity = judge
    rejects = rng.random() < (sensitivity if wrong else 1 - specificity)
    return Verdict.NOT_SUPPORTED if rejects else Verdict.SUPPORTED


def _decided(name: str, statistics: tuple[float, ...], verdicts: list[Verdict]) -> DecidedItem:
    said = {Verdict.SUPPORTED: False, Verdict.NOT_SUPPORTED: True}
    return DecidedItem(
        id=name,
        cluster=name,
        statistics=dict(zip(_COLUMNS, map(float, statistics), strict=True)),
        claims=tuple(
            DecidedClaim(index=at, text="x", hallucinated=said.get(verdict))
            for at, verdict in enumerate(verdicts)
        ),
        fields={},
        response="",
    )


def _labelled(rng: np.random.Generator, run: _Run) -> list[Label]:
    """Return labels of claims with a verdict, drawn at random."""
    places = [
        (item.id, claim.index, truth)
        for item, truths in zip(run.items, run.truths, strict=True)
        for claim, truth in zip(
            (c for c in item.claims if c.hallucinated is not None), truths, strict=True
        )
    ]
    drawn = rng.choice(len(places), LABELS, replace=False)
    return [
        Label(item=item, claim=claim, hallucinated=truth, text="x")
        for item, claim, truth in (places[int(at)] for at in drawn)
    ]
