"""The table of small judges."""

from __future__ import annotations

from string import Formatter

import pytest

from hallujudge.judge_service.matchers.small_judge_presets import (
    SMALL_JUDGES,
    SmallPreset,
    preset_of,
)


@pytest.mark.parametrize("preset", SMALL_JUDGES.values(), ids=list(SMALL_JUDGES))
def test_a_template_has_a_place_for_premise_and_claim(preset: SmallPreset) -> None:
    fields = {name for _, name, _, _ in Formatter().parse(preset.template) if name}
    assert fields - {"eos"} == ({"premise", "claim"} if preset.template else set())
    assert preset.licence
    assert not preset.chunk or preset.chunk <= preset.limit
    assert preset_of(preset.name) is preset
