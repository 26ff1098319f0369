"""Seen claims: the share of a response's claims that a judge does not see in the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from ..framework.claims import (
    ClaimParts,
    ClaimVerdict,
    InvalidEntry,
    Verdict,
    invalid_note,
    invalid_to_json,
    support_probability,
)
from ..framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, share
from ..framework.metric import (
    OptionDefinition,
    Paper,
    SoftMetric,
    VariantDefinition,
    soft_option,
)
from ..framework.papers import paper
from ..framework.pictures import Picture, ShownPicture
from ..framework.results import Item, ItemRecords, JsonValue, ScoredItem, UnscoredReason
from .claim_kinds import KINDS

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray

FRAMES = "uniform:16"
"""The frames of a video that a judge is shown by default, as models are asked about it."""


class SeenClaim(Struct, frozen=True, kw_only=True, gc=False):
    """A claim that came with a response."""

    claim: ClaimParts
    """The claim."""
    verdict: str = ""
    """What somebody said of it: one of
    :data:`~hallujudge.metrics.framework.pictures.SEEN_CHOICES`, or empty."""


class SeenClaimsItem(Item, frozen=True, kw_only=True):
    """A response about a picture or a video, and what a judge is shown of it."""

    question: str = ""
    """What the model was asked; no judge sees it."""
    response: str | None = None
    """What the model wrote; None if only its claims are known."""
    claims: tuple[SeenClaim, ...] | None = None
    """Claims of the response; None if they are to be extracted."""
    pictures: tuple[Picture, ...] = ()
    """The picture, or the frames of the video in order; empty if they are not known."""
    problem: str = ""
    """Why there are no pictures, in words; empty if there are, or none were looked for."""

    def records(self) -> ItemRecords:
        """Return the question; the hashes of the pictures, in their order."""
        shown = [picture.sha256 for picture in self.pictures]
        return ItemRecords(self.question, (shown,))


class SeenClaimsEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a response's scores."""

    claims: tuple[ClaimVerdict, ...]
    """Every claim with its verdict and kind, in the order of the response."""
    pictures: tuple[ShownPicture, ...] = ()
    """What the judge was shown."""
    extractor: str = ""
    """The extractor that found the claims; empty if they were given."""
    judging: tuple[dict[str, JsonValue], ...] = ()
    """The judges that were called, in order: verdicts, fallbacks, tokens, latency and cost."""
    invalid: tuple[InvalidEntry, ...] = ()
    """Triplets of a language model's reply that were rejected."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the claims, and the pictures, extractor and judges that are known."""
        line: dict[str, JsonValue] = {"claims": [claim.to_json() for claim in self.claims]}
        if self.pictures:
            line["pictures"] = [{"name": p.name, "sha256": p.sha256} for p in self.pictures]
        if self.extractor:
            line["extractor"] = self.extractor
        if self.judging:
            line["judging"] = list(self.judging)
        return line | invalid_to_json(self.invalid)


