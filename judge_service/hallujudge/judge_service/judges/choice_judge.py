"""A question with a few answers to choose from, asked of language models in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.framework.results import JsonValue, UnscoredReason

from ..errors import InvalidInputError
from ..llm.ask_once import run_bounded
from ..llm.budget import Usage
from ..llm.estimate import Estimate, PlannedCall, TokenCounter, estimate_calls
from ..llm.prompt_templates import Template
from ..tenancy import tenancy
from . import DIGITS, Asked, Declined, JudgeIdentity, count_verdicts
from .judge_calls import ReadReply
from .judge_rules import Escalation, ShareRule
from .llm_judge import LlmJudge
from .questions import Question
from .replies import ReadAnswer
from .several_judges import JudgesInOrder, history_before


class Chosen(Struct, frozen=True, kw_only=True):
    """The answer to one question, or why there is none."""

    choice: str = ""
    """The choice; empty if no judge made one."""
    margin: float | None = None
    """Its log-probability minus that of the best other choice, if reported."""
    probabilities: tuple[float, ...] | None = None
    """The probability of each offered choice among all of them, in their order, if reported."""
    reason: str = ""
    """The reason of the first judge that failed, or a small margin, if there is no choice."""
    detail: str = ""
    """The reasons of all judges in words."""
    asked: tuple[Asked, ...] = ()
    """The judges that were asked, in order."""
    extracted: str = ""
    """What the judge answered to a first question; empty without one."""

    def judging(self) -> tuple[dict[str, JsonValue], ...]:
        """Return the entries of ``evidence.judging``."""
        return tuple(asked.to_json() for asked in self.asked)


class ChoiceJudge(JudgesInOrder[LlmJudge]):
    """Asks one question about each item, and accepts only offered choices.

    A question goes to the next judge if one makes no choice, or, with an escalation, if the first
    judge's choice has too small a margin. What the judges chose before is looked up first, in the
    same order, so that a second run costs nothing and writes the same bytes.

    Args:
        judges: The language models; their names differ.
        templates: The prompts of the questions.
        escalation: The rule by which choices of the first judge are not kept, if any.
        measuring: Of which questions the share of the choices is measured, and which is enough.
    """

    def __init__(
        self,
        judges: Sequence[LlmJudge],
        templates: Sequence[Template],
        escalation: Escalation | None = None,
        measuring: ShareRule | None = None,
    ) -> None:
        if not judges:
            raise InvalidInputError("a judge of answers needs a language model; none is named")
        self.templates = tuple(templates)
        super().__init__(judges, escalation, measuring)

    def _identity_of(self, judge: LlmJudge) -> JudgeIdentity:
        # The choices depend on the prompts too, and on every parameter.
        return judge.identity_with(self.templates)

    @property
    def signature(self) -> str:
        """The identity as one field of a metric's signature."""
        return self.identity.signature

    def check_writes(self) -> None:
        """Refuse judges that write no text, which a first question asks for.

        Raises:
            InvalidInputError: A judge is asked by another protocol than that of chat.
        """
        for judge in self.judges:
            if (api := judge.client.settings.api) != "chat":
                raise InvalidInputError(
                    f"{judge.name}.api is {api!r}, which writes no text to judge; set it to chat"
                )

    async def choose(self, questions: Sequence[Question]) -> list[Chosen]:
        """Return one answer for each question, in order.

        Raises:
            InvalidInputError: A key is rejected, or the model does not exist.
            UnavailableError: A judge answered no call for a long time.
        """
        # Keys name the server's version, which the look-ups below need.
        for judge in self.judges:
            await judge.identify()

        async def work(question: Question) -> Chosen:
            chosen = await self._recalled(question) or await self._asked(question)
            if chosen.choice:
                count_verdicts(chosen.asked[-1].judge, 1)
            return chosen

        # More workers than the widest judge takes calls would only wait.
        most = max(judge.client.settings.all_concurrency for judge in self.judges)
        return await run_bounded(questions, work, min(most, len(questions)))

    async def estimates(
        self, questions: Iterable[Question], counter: TokenCounter | None = None
    ) -> list[Estimate]:
        """Return the calls that each judge would get if it were asked everything; none is made."""
        asked = list(questions)
        found = []
        for judge in self.judges:
            await judge.identify()
            calls = []
            for each in asked:
                question = each
                if each.first is not None:
                    before, completed = each.first
                    calls.append(await _planned(judge, before))
                    known = await judge.recall_choice(before)
                    # Until the text is known, the question holds the whole response.
                    question = completed(_answer(known).choice) if known else each
                calls.append(await _planned(judge, question))
                if judge.is_measured(question, self.measuring):
                    calls.append(await judge.meter.planned(judge.key_of(question), question))
            found.append(await estimate_calls(judge.name, judge.client, calls, counter))
        return found

    async def _recalled(self, question: Question) -> Chosen | None:
        small: list[Asked] = []
        for place, judge in enumerate(self.judges):
            ask = partial(judge.recall_choice, measuring=self.measuring)
            reply = await _after_first(question, ask)
            if reply is None:
                continue
            before = [other.name for other in self.judges[:place]]
            history = history_before(
                reply.fallback_history[0],
                before,
                _reasons(small),
                escalates=self.escalation is not None,
            )
            # A choice that other options led to does not count in this run.
            if history is None:
                continue
            if declined := self._declines(judge, reply):
                small.append(_passed(declined, reply.usage, reply.shares))
                if self._ends(declined):
                    return _unanswered(small)
                continue
            # Usage is known for choices with a small margin only; failed replies are not cached.
            known = dict(zip(_reasons(small), small, strict=True))
            return _chosen(
                judge.name, reply, [known.get(d) or _passed(d, Usage()) for d in history]
            )
        return None

    async def _asked(self, question: Question) -> Chosen:
        passed: list[Asked] = []
        for judge in self.judges:
            last = judge is self.judges[-1]
            ask = partial(
                judge.choose,
                history=tuple(_reasons(passed)),
                has_fallback=not last,
                measuring=self.measuring,
            )
            reply = await _after_first(question, ask)
            assert reply is not None, "a judge that is asked replies"
            answer, small = _answer(reply), self._declines(judge, reply)
            if answer.choice and small is None:
                return _chosen(judge.name, reply, passed)
            # A second run finds the fallback's choice, and knows of no failed reply before it.
            usage = reply.usage if small or last else Usage()
            declined = small or Declined(judge.name, answer.reason, answer.detail)
            passed.append(_passed(declined, usage, reply.shares))
            if self._ends(declined):
                break
            if not last:
                tenancy().recorder.fell_back(judge.name, declined.reason)
        return _unanswered(passed)

    def _declines(self, judge: LlmJudge, reply: ReadReply) -> Declined | None:
        """Return why a judge's choice is not kept, or None if it is, or there is no choice."""
        answer = _answer(reply)
        if answer.reason == UnscoredReason.CHOICES_UNLIKELY:
            return Declined(judge.name, answer.reason, answer.detail)
        if self.escalation is None or judge is not self.judges[0] or not answer.choice:
            return None
        return self.escalation.declines(judge.name, answer.margin)

    def _ends(self, declined: Declined) -> bool:
        """Return whether no other judge is asked."""
        abstains = self.escalation is not None and self.escalation.abstain
        return abstains and declined.reason == UnscoredReason.MARGIN_TOO_SMALL


