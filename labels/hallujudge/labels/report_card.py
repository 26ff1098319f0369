"""A judge's report card: its verdicts against labels or another judge, and against itself."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.judge_quality import card_sha256
from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.judge_checks import Retrial, retry_claims
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.settings.loading import load_settings
from hallujudge.metrics.calibration import (
    JudgeAccuracy,
    Reliability,
    jeffreys_interval,
    reliability,
    stated_probabilities,
)
from hallujudge.metrics.framework.agreement import spearman
from hallujudge.metrics.framework.arrays import BoolArray, FloatArray
from hallujudge.metrics.framework.claims import ClaimParts, Sentence, Triplet
from hallujudge.metrics.framework.json_values import file_text, schema_of
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.metrics.framework.signature import judge_of
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.stored_runs import StoredRun, read_run

from .human_labels import Label, match_labels, read_labels
from .label_files import PLAN
from .label_plans import LabelPlan, read_plan, units_of
from .labelled_claims import Sample, labelled_samples, sampling_of
from .run_calibration import calibrate_items, open_reference, verdicts_as_labels
from .verdicts import DecidedItem, read_verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips(Retrial):
    """How often verdicts flip if claims are judged in another way."""

    share: float | None
    """Share of verdicts that flip; None without any."""
    ci_low: float | None
    """Lower end of its interval (Jeffreys)."""
    ci_high: float | None
    """Upper end of its interval."""

    @classmethod
    def of(cls, found: Retrial, confidence: float) -> Flips:
        """Return the share of what was judged again."""
        # Claims that no trial answered have no share, and a share of 0 would look like a steady
        # judge.
        if not found.claims:
            return cls(**asdict(found), share=None, ci_low=None, ci_high=None)
        share = found.flips / found.claims
        # Rounded, since a card has a hash, and the last digits of quantiles differ by library.
        low, high = (
            round(end, 12) for end in jeffreys_interval(share, float(found.claims), confidence)
        )
        return cls(**asdict(found), share=share, ci_low=low, ci_high=high)


def measure_flips(run: StoredRun, count: int, judges: Mapping[str, object]) -> tuple[Flips, ...]:
    """Return how often a run's language model contradicts itself.

    Claims of whole images are drawn until there are enough. An image's claims are judged together,
    with its scene graph.

    Args:
        run: The run.
        count: Claims to judge again, at least.
        judges: Settings of the judge by name.

    Raises:
        InvalidInputError: The run's judge is another one, or its evidence has no scene graphs.
        UnavailableError: The judge answered no call for a long time.
    """
    items = list(_drawn(run, count))
    if not items:
        raise InvalidInputError(
            f"{run.folder}: no claim was compared with a whole scene graph; flips are measured on "
            "runs of tri-he that a language model judged"
        )
    found = asyncio.run(_retried(run, items, judges))
    return tuple(Flips.of(each, run.interval.confidence) for each in found)


async def _retried(
    run: StoredRun, items: list[JudgeRequestItem], judges: Mapping[str, object]
) -> list[Retrial]:
    resolved = load_settings(judges)
    factory = JudgeFactory(resolved.judges, resolved.keys)
    judge = factory.llm()
    try:
        # The judge's identity, which is compared below, holds what its server says of the model.
        await judge.prepare()
        _refuse_other(run, judge)
        return await retry_claims(judge, items)
    finally:
        await factory.close()


def _refuse_other(run: StoredRun, judge: LlmJudge) -> None:
    """Refuse a judge that is not the run's: its model and server come first in the signature."""
    signature = judge_of(run.signature)
    if not signature.startswith(f"{judge.identity},"):
        raise InvalidInputError(
            f"{run.folder}: its judge is {signature.partition(',')[0]}, not {judge.identity}; "
            "give the run's own judge"
        )


