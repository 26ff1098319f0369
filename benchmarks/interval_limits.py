"""Why some intervals cannot hold as often as they say: few possible values, and ties.

The first table is exact. A sample of n right-or-wrong answers has n + 1 possible shares of
failures, so that the coverage of an interval jumps when the true rate passes one of its ends. For
expected numbers of failures, printed are the lowest and the highest coverage of the shipped
interval, of Wilson's and of mid-P's, the share of rates at which it is 93.5 to 96.5 %, and the
share of rates at which *any* interval could be: those where the probabilities of some run of
consecutive numbers of failures add up to that.

The second table is simulated: the share of the most frequent of six orders, where the others are
equally frequent, nearly so, or rare. Beneath a tie no sample's largest share is too low, so that
only the lower end can miss; an end that is safe for exact ties is missed less often near them.

Run with: python benchmarks/interval_limits.py [--samples 2000] [--clusters 24 50 200 1000]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
import numpy as np

from hallujudge.metrics import IntervalSettings, ScoreDefinition, VidhalOrderingMetric
from hallujudge.metrics.framework.columns_and_scores import ratio
from hallujudge.metrics.framework.intervals import score_interval

TARGET = (0.935, 0.965)
SETTINGS = IntervalSettings()
RATE = ScoreDefinition(name="rate", columns=("wrong", "answers"), value=ratio("wrong", "answers"))
EXPECTED = ((0.05, 0.5), (0.5, 2.0), (2.0, 5.0), (5.0, 10.0))
_RATES = 400
TIES = {
    "six equal": (1 / 6,) * 6,
    "six nearly equal": (0.18, 0.172, 0.168, 0.165, 0.16, 0.155),
    "two equal, four rare": (0.4, 0.4, 0.05, 0.05, 0.05, 0.05),
    "one ahead of five": (0.26, 0.148, 0.148, 0.148, 0.148, 0.148),
    "one far ahead": (0.7, 0.06, 0.06, 0.06, 0.06, 0.06),
}


def ends_by_count(clusters: int, most: int) -> list[tuple[float, float]]:
    """Return the shipped interval for each number of failures from 0 to ``most``."""
    out = []
    for wrong in range(most + 1):
        table = np.column_stack([np.arange(clusters) < wrong, np.ones(clusters)]).astype(float)
        ends = score_interval(table, RATE, SETTINGS)
        assert ends is not None
        out.append(ends)
    return out


def chances(clusters: int, rate: float, most: int) -> list[float]:
    """Return the probability of each number of failures from 0 to ``most``."""
    return [
        math.comb(clusters, wrong) * rate**wrong * (1 - rate) ** (clusters - wrong)
        for wrong in range(most + 1)
    ]


def can_be_met(probabilities: Sequence[float]) -> bool:
    """Whether some run of consecutive numbers of failures has a probability in the target."""
    sums = np.concatenate([[0.0], np.cumsum(probabilities)])
    runs = sums[None, :] - sums[:, None]
    return bool(((runs >= TARGET[0]) & (runs <= TARGET[1])).any())


def wilson(clusters: int, most: int) -> list[tuple[float, float]]:
    """Return Wilson's interval for each number of failures, without any correction."""
    z = NormalDist().inv_cdf(0.975)
    out = []
    for wrong in range(most + 1):
        share, squared = wrong / clusters, z * z / clusters
        reach = math.sqrt(squared * (share * (1 - share) + squared / 4))
        middle = share + squared / 2
        out.append(((middle - reach) / (1 + squared), (middle + reach) / (1 + squared)))
    return out


def mid_p(clusters: int, most: int) -> list[tuple[float, float]]:
    """Return the mid-P interval for each number of failures: half of the found one's probability.

    Its ends are the rates at which the failures found, or more (fewer) of them, have a probability
    of 2.5 %, where the number found counts half.
    """

    def at_most(wrong: int, rate: float) -> float:
        found = chances(clusters, rate, wrong)
        return sum(found) - found[-1] / 2

    def falls_to(wanted: float, wrong: int) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(wrong, middle) > wanted else (low, middle)
        return low

    return [
        (falls_to(0.975, wrong) if wrong else 0.0, falls_to(0.025, wrong))
        for wrong in range(most + 1)
    ]


def coverage_of(
    intervals: Sequence[tuple[float, float]], rate: float, found: Sequence[float]
) -> float:
    """Return how often intervals hold a rate."""
    pairs = zip(intervals, found, strict=True)
    return sum(chance for (low, high), chance in pairs if low <= rate <= high)


def rare_rates(sizes: Sequence[int]) -> Iterator[str]:
    """A Markdown table of the exact coverage for rare rates."""
    yield (
        "| expected failures | clusters | shipped | in the target | Wilson | in the target | "
        "mid-P | in the target | any interval could be |"
    )
    yield f"|{'---:|' * 9}"
    for low, high in EXPECTED:
        for clusters in sizes:
            if high <= clusters / 2:
                yield _row(low, high, clusters)


def _row(low: float, high: float, clusters: int) -> str:
    most = min(clusters, int(high + 10 * math.sqrt(high) + 10))
    methods = (ends_by_count(clusters, most), wilson(clusters, most), mid_p(clusters, most))
    rates = np.linspace(low / clusters, high / clusters, _RATES).tolist()
    found = [chances(clusters, rate, most) for rate in rates]
    cells = []
    for intervals in methods:
        held = [coverage_of(intervals, r, p) for r, p in zip(rates, found, strict=True)]
        inside = sum(TARGET[0] <= share <= TARGET[1] for share in held) / _RATES
        cells += [f"{100 * min(held):.1f} – {100 * max(held):.1f}", f"{inside:.0%}"]
    cells.append(f"{sum(map(can_be_met, found)) / _RATES:.0%}")
    return f"| {low:g} – {high:g} | {clusters} | {' | '.join(cells)} |"


def ties(sizes: Sequence[int], samples: int) -> Iterator[str]:
    """A Markdown table of the coverage for the most frequent order."""
    (score,) = (s for s in VidhalOrderingMetric().scores if s.name == "regurgitation_rate")
    columns = len(score.columns)
    yield f"| shares of the orders | {' | '.join(map(str, sizes))} |"
    yield f"|:---|{'---:|' * len(sizes)}"
    for name, shares in TIES.items():
        found = []
        for clusters in sizes:
            rng, held = np.random.default_rng(clusters), 0
            for counts in rng.multinomial(clusters, shares, size=samples):
                table = np.zeros((clusters, columns))
                table[np.arange(clusters), np.repeat(np.arange(len(counts)), counts)] = 1
                table[:, -1] = 1
                ends = score_interval(table, score, SETTINGS)
                held += ends is not None and ends[0] <= max(shares) <= ends[1]
            found.append(f"{100 * held / samples:.1f}")
        yield f"| {name} | {' | '.join(found)} |"


def main() -> None:
    """Compute, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[24, 50, 200, 1000])
    given = parser.parse_args()
    print(*rare_rates(given.clusters), "", sep="\n", flush=True)
    print(*ties(given.clusters, given.samples), sep="\n")


if __name__ == "__main__":
    main()
