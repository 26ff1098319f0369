"""The pipeline of families with claims: response -> claims -> verdicts -> statistics.

The judges of claims about pictures are here too: models that see, and verdicts of the files.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from msgspec import structs
from msgspec.structs import replace

from hallujudge.metrics import Item, ItemResult, Metric
from hallujudge.metrics.framework.claims import (
    NOT_VISIBLE,
    SEEN_CHOICES,
    ClaimParts,
    ClaimVerdict,
    Verdict,
)
from hallujudge.metrics.framework.results import Picture, UnscoredReason

from ..errors import InvalidInputError
from ..judges import JudgedItem, JudgeIdentity, JudgeRequestItem, unscored_claim
from ..judges.judge_rules import Escalation, PanelRule
from ..judges.llm_judge import LlmJudge, estimate_judge
from ..judges.seeing_judge import ALL_CLAIMS, SeeingJudge
from ..judges.several_judges import Panel, Router
from ..llm.budget import Usage
from ..llm.estimate import Estimate, TokenCounter
from .extraction import TENTATIVE, ClaimExtractor, ExtractedClaims
from .judge_factory import JudgeFactory
from .judge_options import LLM_NAMES, member_of
from .judge_quality import card_of
from .pipelines import checked_items, unscored_result
from .registry import MetricEntry
from .responses import Problem, ResponseCheck
from .spec import ScoreSpec

ItemT = TypeVar("ItemT", bound=Item)
MetricT = TypeVar("MetricT", bound=Metric)
_WORD = re.compile(r"\S+")
# Known by their hashes, which are in the signature.
_FILES = ("cascade", "card", "panel_weights", "prompt")
GIVEN = "given"
"""The judge whose verdicts came with the responses."""
SEEING = (GIVEN, "llm", "router")
"""The judges of the metric; the router calls the language models of ``judge_order``."""


class ClaimsPipeline(ABC, Generic[ItemT, MetricT]):
    """Extracts claims from responses without claims, has all claims judged, and counts verdicts.

    A family's subclass says what its items are compared with and what is made of the verdicts.

    Args:
        metric: What is counted, and how.
        judge: Returns the verdicts.
        extractor: Finds claims in responses.
        options: The spec's options, for the report.
        responses: Recognises missing responses.
        notes: Sentences for the report.
    """

    item_type: ClassVar[type[Item]]

    def __init__(
        self,
        metric: MetricT,
        judge: Router | Panel,
        extractor: ClaimExtractor,
        options: Mapping[str, str],
        responses: ResponseCheck,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.metric = metric
        self.notes = notes
        self.responses = responses
        self.judge = judge
        self.extractor = extractor
        self._options = dict(options)

    @classmethod
    def of(
        cls,
        spec: ScoreSpec,
        entry: MetricEntry,
        judge: Router | Panel,
        extractor: ClaimExtractor,
        responses: ResponseCheck,
        notes: tuple[str, ...],
    ) -> Self:
        """Return the pipeline of a spec, with the metric that its judge and extractor name.

        Args:
            spec: The spec.
            entry: The metric's entry.
            judge: Returns the verdicts.
            extractor: Finds claims in responses.
            responses: Recognises missing responses.
            notes: What the family notes on the judge; the card's note and the judge's own follow.
        """
        card = card_of(spec, judge.signatures)
        metric = entry.metric_for(
            spec,
            responses,
            judge=judge.identity.signature + (card.mark if card else ""),
            panel=judge.rule.text if isinstance(judge, Panel) else "",
            extractor=extractor.label,
            tentative=spec.options.get("tentative_claims", TENTATIVE[0]),
        )
        known = (card.note,) if card else ()
        notes = (*notes, *known, *judge.notes)
        return cls(metric, judge, extractor, spec.options, responses, notes)

    @property
    def settings(self) -> Mapping[str, str]:
        """The extractor, the judges with their prompts, and every parameter."""
        return {
            "extractor": self.extractor.label,
            "judge": self.judge.name,
            **self.judge.identity.settings(),
            **{n: value for n, value in self._options.items() if n not in _FILES},
            **self.responses.settings(),
        }

    @abstractmethod
    def given(self, item: ItemT) -> tuple[ClaimParts, ...] | None:
        """Return the claims that came with a response; None if they are to be extracted."""

    @abstractmethod
    def reference_problem(self, item: ItemT) -> Problem | None:
        """Return why there is nothing to compare claims with, or None."""

    @abstractmethod
    def request(self, item: ItemT, claims: ExtractedClaims) -> JudgeRequestItem:
        """Return what a judge is asked about a response's claims."""

    @abstractmethod
    def result(self, item: ItemT, claims: ExtractedClaims, judged: JudgedItem) -> ItemResult:
        """Return the result of a response whose claims were judged."""

    def unanswered(self, item: ItemT, places: Collection[int]) -> ItemT:  # noqa: ARG002 - it has one response
        """Return an item without the claims that came with a response that was cut off."""
        made: dict[str, Any] = {"claims": None}
        return structs.replace(item, **made)

    def unscored(self, item: ItemT, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of an item without verdicts."""
        return unscored_result(item, reason, detail)

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item; all claims of a batch go to the judge together."""
        answers = self._checked(items)
        results: dict[int, ItemResult] = {}
        for index, item in enumerate(answers):
            if problem := self._problem(item):
                results[index] = self.unscored(item, *problem)
        # Items with a problem cost nothing: their claims are neither extracted nor judged.
        extracted = await self._claims(
            {i: item for i, item in enumerate(answers) if i not in results}
        )
        for index, claims in extracted.items():
            if problem := self._claims_problem(answers[index], claims):
                results[index] = self.unscored(answers[index], *problem)
        asked = {i: claims for i, claims in extracted.items() if i not in results}
        judged = await self.judge.judge(
            [self.request(answers[i], claims) for i, claims in asked.items()]
        )
        for (index, claims), verdicts in zip(asked.items(), judged, strict=True):
            results[index] = self.result(answers[index], claims, verdicts)
        return [results[index] for index in range(len(answers))]

    async def estimate(
        self, items: Sequence[Item], counter: TokenCounter | None = None
    ) -> list[Estimate]:
        """Return the calls that each language model would get, without calling it.

        Claims are extracted first where that costs nothing. The claims of other responses are not
        known, and are not in the judges' figures.

        Args:
            items: The run's items.
            counter: Counts prompts; by default each model's own, see :func:`counter_of`.
        """
        answers = {
            index: item
            for index, item in enumerate(self._checked(items))
            if self._problem(item) is None
        }
        texts = {i: _text_of(item) or "" for i, item in answers.items() if self.given(item) is None}
        planned = {i: await self.extractor.planned(text) for i, text in texts.items()}
        plans = {i: plan for i, plan in planned.items() if plan is not None}
        unknown = {index for index, plan in plans.items() if not plan.cached}
        extracted = await self._claims({i: a for i, a in answers.items() if i not in unknown})
        asked = [self.request(answers[i], e) for i, e in extracted.items() if e.claims]
        judges = [judge for judge in self.judge.judges if isinstance(judge, LlmJudge)]
        return [
            *await self.extractor.estimates(plans.values(), counter),
            *[
                replace(
                    await estimate_judge(judge, self.judge.requests_of(judge, asked), counter),
                    unknown_texts=len(unknown),
                )
                for judge in judges
            ],
        ]

    def _checked(self, items: Sequence[Item]) -> list[ItemT]:
        return checked_items(items, self.item_type)  # type: ignore[arg-type]  # a family's own type

    async def _claims(self, items: Mapping[int, ItemT]) -> dict[int, ExtractedClaims]:
        """Return given claims as they are; extract the others together."""
        known = {i: given for i, item in items.items() if (given := self.given(item)) is not None}
        asked = {i: item for i, item in items.items() if i not in known}
        found = await self.extractor.extract(
            [_text_of(item) or "" for item in asked.values()],
            [getattr(item, "question", "") for item in asked.values()],
        )
        taken = dict(zip(asked, found, strict=True))
        return {
            index: taken[index]
            if index in taken
            else ExtractedClaims(claims=known[index], spans=(None,) * len(known[index]))
            for index in items
        }

    def _problem(self, item: ItemT) -> Problem | None:
        """Return why an item can't be scored, before any judge is called."""
        given = self.given(item)
        if given is None and self.extractor.reads_texts:
            return self.responses.problem(_text_of(item)) or self.reference_problem(item)
        if problem := self.responses.failure(_text_of(item)):
            return problem
        if any(not part.strip() for claim in given or () for part in claim):
            return (
                UnscoredReason.CLAIMS_INVALID,
                "a claim that came with the answer has an empty part",
            )
        return self.reference_problem(item)

    def _claims_problem(self, item: ItemT, claims: ExtractedClaims) -> Problem | None:
        extractor = self.extractor.label
        if claims.reason:
            return UnscoredReason(claims.reason), f"{extractor}: {claims.detail}"
        if claims.claims:
            return None
        if claims.omitted:
            left = f"all {claims.omitted} claims of the response are hedged or conditional"
            return UnscoredReason.NO_CLAIMS, f"{left}, and the option tentative_claims is omit"
        if self.given(item) is not None:
            return UnscoredReason.NO_CLAIMS, "the list of claims that came with the answer is empty"
        return (
            UnscoredReason.NO_CLAIMS,
            f"{extractor} finds nothing in the response that could be judged",
        )


def _text_of(item: Item) -> str | None:
    text: str | None = getattr(item, "response", None)
    return text


def placed_verdicts(
    item: Item, claims: ExtractedClaims, verdicts: Sequence[ClaimVerdict]
) -> Iterator[ClaimVerdict]:
    """Yield the verdicts with their places in the response and how it puts the claims."""
    starts = [word.start() for word in _WORD.finditer(_text_of(item) or "")]
    for verdict, (_, span, modality) in zip(verdicts, claims.placed(), strict=True):
        yield structs.replace(
            verdict,
            span=span,
            modality=modality,
            within_words=bisect_left(starts, span[1]) if span else None,
        )


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
    models = factory.llms(name, " that could see")
    return Router([_seeing(each, together=together) for each in models], escalation)


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
    return Panel([_seeing(factory.llm(name), together=together) for name in rule.members], rule)


def _seeing(judge: LlmJudge, *, together: bool) -> SeeingJudge:
    return SeeingJudge.of(judge, claims_per_call=ALL_CLAIMS if together else 1)


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
            pairs = zip(item.claims, item.given, strict=True)
            found.append(JudgedItem.by(GIVEN, [_given(*pair) for pair in pairs], Usage()))
        return found


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
