"""Settings of matchers, and the texts of claims and references that a model reads."""

from __future__ import annotations

from typing import Any

import pytest
from support.word_matchers import GRAPH

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.matchers.matcher_interface import (
    MatcherSettings,
    claim_text,
    reference_text,
)
from hallujudge.metrics.framework.claims import Triplet


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "best"}, "protocol"),
        ({"backend": "gpu"}, "backend"),
        ({"parts": "some"}, "parts"),
        ({"keep_above": 1.5}, "keep_above"),
        ({"support_above": float("nan")}, "support_above"),
        ({"small_above": -0.1}, "small_above"),
        ({"top": 0}, "top"),
        ({"threads": -1}, "threads"),
        ({"cached_vectors": -1}, "cached_vectors"),
        ({"protocol": "nli"}, "small_model"),
    ],
)
def test_settings_are_checked(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field) as caught:
        MatcherSettings(**changes)
    assert [violation.field for violation in caught.value.violations] == [field]


def test_texts_are_the_released_ones() -> None:
    assert claim_text(Triplet("Lamp (old)", "turned on", "a, b")) == "Lamp (old) turned on a, b"
    assert reference_text(Triplet("Lamp (old)", "is", "a, b")) == "Lamp old is a b."
    assert reference_text(GRAPH[3]) == "bus isred."
    assert claim_text(Triplet("a\ud800", "b", "c")) == "a� b c".replace("�", "�" * 3)
