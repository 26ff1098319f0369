"""Corrects the scores of a run by human labels, or compares them with another judge's verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hallujudge.metrics import IntervalSettings, Metric, Report
from hallujudge.metrics.calibration import JudgeAccuracy, judge_accuracy
from hallujudge.metrics.calibration.calibrated_scores import (
    CalibratedScore,
    Calibration,
    Cascade,
    learn_cascade,
)
from hallujudge.metrics.framework.agreement import JudgeAgreement, JudgedTwice, cohen_kappa
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.stored_runs import StoredRun, read_run

from .human_labels import Label, find_labels, matched_labels
from .label_files import LABELS, PLAN, labels_text
from .label_plans import LabelPlan, read_plan
from .labelled_claims import (
    Sample,
    Sampling,
    labelled_samples,
    notes_of,
    other_run_note,
    sampling_of,
)
from .score_corrections import LEAST_IN_GROUP, calibrated_scores
from .verdicts import DecidedItem, read_verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """How a run is calibrated."""

    labels: tuple[Path, ...] = ()
    """Files of labels; empty for ``labels.jsonl`` in the run's folder."""
    plan: Path | None = None
    """The plan that drew them; None for ``label-plan.json`` in the run's folder, if there."""
    agreement: float | None = None
    """Agreement that verdicts above a margin shall have; None learns no margin."""

    def __post_init__(self) -> None:
        if self.agreement is not None and not 0 < self.agreement < 1:
            raise InvalidInputError(
                f"agreement is {self.agreement}; give a share between 0 and 1, such as 0.9"
            )


def calibrate(folder: str | Path, options: CalibrateOptions | None = None) -> Calibration:
    """Correct the scores of a run by human labels, without judging anything again.

    Args:
        folder: The run's folder.
        options: Where labels are.

    Raises:
        InvalidInputError: No label is of a claim or item of the run.
        UnsupportedError: The metric's scores do not depend on verdicts.
        ArchiveError: A file can't be read.
    """
    options = options or CalibrateOptions()
    run = read_run(folder)
    paths = options.labels or (run.folder / LABELS,)
    if not options.labels and not paths[0].exists():
        raise InvalidInputError(
            f"{run.folder}: no {LABELS}; label claims (hallujudge label plan, report.html), then "
            "hallujudge label import, or name files with --labels"
        )
    path = options.plan or run.folder / PLAN
    # A plan that is named must exist; labels may come without one.
    plan = read_plan(path) if options.plan or path.exists() else None
    # The plan gives labels their weights; those of another run's plan would be wrong unnoticed.
    if plan is not None and plan.signature != run.signature:
        raise InvalidInputError(f"{path}: the plan is of another run; plan labels of this run")
    items = list(read_verdicts(run))
    labels = find_labels(*paths, items=items)
    found = calibrate_items(
        run.report,
        run.metric,
        items,
        labels.labels,
        plan=plan,
        interval=run.interval,
        agreement=options.agreement,
    )
    return replace(found, notes=(*found.notes, *filter(None, [labels.changed_note])))


