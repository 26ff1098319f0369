"""A matcher as a judge."""

from __future__ import annotations

import asyncio

from support.word_matchers import GRAPH, published

from hallujudge.judge_service.judges import Judge, JudgeRequestItem
from hallujudge.judge_service.judges.small_judges import MatcherJudge
from hallujudge.metrics.framework.claims import Triplet


def test_a_matcher_is_a_judge() -> None:
    judge = MatcherJudge(published())
    assert isinstance(judge, Judge)
    items = [
        JudgeRequestItem(
            id="1", claims=(Triplet("man", "riding", "horse"),), reference_triplets=GRAPH
        ),
        JudgeRequestItem(id="2", claims=(), reference_triplets=GRAPH),
        JudgeRequestItem(
            id="3",
            claims=(Triplet("cat", "eats", "fish"), Triplet("", " ", "")),
            reference_triplets=GRAPH,
        ),
    ]
    found = asyncio.run(judge.judge(items))
    assert [len(item.verdicts) for item in found] == [1, 0, 2]
    assert found[2].asked[0].answered == 1
    assert found[2].asked[0].declined[0].reason == "CLAIM_EMPTY"
    identity = judge.identity
    assert identity.kind == "matcher"
    assert ("matcher_support_above", "0.6") in identity.parameters
