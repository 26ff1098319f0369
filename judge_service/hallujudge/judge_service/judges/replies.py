"""Reading of the judge's replies.

Of a reply, only an offered choice is a verdict, and nothing is guessed. The cache keeps what was
read, not the reply. A reply is compared with the choices as a whole. A choice inside a sentence
does not count: "I would not call it supported" contains one too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hallujudge.metrics.framework.results import JsonValue

from ..llm.ask_once import Reading
from ..llm.budget import Usage
from ..llm.cache_file import Record
from ..llm.chat_replies import (
    TIED,
    ChatReply,
    ReplyProblem,
    Stated,
    reply_problem,
    shown,
    without_thought,
)
from ..llm.client import Answer
from ..llm.failures import FailureKind
from ..llm.vllm import logits_problem
from . import Declined
from .answer_tokens import followed
from .questions import VERDICT_KEY, Question

NO_VERDICT = "REPLY_OUT_OF_CHOICE"
"""The reason of a claim whose reply is not one of the offered choices."""

# Servers report zeros; what is less likely is noise of floating-point numbers.
_LEAST_PROBABILITY = 1e-9
WRAPPING = " \t\r\n\"'`*."
"""What is dropped around a choice, for servers that cannot constrain replies."""


class ReadAnswer(NamedTuple):
    """The part of a reply about one claim."""

    choice: str
    """The choice, or the text of a question without choices; empty if there is none."""
    margin: float | None = None
    """Its log-probability minus that of the best other choice, if reported. Both may be after the
    mask of a constraint, which rules out everything but the choices."""
    reason: str = ""
    """The reason if there is no choice."""
    detail: str = ""
    """The reason in words."""
    probabilities: tuple[float, ...] | None = None
    """Probability of each offered choice among all of them, in their order, if reported."""
    share: float | None = None
    """Probability of all choices together, if the protocol reports it."""
    is_listed: bool = False
    """Whether tokens are reported, with or without the choices among them."""


def has_tokens(answer: ReadAnswer | None) -> bool:
    """Return whether there is an answer whose server reports tokens, and so the choices' share."""
    return answer is not None and bool(answer.choice) and answer.is_listed


def read_choice(
    reply: ChatReply, choices: Sequence[str], envelope: tuple[str, str] = ("", "")
) -> ReadAnswer:
    """Return the choice that a whole reply consists of.

    White space, quotation marks, emphasis and a full stop around it are dropped and case is
    ignored, for servers that cannot constrain replies. A JSON string, and an object with
    ``verdict`` as its only key, are read as the text that they contain.

    Args:
        reply: The answer.
        choices: What was offered.
        envelope: The text before and after the choice, which is dropped.
    """
    reply = without_thought(reply)
    if problem := _problem_of(reply):
        return ReadAnswer("", None, *problem)
    text = reply.content.strip().removeprefix(envelope[0]).removesuffix(envelope[1])
    inner = _only_string(text)
    answer = (text if inner is None else inner).strip(WRAPPING).casefold()
    if answer not in choices:
        return ReadAnswer("", None, NO_VERDICT, f"{shown(text)} is not one of {', '.join(choices)}")
    # Where the choice begins in the text, so that tokens can be followed from there.
    start = reply.content.casefold().rfind(answer)
    return _answer_at(reply, start, answer, choices)


def _problem_of(reply: ChatReply) -> ReplyProblem | None:
    """Return why no answer can be read from a reply; None if it can.

    Logits in place of log-probabilities would make margins and probabilities wrong without a word.
    """
    if reply.logit:
        return ReplyProblem(FailureKind.BAD_REPLY.value, logits_problem(reply.logit))
    return reply_problem(reply)


def read_text(reply: ChatReply) -> ReadAnswer:
    """Return the text of a whole reply, of a question without choices."""
    reply = without_thought(reply)
    if problem := _problem_of(reply):
        return ReadAnswer("", None, *problem)
    text = reply.content.strip()
    return ReadAnswer(text) if text else ReadAnswer("", None, NO_VERDICT, "the reply is empty")