def _kind_columns(kind: str) -> tuple[Column, ...]:
    return (
        Column(name=f"{kind}_claims", meaning=f"claims of the kind {kind} with a verdict"),
        Column(name=f"hallucinated_{kind}s", meaning="those that the picture does not support"),
        Column(name=f"unscored_{kind}s", meaning=f"claims of the kind {kind} without a verdict"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenClaimsMetric(SoftMetric):
    """Seen claims: scores without references, by a judge that sees the picture.

    A response is divided into claims, and a vision language model says of each one whether the
    picture supports it. This metric is Hallujudge's own. It follows the idea of FaithScore (Jing et
    al., Findings of EMNLP 2024, arXiv:2311.01477), which verifies atomic facts of an answer against
    the image, and takes its claims as Tri-HE does (Wu et al., arXiv:2410.23114).

    * ``claim_hallucination`` = claims that are not supported / claims with a verdict, over all
      responses
    * ``response_hallucination`` = mean over responses of each response's own share
    * ``clean_responses`` = responses without a claim that is not supported / responses
    * ``object_…``, ``attribute_…``, ``count_…`` and ``relation_hallucination`` = the first score
      over the claims of one kind (:func:`~.claim_kinds.kind_of`); sentences have none

    A claim that can't be checked in the picture, such as a smell or a name, is
    ``CLAIM_NOT_VISIBLE``: it is unscored, never wrong, and the bounds show what it could change.
    Responses about one picture share their ``group_id``, which is the cluster of intervals.

    Differences from FaithScore: it has a language model write the facts and a visual entailment
    model or LLaVA verify them, and reports the share of facts that are right; here each claim has
    three possible verdicts, kinds come from the claim's words, and human labels correct the scores.

    With ``soft``, a claim adds 1 - P(supported) in place of 0 or 1, where P(supported) is among
    supported and not supported, if the judge's server reports probabilities.

    Attributes:
        judge: Name of the judge, for the signature.
        extractor: Name of the extractor, for the signature; ``given`` if claims were given.
        tentative: ``keep`` or ``omit`` hedged and conditional claims, for the signature.
        frames: Which frames of videos are shown; pictures are shown as they are.
        panel: Who votes, and how votes are combined, for the signature; empty without a panel.
        soft: ``yes`` counts probabilities instead of verdicts.
    """

    name: ClassVar[Literal["seen-claims"]] = "seen-claims"
    judge_option: ClassVar[str] = "judge"
    panel_asks: ClassVar[bool] = True
    summary: ClassVar[str] = "Claims that a judge does not see in the picture; no references."
    papers: ClassVar[tuple[Paper, ...]] = (
        paper("seen-claims-faithscore"),
        paper("seen-claims"),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="seen",
            meaning="Leaves claims without a verdict, or not visible, out of the shares.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        soft_option(
            "1 - P(supported)",
            "Needs a vision model whose server reports log-probabilities. Claims without a "
            "probability count by their verdict.",
        ),
        OptionDefinition(
            name="frames",
            default=FRAMES,
            meaning="Frames of videos that the judge is shown.",
            details="uniform:N, ends:N, every:N, fps:R or all, as hallujudge ask takes them.",
            purpose="judge",
        ),
    )
    soft_scores: ClassVar[str] = (
        "in claim_hallucination and response_hallucination a claim counts 1 - P(supported) "
        "instead of 0 or 1"
    )
    soft_noun: ClassVar[str] = "claims"
    unit: ClassVar[Literal["responses"]] = "responses"
    # The responses' own shares are fractions.
    folds: ClassVar[bool] = False
    unresolved: ClassVar[str] = "unscored_claims"
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="claims", meaning="claims with a verdict"),
        Column(
            name="hallucinated",
            meaning="claims that the picture does not support",
            integral=False,
        ),
        Column(name="unscored_claims", meaning="claims without a verdict, or not visible"),
        Column(name="not_visible", meaning="claims that can't be checked in the picture"),
        Column(name="without_probability", meaning="soft: claims that count by their verdict"),
        Column(name="clean", meaning="responses without a claim that is not supported"),
        Column(name="rate", meaning="claims that are not supported / claims", integral=False),
        Column(name="rejected_claims", meaning="invalid extracted claims that were left out"),
        *(column for kind in KINDS for column in _kind_columns(kind)),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        share(
            "claim_hallucination",
            "claims that the picture does not support / claims",
            "hallucinated",
            "claims",
            direction="lower",
        ),
        share(
            "response_hallucination",
            "claims that are not supported / claims, mean over responses",
            "rate",
            "responses",
            direction="lower",
            count="",
        ),
        share(
            "clean_responses",
            "responses without a claim that is not supported / responses",
            "clean",
            "responses",
            count="",
        ),
        *(
            share(
                f"{kind}_hallucination",
                f"claims of the kind {kind} that are not supported / such claims",
                f"hallucinated_{kind}s",
                f"{kind}_claims",
                direction="lower",
            )
            for kind in KINDS
        ),
    )
    ranked_by: ClassVar[tuple[str, ...]] = ("claim_hallucination",)
    ranking_source: ClassVar[str] = (
        "FaithScore reports the share of an answer's facts that the image supports."
    )
    headline: ClassVar[tuple[str, ...]] = (
        "claim_hallucination",
        "response_hallucination",
        "clean_responses",
    )
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(column="hallucinated", of="claim", scores=("claim_hallucination",)),
        JudgedColumn(
            column="rate", of="claim", scores=("response_hallucination",), divided_by="claims"
        ),
        JudgedColumn(column="clean", of="item", scores=("clean_responses",), supported=True),
    )

    judge: str
    extractor: str = "given"
    tentative: str = "keep"
    frames: str = ""
    panel: str = ""

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the extractor, the judge, and which claims and probabilities count."""
        omitted = () if self.tentative == "keep" else (("tentative", self.tentative),)
        panel = (("panel", self.panel),) if self.panel else ()
        shown = () if self.frames == FRAMES else (("shown", f"frames={self.frames}"),)
        judge = ("judge", self.judge)
        return (("extract", self.extractor), *omitted, *self.soft_fields(), *shown, judge, *panel)

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return the number of claims with a verdict."""
        return int(totals["claims"])

    def unscored_reason(
        self, verdicts: Sequence[ClaimVerdict]
    ) -> tuple[UnscoredReason, str] | None:
        """Return why a response with these verdicts has no score, as reason and detail, or None.

        Args:
            verdicts: The verdicts of the response's claims.
        """
        if not verdicts:
            return UnscoredReason.NO_CLAIMS, "the response makes no claim that could be judged"
        missing = [claim for claim in verdicts if claim.verdict is Verdict.UNSCORED]
        if len(missing) < len(verdicts):
            return None
        first = missing[0]
        detail = f"none of {len(missing)} claims has a verdict: {first.reason or 'no reason given'}"
        return UnscoredReason.NO_VERDICTS, f"{detail} ({first.detail})" if first.detail else detail

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many claims could not be seen or were invalid or have no probability."""
        unseen = int(totals["not_visible"])
        noun = "claim" if unseen == 1 else "claims"
        seen = (
            f"{unseen:,} {noun} can't be checked in the picture (CLAIM_NOT_VISIBLE): unscored, "
            "and in the bounds."
        )
        return (
            *((seen,) if unseen else ()),
            *invalid_note("claims", totals["rejected_claims"]),
            *SoftMetric.notes_on(self, totals),
        )

    def score_response(
        self, verdicts: Sequence[ClaimVerdict], *, rejected: int = 0
    ) -> ScoredItem[None]:
        """Return the statistics of one response that has a score.

        Args:
            verdicts: The verdicts of its claims, with their kinds.
            rejected: How many extracted claims were invalid, and are in no score.

        Raises:
            ValueError: The response has no score; see :meth:`unscored_reason`.
        """
        if (problem := self.unscored_reason(verdicts)) is not None:
            raise ValueError(f"the response has no score: {problem[1]}")
        known = [claim for claim in verdicts if claim.verdict is not Verdict.UNSCORED]
        wrong = sum(map(is_hallucinated, known))
        counted = math.fsum(map(self.soft_weight, known)) if self.is_soft else wrong
        without = sum(support_probability(claim) is None for claim in known) if self.is_soft else 0
        rate, clean = counted / len(known), int(not wrong)
        unseen = sum(c.reason == UnscoredReason.CLAIM_NOT_VISIBLE for c in verdicts)
        missing = len(verdicts) - len(known)
        of_kinds = (number for kind in KINDS for number in _counts_of(kind, verdicts))
        return ScoredItem(
            statistics=(
                *(len(known), counted, missing, unseen, without, clean, rate, rejected),
                *of_kinds,
            ),
            scores={"claim_hallucination": rate, "clean_responses": float(clean)},
            evidence=None,
        )

    def soft_weight(self, claim: ClaimVerdict) -> float:
        """Return what a claim with a verdict adds: 1 - P(supported), or 0 or 1 by its verdict."""
        probability = support_probability(claim)
        return float(is_hallucinated(claim)) if probability is None else 1.0 - probability

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every claim without a verdict supported, or not supported."""
        import numpy as np

        claims = items["claims"] + items["unscored_claims"]
        wrong = items["hallucinated"] + (0.0 if best else items["unscored_claims"])
        clean = items["clean"] if best else items["clean"] * (items["unscored_claims"] == 0)
        of_kinds: dict[str, FloatArray] = {}
        for kind in KINDS:
            missing = items[f"unscored_{kind}s"]
            of_kinds[f"{kind}_claims"] = items[f"{kind}_claims"] + missing
            of_kinds[f"hallucinated_{kind}s"] = items[f"hallucinated_{kind}s"] + (
                0.0 if best else missing
            )
        # Counts of a response without a claim, as a caller's table may have it, are all 0.
        rate = wrong / np.maximum(claims, 1)
        own = {"claims": claims, "hallucinated": wrong, "rate": rate, "clean": clean}
        return {**items, **own, **of_kinds}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return a response with as many claims as the largest: all supported, or none."""
        claims = float(observed["claims"].max(initial=1.0))
        columns = {
            "claims": claims,
            "hallucinated": 0.0 if best else claims,
            "clean": float(best),
            "rate": float(not best),
        }
        for kind in KINDS:
            most = float(observed[f"{kind}_claims"].max(initial=1.0))
            columns |= {f"{kind}_claims": most, f"hallucinated_{kind}s": 0.0 if best else most}
        return columns


def is_hallucinated(claim: ClaimVerdict) -> bool:
    """Return whether a claim counts as hallucinated."""
    return claim.verdict is Verdict.NOT_SUPPORTED


def _counts_of(kind: str, verdicts: Sequence[ClaimVerdict]) -> tuple[int, int, int]:
    """Return how many claims of a kind have a verdict, are not supported, and have none."""
    own = [claim for claim in verdicts if claim.kind == kind]
    missing = sum(claim.verdict is Verdict.UNSCORED for claim in own)
    return len(own) - missing, sum(map(is_hallucinated, own)), missing
