"""Which runs have an agreement of judges, and what is counted."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Triplet, Verdict
from hallujudge.studies.analysis.agreement import JudgedAnswers, judge_agreement_tables
from hallujudge.studies.analysis.analyzed_run import AnalyzedRun

CLAIMS = (Triplet("dog", "is", "brown"), Triplet("dog", "on", "sofa"), Sentence("It sleeps."))
YES, NO, OPEN = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.UNSCORED


class Run:
    """As much of a run as the tables need."""

    def __init__(self, name: str, judge: str) -> None:
        self.name = name
        self.signature = f"tri-he|judge:{judge}|v:1"


def run(name: str, judge: str, *said: Verdict, claims: Any = CLAIMS) -> Any:
    verdicts = [ClaimVerdict(triplet=c, verdict=v) for c, v in zip(claims, said, strict=True)]
    answers: JudgedAnswers = {"7: who?": ("7", verdicts)}
    return cast("AnalyzedRun", Run(name, judge)), answers


def test_claims_are_counted_by_kind() -> None:
    tables, notes = judge_agreement_tables(
        [run("graph", "matcher", YES, NO, OPEN), run("image", "sees", YES, YES, NO)]
    )
    assert notes == []
    rows = {row["claims_on"]: row for row in tables[0].rows}
    assert list(rows) == ["all", "attribute", "relation", "sentence"]
    assert rows["all"] == {
        **{"judge": "graph", "other_judge": "image", "claims_on": "all", "claims": 2},
        **{"both_support": 1, "judge_only": 0, "other_only": 1, "neither": 0},
        **{"without_verdict": 1, "agreement": 0.5, "kappa": 0.0},
        **{"kappa_low": None, "kappa_high": None},
    }
    assert rows["sentence"]["claims"] == 0
    assert rows["sentence"]["agreement"] is None
    correlations = {row["claims_on"]: row for row in tables[1].rows}
    assert correlations["all"]["answers"] == 1
    assert correlations["all"]["pearson"] is None, "one answer has no correlation"


def test_one_judge_twice_has_no_agreement() -> None:
    assert judge_agreement_tables([run("a", "m", YES, NO, NO), run("b", "m", YES, YES, NO)]) == (
        [],
        [],
    )


@pytest.mark.parametrize("claims", [CLAIMS[::-1], CLAIMS[:2]])
def test_other_claims_are_named(claims: Any) -> None:
    other = run("b", "sees", *(YES for _ in claims), claims=claims)
    tables, [note] = judge_agreement_tables([run("a", "matcher", YES, NO, NO), other])
    assert tables == []
    assert note.startswith("no agreement of a and b: their judges differ, and so do their claims")


def test_three_judges_are_compared_in_pairs() -> None:
    runs = [run(name, name, YES, NO, NO) for name in ("one", "two", "three")]
    tables, _ = judge_agreement_tables(runs)
    pairs = {(row["judge"], row["other_judge"]) for row in tables[0].rows}
    assert pairs == {("one", "two"), ("one", "three"), ("two", "three")}
