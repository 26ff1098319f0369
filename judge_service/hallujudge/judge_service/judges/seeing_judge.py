"""A vision language model as judge: it is shown pictures in place of scene graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from msgspec.structs import replace

from hallujudge.metrics.framework.claims import (
    NOT_VISIBLE,
    SEEN_CHOICES,
    ClaimParts,
    ClaimVerdict,
    Sentence,
)
from hallujudge.metrics.framework.results import Picture, UnscoredReason

from ..errors import InvalidInputError
from ..llm.budget import Usage
from ..llm.prompt_templates import as_line, fenced, load_template
from . import JudgedItem, JudgeRequestItem, Recalled, unscored_claim
from .judge_calls import ReadReply
from .llm_judge import LlmJudge
from .questions import Question, in_chunks
from .replies import ReadAnswer

_T = TypeVar("_T")
ALL_CLAIMS = 100
"""Claims in one call where it holds all about a picture; of more, in as few calls as hold them."""


class SeeingJudge(LlmJudge):
    """Asks a vision model about claims, one or several per call, and shows it the pictures.

    A claim that it can't check in the picture is unscored; a fallback may be asked about it.
    """

    @classmethod
    def of(cls, judge: LlmJudge, *, claims_per_call: int = 1) -> SeeingJudge:
        """Return the same model behind the same client, which is shown pictures.

        Args:
            judge: The model.
            claims_per_call: Maximum claims in one call.

        Raises:
            InvalidInputError: Its server is asked for probabilities without text, which no
                protocol has for pictures.
        """
        if (api := judge.client.settings.api) != "chat":
            raise InvalidInputError(
                f"{judge.name}.api is {api!r}, which shows no pictures; set it to chat"
            )
        return judge.again(cls, claims_per_call=claims_per_call)

    @property
    def template_names(self) -> tuple[tuple[str, ...], str]:
        """The prompts of calls about one claim, and that of calls about several."""
        return ("judge_seen_claim",), "judge_seen_claims"

    @property
    def measures_shares(self) -> bool:
        """Never: it would take another call with the picture."""
        return False

    def joined(self, items: Iterable[JudgeRequestItem]) -> Iterable[JudgeRequestItem]:
        """Return the items, with those that follow each other about one picture as one."""
        return map(_as_one, self._groups(items))

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order; see :class:`LlmJudge`."""
        groups = self._groups(items)
        judged = await super().judge(list(map(_as_one, groups)), has_fallback=has_fallback)
        return [
            JudgedItem.by(self.name, verdicts, usage)
            for group, whole in zip(groups, judged, strict=True)
            for verdicts, usage in _shared_out(group, whole.verdicts, whole.asked[0].usage)
        ]

    async def recall(self, items: Sequence[JudgeRequestItem]) -> list[Recalled]:
        """Return what is known from earlier calls."""
        groups = self._groups(items)
        known = await super().recall(list(map(_as_one, groups)))
        return [
            Recalled(
                verdicts=tuple(verdict for verdict, _ in pairs),
                fallback_history=tuple(history for _, history in pairs),
                usage=usage,
            )
            for group, whole in zip(groups, known, strict=True)
            for pairs, usage in _shared_out(
                group,
                list(zip(whole.verdicts, whole.fallback_history, strict=True)),
                whole.usage,
            )
        ]

    def _groups(self, items: Iterable[JudgeRequestItem]) -> list[list[JudgeRequestItem]]:
        """Return the items that share a call: of one picture, where a call holds all claims."""
        if self.claims_per_call == 1:
            return [[item] for item in items]
        # Neighbours only, so that verdicts come back in the order of the items.
        return [list(group) for _, group in groupby(items, key=_shown_by)]

    def questions(self, item: JudgeRequestItem) -> list[Question]:
        """Return the calls that an item needs."""
        return seen_questions(item, claims_per_call=self.claims_per_call)

    def measured_alone(
        self,
        item: JudgeRequestItem,  # noqa: ARG002 - no claim is measured
        question: Question,  # noqa: ARG002
        reply: ReadReply | None = None,  # noqa: ARG002
    ) -> Iterator[Question]:
        """Yield nothing: no claim's share of the choices is measured."""
        return iter(())

    def verdict_of(self, claim: ClaimParts, answer: ReadAnswer) -> ClaimVerdict:
        """Return the verdict of a reply; the probability of support is among visible claims."""
        if answer.choice == NOT_VISIBLE:
            reason = UnscoredReason.CLAIM_NOT_VISIBLE.value
            return unscored_claim(claim, reason, f"the judge answers {NOT_VISIBLE}", self.name)
        return super().verdict_of(claim, _among_visible(answer))


