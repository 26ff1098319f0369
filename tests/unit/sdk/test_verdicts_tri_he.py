"""How sure judges are of the claims of a Tri-HE run."""

from __future__ import annotations

import pytest

from hallujudge.sdk.labels.verdicts import answer_claims


@pytest.mark.parametrize(
    ("judge", "margin", "sure"),
    [
        ("matcher", -0.2, 0.2),
        ("minicheck", 0.3, 0.3),
        ("llm", 1.5, 1.5),
        # Held to a choice that the model found less likely than another answer.
        ("fallback", -1.5, -1.5),
        ("llm", None, None),
    ],
)
def test_margins_say_how_sure_a_judge_is(
    judge: str, margin: float | None, sure: float | None
) -> None:
    claim = {
        "triplet": ["a", "b", "c"],
        "verdict": "not_supported",
        "margin": margin,
        "judge": judge,
    }
    [found] = answer_claims({"claims": [claim]}, {})
    assert found.margin == sure
