"""Corrected scores by prediction-powered inference.

Every claim of a run has a verdict and a random sample of them has labels too. The score from
verdicts is precise and biased, the score from labels is unbiased and imprecise. Prediction-powered
inference adds the verdicts' error among the labelled claims, the *rectifier*, to the first
(Angelopoulos et al., Prediction-powered inference, Science 382, 2023):

    corrected = mean over all (tuning * verdict) + mean over labelled (label - tuning * verdict)

PPI++ chooses the *tuning* with the smallest variance, the covariance of label and verdict over the
variance of the verdict (Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered
Inference, arXiv:2311.01453, section 6). For a verdict that is yes or no this is

    tuning = share(hallucinated | judged hallucinated) - share(hallucinated | judged supported)

Put into the first formula, it leaves

    corrected = sum over both verdicts of  share of claims with it * share(hallucinated | verdict)

So the estimate is that of two *cells*, one for each verdict, and its error is that of two shares.
With strata, each stratum has its own tuning (Fisch et al., Stratified Prediction-Powered Inference,
arXiv:2406.04291), and each stratum's verdicts are cells.

This form has three advantages. A claim may have its own weight in a score: its mention's in
``chair_i``, one over its answer's claims in ``hallu_q``, and again over its image's questions in
``hallu_i``. The score may be any function of sums: cells correct the sums, and the delta method
yields the error. And the interval need not assume a normal distribution: a judge that errs in one
claim of thirty makes two errors among sixty labels, for which a normal interval is far too narrow.
Each cell's share has Jeffreys' interval, and the distances of the ends are added in squares (Zou
and Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27,
2008).

There are two intervals. That of the run contains the score if people labelled all its claims: only
the choice of labels is random. That of images also accounts for the choice of images, like the
interval of a raw score. It adds the variance between images, and counts the labels of one image
together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

from ..framework.arrays import BoolArray, FloatArray, np
from ..framework.intervals import upper_t
from . import Codes, Effects, JudgedClaims, jeffreys_interval

LEAST_IN_CELL = 2
"""Labelled units that a cell needs; one with fewer is joined with others."""

# The second turn takes the slopes at the corrected sums in place of the raw ones.
_TURNS, _HALF = 2, 0.5
# Errors of a unit's cells may cancel out; not to less than half of what they are alone.
_LEAST_FACTOR = 0.5
# A share this close to 0 or 1 is either, but for rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A corrected score with its two intervals."""

    value: float
    """The score."""
    ci_low: float
    """Lower end of the interval over images."""
    ci_high: float
    """Upper end of the interval over images."""
    run_low: float
    """Lower end of the interval for this run, were all of it labelled."""
    run_high: float
    """Upper end of the interval for this run."""
    tuning: float
    """How much verdicts count: 1 for a perfect judge, 0 for a useless one."""
    influence: FloatArray
    """What each cluster contributes to the error; the sum of squares is the variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """Claims of one stratum with one verdict."""

    members: BoolArray
    """Which claims it has."""
    drawn: BoolArray
    """Which of them have a label."""
    share: float
    """Share of its labelled claims that are hallucinated, by weight."""
    kind: int
    """Its verdict; cells with one verdict share an interval."""
    imagined: bool
    """Whether labels are so few that one that agrees with the verdict is added to them."""


def prediction_powered(
    claims: JudgedClaims, effects: Effects, *, confidence: float = 0.95, verdicts: bool = True
) -> Corrected | None:
    """Return a score corrected by labels of a random sample of claims.

    Args:
        claims: The claims.
        effects: What they add to the score.
        confidence: How often intervals hold the true score.
        verdicts: Whether to use the verdicts; otherwise the estimate is that of labels alone.

    Returns:
        The corrected score; None without labels, or if the score is undefined.
    """
    if not claims.labelled.any():
        return None
    sums = effects.sums(claims.verdicts.astype(np.float64))
    cells: list[_Cell] = []
    for _ in range(_TURNS):
        weights = np.abs(effects.steps @ effects.score.slopes(sums[None, :])[0])
        cells = list(_cells(claims, weights, verdicts=verdicts))
        expected = _expected(cells, len(weights))
        sums = effects.sums(expected)
    value = effects.value(expected)
    if math.isnan(value):
        return None
    return _Estimate(
        claims, effects, cells, sums, expected, confidence, claims.weights()
    ).corrected(value)


def _expected(cells: list[_Cell], size: int) -> FloatArray:
    """Return the probability of each claim that it is hallucinated: its cell's share."""
    out = np.zeros(size)
    for cell in cells:
        out[cell.members] = cell.share
    return out


