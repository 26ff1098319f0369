"""Tri-HE's scores of answers with their own and with another image, end to end, at a server.

    hallujudge serve --port 50051 &
    PYTHONPATH=tests python -m oracles.tri_he_separation ../shared/goldens localhost:50051

Further arguments are the seed of the shuffle, and options of the metric, such as
``matcher_model=FOLDER`` of a server that offers this folder.

Every annotated answer is scored twice by rules and matcher: against its own image's scene graph,
and against that of another image, drawn by a seeded shuffle in which no image keeps its answers.
The answers are the same both times, and so are their style, length and claims; only the scene
graphs differ.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hallujudge.metrics import Outcome, Report
from hallujudge.metrics.framework.claims import Verdict
from hallujudge.metrics.tri_he import TriHeEvidence
from hallujudge.sdk import Client

__all__ = ["Scored", "auroc", "score_both", "separate"]


@dataclass(frozen=True)
class Scored:
    """A set of answers with the verdicts on their claims."""

    report: Report
    supported: tuple[int, ...]
    claims: tuple[int, ...]
    seconds: float

    @property
    def rate(self) -> float:
        """Supported claims of all claims."""
        return sum(self.supported) / sum(self.claims)

    @property
    def shares(self) -> list[float]:
        """Each answer's share of supported claims."""
        return [one / all for one, all in zip(self.supported, self.claims, strict=True)]


def load(folder: Path, images: int | None = None) -> dict[str, Any]:
    """The images of the benchmark, or the first few of them."""
    content = json.loads((folder / "tri_he" / "tri-he.json").read_text("utf-8"))
    return dict(list(content.items())[:images])


def borrowed_from(images: Sequence[str], seed: int) -> dict[str, str]:
    """Image -> the image whose answers it gets: one round trip through a shuffled order."""
    order = list(images)
    random.Random(seed).shuffle(order)
    return dict(zip(order, order[1:] + order[:1], strict=True))


def answers(content: dict[str, Any], source: dict[str, str]) -> list[dict[str, Any]]:
    """Answers of each image's source, as records about the image."""
    return [
        {"image_id": image, "item_id": f"{image}/{n}", "response": instance["answer"]}
        for image in content
        for n, instance in enumerate(content[source[image]]["instance"])
    ]


def score(
    client: Client,
    content: dict[str, Any],
    source: dict[str, str],
    options: Mapping[str, str] = MappingProxyType({}),
) -> Scored:
    """Scores the answers of each image's source against the image's scene graph."""
    counts: list[tuple[int, int]] = []

    def on_batch(batch: Any) -> None:
        for result in batch.results:
            if result.outcome is Outcome.SCORED:
                assert isinstance(result.evidence, TriHeEvidence)
                verdicts = [claim.verdict for claim in result.evidence.claims]
                counts.append((verdicts.count(Verdict.SUPPORTED), len(verdicts)))

    began = time.perf_counter()
    report = client.score(
        "tri-he",
        responses=answers(content, source),
        references=[{"image_id": key, **image} for key, image in content.items()],
        on_batch=on_batch,
        options=options,
    )
    seconds = time.perf_counter() - began
    supported, claims = zip(*counts, strict=True)
    return Scored(report=report, supported=supported, claims=claims, seconds=seconds)


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """How often a positive is above a negative, a tie counting half (Mann and Whitney)."""
    above = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    return above / (len(positives) * len(negatives))


def score_both(
    client: Client,
    content: dict[str, Any],
    seed: int = 0,
    options: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Scored, Scored]:
    """Own and borrowed answers."""
    own = score(client, content, {image: image for image in content}, options)
    return own, score(client, content, borrowed_from(list(content), seed), options)


def separate(own: Scored, borrowed: Scored) -> float:
    """The AUROC over answers, by their share of supported claims."""
    return auroc(own.shares, borrowed.shares)


def main(folder: str, server: str, seed: str = "0", *options: str) -> None:
    """Prints both rates and the AUROC of the whole benchmark."""
    chosen = dict(option.split("=", 1) for option in options)
    with Client(server) as client:
        own, borrowed = score_both(client, load(Path(folder)), int(seed), chosen)
    for name, found in (("own", own), ("borrowed", borrowed)):
        coverage = found.report.coverage
        print(f"{name}: {sum(found.supported)}/{sum(found.claims)} = {found.rate:.4f} supported;")
        for score_name, value in found.report.scores.items():
            print(f"  {score_name} {value.value:.4f} [{value.ci_low:.4f}, {value.ci_high:.4f}]")
        print(f"  {coverage.scored} of {coverage.items} scored, {dict(coverage.reasons)}")
        print(f"  {found.seconds:.1f} s")
    print(f"AUROC over answers: {separate(own, borrowed):.4f}")
    print(own.report.signature)


if __name__ == "__main__":
    main(*sys.argv[1:])
