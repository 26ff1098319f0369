"""Judges that see, built from the language models of the settings; and verdicts of the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Verdict
from hallujudge.metrics.framework.pictures import NOT_VISIBLE, SEEN_CHOICES, Picture
from hallujudge.metrics.framework.results import UnscoredReason

from ..errors import InvalidInputError
from ..judges import JudgedItem, JudgeIdentity, JudgeRequestItem, unscored_claim
from ..judges.panel import Panel, PanelRule
from ..judges.router import Escalation, Router
from ..judges.seeing_judge import ALL_CLAIMS, SeeingJudge
from ..llm.budget import Usage
from .judge_options import LLM_NAMES, judges_of, member_of
from .responses import Problem

if TYPE_CHECKING:
    from .judge_factory import JudgeFactory

GIVEN = "given"
"""The judge whose verdicts came with the responses."""
SEEING = (GIVEN, "llm", "router")
"""The judges of the metric; the router calls the language models of ``judge_order``."""


def picture_problem(pictures: Sequence[Picture]) -> Problem | None:
    """Return why the first picture that can't be shown can't, or None."""
    found = ((picture.name, picture.problem) for picture in pictures)
    return next(
        (
            (UnscoredReason.REFERENCE_MISSING, f"picture {name!r:.80}: {problem}")
            for name, problem in found
            if problem
        ),
        None,
    )


def seeing_judge(
    factory: JudgeFactory, name: str, *, together: bool, escalation: Escalation | None
) -> Router:
    """Return a vision model by name: ``llm``, or the language models of ``judge_order``.

    Args:
        factory: Builds the language models.
        name: ``llm`` or ``router``.
        together: Whether one call holds all claims about a picture.
        escalation: The rule by which verdicts of the first judge are not kept, if any.

    Raises:
        InvalidInputError: No language model is configured, or one can't be shown pictures.
    """
    names = [part for part in judges_of(factory.settings, name) if part in LLM_NAMES]
    if not names:
        raise InvalidInputError(
            f"judge_order is {factory.settings.judge_order!r}, which has no language model that "
            "could see; name llm or fallback"
        )
    judges = [_seeing(factory, part, together=together) for part in names]
    if escalation is not None:
        escalation.check(judges[0].identity)
    return Router(judges, escalation)


def seeing_panel(factory: JudgeFactory, rule: PanelRule, *, together: bool) -> Panel:
    """Return the vision models of a panel.

    Args:
        factory: Builds the language models.
        rule: Its members, and how their votes are combined.
        together: Whether one call holds all claims about a picture.

    Raises:
        InvalidInputError: A member sees no pictures, or is not configured.
    """
    for member in rule.members:
        judge, wording = member_of(member)
        if judge not in LLM_NAMES or wording:
            raise InvalidInputError(
                f"the option panel names {member!r:.100}, which sees no pictures; choose from "
                f"{', '.join(LLM_NAMES)}"
            )
    return Panel([_seeing(factory, name, together=together) for name in rule.members], rule)


def _seeing(factory: JudgeFactory, name: str, *, together: bool) -> SeeingJudge:
    return SeeingJudge.of(factory.llm(name), claims_per_call=ALL_CLAIMS if together else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRequest(JudgeRequestItem):
    """A response's claims with what somebody said of each."""

    verdicts: tuple[str, ...]
    """One for each claim; empty without a verdict."""

    @classmethod
    def of(cls, request: JudgeRequestItem, verdicts: Sequence[str]) -> GivenRequest:
        """Return a request with the verdicts of its claims."""
        known = {field.name: getattr(request, field.name) for field in fields(request)}
        return cls(**known, verdicts=tuple(verdicts))


class GivenJudge:
    """Returns the verdicts that came with the responses, and calls nothing."""

    name = GIVEN
    identity = JudgeIdentity(kind=GIVEN, model=GIVEN)

    async def judge(
        self,
        items: Sequence[JudgeRequestItem],
        *,
        has_fallback: bool = False,  # noqa: ARG002 - it is the only judge
    ) -> list[JudgedItem]:
        """Return the verdict of every claim."""
        found = []
        for item in items:
            assert isinstance(item, GivenRequest), "made for this judge"
            pairs = zip(item.claims, item.verdicts, strict=True)
            found.append(JudgedItem.by(GIVEN, [_given(*pair) for pair in pairs], Usage()))
        return found


def given_judge() -> Router:
    """Return the judge whose verdicts came with the responses."""
    return Router([GivenJudge()])


def _given(claim: ClaimParts, said: str) -> ClaimVerdict:
    if not said:
        missing = "the claim came without a verdict; set the option judge to llm"
        return unscored_claim(claim, UnscoredReason.VERDICT_NULL, missing, GIVEN)
    if said == NOT_VISIBLE:
        detail = f"its verdict is {NOT_VISIBLE}"
        return unscored_claim(claim, UnscoredReason.CLAIM_NOT_VISIBLE, detail, GIVEN)
    if said not in SEEN_CHOICES:
        detail = f"the verdict is {said!r:.60}; write one of {', '.join(SEEN_CHOICES)}, or none"
        return unscored_claim(claim, UnscoredReason.CLAIMS_INVALID, detail, GIVEN)
    return ClaimVerdict(triplet=claim, verdict=Verdict(said), judge=GIVEN)