def _cells(claims: JudgedClaims, weights: FloatArray, *, verdicts: bool) -> Iterator[_Cell]:
    """Yield the cells: strata by verdict, joined with others where labels are too few."""
    codes = 2 * claims.strata + claims.verdicts if verdicts else 2 * claims.strata
    small = [code for code in np.unique(codes) if _few(claims, weights, codes == code)]
    # A cell with few labels is joined with those of the same verdict in other strata.
    alike = np.isin(codes % 2, [code % 2 for code in small])
    # Below zero, so that no stratum has the number of a joined cell.
    codes = np.where(alike, -1 - codes % 2, codes)
    design = weights * claims.weights()
    for code in np.unique(codes):
        members = codes == code
        kind = int(code % 2 if code >= 0 else -1 - code)
        yield _cell(claims, design, members, kind, few=_few(claims, weights, members))


def _cell(
    claims: JudgedClaims, design: FloatArray, members: BoolArray, kind: int, *, few: bool
) -> _Cell:
    drawn = members & claims.labelled
    hits, total = float(design[drawn] @ claims.labels[drawn]), float(design[drawn].sum())
    if few or not total:
        # Without any label, the judge is believed, with an interval as wide as that of one label.
        one = total / max(int(drawn.sum()), 1) or 1.0
        hits, total = hits + one * bool(claims.verdicts[members].mean() > _HALF), total + one
    return _Cell(
        members=members, drawn=drawn, share=hits / total, kind=kind, imagined=few or not drawn.any()
    )