def _drawn(run: StoredRun, count: int) -> Iterator[JudgeRequestItem]:
    """Yield the claims of images, in an order that depends on their names only."""
    images = _images(run)
    left = count
    # By hash and not by name, since images with similar names may be of one source.
    for image in sorted(images, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if left <= 0:
            return
        scene, claims = images[image]
        left -= len(claims)
        yield JudgeRequestItem(id=image, claims=tuple(claims), reference_triplets=scene)


def _images(run: StoredRun) -> dict[str, tuple[tuple[Triplet, ...], dict[ClaimParts, None]]]:
    """Return the scene graph and the different claims of each image."""
    images: dict[str, tuple[tuple[Triplet, ...], dict[ClaimParts, None]]] = {}
    for line in run.lines():
        evidence = line.get("evidence")
        if not isinstance(evidence, dict) or not evidence.get("scene_graph"):
            continue
        scene = tuple(Triplet(*map(str, fact)) for fact in evidence["scene_graph"])
        _, claims = images.setdefault(str(line["group_id"]), (scene, {}))
        for claim in evidence["claims"]:
            # Equal claims of an image would be asked in the same words.
            claims[_parts(claim["triplet"])] = None
    return images


def _parts(values: Any) -> ClaimParts:
    return Triplet(*map(str, values)) if len(values) != 1 else Sentence(str(values[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class YesBias:
    """Whether a judge says "supported" too often."""

    judge: float
    """Share of claims that the judge calls supported."""
    truth: float
    """Share of the same claims that are supported."""
    difference: float
    """The first minus the second: above 0, the judge is too lenient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBias:
    """Whether a judge is more lenient with long responses."""

    correlation: float | None
    """Spearman's correlation of a response's words with the judge's leniency on its claims: 1 where
    it wrongly supports, -1 where it wrongly rejects; None if either never varies."""
    short: YesBias | None
    """Yes-bias in responses of at most the median number of words."""
    long: YesBias | None
    """Yes-bias in longer ones."""
    median_words: float
    """The median, over claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCosts:
    """What a judge's calls cost, of those that the run kept."""

    judge: str
    """Name of the judge."""
    claims: int
    """Claims that it decided."""
    calls: int
    """Calls that were answered."""
    latency_seconds: float
    """Time of its calls, a claim."""
    prompt_tokens: float
    """Tokens sent, a claim."""
    completion_tokens: float
    """Tokens received, a claim."""
    cost: float | None
    """Cost, a claim; None without prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCard:
    """How a judge's verdicts compare with labels, or with a reference judge."""

    metric: str
    judge: str
    """Signature of the judge; empty without a judge."""
    run_signature: str
    """Signature of the run whose judge it is."""
    compared_with: str
    """``labels``, or the signature of the reference run."""
    labels_sha256: str
    """Hash of the labels."""
    claims: int
    """Claims with a verdict."""
    labels: int
    """Claims of them that are labelled."""
    accuracy: JudgeAccuracy
    """Agreement, sensitivity, specificity and precision, with intervals."""
    kappa: float | None
    """Cohen's kappa; None if it is undefined."""
    kappa_low: float | None
    """Lower end of its interval; None without an interval."""
    kappa_high: float | None
    """Upper end of its interval."""
    yes_bias: YesBias
    """Whether it supports too often."""
    length_bias: LengthBias | None
    """The same by length of responses; None if the run does not keep them."""
    margins: str
    """What margins are: ``log-probability``, ``distance``, ``mixed``, or empty without any."""
    reliability: Reliability
    """Agreement by margin."""
    costs: tuple[JudgeCosts, ...]
    """Costs by judge; empty if no calls were kept."""
    flips: tuple[Flips, ...] = ()
    """How often verdicts flip if claims are judged again; empty: they were not."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""

    @property
    def sha256(self) -> str:
        """Return the hash of the card's content."""
        return card_sha256(self._content())

    def to_json(self) -> dict[str, JsonValue]:
        """Return the card as an object, with its hash."""
        return {**self._content(), "sha256": self.sha256}

    def to_text(self) -> str:
        """Return the card as JSON, which is deterministic; ends with a line feed."""
        return file_text("judge-card", self.to_json())

    def _content(self) -> dict[str, JsonValue]:
        content = cast("dict[str, JsonValue]", asdict(self))
        return {"schema": schema_of("judge-card"), **content}


def judge_card(
    folder: str | Path,
    *,
    labels: Sequence[str | Path] = (),
    reference: str | Path | None = None,
    flips: int = 0,
    judges: Mapping[str, object] | None = None,
) -> JudgeCard:
    """Return how the judge of a run does; without flips, nothing is judged again.

    Args:
        folder: The run's folder.
        labels: Files of human labels.
        reference: Folder of a run of the same responses by a judge that is taken as the truth.
        flips: Claims that the run's language model judges again in seven ways; 0: none.
        judges: Settings of that model by name; they override the environment.

    Raises:
        InvalidInputError: Neither or both of labels and reference are given, nothing matches, or
            the judge is not the run's.
        UnavailableError: The judge answered no call for a long time.
        UnsupportedError: The metric has no verdicts that could be compared.
        ArchiveError: A file can't be read.
    """
    if not labels and reference is None:
        raise InvalidInputError(
            "a card needs human labels (--labels) or another run to compare with (--reference), "
            "and neither is given; without them, only shares and costs can be printed"
        )
    # One truth at a time: accuracy against both would be that of neither.
    if labels and reference is not None:
        raise InvalidInputError("give --labels or --reference, not both")
    run = read_run(folder)
    items = list(read_verdicts(run))
    other = None if reference is None else open_reference(run, reference)
    truths = (
        read_labels(*map(Path, labels), items=items) if other is None else verdicts_as_labels(other)
    )
    plan_path = run.folder / PLAN
    # A reference judge decides all claims, so that nothing was drawn.
    plan = read_plan(plan_path) if other is None and plan_path.exists() else None
    # A plan of an earlier run in this folder says nothing of how these claims were drawn.
    plan = plan if plan is not None and plan.signature == run.signature else None
    found = calibrate_items(run.report, run.metric, items, truths, plan=plan, interval=run.interval)
    sample, lengths = _sample(run, items, truths, plan)
    kind, costs = _judges(run)
    return JudgeCard(
        metric=run.report.metric,
        judge=judge_of(run.signature),
        run_signature=run.signature,
        compared_with="labels" if other is None else other.signature,
        labels_sha256=found.labels_sha256,
        claims=len(sample.claims.labels),
        labels=int(sample.claims.labelled.sum()),
        accuracy=found.accuracy,
        kappa=found.kappa,
        kappa_low=found.kappa_low,
        kappa_high=found.kappa_high,
        yes_bias=_yes_bias(sample, sample.claims.labelled),
        length_bias=_length_bias(sample, lengths),
        margins=kind if not np.isnan(sample.margins).all() else "",
        reliability=_reliability(sample, kind),
        costs=costs,
        flips=measure_flips(run, flips, judges or {}) if flips else (),
        notes=found.notes,
    )


def judging_of(folder: str | Path) -> tuple[JudgeShare, ...]:
    """Return what each judge of a run gave and took; no labels are needed.

    Args:
        folder: The run's folder.

    Raises:
        InvalidInputError: No judge decided in the run.
        ArchiveError: A file can't be read.
    """
    report = read_run(folder).report
    if not report.judging:
        raise InvalidInputError(
            f"{folder}: no judge decided in this run of {report.metric}, so there are no costs; "
            "give --labels to compare its verdicts with human labels"
        )
    return report.judging


def _sample(
    run: StoredRun,
    items: Sequence[DecidedItem],
    truths: Sequence[Label],
    plan: LabelPlan | None,
) -> tuple[Sample, FloatArray]:
    """Return the verdicts with their labels, and the words of the response of each."""
    sampling = sampling_of(items, match_labels(truths, items), plan)
    words = {item.id: float(len(item.response.split())) for item in items}
    for column, found in labelled_samples(run.metric, items, sampling):
        units = units_of(items, column.of)
        return found, np.array([words[unit.item] for unit in units], dtype=np.float64)
    raise InvalidInputError(f"{run.folder}: no label is of a claim with a verdict")


def _yes_bias(sample: Sample, mask: BoolArray) -> YesBias:
    claims = sample.claims
    weights = claims.weights()[mask]
    judge = float(weights @ ~claims.verdicts[mask]) / float(weights.sum())
    truth = float(weights @ (claims.labels[mask] == 0)) / float(weights.sum())
    return YesBias(judge=judge, truth=truth, difference=judge - truth)


def _length_bias(sample: Sample, words: FloatArray) -> LengthBias | None:
    labelled = sample.claims.labelled
    # The run kept no responses.
    if not words[labelled].any():
        return None
    median = float(np.median(words[labelled]))
    # 1 where a hallucinated claim was supported, -1 where another one was rejected.
    lenient = sample.claims.labels[labelled] - sample.claims.verdicts[labelled]
    halves = (labelled & (words <= median), labelled & (words > median))
    short, long = (_yes_bias(sample, half) if half.any() else None for half in halves)
    return LengthBias(
        correlation=spearman(words[labelled].tolist(), lenient.tolist()),
        short=short,
        long=long,
        median_words=median,
    )


def _reliability(sample: Sample, kind: str) -> Reliability:
    claims = sample.claims
    known = claims.labelled & ~np.isnan(sample.margins)
    margins = sample.margins[known]
    return reliability(
        margins,
        claims.verdicts[known] == (claims.labels[known] == 1),
        claims.weights()[known],
        stated_probabilities(margins) if kind == "log-probability" else None,
    )


def _judges(run: StoredRun) -> tuple[str, tuple[JudgeCosts, ...]]:
    """Return what the margins of a run are, and the costs of its judges."""
    calls: dict[str, list[Mapping[str, Any]]] = {}
    decided: set[str] = set()
    for line in run.lines():
        evidence = line.get("evidence")
        evidence = evidence if isinstance(evidence, Mapping) else {}
        for part in evidence.get("judging", ()):
            calls.setdefault(str(part["judge"]), []).append(part)
        decided.update(str(claim.get("judge", "")) for claim in _claims(evidence))
    # Only language models write tokens; their margins are differences of log-probabilities.
    models = {name for name, parts in calls.items() if _sum(parts, "completion_tokens")}
    # Evidence without claims, as of descriptions, does not name who decided: who answered, did.
    decided = decided - {""} or {name for name, of in calls.items() if _sum(of, "answered")}
    kind = "mixed" if decided & models else "distance"
    return (
        "log-probability" if decided and decided <= models else kind,
        tuple(_costs(name, parts) for name, parts in sorted(calls.items())),
    )


def _claims(evidence: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    claims = evidence.get("claims", ())
    return [claim for claim in claims if isinstance(claim, Mapping)]


def _sum(parts: Sequence[Mapping[str, Any]], key: str) -> float:
    return sum(float(part[key]) for part in parts)


def _costs(name: str, parts: Sequence[Mapping[str, Any]]) -> JudgeCosts:
    claims = int(_sum(parts, "answered"))
    # A judge that decided nothing may still have costs: they are shown undivided.
    each = max(claims, 1)
    # Calls without a price would make the mean too low.
    priced = all(part["cost"] is not None for part in parts)
    return JudgeCosts(
        judge=name,
        claims=claims,
        calls=int(_sum(parts, "calls")),
        latency_seconds=_sum(parts, "latency_seconds") / each,
        prompt_tokens=_sum(parts, "prompt_tokens") / each,
        completion_tokens=_sum(parts, "completion_tokens") / each,
        cost=_sum(parts, "cost") / each if priced else None,
    )
