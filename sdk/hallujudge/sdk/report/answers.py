"""View of single answers, as in POPE and VidHal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.answers.evidence import AnswerEvidence
from hallujudge.metrics.framework.result import JsonValue

from .markup import Markup, joined
from .pieces import listing
from .views import View, general_body

__all__ = ["VIEWS", "question_and_answer", "without_verdict"]


def question_and_answer(
    question: str, response: str | None, label: str, *, correct: bool | None
) -> Iterator[Markup]:
    """Return a question, its answer and, unless the answer is right, the right one.

    Args:
        question: The question; may be empty.
        response: What the model wrote.
        label: The right answer; empty where it is not known.
        correct: Whether the answer counts as right; None: it does not count.
    """
    yield from listing("Question", [question] if question else [])
    said = "no answer" if response is None else response or "empty"
    yield from listing("Answer", [said], "wrong" if correct is False else "")
    yield from listing("Right answer", [] if correct or not label else [label])


def without_verdict(judging: Sequence[Mapping[str, JsonValue]]) -> Iterator[Markup]:
    """Return the judges that gave no verdict, each with its reason."""
    reasons = [
        f"{part['judge']}: {reason}"
        for part in judging
        if isinstance(part["declined"], Mapping)
        for reason in part["declined"]
    ]
    yield from listing("No verdict from", reasons)


def _answer_body(item: Item, result: ItemResult) -> Markup:
    """Return the question with its answer; items without a question get the general view."""
    evidence = result.evidence
    assert isinstance(evidence, AnswerEvidence)
    question, response = getattr(item, "question", ""), getattr(item, "response", None)
    if not question:
        return general_body(item, result)
    parts = [
        *question_and_answer(question, response, evidence.label, correct=evidence.correct),
        *listing("Parsed as", [evidence.answer or "neither"]),
        *listing("Parser", [evidence.how]),
    ]
    return joined(parts)


def _answer_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, AnswerEvidence)
    return int(not evidence.correct)


def _answer_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, AnswerEvidence)
    verdict = "right" if evidence.correct else f"wrong: it is {evidence.label}"
    return f"{evidence.answer or 'unreadable'}, {verdict}"


VIEWS: dict[type[object], View] = {
    AnswerEvidence: View(body=_answer_body, weight=_answer_weight, summary=_answer_summary),
}
"""View of each kind of evidence."""