def _few(claims: JudgedClaims, weights: FloatArray, members: BoolArray) -> bool:
    """Return whether a cell has too few labelled units that count, and others without label."""
    counting = members & (weights > 0)
    drawn = counting & claims.labelled
    # Then the cell is known without error, however small it is.
    if drawn.sum() == counting.sum():
        return False
    return len(np.unique(claims.units[drawn])) < LEAST_IN_CELL


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A corrected score before its intervals are made."""

    claims: JudgedClaims
    effects: Effects
    cells: list[_Cell]
    sums: FloatArray
    expected: FloatArray
    confidence: float
    design: FloatArray
    """How many units each labelled one represents."""

    def corrected(self, value: float) -> Corrected:
        score = self.effects.score
        slope = score.slopes(self.sums[None, :])[0]
        weights = self.effects.steps @ slope
        between = self._between(slope, weights)
        run = self._reaches(weights, self.claims.units, finite=True)
        images = self._reaches(weights, self.claims.clusters, finite=False)
        drawn = self._quantile() * math.sqrt(float(between @ between))
        images = tuple(math.hypot(reach, drawn) for reach in images)
        low, high = score.low, score.high
        return Corrected(
            value=_within(value, low, high),
            ci_low=_within(value - images[0], low, high),
            ci_high=_within(value + images[1], low, high),
            run_low=_within(value - run[0], low, high),
            run_high=_within(value + run[1], low, high),
            tuning=self._tuning(weights),
            influence=between + self._residuals(weights, self.claims.clusters, len(between)),
        )

    def _between(self, slope: FloatArray, weights: FloatArray) -> FloatArray:
        """Return what each cluster changes in the score if every claim is as its cell's share."""
        fixed = self.effects.fixed
        found = fixed @ slope + np.bincount(
            self.claims.clusters, weights=weights * self.expected, minlength=len(fixed)
        )
        count = len(found)
        # The mean was estimated from the same clusters.
        scale = math.sqrt(count / (count - 1)) if count > 1 else 0.0
        centred: FloatArray = (found - found.mean()) * scale
        return centred

    def _quantile(self) -> float:
        degrees = max(len(self.effects.fixed) - 1, 1)
        return upper_t((1 - self.confidence) / 2, degrees)

    def _residuals(self, weights: FloatArray, groups: Codes, count: int) -> FloatArray:
        """Return by group how labels differ from their cells' shares, in units of the score."""
        out = np.zeros(count)
        for cell in self.cells:
            out += np.bincount(
                groups[cell.drawn], weights=self._scaled(cell, weights), minlength=count
            )
        return out

    def _scaled(self, cell: _Cell, weights: FloatArray) -> FloatArray:
        """Return the labels' differences from the share, each times the claims it represents."""
        here = (weights * self.design)[cell.drawn]
        if cell.imagined:
            return np.zeros(len(here))
        factor = float(weights[cell.members].sum()) / float(here.sum())
        differences: FloatArray = factor * here * (self.claims.labels[cell.drawn] - cell.share)
        return differences

    def _reaches(self, weights: FloatArray, groups: Codes, *, finite: bool) -> tuple[float, ...]:
        """Return the distances of the lower and the upper end by the labels alone.

        Args:
            weights: What a claim adds to the score.
            groups: Which labels count together: those of one drawn unit, or of one image.
            finite: Whether the run's claims are all there are.
        """
        __, groups = np.unique(groups, return_inverse=True)
        low = high = within = 0.0
        for kind in {cell.kind: None for cell in self.cells}:
            cells = [cell for cell in self.cells if cell.kind == kind]
            ends = self._kind_reaches(cells, weights, groups, finite=finite)
            low, high = low + ends[0], high + ends[1]
            within += self._squares(cells, weights, groups)
        together = self._squares(self.cells, weights, groups)
        # Verdicts are independent unless one unit or image has claims with both.
        factor = max(_LEAST_FACTOR, together / within) if within > 0 else 1.0
        return math.sqrt(factor * low), math.sqrt(factor * high)

    def _kind_reaches(
        self, cells: list[_Cell], weights: FloatArray, groups: Codes, *, finite: bool
    ) -> tuple[float, float]:
        """Return the squared distances of the ends by the claims with one verdict.

        Strata of a verdict share an interval: Jeffreys' for the size at which a simple random
        sample has their variance (Korn and Graubard, Confidence Intervals for Proportions With
        Small Expected Number of Positive Counts, Survey Methodology 24, 1998).
        """
        sizes = [float(abs(weights[cell.members]).sum()) for cell in cells]
        total = sum(sizes)
        if not total:
            return 0.0, 0.0
        share = sum(size * cell.share for size, cell in zip(sizes, cells, strict=True)) / total
        low, high = jeffreys_interval(
            share, self._size(cells, share, total, weights, groups), self.confidence
        )
        factor = total**2 * (self._left(cells, sizes, weights, groups) if finite else 1.0)
        ends = factor * (share - low) ** 2, factor * (high - share) ** 2
        # A score of supported claims falls where hallucinations rise.
        upwards = sum(float(weights[cell.members].sum()) for cell in cells) >= 0
        return ends if upwards else ends[::-1]

    def _size(
        self, cells: list[_Cell], share: float, total: float, weights: FloatArray, groups: Codes
    ) -> float:
        """Return how many independent labels those of one verdict are worth."""
        if any(cell.imagined for cell in cells):
            return float(sum(int(cell.drawn.sum()) for cell in cells)) + 1
        drawn = np.logical_or.reduce([cell.drawn for cell in cells])
        here = _grouped(abs(weights * self.design)[drawn], groups[drawn])
        # Kish's effective number of groups is the most that labels can be worth.
        size = float(here.sum()) ** 2 / float((here**2).sum())
        variance = self._squares(cells, weights, groups) / total**2
        binomial = share * (1 - share)
        return min(size, binomial / variance) if min(variance, binomial) > _ROUNDING else size

    def _left(
        self, cells: list[_Cell], sizes: list[float], weights: FloatArray, groups: Codes
    ) -> float:
        """Return the share of the variance that is left, as part of the run is labelled."""
        units = self.claims.units
        counts = [
            (len(np.unique(units[cell.drawn])), len(np.unique(units[cell.members])))
            for cell in cells
        ]
        found = [self._squares([cell], weights, groups) for cell in cells]
        # Labels that agree within each cell have no variance, so that sizes take its place.
        if not sum(found):
            pairs = zip(sizes, counts, strict=True)
            found = [size**2 / max(drawn, 1) for size, (drawn, _) in pairs]
        rest = zip(found, counts, strict=True)
        return sum(part * (1 - drawn / every) for part, (drawn, every) in rest) / sum(found)

    def _squares(self, cells: list[_Cell], weights: FloatArray, groups: Codes) -> float:
        """Return the variance of cells' labels, those of a group counted together."""
        out = np.zeros(int(groups.max()) + 1)
        for cell in cells:
            scaled = self._scaled(cell, weights)
            out += np.bincount(groups[cell.drawn], weights=scaled, minlength=len(out))
        return float((out**2).sum())

    def _tuning(self, weights: FloatArray) -> float:
        """Return how much more often claims that the judge rejects are hallucinated."""
        size = np.abs(weights)
        sides = [self.claims.verdicts == verdict for verdict in (True, False)]
        # With one kind of verdict only, there is nothing to tell apart.
        if not all(size[side].sum() > 0 for side in sides):
            return 0.0
        shares = [float(size[s] @ self.expected[s]) / float(size[s].sum()) for s in sides]
        return shares[0] - shares[1]


