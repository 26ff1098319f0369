"""Several judges of a claim: a router that asks them in order, or a panel that votes.

The router asks each judge for the claims that the earlier ones left open. A verdict of the first
judge is not kept if its margin is too small; the next judge then decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct, structs
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.results import UnscoredReason

from ..errors import InvalidInputError
from ..llm.ask_once import run_bounded
from ..llm.budget import Usage
from ..tenancy import tenancy
from . import (
    DIGITS,
    Asked,
    Declined,
    Judge,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    RecallingJudge,
    count_verdicts,
    joined_identity,
    unscored_claim,
)
from .judge_rules import Escalation, PanelRule, ShareRule

_Judge = TypeVar("_Judge", bound=Judge)
# Reasons that depend on the options of a run, and not on the reply alone.
_OF_OPTIONS = (str(UnscoredReason.MARGIN_TOO_SMALL), str(UnscoredReason.CHOICES_UNLIKELY))


class JudgesInOrder(Generic[_Judge]):
    """Judges that are asked in order, the preferred one first.

    Args:
        judges: The judges; their names differ.
        escalation: The rule by which answers of the first judge are not kept, if any.
        measuring: Of which claims the share of the choices is measured, and which is enough.

    Raises:
        InvalidInputError: The escalation was learnt from another judge, or no share can be
            measured.
    """

    def __init__(
        self,
        judges: Sequence[_Judge],
        escalation: Escalation | None,
        measuring: ShareRule | None = None,
    ) -> None:
        self.judges = tuple(judges)
        self.escalation = escalation
        self.measuring = measuring or ShareRule()
        if escalation is not None:
            escalation.check(self.measuring.identity(self._identity_of(self.judges[0])))
        self.measuring.check(self.judges)

    def _identity_of(self, judge: _Judge) -> JudgeIdentity:
        """Return what the answers of one of the judges depend on."""
        return judge.identity

    @property
    def name(self) -> str:
        """The judges' names in order, such as ``llm>fallback``."""
        return ">".join(judge.name for judge in self.judges)

    @property
    def identity(self) -> JudgeIdentity:
        """The judges' identities, joined in order, and the escalation."""
        joined = joined_identity([(judge.name, self._identity_of(judge)) for judge in self.judges])
        joined = self.measuring.identity(joined)
        return self.escalation.identity(joined) if self.escalation else joined

    @property
    def signatures(self) -> tuple[str, ...]:
        """The identity as text, and that of each judge."""
        alone = (self._identity_of(judge).signature for judge in self.judges)
        return (self.identity.signature, *alone)

    async def close(self) -> None:
        """Close the judges."""
        for judge in self.judges:
            if close := getattr(judge, "close", None):
                await close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What kept verdicts of the first judge are worth, for the report."""
        return (self.escalation.note(self.judges[0].name),) if self.escalation else ()


def history_before(
    kept: Sequence[Declined], names: Sequence[str], now: Sequence[Declined], *, escalates: bool
) -> tuple[Declined, ...] | None:
    """Return why earlier judges returned no verdict when a later judge's is in the cache.

    Each run compares margins again, so that a verdict which was asked for because of a small
    margin counts only if the margin is too small in this run, too.

    Args:
        kept: The reasons in the cache, from when the verdict was made.
        names: The earlier judges of this run, in order; empty for the first judge.
        now: Why the first judge's verdict is not kept in this run; empty if unknown.
        escalates: Whether margins are compared in this run.

    Returns:
        The history, or None if the earlier judges must be asked first.
    """
    failed = tuple(d for d in kept if d.judge in names and d.reason not in _OF_OPTIONS)
    if now:
        return (*now, *(d for d in failed if d.judge != now[0].judge))
    if not names:
        return ()
    small = len(failed) < sum(declined.judge in names for declined in kept)
    unknown = escalates and not any(declined.judge == names[0] for declined in failed)
    return None if small or unknown else failed


class _Progress(Struct):
    """An item's verdicts so far."""

    item: JudgeRequestItem
    verdicts: list[ClaimVerdict | None]
    fallback_history: list[tuple[Declined, ...]]
    usage: dict[str, Usage] = {}
    shares: dict[str, tuple[float, ...]] = {}
    abstained: set[int] = set()

    def pending(self, judge: str) -> list[int]:
        """Return the claims without a verdict that a judge has not declined."""
        return [
            index
            for index, verdict in enumerate(self.verdicts)
            if verdict is None
            and index not in self.abstained
            and all(declined.judge != judge for declined in self.fallback_history[index])
        ]

    def rest(self, judge: str) -> JudgeRequestItem:
        """Return the item with the claims that a judge is to be asked about."""
        pending = self.pending(judge)
        return self.item.picked(pending, [self.fallback_history[index] for index in pending])

    def add_work(self, judge: str, usage: Usage, shares: tuple[float, ...]) -> None:
        """Add what a judge's replies took, and how likely the choices were for it."""
        self.usage[judge] = self.usage.get(judge, Usage()) + usage
        self.shares[judge] = self.shares.get(judge, ()) + shares