def _shown_by(item: JudgeRequestItem) -> list[str]:
    return [picture.sha256 for picture in item.pictures]


def _as_one(group: Sequence[JudgeRequestItem]) -> JudgeRequestItem:
    """Return items about one picture as one, which the first one pays for."""
    if len(group) == 1:
        return group[0]
    # One entry for each claim, since items without a history share a call with others.
    histories = [each.fallback_history or ((),) * len(each.claims) for each in group]
    shown: tuple[tuple[Picture, ...], ...] = ()
    if any(each.shown for each in group):
        shown = tuple(each.shown_for(at) for each in group for at in range(len(each.claims)))
    return replace(
        group[0],
        claims=tuple(claim for each in group for claim in each.claims),
        shown=shown,
        fallback_history=tuple(history for each in histories for history in each),
    )


def _shared_out(
    group: Sequence[JudgeRequestItem], found: Sequence[_T], usage: Usage
) -> Iterator[tuple[Sequence[_T], Usage]]:
    """Yield what was found on the claims of each item, and what that took."""
    end = 0
    for place, item in enumerate(group):
        start, end = end, end + len(item.claims)
        # The first item pays, so that the sum over items is what was spent.
        yield found[start:end], usage.again() if place else usage


def _among_visible(answer: ReadAnswer) -> ReadAnswer:
    if not answer.probabilities:
        return answer
    supported, wrong, _ = answer.probabilities
    visible = supported + wrong
    # A judge that is sure that nothing can be seen says nothing about the claim.
    shares = (supported / visible, wrong / visible) if visible else None
    return answer._replace(probabilities=shares)


def seen_questions(item: JudgeRequestItem, *, claims_per_call: int) -> list[Question]:
    """Return the calls that an item's claims need from a judge that sees its pictures.

    The pictures come first and the claims last, so that all calls about a picture begin with the
    same tokens, and a server with a prefix cache encodes the picture once. Neither the question nor
    the response is in the prompt: they cannot sway the judge.

    Args:
        item: Claims and pictures.
        claims_per_call: Maximum claims in one call; with 1 the reply is a choice.
    """
    calls = [
        (pictures, call)
        for pictures, own in _by_pictures(item)
        for call in in_chunks(own, claims_per_call)
    ]
    asked = []
    for pictures, call in calls:
        keyed = len(call) > 1
        template = load_template("judge_seen_claims" if keyed else "judge_seen_claim")
        lines = [_seen_line(item.claims[at], n if keyed else 0) for n, at in enumerate(call, 1)]
        block = fenced("CLAIMS" if keyed else "CLAIM", lines)
        asked.append(
            Question(
                template=template,
                messages=template.messages({"claims": block}),
                claims=call,
                choices=SEEN_CHOICES,
                keyed=keyed,
                pictures=pictures,
                # What the calls begin with, which a server with a prefix cache keeps.
                affinity=" ".join(picture.sha256 for picture in item.pictures),
                payer=item.payer,
            )
        )
    return asked


def _by_pictures(item: JudgeRequestItem) -> list[tuple[tuple[Picture, ...], list[int]]]:
    """Return what is shown, and the claims that it is shown for, in the order of the claims."""
    found: dict[tuple[str, ...], tuple[tuple[Picture, ...], list[int]]] = {}
    for index in range(len(item.claims)):
        pictures = item.shown_for(index)
        key = tuple(picture.sha256 for picture in pictures)
        found.setdefault(key, (pictures, []))[1].append(index)
    return list(found.values())


def _seen_line(claim: ClaimParts, number: int) -> str:
    """Return a claim as a line: a sentence as one text, a triplet as three; first its number."""
    if number:
        return as_line([str(number), *claim])
    return as_line(claim.text if isinstance(claim, Sentence) else claim)
