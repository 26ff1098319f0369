"""Responses in other languages are unscored unless the run asks for them."""

from __future__ import annotations

import asyncio

import pytest

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.metrics import ChairItem, Item, ItemResult, Report
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.mementos import MementosItem
from hallujudge.metrics.tri_he import TriHeItem

CHINESE = "一只猫坐在沙发上"


def item_of(metric: str, response: str) -> Item:
    items: dict[str, Item] = {
        "chair": ChairItem(id="1", response=response, reference_objects=("dog",)),
        "tri-he": TriHeItem(
            id="1", response=response, reference_triplets=(Triplet("dog", "on", "grass"),)
        ),
        "mementos": MementosItem(id="1", response=response, reference="A dog runs."),
    }
    return items[metric]


def score(item: Item, metric: str, **options: str) -> tuple[ItemResult, Report]:
    spec = ScoreSpec(metric=metric, options=options)

    async def run() -> tuple[ItemResult, Report]:
        session = await Engine().open(spec)
        (result,) = await session.score([item])
        return result, session.report()

    return asyncio.run(run())


@pytest.mark.parametrize("metric", ["chair", "tri-he", "mementos"])
def test_a_response_in_another_language_has_no_score(metric: str) -> None:
    result, report = score(item_of(metric, CHINESE), metric)
    assert result.reason == UnscoredReason.LANGUAGE_UNSUPPORTED
    assert "not English" in result.detail
    assert report.coverage.unscored == 1
    assert "any-language" not in report.signature


def test_any_language_can_be_allowed_and_is_in_the_signature() -> None:
    result, report = score(item_of("chair", CHINESE), "chair", language="any")
    assert (result.reason, result.scores.get("chair_s")) == ("", 0.0)
    assert "any-language" in report.signature


def test_a_human_description_in_another_language_is_not_a_reference() -> None:
    item = MementosItem(id="1", response="A dog runs.", reference=CHINESE)
    result, _ = score(item, "mementos")
    assert result.reason == UnscoredReason.LANGUAGE_UNSUPPORTED
    assert result.detail.startswith("the human description")