def _passed(declined: Declined, usage: Usage, shares: tuple[float, ...] = ()) -> Asked:
    """Return the part of a judge whose answer was not kept, or that returned none."""
    return Asked(judge=declined.judge, declined=(declined,), usage=usage, shares=shares)


def _reasons(passed: Sequence[Asked]) -> list[Declined]:
    return [each for part in passed for each in part.declined]


def _answer(reply: ReadReply) -> ReadAnswer:
    answer = reply.answers[0]
    assert answer is not None, "a whole reply has every answer"
    return answer


async def _after_first(
    question: Question, ask: Callable[[Question], Awaitable[ReadReply | None]]
) -> ReadReply | None:
    """Return the reply to a question, once what comes before it is answered; None if unknown."""
    if question.first is None:
        return await ask(question)
    before, completed = question.first
    if (text := await ask(before)) is None:
        return None
    if not (said := _answer(text)).choice:
        return replace(
            text, answers=(said._replace(detail=f"no answer is extracted: {said.detail}"),)
        )
    reply = await ask(completed(said.choice))
    return reply and replace(reply, usage=text.usage + reply.usage, extracted=said.choice)


async def _planned(judge: LlmJudge, question: Question) -> PlannedCall:
    return PlannedCall(
        key=judge.key_of(question),
        cached=await judge.recall_choice(question) is not None,
        request=judge.request_of(question),
    )


def _chosen(judge: str, reply: ReadReply, passed: Sequence[Asked]) -> Chosen:
    answer = _answer(reply)
    return Chosen(
        choice=answer.choice,
        margin=answer.margin,
        probabilities=answer.probabilities
        and tuple(round(number, DIGITS) for number in answer.probabilities),
        asked=(*passed, Asked(judge=judge, answered=1, usage=reply.usage, shares=reply.shares)),
        extracted=reply.extracted,
    )


def _unanswered(passed: Sequence[Asked]) -> Chosen:
    history = _reasons(passed)
    failed = [d for d in history if d.reason != UnscoredReason.MARGIN_TOO_SMALL]
    return Chosen(
        reason=(failed or history)[0].reason,
        detail="; ".join(f"{d.judge}: {d.reason}: {d.detail}" for d in history),
        asked=tuple(passed),
    )
