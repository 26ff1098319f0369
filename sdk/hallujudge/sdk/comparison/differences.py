"""Compares runs with a baseline: differences with intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from hallujudge.metrics import ScoreDefinition
from hallujudge.metrics.calibration import ScoreEstimate
from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore, Calibration
from hallujudge.metrics.framework.columns_and_scores import Direction
from hallujudge.metrics.framework.comparison import (
    ComparisonSettings,
    PairedDifference,
    holm,
    paired_differences,
)
from hallujudge.metrics.framework.intervals import FEW_CLUSTERS
from hallujudge.metrics.framework.signature import (
    LABELS,
    REFERENCES,
    signature_field,
    unmarked_judges,
)

from ..runs.manifest import JOURNAL, partial
from .compared_runs import CompareOptions, RunData, checked_scores, pairs_of, read_runs
from .item_pairs import PairedRuns
from .label_scores import order_notes
from .named_runs import RunLabel, RunSource, notes_of_runs
from .results import Comparison, CorrectedDifference, Finding, Pair, ScoreDifference


def compare(*runs: RunSource, options: CompareOptions | None = None) -> Comparison:
    """Compare runs with the first of them, without judging anything again.

    Items are joined by id. The interval of a difference is the paired bootstrap's over clusters
    (images or videos), the p-value a permutation test's that swaps clusters between the runs.
    P-values are corrected by Holm's method for all tests of the comparison.

    Args:
        runs: Folders of runs, or reports that hold their items; the baseline first.
        options: Which scores, and how.

    Returns:
        Differences by score, coverage and changed items of each run against the first.

    Raises:
        InvalidInputError: There are fewer than two runs, they were scored in different ways, a
            score is unknown, or no item is scored in both runs of a pair.
        ArchiveError: A folder does not hold a complete run.
    """
    options = options or CompareOptions()
    # Settings first: a wrong option is reported before a million items are read.
    settings, data = options.settings(), read_runs(runs, options)
    first, *others = data
    scores = checked_scores(first.metric, options.scores)
    pairs = tested_pairs([(PairedRuns.of(first, other), scores) for other in others], settings)
    tests = sum(d.p is not None for pair in pairs for d in pair.differences)
    return Comparison(
        metric=first.metric.name,
        variant=first.metric.variant,
        runs=tuple(_labels(data, pairs)),
        pairs=pairs,
        tests=tests,
        confidence=settings.confidence,
        method=settings.text,
        notes=(
            *data_notes(data, options),
            *order_notes(data, [each.name for each in scores if each.direction != "neither"]),
            *_notes(pairs),
            *own_notes(data),
        ),
    )


def _labels(runs: Sequence[RunData], pairs: Sequence[Pair]) -> Iterable[RunLabel]:
    """Yield the labels of the runs; calibrated runs have the signature of their calibration."""
    corrected_runs = {
        name for pair in pairs if pair.corrected for name in (pair.first, pair.second)
    }
    for run in runs:
        # Without a corrected difference, labels count in no number that is shown.
        found = run.calibration if run.name in corrected_runs else None
        yield run.label if found is None else replace(run.label, signature=found.signature)


def tested_pairs(
    tests: Sequence[tuple[PairedRuns, Sequence[ScoreDefinition]]], settings: ComparisonSettings
) -> tuple[Pair, ...]:
    """Return how the second run of each pair differs from the first in some scores.

    P-values are corrected for all tests of all pairs.

    Raises:
        InvalidInputError: No item is scored in both runs of a pair.
    """
    # Before the tests: coverage refuses runs without a common scored item, which have none.
    coverages = [paired.coverage() for paired, _ in tests]
    groups = [
        (at, *group)
        for at, (paired, scores) in enumerate(tests)
        for group in paired.clusters(scores)
    ]
    found: list[dict[str, PairedDifference]] = [{} for _ in tests]
    # All at once: pairs with equally many clusters share their random numbers, drawn once.
    differences = paired_differences([(scores, sums) for _, scores, sums in groups], settings)
    for (at, _, _), each in zip(groups, differences, strict=True):
        found[at] |= {difference.score: difference for difference in each}
    pairs = [
        Pair(
            first=paired.first.name,
            second=paired.second.name,
            coverage=coverage,
            differences=tuple(_difference(score, known[score.name]) for score in scores),
            changes=tuple(paired.changes(scores)),
            changed_items=paired.changed_items(),
            corrected=tuple(_differences_of_corrected(paired, scores, settings)),
        )
        for (paired, scores), coverage, known in zip(tests, coverages, found, strict=True)
    ]
    return _corrected(pairs, 1 - settings.confidence)


def _differences_of_corrected(
    paired: PairedRuns, scores: Sequence[ScoreDefinition], settings: ComparisonSettings
) -> Iterable[CorrectedDifference]:
    """Return the differences of corrected scores, of runs with the comparison's confidence."""
    first, second = paired.first.calibration, paired.second.calibration
    if first is None or second is None:
        return ()
    # The intervals of corrected scores were made with the labels, and are not made again.
    if {first.confidence, second.confidence} != {settings.confidence}:
        return ()
    return corrected_differences(first, second, scores)


