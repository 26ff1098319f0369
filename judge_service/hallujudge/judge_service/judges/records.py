"""What a judge's reply says of its claims, and how the cache keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hallujudge.metrics.framework.results import JsonValue

from ..llm.ask_once import Reading
from ..llm.cache import Record
from ..llm.client import Answer
from ..llm.usage import Usage
from .prompts import Question
from .reading import ReadAnswer, read_choice, read_keyed
from .values import Declined

__all__ = ["ReadReply", "reading_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """A reply to one question."""

    answers: tuple[ReadAnswer | None, ...]
    """One for each claim of the question; None: the cache does not have it."""
    fallback_history: tuple[tuple[Declined, ...], ...]
    """Why earlier judges gave no verdict, one entry for each claim."""
    usage: Usage
    """What the call took."""

    @property
    def has_verdict(self) -> bool:
        """Whether any claim has a verdict."""
        return any(answer is not None and answer.choice for answer in self.answers)


def reading_of(
    question: Question, fallback_history: Sequence[tuple[Declined, ...]]
) -> Reading[ReadReply]:
    """Return how replies to a question are read and kept.

    Args:
        question: The question.
        fallback_history: Why earlier judges gave no verdict, one entry for each claim of it.
    """

    def read(answer: Answer) -> ReadReply:
        reply = answer.reply
        if question.keyed:
            answers = read_keyed(reply, len(question.claims), question.choices)
        else:
            answers = [read_choice(reply, question.choices, question.envelope)]
        return ReadReply(
            answers=tuple(answers), fallback_history=tuple(fallback_history), usage=answer.usage
        )

    return Reading(
        read=read,
        to_record=_record_of,
        from_record=lambda record: _reply_of(record, question),
        is_whole=lambda reply: all(a is not None and a.choice for a in reply.answers),
    )


def _record_of(reply: ReadReply) -> Record | None:
    """What the cache keeps: claims with a verdict only."""
    if not reply.has_verdict:
        return None
    answers: dict[str, JsonValue] = {
        str(position): {
            "choice": answer.choice,
            "margin": answer.margin,
            "probabilities": list(answer.probabilities) if answer.probabilities else None,
            "fallback_history": [list(declined) for declined in history],
        }
        for position, (answer, history) in enumerate(
            zip(reply.answers, reply.fallback_history, strict=True)
        )
        if answer is not None and answer.choice
    }
    return {"answers": answers, "usage": reply.usage.to_record()}


def _reply_of(record: Mapping[str, object], question: Question) -> ReadReply:
    """The reply of a record; a claim whose entry cannot be read counts as not answered."""
    entries = record.get("answers")
    found = entries if isinstance(entries, dict) else {}
    read = [_entry(found.get(str(n)), question) for n in range(len(question.claims))]
    return ReadReply(
        answers=tuple(answer for answer, _ in read),
        fallback_history=tuple(history for _, history in read),
        usage=Usage.from_record(record.get("usage")),
    )


def _entry(entry: object, question: Question) -> tuple[ReadAnswer | None, tuple[Declined, ...]]:
    if not isinstance(entry, dict):
        return None, ()
    try:
        history = tuple(Declined(*map(str, declined)) for declined in entry["fallback_history"])
        answer = ReadAnswer(
            str(entry["choice"]),
            _number(entry["margin"]),
            probabilities=_numbers(entry["probabilities"], len(question.choices)),
        )
    except (KeyError, TypeError, ValueError):
        return None, ()
    return (answer, history) if answer.choice in question.choices else (None, ())


def _numbers(values: Any, count: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    numbers = tuple(map(float, values))
    if len(numbers) != count:
        raise ValueError(f"{len(numbers)} probabilities of {count} choices")
    return numbers


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
