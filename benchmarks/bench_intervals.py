"""How often intervals contain the true value, for every score at several sample sizes.

Clusters are drawn with replacement from populations whose scores are known
(``interval_populations.py``). The coverage of an interval is the share of samples whose interval
holds the population's score. With 5,000 samples its standard error is 0.31 percentage points at a
coverage of 95 %.

Printed are the lowest and the highest coverage among the scores of each population; then every
score whose coverage at some size leaves the target of 93.5 to 96.5 % by more than two standard
errors; then how long an interval takes.

With ``--alternatives``, other methods are measured on CHAIR's captions, 1,000 samples each
(standard error 0.7 points).

Run with: python benchmarks/bench_intervals.py [--samples 5000] [--clusters 24 50 200 1000]
[--family chair] [--alternatives]
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
import numpy as np
from arguments import Arguments
from interval_alternatives import ALTERNATIVES
from interval_populations import FAMILIES, Population, populations

from hallujudge.metrics import IntervalSettings, ScoreDefinition
from hallujudge.metrics.framework.intervals import score_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

TARGET = (0.935, 0.965)
SETTINGS = IntervalSettings()
EDGE = 1e-9
NEARLY = 1e-4
ALTERNATIVE_SAMPLES = 1000
ALTERNATIVE_CAPTIONS = ("8,000 captions of four models", "2,000 captions of minigpt-4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The result for one score at one sample size."""

    score: str
    truth: float
    clusters: int
    below: float
    """The share of samples whose interval is below the true value."""
    above: float
    """The share of samples whose interval is above the true value."""
    none: float
    """The share of samples without an interval, which are in neither of the other shares."""

    @property
    def varies(self) -> bool:
        """Whether samples differ: a rate that is 0 or 1 in the population is in every interval.

        AMBER's published rates are just below 1 there, since something is added to denominators.
        """
        return self.truth != 0 and abs(self.truth - 1) > NEARLY and not math.isnan(self.truth)

    @property
    def coverage(self) -> float:
        """The share of intervals that contain the true value."""
        return 1 - self.below - self.above

    def outside(self, samples: int) -> bool:
        """Whether the coverage differs from the target by more than its noise."""
        noise = 2 * math.sqrt(0.95 * 0.05 / samples)
        return not TARGET[0] - noise <= self.coverage <= TARGET[1] + noise


def tables(population: Population) -> Iterator[tuple[ScoreDefinition, NDArray[np.float64]]]:
    """Return each score with its columns of the population's clusters."""
    for score in population.metric.scores:
        yield score, np.column_stack([population.clusters[name] for name in score.columns])


def true_value(score: ScoreDefinition, table: NDArray[np.float64]) -> float:
    """Return the score of the whole population."""
    totals = table.sum(axis=0)
    sums = {name: totals[at : at + 1] for at, name in enumerate(score.columns)}
    return float(score.value(sums)[0])


def cell(
    score: ScoreDefinition,
    table: NDArray[np.float64],
    clusters: int,
    samples: int,
    make: Callable[[NDArray[np.float64], ScoreDefinition], tuple[float, float] | None],
) -> Cell:
    """Draw samples, and count the intervals that do not contain the true value."""
    rng = np.random.default_rng(clusters)
    truth, below, above, none = true_value(score, table), 0, 0, 0
    for _ in range(samples):
        ends = make(table[rng.integers(len(table), size=clusters)], score)
        if ends is None:
            none += 1
        else:
            above += truth < ends[0] - EDGE
            below += truth > ends[1] + EDGE
    made = max(samples - none, 1)
    return Cell(
        score=score.name,
        truth=truth,
        clusters=clusters,
        below=below / made,
        above=above / made,
        none=none / samples,
    )


def shipped(table: NDArray[np.float64], score: ScoreDefinition) -> tuple[float, float] | None:
    """Return the interval as in reports."""
    return score_interval(table, score, SETTINGS)


def measure(sizes: Sequence[int], samples: int, family: str) -> Iterator[tuple[Population, Cell]]:
    """Return every cell of every population."""
    for population in populations(family):
        for score, table in tables(population):
            for size in sizes:
                yield population, cell(score, table, size, samples, shipped)


def summary(
    by_population: Mapping[tuple[str, str], Sequence[Cell]], sizes: Sequence[int]
) -> Iterator[str]:
    """A Markdown table: the lowest and the highest coverage of each population's scores."""
    yield f"| metric | clusters drawn from | {' | '.join(map(str, sizes))} |"
    yield f"|:---|:---|{'---:|' * len(sizes)}"
    for (family, name), cells in by_population.items():
        ranges = []
        for size in sizes:
            found = [c.coverage for c in cells if c.clusters == size and c.varies]
            ranges.append(f"{100 * min(found):.1f} – {100 * max(found):.1f}")
        yield f"| {family} | {name} | {' | '.join(ranges)} |"


def exceptions(
    by_population: Mapping[tuple[str, str], Sequence[Cell]], samples: int
) -> Iterator[str]:
    """A Markdown table of the cells outside of the target."""
    yield (
        "| metric | clusters drawn from | score | true value | clusters | coverage | "
        "interval too low | too high |"
    )
    yield "|:---|:---|:---|---:|---:|---:|---:|---:|"
    for (family, name), cells in by_population.items():
        for c in cells:
            if c.varies and c.outside(samples):
                yield (
                    f"| {family} | {name} | {c.score} | {c.truth:.3f} | {c.clusters} | "
                    f"{100 * c.coverage:.1f} | {100 * c.below:.1f} | {100 * c.above:.1f} |"
                )


def show_alternatives(sizes: Sequence[int]) -> None:
    """Measure the alternative methods on CHAIR's captions."""
    print(f"| captions | score | method | {' | '.join(map(str, sizes))} |")
    print(f"|:---|:---|:---|{'---:|' * len(sizes)}", flush=True)
    chosen = [p for p in populations("chair") if p.name in ALTERNATIVE_CAPTIONS]
    for population in chosen:
        for score, table in tables(population):
            for name, make in {**ALTERNATIVES, "shipped": shipped}.items():
                cells = [cell(score, table, n, ALTERNATIVE_SAMPLES, make) for n in sizes]
                found = " | ".join(f"{100 * c.coverage:.1f}" for c in cells)
                print(f"| {population.name} | {score.name} | {name} | {found} |", flush=True)


def main() -> None:
    """Measure, and print the results."""
    parser = Arguments(__doc__)
    parser.size("--samples", 5000, smoke=2)
    parser.size("--clusters", [24, 50, 200, 1000], smoke=[24])
    parser.add_argument("--family", default="", choices=FAMILIES)
    parser.add_argument("--alternatives", action="store_true")
    given = parser.given()
    if given.alternatives:
        show_alternatives(given.clusters)
        return
    start = time.process_time()
    by_population: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for population, found in measure(given.clusters, given.samples, given.family):
        by_population[population.family, population.name].append(found)
    cells = [found for group in by_population.values() for found in group]
    print(*summary(by_population, given.clusters), "", sep="\n")
    print(*exceptions(by_population, given.samples), "", sep="\n")
    spent, count = time.process_time() - start, len(cells) * given.samples
    print(f"{count:,} samples, {1e6 * spent / count:.0f} us each, drawing included")
    print(f"without an interval: {sum(found.none for found in cells) / len(cells):.4%}")


if __name__ == "__main__":
    main()
