"""Agreement: of scores with human scores, of human annotators, and of two judges."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, product
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from .arrays import FloatArray, np
from .columns_and_scores import ScoreDefinition, Sums
from .intervals import IntervalSettings, score_interval

_ValueT = TypeVar("_ValueT", bound=Hashable)

Level: TypeAlias = Literal["nominal", "ordinal", "interval", "ratio"]
"""Level of measurement of ratings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """Correlation of scores with human scores (Table 3 of the Tri-HE paper)."""

    pearson: float | None
    """Pearson's correlation; None with fewer than two pairs, or if one side is constant."""
    spearman: float | None
    """Spearman's rank correlation."""
    kendall: float | None
    """Kendall's rank correlation, tau-b."""
    n: int
    """Number of pairs."""


class JudgedTwice(NamedTuple):
    """Verdicts of two judges on one item."""

    cluster: str
    """The image, video or set of the item."""
    one: str
    """The verdict of one judge."""
    other: str
    """The verdict of the other judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of two judges."""

    n: int
    """Number of items that both judged."""
    agreement: float | None
    """Share with equal verdicts; None without any."""
    kappa: float | None
    """Cohen's kappa; None without any, and if both judges have one and the same verdict only."""
    ci_low: float | None
    """Lower end of kappa's interval; None without an interval."""
    ci_high: float | None
    """Upper end of the interval."""


def cohen_kappa(
    pairs: Sequence[JudgedTwice],
    settings: IntervalSettings | None = None,
    *,
    weights: Sequence[float] | None = None,
) -> JudgeAgreement:
    """Return Cohen's kappa: (observed - expected agreement) / (1 - expected agreement).

    Agreement is expected by chance from how often each judge has each verdict. The interval is
    that of scores: the jackknife over clusters.

    Args:
        pairs: The verdicts.
        settings: Settings of the interval. By default, the confidence is 95 %.
        weights: How often each item counts, for samples drawn with unequal chances. By default,
            each counts once.

    Source: Cohen, A Coefficient of Agreement for Nominal Scales (1960).
    """
    if not pairs:
        return JudgeAgreement(n=0, agreement=None, kappa=None, ci_low=None, ci_high=None)
    verdicts = sorted({verdict for pair in pairs for verdict in (pair.one, pair.other)})
    # Also cells that never occurred: chance agreement adds up whole rows and columns.
    cells = {cell: at for at, cell in enumerate(product(verdicts, repeat=2))}
    # Counts by cluster, from which the jackknife makes the interval.
    place = {key: at for at, key in enumerate(dict.fromkeys(pair.cluster for pair in pairs))}
    rows = np.zeros((len(place), len(cells)))
    given = [1.0] * len(pairs) if weights is None else weights
    for pair, weight in zip(pairs, given, strict=True):
        rows[place[pair.cluster], cells[pair.one, pair.other]] += weight
    score = _kappa_score(verdicts)
    sums = dict(zip(score.columns, rows.sum(axis=0)[:, None], strict=True))
    kappa = float(score.value(sums)[0])
    ends = (
        None if math.isnan(kappa) else score_interval(rows, score, settings or IntervalSettings())
    )
    return JudgeAgreement(
        n=len(pairs),
        agreement=sum(w for pair, w in zip(pairs, given, strict=True) if pair.one == pair.other)
        / sum(given),
        kappa=None if math.isnan(kappa) else kappa,
        ci_low=ends[0] if ends else None,
        ci_high=ends[1] if ends else None,
    )


def _kappa_score(verdicts: Sequence[str]) -> ScoreDefinition:
    """Return kappa as a score of counts: one column for each pair of verdicts."""

    def name(one: str, other: str) -> str:
        return f"{one}|{other}"

    def value(sums: Sums) -> FloatArray:
        total = sum(sums.values())
        same = sum(sums[name(each, each)] for each in verdicts)
        chance = sum(
            sum(sums[name(each, other)] for other in verdicts)
            * sum(sums[name(other, each)] for other in verdicts)
            for each in verdicts
        )
        # Both multiplied by the total's square, so that counts are added exactly.
        top, bottom = total * same - chance, total * total - chance
        out = np.full(np.shape(bottom), np.nan)
        np.divide(top, bottom, out=out, where=bottom > 0)
        return out

    columns = tuple(name(*cell) for cell in product(verdicts, repeat=2))
    return ScoreDefinition(name="kappa", columns=columns, value=value, low=-1.0)


def human_agreement(
    scores: Mapping[str, float | None],
    human: Mapping[str, float | None],
    *,
    opposite: bool = False,
) -> HumanAgreement:
    """Return correlations over the ids that both sides score.

    Args:
        scores: The metric's score by id; None for unscored ids.
        human: The human score by id, or the mean of several.
        opposite: Whether a high human score means a low score of the metric. Human scores are then
            negated, so that agreement is positive either way.
    """
    ours = {key: value for key, value in scores.items() if value is not None}
    theirs = {key: value for key, value in human.items() if value is not None}
    # In one order, so that sums round alike on every machine.
    both = sorted(ours.keys() & theirs.keys())
    sign = -1 if opposite else 1
    left, right = [ours[key] for key in both], [sign * theirs[key] for key in both]
    return HumanAgreement(
        pearson=pearson(left, right),
        spearman=spearman(left, right),
        kendall=kendall(left, right),
        n=len(both),
    )