def _difference(score: ScoreDefinition, found: PairedDifference) -> ScoreDifference:
    # Holm's method needs the p-values of all tests: _corrected sets p_corrected and finding.
    return ScoreDifference(
        **asdict(found), direction=score.direction, p_corrected=found.p, finding="none"
    )


def _corrected(pairs: Sequence[Pair], level: float) -> tuple[Pair, ...]:
    """Return pairs with p-values corrected for all tests in them, and with findings."""
    p_values = [d.p for pair in pairs for d in pair.differences if d.p is not None]
    adjusted = iter(holm(p_values))

    def settled(difference: ScoreDifference) -> ScoreDifference:
        if difference.p is None:
            return difference
        # Holm's values come in the order of the tests, those without a p-value left out.
        p = next(adjusted)
        return replace(difference, p_corrected=p, finding=_tested_finding(difference, p, level))

    return tuple(replace(pair, differences=tuple(map(settled, pair.differences))) for pair in pairs)


def _tested_finding(difference: ScoreDifference, p: float, level: float) -> Finding:
    """Return what a p-value shows of the second run, in the score's own direction."""
    if p > level or not difference.difference:
        return "none"
    return _finding(difference.direction, higher=difference.difference > 0)


def _finding(direction: Direction, *, higher: bool) -> Finding:
    """Return what a difference that is not chance says of the second run."""
    if direction == "neither":
        return "higher" if higher else "lower"
    return "better" if higher == (direction == "higher") else "worse"


def corrected_differences(
    first: Calibration, second: Calibration, scores: Sequence[ScoreDefinition]
) -> Iterator[CorrectedDifference]:
    """Yield the differences of scores that labels correct in both runs.

    Both scores err alike where an image is hard for both models. The correlation of their errors
    comes from what each image adds to them, and the interval from both scores' own intervals (Zou,
    Toward Using Confidence Intervals to Compare Correlations, Psychological Methods 12, 2007).

    Args:
        first: Calibration of the first run.
        second: Calibration of the second run.
        scores: The scores that are compared.
    """
    for score in scores:
        one, other = (each.scores.get(score.name) for each in (first, second))
        # Chained: a score is left out only if neither run recommends to report it corrected.
        if one is None or other is None or one.recommended != "ppi++" != other.recommended:
            continue
        if one.corrected is not None and other.corrected is not None:
            yield _corrected_difference(score, one, other, one.corrected, other.corrected)


def _corrected_difference(
    score: ScoreDefinition,
    one: CalibratedScore,
    other: CalibratedScore,
    first: ScoreEstimate,
    second: ScoreEstimate,
) -> CorrectedDifference:
    correlation = _correlation(one, other)
    difference = second.value - first.value
    low = difference - _reach(_below(second), _above(first), correlation)
    high = difference + _reach(_above(second), _below(first), correlation)
    return CorrectedDifference(
        score=score.name,
        direction=score.direction,
        first=first.value,
        second=second.value,
        # Rounding hides in what order the platform adds up.
        difference=round(difference, 12),
        ci_low=round(low, 12),
        ci_high=round(high, 12),
        labels=(one.labels, other.labels),
        # Without a p-value, an interval that holds 0 is what tells runs not apart.
        finding="none" if low <= 0 <= high else _finding(score.direction, higher=low > 0),
    )


def _correlation(one: CalibratedScore, other: CalibratedScore) -> float:
    """Return the correlation of two scores' errors over the images of both runs."""
    both = one.influence.keys() & other.influence.keys()
    # In a fixed order, so that equal runs give equal digits: sets have none.
    shared = math.fsum(one.influence[key] * other.influence[key] for key in sorted(both))
    # Over all images: those of one run alone add to its variance, and to no covariance.
    sizes = [math.fsum(n * n for n in each.influence.values()) for each in (one, other)]
    return shared / math.sqrt(sizes[0] * sizes[1]) if all(sizes) else 0.0