def read_keyed(reply: ChatReply, count: int, choices: Sequence[str]) -> list[ReadAnswer]:
    """Return the choices of a reply that is an object with keys ``1`` to ``count``.

    A claim whose entry is missing, duplicate or outside the choices has no verdict. Keys that were
    not asked for leave all claims without a verdict, because the numbering is then unclear.

    Args:
        reply: The answer.
        count: How many claims were asked about.
        choices: What was offered for each.
    """
    reply = without_thought(reply)
    if problem := _problem_of(reply):
        return [ReadAnswer("", None, *problem)] * count
    try:
        pairs = json.loads(reply.content, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as err:
        return [ReadAnswer("", None, "REPLY_NOT_JSON", f"{shown(reply.content)}: {err}")] * count
    if not isinstance(pairs, _Pairs):
        detail = f"{shown(reply.content)} is not a JSON object"
        return [ReadAnswer("", None, "REPLY_WRONG_SCHEMA", detail)] * count
    keys = [str(number) for number in range(1, count + 1)]
    if unknown := [key for key, _ in pairs if key not in keys]:
        detail = f"keys that were not asked for: {shown(', '.join(unknown))}"
        return [ReadAnswer("", None, "REPLY_WRONG_SCHEMA", detail)] * count
    return [_keyed_answer(reply, pairs, key, choices) for key in keys]


def read_stated(stated: Stated, choices: Sequence[str]) -> ReadAnswer:
    """Return a choice that was reported as probabilities.

    Args:
        stated: The answer.
        choices: What was offered.
    """
    if not stated.choice:
        return ReadAnswer("", None, stated.reason, stated.detail, share=stated.share)
    if not stated.probabilities:
        return ReadAnswer(stated.choice)
    chosen = choices.index(stated.choice)
    floored = [max(probability, _LEAST_PROBABILITY) for probability in stated.probabilities]
    rival = max(each for place, each in enumerate(floored) if place != chosen)
    total = math.fsum(floored)
    return ReadAnswer(
        stated.choice,
        math.log(floored[chosen]) - math.log(rival),
        probabilities=tuple(each / total for each in floored),
        share=stated.share,
    )


class _Pairs(list[tuple[str, object]]):
    """An object's entries, duplicates included: a claim that is answered twice has no verdict."""


def _keyed_answer(reply: ChatReply, pairs: _Pairs, key: str, choices: Sequence[str]) -> ReadAnswer:
    values = [value for name, value in pairs if name == key]
    if len(values) != 1:
        problem = "answered twice" if values else "not answered"
        return ReadAnswer("", None, "REPLY_WRONG_SCHEMA", f"claim {key} is {problem}")
    answer = values[0]
    if not isinstance(answer, str) or answer not in choices:
        found = shown(answer if isinstance(answer, str) else type(answer).__name__)
        return ReadAnswer(
            "", None, NO_VERDICT, f"claim {key}: {found} is not one of {', '.join(choices)}"
        )
    return _answer_at(reply, _value_start(reply.content, key), answer, choices)


def _answer_at(reply: ChatReply, start: int, answer: str, choices: Sequence[str]) -> ReadAnswer:
    found = followed(reply, start, answer, choices)
    if found is None:
        return ReadAnswer(answer)
    margin, probabilities = found.margin, found.probabilities
    if found.equals:
        detail = f"{answer} and {found.equals} are equally likely"
        return ReadAnswer("", margin, TIED, detail, probabilities)
    return ReadAnswer(answer, margin, probabilities=probabilities, is_listed=True)


def _value_start(text: str, key: str) -> int:
    """Return where the value of a key begins, after its quotation mark, which no key contains."""
    at = text.find(f'"{key}"')
    colon = text.find(":", at)
    return text.find('"', colon) + 1 if at >= 0 and colon >= 0 else -1


def _only_string(text: str) -> str | None:
    if text.strip()[:1] not in ('"', "{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, _Pairs) and [key for key, _ in value] == [VERDICT_KEY]:
        value = value[0][1]
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """A reply to one question."""

    answers: tuple[ReadAnswer | None, ...]
    """One for each claim of the question; None if the cache does not have it."""
    fallback_history: tuple[tuple[Declined, ...], ...]
    """Why earlier judges gave no verdict, one entry for each claim."""
    usage: Usage
    """What the call took."""
    payer: str = ""
    """The item whose question was sent."""
    shares: tuple[float, ...] = ()
    """How likely the choices are without a constraint, as far as that was measured."""
    extracted: str = ""
    """What the model answered to a first question, which is part of this one."""

    def usage_of(self, question: Question) -> Usage:
        """Return what the reply took for the item that asks a question."""
        # A failed reply is asked for again by a second run, whose bytes are equal but for its time.
        usage = self.usage if self.has_verdict else replace(self.usage, latency_seconds=0.0)
        return usage if self.payer == question.payer else usage.again()

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
        if reply.stated is not None:
            answers = [read_stated(stated, question.choices) for stated in reply.stated]
        elif question.keyed:
            answers = read_keyed(reply, len(question.claims), question.choices)
        elif not question.choices:
            answers = [read_text(reply)]
        else:
            answers = [read_choice(reply, question.choices, question.envelope)]
        return ReadReply(
            answers=tuple(answers),
            fallback_history=tuple(fallback_history),
            usage=answer.usage,
            payer=question.payer,
        )

    return Reading(
        read=read,
        to_record=_record_of,
        from_record=lambda record: _reply_of(record, question),
        is_whole=lambda reply: all(a is not None and a.choice for a in reply.answers),
    )


def _record_of(reply: ReadReply) -> Record | None:
    """Return the record for the cache, which has claims with a verdict only."""
    if not reply.has_verdict:
        return None
    answers: dict[str, JsonValue] = {
        str(position): {
            "choice": answer.choice,
            "margin": answer.margin,
            "probabilities": list(answer.probabilities) if answer.probabilities else None,
            "fallback_history": [list(declined) for declined in history],
            **({} if answer.share is None else {"share": answer.share}),
            **({"listed": True} if answer.is_listed else {}),
        }
        for position, (answer, history) in enumerate(
            zip(reply.answers, reply.fallback_history, strict=True)
        )
        if answer is not None and answer.choice
    }
    return {"answers": answers, "usage": reply.usage.to_record(), "payer": reply.payer}


def _reply_of(record: Mapping[str, object], question: Question) -> ReadReply:
    """Return the reply of a record; a claim whose entry cannot be read has no answer."""
    entries = record.get("answers")
    found = entries if isinstance(entries, dict) else {}
    read = [_recorded_entry(found.get(str(n)), question) for n in range(len(question.claims))]
    return ReadReply(
        answers=tuple(answer for answer, _ in read),
        fallback_history=tuple(history for _, history in read),
        usage=Usage.from_record(record.get("usage")),
        payer=str(record.get("payer", "")),
    )


def _recorded_entry(
    entry: object, question: Question
) -> tuple[ReadAnswer | None, tuple[Declined, ...]]:
    if not isinstance(entry, dict):
        return None, ()
    try:
        history = tuple(Declined(*map(str, declined)) for declined in entry["fallback_history"])
        answer = ReadAnswer(
            str(entry["choice"]),
            _recorded_number(entry["margin"]),
            probabilities=_recorded_numbers(entry["probabilities"], len(question.choices)),
            share=_recorded_number(entry.get("share")),
            is_listed=entry.get("listed") is True,
        )
    except (KeyError, TypeError, ValueError):
        return None, ()
    offered = answer.choice in question.choices or not question.choices
    return (answer, history) if offered and answer.choice else (None, ())


def _recorded_numbers(values: Any, count: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    numbers = tuple(map(float, values))
    # The cache is a file, whose content may have been changed.
    if len(numbers) != count:
        raise ValueError(f"{len(numbers)} probabilities of {count} choices")
    return numbers


def _recorded_number(value: Any) -> float | None:
    return None if value is None else float(value)
