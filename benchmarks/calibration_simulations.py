"""Calibrated scores of drawn claims with a known true share; bench_calibration.py prints them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from hallujudge.labels.label_plans import allocate, drawn_places
from hallujudge.metrics import ScoreDefinition
from hallujudge.metrics.calibration import Effects, JudgedClaims, judge_accuracy, rogan_gladen
from hallujudge.metrics.calibration.prediction_powered import expected_errors, prediction_powered
from hallujudge.metrics.framework.arrays import FloatArray
from hallujudge.metrics.framework.columns_and_scores import ratio

__all__ = ["print_planned", "print_simulated", "print_weighted"]

RATE = ScoreDefinition(name="rate", columns=("wrong", "all"), value=ratio("wrong", "all"))
IMAGES, PER_IMAGE = 400, 5
LABELS = (50, 100, 200)
SHARES = (0.05, 0.2, 0.5)
WEIGHTED_SHARES = ((0.3, 0.3), (0.1, 0.5), (0.5, 0.1), (0.02, 0.22))
JUDGES = ((0.95, 0.98), (0.9, 0.95), (0.8, 0.9), (0.65, 0.7), (0.95, 0.42))


@dataclass(slots=True)
class Tried:
    """What an estimate did over the samples."""

    truth: float
    errors: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    held_run: list[bool] = field(default_factory=list)
    differences: list[float] = field(default_factory=list)
    """From an estimate of the same labels that is exactly unbiased."""
    says_raw: list[bool] = field(default_factory=list)
    """Whether the raw score is said to be nearer."""

    def add(self, value: float, low: float, high: float) -> None:
        """Add an estimate with its interval."""
        self.errors.append(value - self.truth)
        self.widths.append(high - low)
        self.held.append(low <= self.truth <= high)

    @property
    def bias(self) -> float:
        """The mean error in points."""
        return 100 * float(np.mean(self.errors)) if self.errors else float("nan")

    @property
    def bias_to_known(self) -> tuple[float, float]:
        """The mean difference from the unbiased estimate, and its standard error, in points.

        Chance that both estimates share cancels out, so that this shows a smaller bias.
        """
        found = 100 * np.array(self.differences)
        return float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found)))

    @property
    def error(self) -> float:
        """The mean absolute error in points."""
        return 100 * float(np.mean(np.abs(self.errors))) if self.errors else float("nan")

    @property
    def coverage(self) -> float:
        """How often the interval over images held the true share, in percent."""
        return 100 * float(np.mean(self.held)) if self.held else float("nan")

    @property
    def coverage_run(self) -> float:
        """How often the interval for the run held the run's share, in percent."""
        return 100 * float(np.mean(self.held_run))

    @property
    def width(self) -> float:
        """The mean width."""
        return float(np.mean(self.widths)) if self.widths else float("nan")


def drawn(
    rng: np.random.Generator,
    labels: int,
    share: float,
    judge: tuple[float, float],
    *,
    every: bool = False,
) -> tuple[JudgedClaims, float]:
    """Return a run's claims with labels of a random sample, or of all, and its true share.

    Claims of an image are alike: each image has a share of its own, from a beta distribution.
    """
    size = IMAGES * PER_IMAGE
    of_image = rng.beta(4 * share, 4 * (1 - share), IMAGES)
    truth = rng.random(size) < np.repeat(of_image, PER_IMAGE)
    verdicts = np.where(truth, rng.random(size) < judge[0], rng.random(size) < 1 - judge[1])
    known = np.full(size, np.nan)
    chosen = np.arange(size) if every else rng.choice(size, labels, replace=False)
    known[chosen] = truth[chosen]
    claims = JudgedClaims(
        verdicts=verdicts,
        labels=known,
        clusters=np.repeat(np.arange(IMAGES), PER_IMAGE),
        units=np.arange(size),
        strata=np.zeros(size, dtype=np.intp),
    )
    return claims, float(truth.mean())


def simulated_effects() -> Effects:
    """Return the score of equal claims."""
    size = IMAGES * PER_IMAGE
    return Effects(
        score=RATE,
        fixed=np.column_stack([np.zeros(IMAGES), np.full(IMAGES, float(PER_IMAGE))]),
        steps=np.column_stack([np.ones(size), np.zeros(size)]),
    )