class Router(JudgesInOrder[Judge]):
    """Judges in order, the preferred one first.

    A claim goes to the next judge if one returns no verdict on it: because it cannot be reached,
    refuses, replies outside the choices, or has no budget left. With an escalation, it also goes
    there if the first judge's verdict has too small a margin. Every verdict names its judge, and
    every item keeps why the earlier judges returned none.

    Before any judge is called, the verdicts that the judges know are looked up in the same order.
    So a verdict of the fallback is found again instead of asking the first judge again: a second
    run costs nothing and writes the same bytes. With an escalation, a first judge that keeps no
    verdicts is asked before the others are looked up, since its margins decide who is asked.

    Args:
        judges: The judges; their names differ.
        escalation: The rule by which verdicts of the first judge are not kept, if any.
        measuring: Of which claims the share of the choices is measured, and which is enough.
    """

    def __init__(
        self,
        judges: Sequence[Judge],
        escalation: Escalation | None = None,
        measuring: ShareRule | None = None,
    ) -> None:
        super().__init__(judges, escalation, measuring)
        names = [judge.name for judge in judges]
        if not names or len(set(names)) < len(names):
            raise InvalidInputError(
                f"a router needs judges of different names; got {', '.join(names) or 'none'}"
            )

    async def judge(self, items: Sequence[JudgeRequestItem]) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order."""
        progress = [
            _Progress(item, [None] * len(item.claims), [()] * len(item.claims)) for item in items
        ]
        for judge in self.judges:
            if isinstance(judge, RecallingJudge):
                await self._recall(judge, progress)
            # Its margins decide which other judges are called, so it goes before their look-ups.
            elif self.escalation and judge is self.judges[0]:
                await self._ask(judge, progress)
        for judge in self.judges:
            await self._ask(judge, progress)
        return [self._judged(one) for one in progress]

    def requests_of(
        self,
        judge: Judge,  # noqa: ARG002 - the same for each
        items: Sequence[JudgeRequestItem],
    ) -> Sequence[JudgeRequestItem]:
        """Return what a judge may be asked: every claim may come to each."""
        return items

    async def _recall(self, judge: RecallingJudge, progress: Sequence[_Progress]) -> None:
        left = [one for one in progress if one.pending(judge.name)]
        known = await judge.recall([one.rest(judge.name) for one in left])
        for one, recalled in zip(left, known, strict=True):
            pending = one.pending(judge.name)
            found = zip(pending, recalled.verdicts, recalled.fallback_history, strict=True)
            taken = [
                self._take_known(judge, one, index, verdict, kept)
                for index, verdict, kept in found
                if verdict is not None
            ]
            if any(taken):
                one.add_work(judge.name, recalled.usage, recalled.shares)

    def _take_known(
        self,
        judge: Judge,
        one: _Progress,
        index: int,
        verdict: ClaimVerdict,
        kept: Sequence[Declined],
    ) -> bool:
        """Take a verdict of an earlier call; return whether it counts in this run."""
        history = history_before(
            kept,
            [other.name for other in self.judges[: self.judges.index(judge)]],
            one.fallback_history[index],
            escalates=self.escalation is not None,
        )
        if history is None:
            return False
        one.fallback_history[index] = history
        count_verdicts(judge.name, int(verdict.verdict is not Verdict.UNSCORED))
        self._take(judge, one, index, verdict)
        return True

    async def _ask(self, judge: Judge, progress: Sequence[_Progress]) -> None:
        left = [one for one in progress if one.pending(judge.name)]
        if not left:
            return
        has_fallback = judge is not self.judges[-1]
        answers = await judge.judge(
            [one.rest(judge.name) for one in left], has_fallback=has_fallback
        )
        for one, judged in zip(left, answers, strict=True):
            for index, verdict in zip(one.pending(judge.name), judged.verdicts, strict=True):
                self._take(judge, one, index, verdict)
            for part in judged.asked:
                one.add_work(judge.name, part.usage, part.shares)

    def _take(self, judge: Judge, one: _Progress, index: int, verdict: ClaimVerdict) -> None:
        """Keep a verdict, or leave its claim to the next judge."""
        if verdict.verdict is Verdict.UNSCORED:
            declined: Declined | None = Declined(judge.name, verdict.reason, verdict.detail)
        elif self.escalation and judge is self.judges[0]:
            # A threshold is learnt for one judge, and promises nothing for the margins of others.
            declined = self.escalation.declines(judge.name, verdict.margin)
            if declined:
                count_verdicts(judge.name, -1)
                if self.escalation.abstain:
                    one.abstained.add(index)
        else:
            declined = None
        if declined is None:
            one.verdicts[index] = structs.replace(verdict, judge=judge.name)
            return
        one.fallback_history[index] = (*one.fallback_history[index], declined)
        if judge is not self.judges[-1] and index not in one.abstained:
            tenancy().recorder.fell_back(judge.name, declined.reason)

    def _judged(self, one: _Progress) -> JudgedItem:
        verdicts = tuple(
            verdict or _unanswered(claim, history)
            for claim, verdict, history in zip(
                one.item.claims, one.verdicts, one.fallback_history, strict=True
            )
        )
        return JudgedItem(verdicts=verdicts, asked=tuple(self._asked(one)))

    def _asked(self, one: _Progress) -> Iterator[Asked]:
        for judge in self.judges:
            answered = sum(v is not None and v.judge == judge.name for v in one.verdicts)
            declined = tuple(
                d for history in one.fallback_history for d in history if d.judge == judge.name
            )
            if answered or declined:
                yield Asked(
                    judge=judge.name,
                    answered=answered,
                    declined=declined,
                    usage=one.usage.get(judge.name, Usage()),
                    # Replies come in any order, on which the bytes of results must not depend.
                    shares=tuple(sorted(one.shares.get(judge.name, ()))),
                )


def _unanswered(claim: object, history: Sequence[Declined]) -> ClaimVerdict:
    """Return a claim without a verdict of any judge: the last reason, and all details."""
    detail = "; ".join(f"{d.judge}: {d.reason}: {d.detail}" for d in history)
    return unscored_claim(claim, history[-1].reason, detail)  # type: ignore[arg-type]  # its parts


PANEL = "panel"
"""The panel's name, as the judge of its verdicts."""