def pearson(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None with fewer than two pairs, or if one side is constant.

    Raises:
        ValueError: The sides differ in length, or hold a number that is not finite.
    """
    _check_pairs(left, right)
    # The mean of equal numbers is rounded, and may differ from each of them: 0.1 three times.
    if len(left) < 2 or len(set(left)) == 1 or len(set(right)) == 1:
        return None
    one, other = _centred(left), _centred(right)
    # The root of each sum, as the product of both sums may overflow.
    spread = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    # Differences of tiny numbers may underflow to zero, though the numbers differ.
    if spread == 0:
        return None
    together = math.fsum(a * b for a, b in zip(one, other, strict=True))
    # Rounding may take a perfect correlation beyond 1.
    return max(-1.0, min(1.0, together / spread))


def _centred(numbers: Sequence[float]) -> list[float]:
    middle = math.fsum(numbers) / len(numbers)
    return [number - middle for number in numbers]


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Spearman's correlation: Pearson's over ranks, with mean ranks for ties.

    Raises:
        ValueError: As for :func:`pearson`.
    """
    return pearson(_ranks(left), _ranks(right))


def kendall(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Kendall's tau-b: (concordant - discordant pairs) / pairs without ties.

    The denominator is the geometric mean of the pairs that are not tied on the left, and of those
    not tied on the right. None with fewer than two pairs, or if one side is constant.

    Raises:
        ValueError: As for :func:`pearson`.

    Source: Kendall, The Treatment of Ties in Ranking Problems (1945).
    """
    _check_pairs(left, right)
    pairs = math.comb(len(left), 2)
    untied = [
        pairs - sum(math.comb(count, 2) for count in Counter(side).values())
        for side in (left, right)
    ]
    if not all(untied):
        return None
    seen: list[float] = []
    surplus = 0
    for _, tied in groupby(sorted(zip(left, right, strict=True)), key=itemgetter(0)):
        values = [value for _, value in tied]
        # Of the earlier pairs, those below are concordant, and those above discordant.
        surplus += sum(
            bisect_left(seen, value) - (len(seen) - bisect_right(seen, value)) for value in values
        )
        for value in values:
            # Only after all with the same left value were counted: ties are neither.
            insort(seen, value)
    return max(-1.0, min(1.0, surplus / math.sqrt(untied[0] * untied[1])))


def _check_pairs(left: Sequence[float], right: Sequence[float]) -> None:
    if len(left) != len(right):
        raise ValueError(f"{len(left)} scores can't be compared with {len(right)}; give pairs")
    if not all(math.isfinite(number) for number in (*left, *right)):
        raise ValueError("a score is not a finite number")


def _ranks(numbers: Sequence[float]) -> list[float]:
    ranks = _mean_ranks(Counter(numbers), {number: number for number in numbers})
    return [ranks[number] for number in numbers]


def _mean_ranks(
    counts: Mapping[_ValueT, int], numbers: Mapping[_ValueT, float]
) -> dict[_ValueT, float]:
    """Return the mean rank of each value, of which there are several.

    The difference of two ranks is how many values lie between them, each end counting half.
    """
    ranks: dict[_ValueT, float] = {}
    before = 0
    for value in sorted(counts, key=numbers.__getitem__):
        ranks[value] = before + (counts[value] + 1) / 2
        before += counts[value]
    return ranks


def krippendorff_alpha(
    units: Sequence[Sequence[Hashable]], level: Level = "nominal"
) -> float | None:
    """Return Krippendorff's alpha: 1 - observed disagreement / disagreement expected by chance.

    Args:
        units: For each rated unit its ratings, in any order, without missing ones. Units
            with fewer than two ratings are ignored.
        level: ``nominal`` for any values; numbers for ``ordinal``, ``interval`` and ``ratio``.

    Returns:
        Alpha, or None if no unit has two ratings or all ratings are equal; also at level ``ratio``
        if a rating is below zero.

    Raises:
        ValueError: The level is unknown, or a rating must be a finite number and is not.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    # Of many units, most have ratings that others have too.
    rated = Counter(tuple(unit) for unit in units if len(unit) > 1)
    totals = Counter[Hashable]()
    for unit, times in rated.items():
        for value in unit:
            totals[value] += times
    difference = _difference(level, totals)
    # Ratios of distances are of numbers from zero on; below it a sum of two may be 0.
    if len(totals) < 2 or (level == "ratio" and any(_number(value) < 0 for value in totals)):
        return None
    observed = math.fsum(
        times * _disagreement(Counter(unit), difference) / (len(unit) - 1)
        for unit, times in rated.items()
    )
    expected = _disagreement(totals, difference) / (totals.total() - 1)
    # Squares of tiny differences underflow to zero, so `expected` may be zero for unequal ratings.
    return 1 - observed / expected if expected else None


def _disagreement(
    counts: Counter[Hashable], difference: Callable[[Hashable, Hashable], float]
) -> float:
    return math.fsum(
        counts[one] * counts[other] * difference(one, other)
        for one, other in combinations(counts, 2)
    )


def _difference(level: Level, totals: Counter[Hashable]) -> Callable[[Hashable, Hashable], float]:
    if level == "nominal":
        return lambda one, other: float(one != other)
    numbers = {value: _number(value) for value in totals}
    if level == "interval":
        return lambda one, other: (numbers[one] - numbers[other]) ** 2
    if level == "ratio":
        return lambda one, other: _ratio_difference(numbers[one], numbers[other])
    if level == "ordinal":
        ranks = _mean_ranks(totals, numbers)
        return lambda one, other: (ranks[one] - ranks[other]) ** 2
    raise ValueError(f"unknown level {level!r}; choose nominal, ordinal, interval or ratio")


def _number(value: Hashable) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(
            f"the rating {value!r} is not a finite number; use level nominal for other ratings"
        )
    return float(value)


def _ratio_difference(one: float, other: float) -> float:
    # Ratings are not below 0, so that a sum of 0 is of two equal ones.
    return ((one - other) / (one + other)) ** 2 if one + other else 0.0