def unbiased(claims: JudgedClaims, effects: Effects, share: float, tuning: float) -> float:
    """Return the estimate whose tuning does not come from the labels, which has no bias at all.

    The share among accepted claims and the tuning are any constants; planted ones make it precise.
    """
    weights = effects.steps[:, 0] / effects.fixed[:, 1].sum()
    expected = share + tuning * claims.verdicts
    drawn = claims.labelled
    rest = weights[drawn] * (claims.labels[drawn] - expected[drawn])
    return float(weights @ expected + rest.mean() * len(weights))


def planted(share: float, judge: tuple[float, float]) -> tuple[float, float]:
    """Return the share of hallucinated claims among accepted ones, and the best tuning."""
    found = share * judge[0] / (share * judge[0] + (1 - share) * (1 - judge[1]))
    missed = share * (1 - judge[0]) / (share * (1 - judge[0]) + (1 - share) * judge[1])
    return missed, found - missed


def simulate(
    labels: int, share: float, judge: tuple[float, float], samples: int
) -> dict[str, Tried]:
    """Return what raw, corrected and other estimates do."""
    rng = np.random.default_rng([labels, round(100 * share), round(100 * sum(judge))])
    tried = {name: Tried(truth=share) for name in ("raw", "ppi++", "labels", "rogan-gladen")}
    effects = simulated_effects()
    for _ in range(samples):
        claims, of_run = drawn(rng, labels, share, judge)
        raw = float(claims.verdicts.mean())
        tried["raw"].add(raw, raw, raw)
        for name, verdicts in (("ppi++", True), ("labels", False)):
            found = prediction_powered(claims, effects, verdicts=verdicts)
            assert found is not None, "there are labels"
            tried[name].add(found.value, found.ci_low, found.ci_high)
            tried[name].held_run.append(found.run_low <= of_run <= found.run_high)
            if verdicts:
                tried[name].differences.append(
                    found.value - unbiased(claims, effects, *planted(share, judge))
                )
                errors = expected_errors(raw, found)
                tried[name].says_raw.append(errors.raw < errors.corrected)
        other = rogan_gladen(
            claims, effects, judge_accuracy(claims), raw_size=IMAGES * PER_IMAGE / 2
        )
        if other is not None:
            low, high = other.ci_low, other.ci_high
            assert low is not None, "it has an interval"
            assert high is not None, "it has an interval"
            tried["rogan-gladen"].add(other.value, low, high)
    return tried


