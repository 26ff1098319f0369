"""The options of Tri-HE that are numbers."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.engine.registry import open_pipeline
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("half", "the option keep_above is 'half'; give a number"),
        ("7", "the option keep_above is 7.0; give a number from -1 to 1"),
    ],
)
def test_a_threshold_that_is_no_cosine_is_named_with_its_value(given: str, problem: str) -> None:
    spec = ScoreSpec(metric="tri-he", options={"keep_above": given})
    with pytest.raises(InvalidInputError) as raised:
        open_pipeline(spec, Resources())
    assert raised.value.message == problem