def calibrate_items(
    report: Report,
    metric: Metric,
    items: Sequence[DecidedItem],
    labels: Sequence[Label],
    *,
    plan: LabelPlan | None = None,
    interval: IntervalSettings | None = None,
    agreement: float | None = None,
) -> Calibration:
    """Correct the scores of a report by human labels.

    Args:
        report: The report.
        metric: The report's metric.
        items: Its scored items.
        labels: The labels.
        plan: The plan that drew what is labelled; None if there is none.
        interval: Confidence of the intervals; None for 95 %.
        agreement: Agreement that verdicts above a margin shall have; None learns no margin.

    Raises:
        InvalidInputError: No label is of a claim or item of the run.
    """
    confidence = (interval or IntervalSettings()).confidence
    matched = matched_labels(labels, items, "this run")
    sampling = sampling_of(items, matched, plan)
    samples = _samples(metric, items, sampling)
    main = next(iter(samples.values()))
    accuracy = {
        column: judge_accuracy(sample.claims, confidence=confidence)
        for column, sample in samples.items()
    }
    of_main = next(iter(accuracy.values()))
    kappa = _kappa(main, confidence)
    scores = calibrated_scores(metric, report.scores, items, sampling, accuracy, confidence)
    return Calibration(
        metric=report.metric,
        variant=report.variant,
        run_signature=report.signature,
        labels=int(main.claims.labelled.sum()),
        # Of what labels say, whatever the form of their files.
        labels_sha256=hashlib.sha256(labels_text(labels).encode()).hexdigest(),
        sampled_by=sampling.by,
        planned=plan is not None,
        confidence=confidence,
        accuracy=of_main,
        kappa=kappa.kappa,
        kappa_low=kappa.ci_low,
        kappa_high=kappa.ci_high,
        annotators=matched.annotators,
        alpha=matched.alpha,
        scores=scores,
        groups=dict(_groups(report, metric, items, sampling, accuracy, confidence)),
        cascade=None if agreement is None else _cascade(main, agreement, confidence),
        notes=(
            *notes_of(main, sampling, of_main),
            *other_run_note(labels, report.signature),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntMargin:
    """The margin from which on a judge's verdicts agree with those of a reference judge."""

    calibration: Calibration
    """The comparison of both. Its corrected scores are those of the reference judge, not people's.
    """
    reference: str
    """Signature of the reference judge's run."""


def learn_margin(folder: str | Path, *, reference: str | Path, agreement: float) -> LearntMargin:
    """Find the margin from which on verdicts agree with those of a reference judge.

    The run of the reference judge may have a random sample of the run's items only.

    Args:
        folder: The run's folder.
        reference: Folder of a run of the same claims by the reference judge.
        agreement: Agreement that verdicts above the margin shall have.

    Raises:
        InvalidInputError: The runs have no claim in common, or verdicts have no margins.
        UnsupportedError: The metric's scores do not depend on verdicts.
        ArchiveError: A file can't be read.
    """
    CalibrateOptions(agreement=agreement)  # checks the number
    run = read_run(folder)
    other = open_reference(run, reference)
    found = calibrate_items(
        run.report,
        run.metric,
        list(read_verdicts(run)),
        verdicts_as_labels(other),
        interval=run.interval,
        agreement=agreement,
    )
    return LearntMargin(calibration=found, reference=other.signature)


def open_reference(run: StoredRun, folder: str | Path) -> StoredRun:
    """Return the run of a reference judge.

    Raises:
        InvalidInputError: It is of another metric.
        ArchiveError: A file can't be read.
    """
    other = read_run(folder)
    if other.report.metric != run.report.metric:
        raise InvalidInputError(
            f"{other.folder}: a run of {other.report.metric}, not of {run.report.metric}"
        )
    return other


def verdicts_as_labels(run: StoredRun) -> list[Label]:
    """Return the verdicts of a run as labels of its claims."""
    return [
        Label(item=item.id, claim=claim.index, hallucinated=claim.hallucinated, text=claim.text)
        for item in read_verdicts(run)
        for claim in item.claims
        if claim.hallucinated is not None
    ]


def _samples(metric: Metric, items: Sequence[DecidedItem], sampling: Sampling) -> dict[str, Sample]:
    """Return the sample of each judged column that has labels, those of claims first."""
    samples = labelled_samples(metric, items, sampling)
    out = {column.column: sample for column, sample in samples}
    if not out:
        if not sampling.labels.claims and all(column.of == "claim" for column in metric.judged):
            raise InvalidInputError(
                "the labels are of whole items, but this run's scores count claims; label its "
                "claims"
            )
        raise InvalidInputError(
            "no label counts: the plan drew other claims, or claims without a verdict are "
            "labelled; label what the plan names"
        )
    return out


def _cascade(sample: Sample, agreement: float, confidence: float) -> Cascade:
    if np.isnan(sample.margins).all():
        raise InvalidInputError(
            "the run's verdicts have no margins, so that none can be learnt; matchers and language "
            "models with log-probabilities state them"
        )
    return learn_cascade(sample.claims, sample.margins, target=agreement, confidence=confidence)


def _kappa(sample: Sample, confidence: float) -> JudgeAgreement:
    claims, weights = sample.claims, sample.claims.weights()
    drawn = np.flatnonzero(claims.labelled)
    pairs = [
        JudgedTwice(
            str(claims.clusters[at]),
            str(bool(claims.verdicts[at])),
            str(bool(claims.labels[at])),
        )
        for at in drawn
    ]
    settings = IntervalSettings(confidence=confidence)
    return cohen_kappa(pairs, settings, weights=weights[drawn].tolist())


def _groups(
    report: Report,
    metric: Metric,
    items: Sequence[DecidedItem],
    sampling: Sampling,
    accuracy: Mapping[str, JudgeAccuracy],
    confidence: float,
) -> Iterator[tuple[str, dict[str, dict[str, CalibratedScore]]]]:
    """Yield the corrected scores of each field's groups that have enough labels."""
    for key, values in report.groups.items():
        found = {}
        for value, scores in values.items():
            # Sensitivity and specificity stay the run's, since a group has few labels of each kind.
            part = [item for item in items if item.fields.get(key, "") == value]
            corrected = calibrated_scores(metric, scores, part, sampling, accuracy, confidence)
            enough = {
                # Influences are for comparisons of runs, whose groups are not compared.
                name: replace(score, influence={})
                for name, score in corrected.items()
                if score.corrected is not None and score.labels >= LEAST_IN_GROUP
            }
            if enough:
                found[value] = enough
        if found:
            yield key, found