class Panel(JudgesInOrder[Judge]):
    """Judges that all vote on a claim.

    A tie has no verdict. A member without a verdict of its own does not vote. The evidence keeps
    each member's votes, so that agreement and weights need no further call.

    Args:
        judges: The members in the rule's order; their names are the rule's.
        rule: How their votes are combined.
        measuring: Of which claims the share of the choices is measured, and which is enough.
    """

    def __init__(
        self, judges: Sequence[Judge], rule: PanelRule, measuring: ShareRule | None = None
    ) -> None:
        super().__init__(judges, None, measuring)
        self.rule = rule

    @property
    def name(self) -> str:
        """The members' names, such as ``llm+matcher``."""
        return "+".join(self.rule.members)

    @property
    def identity(self) -> JudgeIdentity:
        """The members' identities, joined."""
        joined = joined_identity([(judge.name, judge.identity) for judge in self.judges])
        models = "+".join(str(judge.identity) for judge in self.judges)
        return self.measuring.identity(replace(joined, kind=PANEL, model=models))

    async def judge(self, items: Sequence[JudgeRequestItem]) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order; all members work at once."""

        async def ask(judge: Judge) -> list[JudgedItem]:
            return await judge.judge(self.requests_of(judge, items))

        found = await run_bounded(self.judges, ask, len(self.judges))
        judged = {judge.name: each for judge, each in zip(self.judges, found, strict=True)}
        return [
            self._combined(item, {name: judged[name][place] for name in self.rule.members})
            for place, item in enumerate(items)
        ]

    def requests_of(
        self, judge: Judge, items: Sequence[JudgeRequestItem]
    ) -> Sequence[JudgeRequestItem]:
        """Return the items with the claims that a member is asked about."""
        if judge is self.judges[0] or self.rule.share >= 1:
            return items
        return [item.picked(self._drawn(item), ()) for item in items]

    def _drawn(self, item: JudgeRequestItem) -> list[int]:
        return [at for at, claim in enumerate(item.claims) if self.rule.draws(item, claim)]

    def _combined(self, item: JudgeRequestItem, judged: Mapping[str, JudgedItem]) -> JudgedItem:
        """Return the panel's verdicts on an item, and each member's part."""
        places = {
            judge.name: range(len(item.claims)) if judge is self.judges[0] else self._drawn(item)
            for judge in self.judges
        }
        given = {
            name: dict(zip(places[name], of.verdicts, strict=True)) for name, of in judged.items()
        }
        verdicts = tuple(
            self._verdict(claim, {name: of[at] for name, of in given.items() if at in of})
            for at, claim in enumerate(item.claims)
        )
        asked = tuple(
            self._part(name, given[name], verdicts, one.asked) for name, one in judged.items()
        )
        return JudgedItem(verdicts=verdicts, asked=asked)

    def _verdict(self, claim: ClaimParts, given: Mapping[str, ClaimVerdict]) -> ClaimVerdict:
        """Return the panel's verdict on a claim, from what the asked members returned."""
        votes = {n: one for n, one in given.items() if one.verdict is not Verdict.UNSCORED}
        if not votes:
            detail = "; ".join(f"{name}: {of.reason}: {of.detail}" for name, of in given.items())
            return unscored_claim(claim, next(iter(given.values())).reason, detail)
        odds = self.rule.odds(votes)
        if odds == 0:
            said = ", ".join(f"{name}: {vote.verdict.value}" for name, vote in votes.items())
            return unscored_claim(claim, UnscoredReason.PANEL_TIED, said, PANEL)
        verdict = Verdict.SUPPORTED if odds > 0 else Verdict.NOT_SUPPORTED
        # With weights and the prior, a verdict without any vote may win.
        agreeing = [vote for vote in votes.values() if vote.verdict is verdict] or [*votes.values()]
        return ClaimVerdict(
            triplet=claim,
            verdict=verdict,
            part=None if verdict is Verdict.SUPPORTED else _part_of(agreeing),
            score=round(self.rule.probability(votes), DIGITS),
            margin=round(abs(odds), DIGITS),
            judge=PANEL,
            references=agreeing[0].references,
        )

    def _part(
        self,
        name: str,
        given: Mapping[int, ClaimVerdict],
        verdicts: Sequence[ClaimVerdict],
        asked: Sequence[Asked],
    ) -> Asked:
        """Return a member's part in an item: its votes, and how often the panel differs."""
        votes = {at: one.verdict for at, one in given.items() if one.verdict is not _NONE}
        usage = Usage.total(part.usage for part in asked)
        shares = tuple(share for part in asked for share in part.shares)
        [own] = JudgedItem.by(name, [*given.values()], usage, shares).asked
        return replace(
            own,
            votes=tuple(votes.get(at) for at in range(len(verdicts))),
            dissents=sum(verdicts[at].verdict not in (vote, _NONE) for at, vote in votes.items()),
        )


_NONE = Verdict.UNSCORED


def _part_of(votes: Sequence[ClaimVerdict]) -> Part | None:
    """Return the wrong part that most votes name; the first of equals by :class:`Part`."""
    named = [vote.part for vote in votes if vote.part is not None]
    return max(Part, key=named.count) if named else None
