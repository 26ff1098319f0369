"""A panel: several judges vote on each claim, by majority or by learnt weights.

Majorities of different judges follow PoLL (Verga et al., arXiv:2404.18796). Learnt weights are the
logarithms of likelihood ratios of a judge's votes, as in Dawid and Skene (Applied Statistics 28,
1979), so that their sum is the log odds that a claim is supported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.results import UnscoredReason

from ..errors import InvalidInputError
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
    logistic,
    unscored_claim,
)
from .choice_shares import ShareRule
from .option_files import finite, option_file, share_of_option, text_sha256
from .router import JudgesInOrder

PANEL = "panel"
"""The panel's name, as the judge of its verdicts."""
_SHOWN_HASH = 12


class VoteWeights(NamedTuple):
    """What a judge's votes add to the log odds that a claim is supported."""

    supported: float
    """What a vote for support adds."""
    not_supported: float
    """What a vote against it adds; below 0 unless the judge is wrong more often than right."""


_MAJORITY = VoteWeights(1.0, -1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRule:
    """Who votes, on which claims, and how votes are combined."""

    members: tuple[str, ...]
    """Names of the judges; the first one judges every claim."""
    share: float = 1.0
    """Share of claims on which the others vote, too."""
    weights: Mapping[str, VoteWeights] = field(default_factory=dict)
    """The weights of each member; empty for a majority."""
    prior: float = 0.0
    """Log odds that a claim is supported before any vote."""
    sha256: str = ""
    """The hash of the weights' file."""

    @classmethod
    def of(cls, *, members: str, share: str, weights: str) -> PanelRule | None:
        """Return the rule of a run's options, or None without a panel.

        Args:
            members: Names with commas between, or empty.
            share: A number above 0 and up to 1, or empty for 1.
            weights: The text of ``panel.json``, or empty.

        Raises:
            InvalidInputError: An option can't be used.
        """
        names = tuple(filter(None, map(str.strip, members.split(","))))
        if not names:
            given = [name for name, of in (("share", share), ("weights", weights)) if of]
            if given:
                raise InvalidInputError(
                    f"the option panel_{given[0]} is about a panel; set the option panel to the "
                    "names of its judges"
                )
            return None
        if len(names) < 2 or len({*names}) < len(names):
            raise InvalidInputError(
                f"the option panel is {members!r:.200}; name two or more different judges, such as "
                "llm,matcher"
            )
        made = cls(
            members=names, share=share_of_option("panel_share", share, default="1", above_zero=True)
        )
        return _learnt(made, weights) if weights else made

    @property
    def text(self) -> str:
        """The rule, for the signature."""
        how = f"weights@{self.sha256[:_SHOWN_HASH]}" if self.weights else "majority"
        part = f"/{self.share:g}" if self.share < 1 else ""
        return f"{how}({'+'.join(self.members)}){part}"

    def draws(self, item: JudgeRequestItem, claim: ClaimParts) -> bool:
        """Return whether all members vote on a claim; the same in every run and order."""
        if self.share >= 1:
            return True
        text = json.dumps([item.id, *claim]).encode()
        return int.from_bytes(sha256(text).digest()[:8]) < self.share * 2**64

    def odds(self, votes: Mapping[str, ClaimVerdict]) -> float:
        """Return the log odds of support; of a majority, votes for it minus votes against it."""
        sums = self.prior
        for name, vote in votes.items():
            weights = self.weights.get(name, _MAJORITY)
            supports = vote.verdict is Verdict.SUPPORTED
            sums += weights.supported if supports else weights.not_supported
        return sums

    def probability(self, votes: Mapping[str, ClaimVerdict]) -> float:
        """Return the probability of support; of a majority, the share of votes for it."""
        if self.weights:
            return logistic(self.odds(votes))
        return sum(vote.verdict is Verdict.SUPPORTED for vote in votes.values()) / len(votes)


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


def _learnt(rule: PanelRule, text: str) -> PanelRule:
    """Return a rule with the weights of a file that ``hallujudge judge panel`` wrote."""
    advice = "give the JSON file that hallujudge judge panel writes"
    with option_file(
        "panel_weights", text, "judge-panel", what="a panel's weights", advice=advice
    ) as content:
        weights = dict(_weights(content["weights"]))
        prior = finite(content["prior"])
    if unknown := [name for name in rule.members if name not in weights]:
        raise InvalidInputError(
            f"panel_weights has no weights of {', '.join(unknown)}, only of {', '.join(weights)}; "
            "learn them from a run of this panel"
        )
    return replace(rule, weights=weights, prior=prior, sha256=text_sha256(text))


def _weights(content: Mapping[str, Any]) -> Iterator[tuple[str, VoteWeights]]:
    for name, of in content.items():
        yield str(name), VoteWeights(finite(of["supported"]), finite(of["not_supported"]))
