"""HallusionBench: places of questions that no file has."""

from __future__ import annotations

import pytest
from msgspec import structs

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import AnswersItem


@pytest.mark.parametrize("number", ["3", "-1", str(2**31 - 1), ""])
async def test_a_visual_input_that_is_not_valid_leaves_its_item_unscored(number: str) -> None:
    session = await Engine().open(ScoreSpec(metric="hallusion-bench"))
    item = metric_entry("hallusion-bench").trial.item
    assert isinstance(item, AnswersItem)
    [answer] = item.answers
    fields = {**answer.fields, "question_id": "2", "visual_input": number}
    odd = structs.replace(item, id="2", answers=(structs.replace(answer, fields=fields),))
    results = await session.score([item, odd])
    assert [result.reason for result in results] == ["", "PLACE_INVALID"]
    assert session.report().coverage.unscored == 1


async def test_an_item_of_two_answers_or_none_is_unscored() -> None:
    session = await Engine().open(ScoreSpec(metric="hallusion-bench"))
    item = metric_entry("hallusion-bench").trial.item
    assert isinstance(item, AnswersItem)
    odd = [
        structs.replace(item, id="2", answers=item.answers * 2),
        structs.replace(item, id="3", answers=()),
    ]
    results = await session.score([item, *odd])
    assert [result.reason for result in results] == ["", "PLACE_INVALID", "PLACE_INVALID"]