def _grouped(numbers: FloatArray, groups: Codes) -> FloatArray:
    sums: FloatArray = np.bincount(groups, weights=numbers).astype(np.float64)
    return sums


def _within(number: float, low: float, high: float) -> float:
    return round(min(max(number, low), high), 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedErrors:
    """Estimated errors of both scores: the roots of their mean square errors."""

    raw: float
    """Of the raw score; 0 if it differs from the corrected one by less than chance explains."""
    corrected: float
    """Of the corrected score."""


def expected_errors(raw: float, corrected: Corrected, confidence: float = 0.95) -> ExpectedErrors:
    """Return the estimated errors of a raw score and of the corrected one.

    The truth is the score with labels on all of the run. The corrected score is unbiased; its mean
    square error is its variance. The raw score has no sampling error; its mean square error is the
    square of its bias. The scores differ by that bias and by the corrected score's error, so that

        expected (raw - corrected)^2 = bias^2 + variance

    The square of the difference minus the variance estimates the raw score's mean square error, as
    for synthetic estimates of small areas (Rao and Molina, Small Area Estimation, 2nd edition,
    2015, chapter 3). The raw score is expected to be nearer to the truth if this is below the
    variance:

        |raw - corrected| < sqrt(2) * standard error of the corrected score

    The variance is that of the interval for the run. Its ends differ in their distance; the mean of
    their squares counts. So a score that no label contradicts still has an error.

    Args:
        raw: The raw score.
        corrected: The corrected score with its interval for the run.
        confidence: Confidence of that interval.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    reaches = corrected.value - corrected.run_low, corrected.run_high - corrected.value
    variance = (reaches[0] ** 2 + reaches[1] ** 2) / 2 / z**2
    square = (raw - corrected.value) ** 2 - variance
    return ExpectedErrors(raw=math.sqrt(max(square, 0.0)), corrected=math.sqrt(variance))
