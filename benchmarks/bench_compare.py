"""How often comparisons of runs are right: false findings, power, and coverage of intervals.

Three questions, each answered by comparing many pairs of runs:

* Two runs of one model with different seeds: how often is a difference found, and how often does
  the interval hold 0? Models are drawn: each image has a difficulty that both runs share, so that
  their scores rise and fall together. In ``chair_i, other lengths`` two different models have the
  same rate, but one writes captions three times as long.
* A planted difference of 2 points: how often is it found, and how often does theory find it? Theory
  is the normal approximation with the standard error of the difference, which is computed from
  200,000 images. The true difference of these scores is exactly the planted one.
* Captions of real models (golden files): images are drawn with replacement, and the interval of the
  difference between two models should hold the difference over all images.

With 1,000 pairs the standard error is 0.7 percentage points at 95 % and 1.6 at 50 %.

Run with: python benchmarks/bench_compare.py [--samples 1000] [--replicates 1000]
[--part planted]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
import numpy as np
from arguments import Arguments
from interval_populations import Population, populations

from hallujudge.metrics import ChairMetric, Metric, ScoreDefinition
from hallujudge.metrics.framework.comparison import (
    ComparisonSettings,
    PairedClusters,
    PairedDifference,
    paired_differences,
)
from hallujudge.metrics.pope import PopeMetric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns: TypeAlias = dict[str, NDArray[np.float64]]

LEVEL, DIFFERENCE, IMAGES, MANY = 0.05, 0.02, 500, 200_000
SIZES = (24, 50, 200, 500, 1000)
REAL_SIZES = (50, 200, 500)
QUESTIONS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A score and a model that answers about images."""

    name: str
    score: ScoreDefinition
    run: Callable[[np.random.Generator, NDArray[np.float64], float, bool], Columns]
    """Answers about images of given difficulties, at a rate, as the second model or the first."""
    rate: float
    """The rate of the first model."""
    planted: bool = True
    """Whether a difference is planted in the second question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares among pairs of runs."""

    found: float
    """A difference was found at 5 %."""
    held: float
    """The interval holds the true difference."""


def score_of(metric: type[Metric], name: str) -> ScoreDefinition:
    """Return the definition of a score."""
    return next(score for score in metric.score_definitions if score.name == name)


