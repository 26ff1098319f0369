"""Numbers that a text states, as claims."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.count_rules import RuleCounts


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Two dogs sleep.", [("dogs", "is", "2")]),
        ("There are 3 blue balls and a box.", [("balls", "is", "3")]),
        ("There are two traffic lights.", [("traffic lights", "is", "2")]),
        ("Three young men ride two bikes.", [("men", "is", "3"), ("bikes", "is", "2")]),
        ("The five-year-old has 2 cups.", [("cups", "is", "2")]),
        # What counts nothing.
        ("A five-year-old boy waves.", []),
        ("A dog is on the sofa.", []),
        ("There are no dogs.", []),
        ("Two college graduates pack.", []),
        ("A couple walks with a pair of glasses.", []),
        ("The bus stops at 3.5 meters.", []),
    ],
)
def test_a_number_of_things_is_a_claim(text: str, claims: list[tuple[str, str, str]]) -> None:
    found = RuleCounts().extract(text)
    assert [claim.parts for claim in found] == claims
    assert all(claim.subject in text[claim.start : claim.end] for claim in found)
