"""A panel: several judges vote on each claim, by majority or by learnt weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.results import UnscoredReason

from ..llm.ask_once import run_bounded
from ..llm.budget import Usage
from . import (
    DIGITS,
    Asked,
    Declined,
    Judge,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    joined_identity,
    unscored_claim,
)
from .judge_rules import PanelRule, ShareRule
from .router import JudgesInOrder

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

    def _identity_of(self, judge: Judge) -> JudgeIdentity:
        return judge.identity

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
        judged: dict[str, list[JudgedItem]] = {}

        async def ask(judge: Judge) -> None:
            judged[judge.name] = await judge.judge(self.requests_of(judge, items))

        await run_bounded(self.judges, ask, len(self.judges))
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
        return Asked(
            judge=name,
            answered=len(votes),
            declined=tuple(
                Declined(name, one.reason, one.detail)
                for one in given.values()
                if one.verdict is _NONE
            ),
            usage=Usage.total(part.usage for part in asked),
            shares=tuple(share for part in asked for share in part.shares),
            votes=tuple(votes.get(at) for at in range(len(verdicts))),
            dissents=sum(verdicts[at].verdict not in (vote, _NONE) for at, vote in votes.items()),
        )


_NONE = Verdict.UNSCORED


def _part_of(votes: Sequence[ClaimVerdict]) -> Part | None:
    """Return the wrong part that most votes name; the first of equals by :class:`Part`."""
    named = [vote.part for vote in votes if vote.part is not None]
    return max(Part, key=named.count) if named else None