def _reach(one: float, other: float, correlation: float) -> float:
    """Return how far the interval of a difference reaches, from what both scores' intervals do."""
    # Rounding may make the variance of two equal scores slightly negative.
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))


def _below(estimate: ScoreEstimate) -> float:
    return estimate.value - (estimate.value if estimate.ci_low is None else estimate.ci_low)


def _above(estimate: ScoreEstimate) -> float:
    return (estimate.value if estimate.ci_high is None else estimate.ci_high) - estimate.value


def data_notes(runs: Sequence[RunData], options: CompareOptions) -> Iterable[str]:
    """Yield notes on fields that differ and were allowed to, on pairing, and on other questions."""
    # Runs are paired with the first one, which needs no note on itself.
    for run in runs[1:]:
        yield from run.pairing
        yield from _other_questions(runs[0], run)
    yield from _label_notes(runs)
    if unmarked := unmarked_judges({run.name: run.fields.get("judge", "") for run in runs}):
        yield (
            f"The signature of {', '.join(unmarked)} does not say whether its judge's margins are "
            "among the choices, as those of the other runs do: margins, and scores that rest on "
            "them or on probabilities (soft, cascades), may mean something else there."
        )
    for run in runs:
        if run.label.source and partial(Path(run.label.source), JOURNAL).exists():
            yield (
                f"A newer run into the folder of {run.name} is not complete; the results of the "
                "earlier one are compared."
            )
    for key in dict.fromkeys(options.allow):
        values = dict.fromkeys(run.fields.get(key, "none") for run in runs)
        # References are not a field of the signature: their own note says how many differ.
        if len(values) > 1 and key != REFERENCES:
            yield (
                f"The runs differ in {key}: {', '.join(values)}. This may explain a difference as "
                "well as the models do."
            )


def own_notes(runs: Sequence[RunData]) -> Iterable[str]:
    """Yield what the runs' own reports note, which limits their scores in other tables too."""
    return notes_of_runs((run.name, run.label.notes) for run in runs)


def _label_notes(runs: Sequence[RunData]) -> Iterable[str]:
    """Yield a note if labels of people correct the scores of the runs, but not the same labels."""
    signatures = {run.name: run.calibration.signature if run.calibration else "" for run in runs}
    labels = {name: signature_field(each, LABELS) for name, each in signatures.items()}
    if len(set(labels.values())) > 1:
        each = ", ".join(f"{name} {label or 'none'}" for name, label in labels.items())
        yield (
            f"The runs differ in the human labels that correct their scores ({LABELS}): {each}. "
            "What is tested and ranked are the uncorrected scores, which labels do not change."
        )


def _other_questions(first: RunData, second: RunData) -> Iterable[str]:
    """Yield a note if ids name other questions in the other run, as in two splits of POPE."""
    same = [
        one.question_hash == two.question_hash
        for one, two in pairs_of(first, second)
        if one.question_hash and two.question_hash
    ]
    if other := same.count(False):
        yield (
            f"{other:,} of {len(same):,} items ask another question in {second.name} than in "
            f"{first.name}: the runs are not over the same data, and their difference compares "
            "different questions."
        )


def _notes(pairs: Iterable[Pair]) -> Iterable[str]:
    for pair in pairs:
        yield from coverage_notes(pair)
        few = {d.clusters for d in pair.differences if d.clusters < FEW_CLUSTERS}
        if few:
            yield (
                f"{pair.second} against {pair.first}: intervals are unreliable below "
                f"{FEW_CLUSTERS} clusters (images or videos); the fewest of a score is {min(few)}."
            )


def coverage_notes(pair: Pair) -> Iterable[str]:
    """Yield a note on items that are not compared."""
    coverage = pair.coverage
    out = {
        f"unscored in {pair.first} only": coverage.unscored_first,
        f"unscored in {pair.second} only": coverage.unscored_second,
        "unscored in both": coverage.unscored_both,
        f"in {pair.first} only": coverage.only_first,
        f"in {pair.second} only": coverage.only_second,
    }
    parts = ", ".join(f"{count:,} {where}" for where, count in out.items() if count)
    if parts:
        yield f"Items that count in no difference: {parts}. Compared are {coverage.compared:,}."
