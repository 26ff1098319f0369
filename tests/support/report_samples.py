"""Reports and items made by hand, so that tests of renderers need no engine."""

from __future__ import annotations

from collections.abc import Mapping

from hallujudge.metrics import (
    AnswersEvidence,
    AnswerVerdict,
    Bound,
    ChairEvidence,
    ChairItem,
    Coverage,
    ItemResult,
    MentionVerdict,
    Outcome,
    Report,
    Score,
)
from hallujudge.sdk.comparison import ScoreDifference

SIGNATURE = (
    "chair|var:published|match:words-1|graph:coco-1@0c04526f|count:mentions|"
    "ci:jackknife-wilson-0.95|n:2000|unscored:2|v:0.1.0"
)
WRONG_ANSWER = AnswersEvidence(
    answers=(AnswerVerdict(name="", answer="yes", label="no", correct=False, how="word"),)
)
"""Evidence of one wrong answer."""
HOSTILE = "<script>alert(1)</script>\"'&`|\x1b[31m\u202e\ud800\x00 ```"


def score(
    name: str,
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    n: int = 1998,
) -> Score:
    return Score(name=name, value=value, ci_low=low, ci_high=high, n=n)


def difference() -> ScoreDifference:
    """A score of two runs, the second of which is better."""
    return ScoreDifference(
        score="chair_i",
        direction="lower",
        first=0.2,
        second=0.18,
        difference=-0.02,
        ci_low=-0.03,
        ci_high=-0.01,
        p=0.0002,
        p_corrected=0.0004,
        finding="better",
        clusters=100,
        changed=10,
    )


def scores() -> dict[str, Score]:
    return {
        "chair_i": score("chair_i", 0.18765432, 0.17, 0.2),
        "chair_s": score("chair_s", None),
        "mean_words": score("mean_words", 98.765, 97.5, 100.25),
    }


def report(
    *,
    unscored: int = 0,
    groups: Mapping[str, Mapping[str, Mapping[str, Score]]] | None = None,
    signature: str = SIGNATURE,
    metric: str = "chair",
) -> Report:
    return Report(
        metric=metric,
        variant="published",
        signature=signature,
        scores=scores(),
        coverage=Coverage(
            items=2000,
            scored=2000 - unscored,
            unscored=unscored,
            reasons={"RESPONSE_MISSING": unscored} if unscored else {},
            bounds={"chair_i": Bound(best=0.1, worst=0.3)} if unscored else {},
        ),
        groups=groups or {},
        settings={"graph": "coco", "graph_version": "1"},
        notes=("The graph is not the published table.",),
    )


def caption(
    identifier: str,
    text: str = "A dog on a sofa.",
    mentions: tuple[MentionVerdict, ...] = (
        MentionVerdict("dog", "dog", 2, 5, True),
        MentionVerdict("sofa", "couch", 11, 15, False),
    ),
    *,
    group_id: str = "",
) -> tuple[ChairItem, ItemResult]:
    """Return a scored caption and its result."""
    item = ChairItem(id=identifier, group_id=group_id, response=text, reference_objects=("couch",))
    result = ItemResult(
        id=identifier,
        group_id=group_id or identifier,
        outcome=Outcome.SCORED,
        statistics=(2, 1, 1, 1, 1, 5),
        scores={"chair_i": 0.5},
        evidence=ChairEvidence(mentions=mentions, missed=("bed",)),
    )
    return item, result


def unscored_caption(identifier: str) -> tuple[ChairItem, ItemResult]:
    """Return a caption that is null, and its result."""
    item = ChairItem(id=identifier, response=None, reference_objects=())
    result = ItemResult(
        id=identifier,
        group_id=identifier,
        outcome=Outcome.UNSCORED,
        reason="RESPONSE_MISSING",
        detail="the caption is null",
    )
    return item, result
