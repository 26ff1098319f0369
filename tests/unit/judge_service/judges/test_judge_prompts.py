"""Claims in chunks, one for each call."""

from __future__ import annotations

from support.llm_judges import item

from hallujudge.judge_service.judges.judge_prompts import questions_of
from hallujudge.metrics.framework.claims import Triplet


def test_chunks_are_of_nearly_equal_length() -> None:
    many = tuple(Triplet("a", "b", str(n)) for n in range(21))
    sizes = [len(q.claims) for q in questions_of(item(*many), claims_per_call=20)]
    assert sizes == [10, 11]
