"""View of HallusionBench items."""

from __future__ import annotations

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.hallusion_bench.evidence import HallusionBenchEvidence
from hallujudge.metrics.hallusion_bench.items import HallusionBenchItem

from .answers import question_and_answer, without_verdict
from .markup import Markup, joined
from .pieces import listing
from .views import View

__all__ = ["VIEWS"]

_WORDS = ("wrong", "right", "unclear")
_SHOWN = ("no figure", "the original figure", "an edited figure")


def _body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, HallusionBenchEvidence)
    assert isinstance(item, HallusionBenchItem)
    given = [] if evidence.given is None else [_WORDS[evidence.given]]
    right = ": ".join(text for text in (evidence.label, item.details) if text)
    return joined(
        [
            *question_and_answer(
                item.question,
                item.response,
                right,
                correct=evidence.correct,
            ),
            *listing("About", [_SHOWN[item.visual_input]]),
            *listing("Verdict of", [evidence.how]),
            *listing("Given label", given),
            *without_verdict(evidence.judging),
        ]
    )


def _weight(evidence: Evidence) -> int:
    assert isinstance(evidence, HallusionBenchEvidence)
    return int(not evidence.correct)


def _summary(evidence: Evidence) -> str:
    assert isinstance(evidence, HallusionBenchEvidence)
    return _WORDS[evidence.correctness]


VIEWS: dict[type[object], View] = {
    HallusionBenchEvidence: View(
        body=_body, weight=_weight, summary=_summary, order="wrong answers first"
    ),
}
"""View of each kind of evidence."""
