"""HallusionBench: places of questions that no file has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.families.hallusion_bench import ENTRY
from hallujudge.metrics.hallusion_bench.question_groups import HallusionBenchItem


@pytest.mark.parametrize("number", [3, -1, 2**31 - 1])
async def test_a_visual_input_that_is_not_valid_leaves_its_item_unscored(number: int) -> None:
    session = await Engine().open(ScoreSpec(metric="hallusion-bench"))
    item = ENTRY.trial.item
    assert isinstance(item, HallusionBenchItem)
    odd = replace(item, id="2", question_id="2", visual_input=number)
    results = await session.score([item, odd])
    assert [result.reason for result in results] == ["", "PLACE_INVALID"]
    assert session.report().coverage.unscored == 1