def rates(difficulty: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Return each image's rate: a beta distribution with the given mean, by its quantile rank.

    The product of a power of uniform numbers has any mean: the mean of u ** a is 1 / (1 + a).
    """
    powered: NDArray[np.float64] = difficulty ** (1 / rate - 1)
    return powered


def caption_run(
    random: np.random.Generator, difficulty: NDArray[np.float64], rate: float, second: bool
) -> Columns:
    """Return captions of one to about six mentions."""
    del second
    mentioned = 1 + random.poisson(2, len(difficulty))
    wrong = random.binomial(mentioned, rates(difficulty, rate))
    return {"hallucinated": wrong.astype(float), "mentioned": mentioned.astype(float)}


def lengths_run(
    random: np.random.Generator, difficulty: NDArray[np.float64], rate: float, second: bool
) -> Columns:
    """Return captions that are three times as long in the second run."""
    mentioned = 1 + random.poisson(8 if second else 2, len(difficulty))
    wrong = random.binomial(mentioned, rates(difficulty, rate))
    return {"hallucinated": wrong.astype(float), "mentioned": mentioned.astype(float)}


def answer_run(
    random: np.random.Generator, difficulty: NDArray[np.float64], rate: float, second: bool
) -> Columns:
    """Return right and wrong answers to six questions about each image, half of them yes."""
    del second
    half = QUESTIONS // 2
    tp = random.binomial(half, 1 - rates(difficulty, 1 - rate))
    tn = random.binomial(half, 1 - rates(difficulty, 1 - rate))
    fp, fn = half - tn, half - tp
    columns = {"tp": tp, "tn": tn, "fp": fp, "fn": fn, "wrong": fp + fn}
    columns["answered"] = np.full(len(difficulty), QUESTIONS)
    return {name: column.astype(float) for name, column in columns.items()}


CASES = (
    Case(name="chair_i", score=score_of(ChairMetric, "chair_i"), run=caption_run, rate=0.15),
    Case(
        name="chair_i, other lengths",
        score=score_of(ChairMetric, "chair_i"),
        run=lengths_run,
        rate=0.15,
        planted=False,
    ),
    Case(name="accuracy", score=score_of(PopeMetric, "accuracy"), run=answer_run, rate=0.85),
    Case(name="f1", score=score_of(PopeMetric, "f1"), run=answer_run, rate=0.85),
)


def drawn(case: Case, random: np.random.Generator, images: int, change: float) -> PairedClusters:
    """Draw two runs over the same images."""
    difficulty = random.random(images)
    return PairedClusters(
        first=case.run(random, difficulty, case.rate, False),
        second=case.run(random, difficulty, case.rate + change, True),
    )


def value(score: ScoreDefinition, columns: Columns) -> float:
    """Return a score of all images."""
    return float(score.value({name: columns[name].sum(keepdims=True) for name in score.columns})[0])


def deviation(case: Case, change: float) -> float:
    """Return the standard deviation of a difference for one image."""
    pair = drawn(case, np.random.default_rng(99), MANY, change)
    first, second = dict(pair.first), dict(pair.second)
    return float(np.std(influence(case.score, second) - influence(case.score, first)))


def influence(score: ScoreDefinition, columns: Columns) -> NDArray[np.float64]:
    """Return how much each image changes the score, by leaving it out."""
    sums = {name: columns[name].sum() - columns[name] for name in score.columns}
    changes: NDArray[np.float64] = (MANY - 1) * (value(score, columns) - score.value(sums))
    return changes


def shares(
    score: ScoreDefinition,
    pairs: Iterator[PairedClusters],
    settings: ComparisonSettings,
    true_difference: float,
) -> Shares:
    """Compare every pair."""
    found: list[PairedDifference] = []
    for pair in pairs:
        found += paired_differences([([score], pair)], settings)[0]
    return Shares(
        found=float(np.mean([each.p is not None and each.p <= LEVEL for each in found])),
        held=float(
            np.mean(
                [
                    each.ci_low is not None
                    and each.ci_high is not None
                    and each.ci_low <= true_difference <= each.ci_high
                    for each in found
                ]
            )
        ),
    )


def no_difference(samples: int, settings: ComparisonSettings) -> None:
    """Print how often two runs of equal quality differ."""
    print("| two runs without a difference | images | no difference found | interval holds 0 |")
    print("|:---|---:|---:|---:|")
    for case in CASES:
        for images in SIZES:
            random = np.random.default_rng((1, images))
            pairs = (drawn(case, random, images, 0) for _ in range(samples))
            got = shares(case.score, pairs, settings, 0.0)
            row = (case.name, images, f"{100 * (1 - got.found):.1f} %", f"{100 * got.held:.1f} %")
            print("|", " | ".join(map(str, row)), "|", flush=True)
    print()


def planted(samples: int, settings: ComparisonSettings) -> None:
    """Print how often a planted difference is found, beside theory."""
    print("| 2 points on 500 images | standard error | found | theory | interval holds 0.02 |")
    print("|:---|---:|---:|---:|---:|")
    for case in (case for case in CASES if case.planted):
        error = deviation(case, DIFFERENCE) / IMAGES**0.5
        random = np.random.default_rng(2)
        pairs = (drawn(case, random, IMAGES, DIFFERENCE) for _ in range(samples))
        got = shares(case.score, pairs, settings, DIFFERENCE)
        row = (
            case.name,
            f"{error:.4f}",
            f"{100 * got.found:.1f} %",
            f"{100 * power(DIFFERENCE / error):.1f} %",
            f"{100 * got.held:.1f} %",
        )
        print("|", " | ".join(row), "|", flush=True)
    print()


def power(effect: float) -> float:
    """Return how often a two-sided test finds a difference of so many standard errors."""
    normal = NormalDist()
    critical = normal.inv_cdf(1 - LEVEL / 2)
    return normal.cdf(effect - critical) + normal.cdf(-effect - critical)


def real(samples: int, settings: ComparisonSettings) -> None:
    """Print how often intervals hold the difference between two models' captions."""
    models = [p for p in populations("chair") if p.name.startswith("2,000 captions of ")]
    print("| captions of | chair_i differs by | " + " | ".join(map(str, REAL_SIZES)) + " |")
    print("|:---|---:|" + "---:|" * len(REAL_SIZES))
    for first, second in combinations(models, 2):
        print("|", " | ".join(real_row(first, second, samples, settings)), "|", flush=True)
    print()


def real_row(
    first: Population, second: Population, samples: int, settings: ComparisonSettings
) -> Sequence[str]:
    """Return the coverage of two models' difference."""
    score = score_of(ChairMetric, "chair_i")
    sides = [{name: dict(p.clusters)[name] for name in score.columns} for p in (first, second)]
    true_difference = value(score, sides[1]) - value(score, sides[0])
    clusters = len(sides[0][score.columns[0]])
    cells = []
    for images in REAL_SIZES:
        random = np.random.default_rng((3, images))
        chosen = (random.integers(0, clusters, images) for _ in range(samples))
        pairs = (
            PairedClusters(
                first={name: column[at] for name, column in sides[0].items()},
                second={name: column[at] for name, column in sides[1].items()},
            )
            for at in chosen
        )
        cells.append(f"{100 * shares(score, pairs, settings, true_difference).held:.1f} %")
    names = (p.name.removeprefix("2,000 captions of ") for p in (first, second))
    return (" and ".join(names), f"{true_difference:+.4f}", *cells)


def speed() -> None:
    """Print how long a comparison takes."""
    random = np.random.default_rng(4)
    pair = drawn(CASES[0], random, 10_000, 0.01)
    start = time.perf_counter()
    paired_differences([([CASES[0].score], pair)], ComparisonSettings())
    print(
        f"one score over 10,000 images with 10,000 replicates: {time.perf_counter() - start:.1f} s"
    )


def main() -> None:
    """Parse arguments and print the tables."""
    parser = Arguments(__doc__)
    parser.size("--samples", 1000, smoke=2)
    parser.size("--replicates", 1000, smoke=100)
    parser.add_argument("--part", choices=PARTS, help="one of the questions; all by default")
    arguments = parser.given()
    settings = ComparisonSettings(replicates=arguments.replicates)
    for name in [arguments.part] if arguments.part else PARTS:
        PARTS[name](arguments.samples, settings)
    speed()


PARTS = {"no-difference": no_difference, "planted": planted, "real": real}


if __name__ == "__main__":
    main()
