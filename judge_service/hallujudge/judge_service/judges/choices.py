"""A question with a few answers to choose from, asked of language models in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hallujudge.metrics.framework.result import JsonValue

from ..errors import InvalidInputError
from ..llm.estimate import Estimate, PlannedCall, TokenCounter, estimate_calls
from ..llm.pool import run_bounded
from ..llm.templates import Template
from ..observe.recorder import recorder
from .llm import LlmJudge
from .prompts import Question
from .reading import ReadAnswer
from .records import ReadReply
from .values import Asked, Declined, JudgeIdentity, joined_identity

__all__ = ["ChoiceJudge", "Chosen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The answer to one question, or why there is none."""

    choice: str = ""
    """The choice; empty: no judge made one."""
    margin: float | None = None
    """Its log-probability minus that of the best other choice, if reported."""
    reason: str = ""
    """Why there is no choice: the first judge's reason."""
    detail: str = ""
    """The reasons of all judges in words."""
    asked: tuple[Asked, ...] = field(default=())
    """The judges that were asked, in order."""

    def judging(self) -> tuple[dict[str, JsonValue], ...]:
        """Return the entries of ``evidence.judging``."""
        return tuple(asked.to_json() for asked in self.asked)


class ChoiceJudge:
    """Asks one question about each item, and accepts only offered choices.

    A question goes to the next judge if one makes no choice. What the judges chose before is looked
    up first, in the same order, so that a second run costs nothing and writes the same bytes.

    Args:
        judges: The language models; their names differ.
        templates: The prompts of the questions.
    """

    def __init__(self, judges: Sequence[LlmJudge], templates: Sequence[Template]) -> None:
        if not judges:
            raise InvalidInputError("a judge of answers needs a language model; none is named")
        self.judges = tuple(judges)
        self.templates = tuple(templates)

    @property
    def name(self) -> str:
        """The judges' names in order, such as ``llm>fallback``."""
        return ">".join(judge.name for judge in self.judges)

    @property
    def identity(self) -> JudgeIdentity:
        """What the choices depend on: the judges, the prompts and every parameter."""
        parts = [(judge.name, judge.identity_with(self.templates)) for judge in self.judges]
        return joined_identity(parts)

    @property
    def signature(self) -> str:
        """The identity as one field of a metric's signature."""
        return ",".join(value for _, value in self.identity.signature_fields())

    async def choose(self, questions: Sequence[Question]) -> list[Chosen]:
        """Return one answer for each question, in order.

        Raises:
            InvalidInputError: A key is rejected, or there is no such model.
            UnavailableError: A judge answered no call for a long time.
        """
        for judge in self.judges:
            await judge.identify()
        done = [Chosen()] * len(questions)

        async def work(index: int) -> None:
            question = questions[index]
            done[index] = await self._recalled(question) or await self._asked(question)

        most = max(judge.client.settings.all_concurrency for judge in self.judges)
        await run_bounded(range(len(questions)), work, min(most, len(questions)))
        return done

    async def estimates(
        self, questions: Iterable[Question], counter: TokenCounter | None = None
    ) -> list[Estimate]:
        """Return the calls that each judge would get if it were asked everything; none is made."""
        asked = list(questions)
        found = []
        for judge in self.judges:
            await judge.identify()
            calls = [
                PlannedCall(
                    key=judge.key_of(question),
                    cached=await judge.recall_choice(question) is not None,
                    request=judge.request_of(question),
                )
                for question in asked
            ]
            found.append(await estimate_calls(judge.name, judge.client, calls, counter))
        return found

    async def _recalled(self, question: Question) -> Chosen | None:
        before: list[str] = []
        for judge in self.judges:
            reply = await judge.recall_choice(question)
            if reply is not None:
                history = tuple(d for d in reply.fallback_history[0] if d.judge in before)
                return _chosen(judge.name, reply, history)
            before.append(judge.name)
        return None

    async def _asked(self, question: Question) -> Chosen:
        history: tuple[Declined, ...] = ()
        for judge in self.judges:
            last = judge is self.judges[-1]
            reply = await judge.choose(question, history, has_fallback=not last)
            answer = _answer(reply)
            if answer.choice:
                return _chosen(judge.name, reply, history)
            history = (*history, Declined(judge.name, answer.reason, answer.detail))
            if not last:
                recorder().fell_back(judge.name, answer.reason)
        return _unanswered(history)


def _answer(reply: ReadReply) -> ReadAnswer:
    answer = reply.answers[0]
    assert answer is not None, "a whole reply has every answer"
    return answer


def _chosen(judge: str, reply: ReadReply, history: tuple[Declined, ...]) -> Chosen:
    answer = _answer(reply)
    return Chosen(
        choice=answer.choice,
        margin=answer.margin,
        asked=(*_declined(history), Asked(judge=judge, answered=1, usage=reply.usage)),
    )


def _unanswered(history: tuple[Declined, ...]) -> Chosen:
    return Chosen(
        reason=history[0].reason,
        detail="; ".join(f"{d.judge}: {d.reason}: {d.detail}" for d in history),
        asked=_declined(history),
    )


def _declined(history: tuple[Declined, ...]) -> tuple[Asked, ...]:
    return tuple(Asked(judge=declined.judge, declined=(declined,)) for declined in history)
