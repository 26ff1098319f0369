"""The answers of a language model on one item, as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Verdict

from ..llm.budget import Usage
from . import Declined, JudgedItem, JudgeRequestItem, Recalled, count_verdicts
from .choice_shares import MeasuredShare, ShareRule
from .questions import Question
from .replies import ReadAnswer, ReadReply

VerdictOf: TypeAlias = Callable[[ClaimParts, ReadAnswer], ClaimVerdict]
"""Returns the verdict on a claim for an answer."""


@dataclass(slots=True)
class Draft:
    """The answers on an item, as they arrive."""

    item: JudgeRequestItem
    answers: dict[int, ReadAnswer] = field(default_factory=dict)
    """The answers, by claim."""
    fallback_history: dict[int, tuple[Declined, ...]] = field(default_factory=dict)
    """Why earlier judges gave no verdict, by claim."""
    usages: list[Usage] = field(default_factory=list)
    """What the calls took."""
    paid: dict[str, ReadReply] = field(default_factory=dict)
    """Replies by cache key, for claims that come up twice."""
    measured: dict[int, MeasuredShare] = field(default_factory=dict)
    """How likely the choices are, by claim, where a call measured it."""
    measuring: set[str] = field(default_factory=set)
    """Cache keys of these calls."""

    def history(self, question: Question) -> list[tuple[Declined, ...]]:
        """Return who declined the claims of a question before."""
        history = self.item.fallback_history or ((),) * len(self.item.claims)
        return [history[index] for index in question.claims]

    def add(
        self, key: str, question: Question, reply: ReadReply, *, has_fallback: bool = False
    ) -> None:
        """Add the answers of a reply to a call with this cache key."""
        found = zip(question.claims, reply.answers, reply.fallback_history, strict=True)
        for index, answer, history in found:
            if answer is not None:
                self.answers[index], self.fallback_history[index] = answer, history
        # A second run finds the fallback's verdict, and knows of no failed reply before it.
        if reply.has_verdict or not has_fallback:
            # A failed reply is not kept: unless it was shared, another call was made.
            earlier = self.paid.get(key)
            again = earlier is not None and (earlier is reply or earlier.has_verdict)
            self.paid[key] = reply
            self.usages.append(reply.usage.again() if again else reply.usage_of(question))

    def measure(self, key: str, question: Question, measured: MeasuredShare) -> None:
        """Add what a call with this cache key says of the claim of a question."""
        if not measured.reason:
            again = key in self.measuring
            self.usages.append(measured.usage.again() if again else measured.usage_of(question))
            self.measuring.add(key)
        self.measured[question.claims[0]] = measured

    def count(self, judge: str, question: Question, verdict_of: VerdictOf) -> None:
        """Count the verdicts on the claims of a question, all of which have an answer."""
        of = self.item.claims
        given = [verdict_of(of[at], self.settled(at)).verdict for at in question.claims]
        count_verdicts(judge, len(given) - given.count(Verdict.UNSCORED))

    def settled(self, at: int) -> ReadAnswer:
        """Return the answer on a claim, or why it does not count."""
        rule = self.item.measuring
        return self.answers[at] if rule is None else rule.settled(self.answers[at], self._share(at))

    def judged(self, judge: str, verdict_of: VerdictOf) -> JudgedItem:
        """Return the verdicts on all claims, each of which has an answer.

        Args:
            judge: The judge's name.
            verdict_of: Returns the judge's verdict for an answer.
        """
        verdicts = [
            verdict_of(claim, self.settled(index)) for index, claim in enumerate(self.item.claims)
        ]
        return JudgedItem.by(judge, verdicts, Usage.total(self.usages), self.shares())

    def recalled(self, verdict_of: VerdictOf) -> Recalled:
        """Return the verdicts on the claims that have an answer.

        Args:
            verdict_of: Returns the judge's verdict for an answer.
        """
        claims = self.item.claims
        return Recalled(
            verdicts=tuple(
                verdict_of(claim, self.settled(index)) if index in self.answers else None
                for index, claim in enumerate(claims)
            ),
            fallback_history=tuple(self.fallback_history.get(i, ()) for i in range(len(claims))),
            usage=Usage.total(self.usages),
            shares=self.shares(),
        )

    def shares(self) -> tuple[float, ...]:
        """Return how likely the choices are, for the claims for which that is known."""
        return tuple(self._known_shares()) if self.item.measuring is not None else ()

    def _known_shares(self) -> Iterator[float]:
        for at in sorted(self.answers):
            share = self._share(at).share
            if share is not None:
                yield share

    def _share(self, at: int) -> MeasuredShare:
        return self.measured.get(at) or MeasuredShare(self.answers[at].share)


def settled_choice(
    question: Question, reply: ReadReply, rule: ShareRule | None, measured: MeasuredShare | None
) -> ReadReply:
    """Return a reply to a question with one choice as it counts, and what it took.

    Args:
        question: The question.
        reply: The reply.
        rule: Whether the share of the choices is measured, and which one is enough.
        measured: The share, if a call measured it.
    """
    draft = Draft(JudgeRequestItem(id="", claims=(), reference_triplets=(), measuring=rule))
    draft.add("", replace(question, claims=(0,)), reply)
    if measured is not None:
        draft.measure("", question, measured)
    return replace(
        reply,
        answers=(draft.settled(0),),
        usage=Usage.total(draft.usages),
        shares=draft.shares(),
    )