def print_simulated(samples: int) -> None:
    """Print the table of the simulations."""
    print(
        "| labels | share | sensitivity + specificity | covers: images | covers: run | bias | ± |"
        " error | raw's error | says raw | width / labels alone | Rogan–Gladen: covers | bias |"
        " error |\n|---:|---:|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for labels in LABELS:
        for share in SHARES:
            for judge in JUDGES:
                tried = simulate(labels, share, judge, samples)
                ours, alone, other = tried["ppi++"], tried["labels"], tried["rogan-gladen"]
                bias, deviation = ours.bias_to_known
                print(
                    f"| {labels} | {share} | {judge[0]} + {judge[1]} | {ours.coverage:.1f} |"
                    f" {ours.coverage_run:.1f} | {bias:+.2f} | {deviation:.2f} | {ours.error:.1f} |"
                    f" {tried['raw'].error:.1f} | {100 * np.mean(ours.says_raw):.0f} |"
                    f" {ours.width / alone.width:.2f} |"
                    f" {other.coverage:.1f} | {other.bias:+.2f} | {other.error:.1f} |",
                    flush=True,
                )


def print_weighted(samples: int) -> None:
    """Print the bias of scores in which claims count unequally."""
    print(
        "| labels | share by length | sensitivity + specificity | covers: run | bias | ± |"
        " error |\n|---:|:---|:---|---:|---:|---:|---:|"
    )
    for labels in LABELS:
        for ends in WEIGHTED_SHARES:
            for judge in ((0.9, 0.95), (0.65, 0.7)):
                tried = _weighted(labels, ends, judge, samples)
                bias, deviation = tried.bias_to_known
                print(
                    f"| {labels} | {ends[0]} to {ends[1]} | {judge[0]} + {judge[1]} |"
                    f" {tried.coverage_run:.1f} | {bias:+.2f} | {deviation:.2f} |"
                    f" {tried.error:.1f} |",
                    flush=True,
                )


def _weighted(
    labels: int, ends: tuple[float, float], judge: tuple[float, float], samples: int
) -> Tried:
    """Return what the corrected score does; ends are the shares in answers of 1 and of 10 claims.

    Each answer has an image of its own, and counts the same whatever its number of claims.
    """
    rng = np.random.default_rng([labels, round(100 * ends[0]), round(100 * sum(judge))])
    tried = Tried(truth=0.0)
    for _ in range(samples):
        lengths = rng.integers(1, 11, IMAGES)
        answer = np.repeat(np.arange(IMAGES), lengths)
        share = ends[0] + (ends[1] - ends[0]) * (lengths[answer] - 1) / 9
        size = len(answer)
        truth = rng.random(size) < share
        verdicts = np.where(truth, rng.random(size) < judge[0], rng.random(size) < 1 - judge[1])
        known = np.full(size, np.nan)
        chosen = rng.choice(size, labels, replace=False)
        known[chosen] = truth[chosen]
        claims = JudgedClaims(
            verdicts=verdicts,
            labels=known,
            clusters=answer,
            units=np.arange(size),
            strata=np.zeros(size, dtype=np.intp),
        )
        effects = Effects(
            score=RATE,
            fixed=np.column_stack([np.zeros(IMAGES), np.ones(IMAGES)]),
            steps=np.column_stack([1 / lengths[answer], np.zeros(size)]),
        )
        found = prediction_powered(claims, effects)
        assert found is not None, "there are labels"
        of_run = effects.value(truth.astype(np.float64))
        tried.add(found.value - of_run, found.run_low - of_run, found.run_high - of_run)
        tried.held_run.append(found.run_low <= of_run <= found.run_high)
        constants = planted(sum(ends) / 2, judge)
        tried.differences.append(found.value - unbiased(claims, effects, *constants))
    return tried


def print_planned(samples: int) -> None:
    """Print how often intervals hold with labels by plan."""
    print(
        "| labels | share | sensitivity + specificity | covers: images | covers: run | bias |"
        " error | width / random labels |\n|---:|---:|:---|---:|---:|---:|---:|---:|"
    )
    for labels in (60, 100, 200):
        for share in (0.05, 0.2, 0.5):
            for judge in ((0.95, 0.98), (0.8, 0.9), (0.65, 0.7)):
                ours, simple = _planned(labels, share, judge, samples)
                print(
                    f"| {labels} | {share} | {judge[0]} + {judge[1]} | {ours.coverage:.1f} |"
                    f" {ours.coverage_run:.1f} | {ours.bias:+.2f} | {ours.error:.1f} |"
                    f" {ours.width / simple.width:.2f} |",
                    flush=True,
                )


def _planned(
    labels: int, share: float, judge: tuple[float, float], samples: int
) -> tuple[Tried, Tried]:
    rng = np.random.default_rng([labels, round(100 * share), 7])
    effects, ours, simple = simulated_effects(), Tried(truth=share), Tried(truth=share)
    for _ in range(samples):
        claims, of_run = drawn(rng, labels, share, judge, every=True)
        wrong = claims.verdicts != (claims.labels == 1)
        margin = rng.beta(np.where(wrong, 1.0, 2.0), 2.0)
        for tried, given in (
            (ours, _by_plan(rng, claims, margin, labels)),
            (simple, _at_random(rng, claims, labels)),
        ):
            found = prediction_powered(given, effects)
            assert found is not None, "there are labels"
            tried.add(found.value, found.ci_low, found.ci_high)
            tried.held_run.append(found.run_low <= of_run <= found.run_high)
    return ours, simple


def _by_plan(
    rng: np.random.Generator, claims: JudgedClaims, margin: FloatArray, labels: int
) -> JudgedClaims:
    """Return the claims with labels of as many as a plan draws from each stratum."""
    strata = np.zeros(len(margin), dtype=np.intp)
    for verdict in (False, True):
        here = claims.verdicts == verdict
        cuts = np.quantile(margin[here], [1 / 3, 2 / 3])
        strata[here] = 3 * verdict + np.searchsorted(cuts, margin[here], side="right")
    sizes = [int((strata == place).sum()) for place in range(6)]
    numbers = allocate(labels, sizes, [0.4] * 6, [0] * 6)
    known = np.full(len(margin), np.nan)
    for place, number in enumerate(numbers):
        members = np.flatnonzero(strata == place)
        # Numbers within a stratum stand side by side by image, as in a plan.
        chosen = members[drawn_places(len(members), number, str(rng.integers(1 << 30)))]
        known[chosen] = claims.labels[chosen]
    return replace(claims, labels=known, strata=strata)


def _at_random(rng: np.random.Generator, claims: JudgedClaims, labels: int) -> JudgedClaims:
    known = np.full(len(claims.labels), np.nan)
    chosen = rng.choice(len(known), labels, replace=False)
    known[chosen] = claims.labels[chosen]
    return replace(claims, labels=known)
