"""Seen claims: the share of a response's claims that a judge does not see in the picture.

An item has the pictures that a judge is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from msgspec import Struct, to_builtins

from ..framework.arrays import FloatArray, np
from ..framework.claims import (
    ClaimParts,
    ClaimsMetric,
    ClaimVerdict,
    InvalidEntry,
    Verdict,
    invalid_note,
    invalid_to_json,
    is_hallucinated,
)
from ..framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, share
from ..framework.metric import (
    JudgeOption,
    OptionDefinition,
    Paper,
    SoftMetric,
    VariantDefinition,
    soft_option,
)
from ..framework.papers import paper
from ..framework.results import (
    Item,
    ItemRecords,
    JsonValue,
    Picture,
    ScoredItem,
    ShownPicture,
    UnscoredReason,
)
from .claim_words import KINDS

MOMENT, OBJECT = "moment", "object"
"""What a further look is at: a moment of a video, or an object of a picture."""


class CloserLook(Struct, frozen=True, kw_only=True):
    """Pictures that only claims about one moment or object are judged by."""

    kind: str
    """``moment``: frames in place of the usual ones; ``object``: crops beside the picture."""
    of: str
    """The moment as evidence names it, or the object's name."""
    pictures: tuple[Picture, ...]
    """The frames in their order, or the crops, the largest first."""

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hash of each picture."""
        return tuple(picture.sha256 for picture in self.pictures)


class ShownLook(Struct, frozen=True, kw_only=True, gc=False):
    """What evidence keeps of a further look."""

    kind: str
    """``moment`` or ``object``."""
    of: str
    """The moment, or the object."""
    sha256: tuple[str, ...]
    """The hash of each picture."""


class SeenClaim(Struct, frozen=True, kw_only=True, gc=False):
    """A claim that came with a response."""

    claim: ClaimParts
    verdict: str = ""
    """What somebody said of it: one of
    :data:`~hallujudge.metrics.framework.claims.SEEN_CHOICES`, or empty."""


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
    seconds: float | None = None
    """Length of the video, 0 if it is not known; None for pictures."""
    looks: tuple[CloserLook, ...] = ()
    """What else is shown for claims about some moments or objects."""

    def records(self) -> ItemRecords:
        """Return the question; the pictures, the video's length, and crops of objects.

        Frames of moments depend on the response, so that they are not part of the reference.
        """
        shown = [picture.sha256 for picture in self.pictures]
        crops = [[look.of, *look.hashes] for look in self.looks if look.kind == OBJECT]
        length = None if self.seconds is None else f"{self.seconds:.3f}"
        return ItemRecords(self.question, (shown, length, crops))


class SeenClaimsEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a response's scores."""

    claims: tuple[ClaimVerdict, ...]
    """Every claim with its verdict and kind, in the order of the response."""
    pictures: tuple[ShownPicture, ...] = ()
    """What the judge was shown."""
    looks: tuple[ShownLook, ...] = ()
    """What it was shown further of moments and objects."""
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
            line["pictures"] = to_builtins(self.pictures)
        if self.looks:
            line["looks"] = to_builtins(self.looks)
        if self.extractor:
            line["extractor"] = self.extractor
        if self.judging:
            line["judging"] = list(self.judging)
        return line | invalid_to_json(self.invalid)


FRAMES = "uniform:16"
"""The frames of a video that a judge is shown by default, as models are asked about it."""


class _Group(NamedTuple):
    """Claims that are counted apart."""

    name: str
    """The prefix of their score."""
    meaning: str
    """What they are, in words."""
    plural: str
    """What the columns of those without a verdict, and of wrong ones, call them."""

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns: those with a verdict, those that are not supported, and the others."""
        return f"{self.name}_claims", f"hallucinated_{self.plural}", f"unscored_{self.plural}"

    def declared(self) -> tuple[Column, ...]:
        """Return the columns with what they mean."""
        counted, wrong, missing = self.columns
        return (
            Column(name=counted, meaning=f"{self.meaning} with a verdict"),
            Column(name=wrong, meaning="those that the picture does not support"),
            Column(name=missing, meaning=f"{self.meaning} without a verdict"),
        )

    def score(self) -> ScoreDefinition:
        """Return the share of them that is not supported."""
        counted, wrong, _ = self.columns
        return share(
            f"{self.name}_hallucination",
            f"{self.meaning} that are not supported / such claims",
            wrong,
            counted,
            direction="lower",
        )


_GROUPS = (
    *(_Group(kind, f"claims of the kind {kind}", f"{kind}s") for kind in KINDS),
    _Group("timed", "claims about a moment of the video that the text names", "timed"),
    _Group("untimed", "other claims about a video", "untimed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenClaimsMetric(ClaimsMetric):
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
      over the claims of one kind (:func:`~.claim_words.kind_of`); sentences have none
    * ``timed_…`` and ``untimed_hallucination`` = the first score over claims about videos: those
      whose text names a moment (:mod:`~.claim_words`), and all others

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
        moments: ``near`` shows frames of a moment that a claim's text names.
        views: ``objects`` shows crops of the objects that a claim names, beside the picture.
        panel: Who votes, and how votes are combined, for the signature; empty without a panel.
        soft: ``yes`` counts probabilities instead of verdicts.
    """

    name: ClassVar[Literal["seen-claims"]] = "seen-claims"
    response_noun: ClassVar[str] = "response"
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
        JudgeOption(
            name="frames",
            default=FRAMES,
            meaning="Frames of videos that the judge is shown.",
            details="uniform:N, ends:N, every:N, fps:R or all, as hallujudge ask takes them.",
        ),
        JudgeOption(
            name="moments",
            choices=("near", "ignored"),
            meaning="Frames of a moment that a claim names.",
            details="near: eight of that moment, in place of the usual ones; ignored: as others.",
        ),
        JudgeOption(
            name="views",
            choices=("whole", "objects"),
            meaning="What is shown of a picture.",
            details="objects: also crops of the objects that a claim names; needs their boxes in "
            "the archive (boxes, or COCO's file as references) and the extra images.",
        ),
    )
    soft_scores: ClassVar[str] = (
        "in claim_hallucination and response_hallucination a claim counts 1 - P(supported) "
        "instead of 0 or 1"
    )
    unit: ClassVar[Literal["responses"]] = "responses"
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
        *(column for group in _GROUPS for column in group.declared()),
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
        *(group.score() for group in _GROUPS),
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

    frames: str = ""
    moments: str = ""
    views: str = ""

    def _shown_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the frames, moments and views that are shown, but for the usual ones."""
        usual = {"frames": FRAMES, "moments": "near", "views": "whole"}
        chosen = {name: getattr(self, name) for name in usual}
        shown = [f"{n}={v}" for n, v in chosen.items() if v not in ("", usual[n])]
        return (("shown", ",".join(shown)),) if shown else ()

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
        self._check_score(verdicts)
        known = [claim for claim in verdicts if claim.verdict is not Verdict.UNSCORED]
        wrong = sum(map(is_hallucinated, known))
        counted, without = self._counted(known, wrong)
        rate, clean = counted / len(known), int(not wrong)
        unseen = sum(c.reason == UnscoredReason.CLAIM_NOT_VISIBLE for c in verdicts)
        missing = len(verdicts) - len(known)
        grouped = (
            number
            for group in _GROUPS
            # A claim is in up to two groups: that of its kind, and that of its moment.
            for number in _counts([c for c in verdicts if group.name in (c.kind, _timing(c))])
        )
        return ScoredItem(
            statistics=(
                *(len(known), counted, missing, unseen, without, clean, rate, rejected),
                *grouped,
            ),
            scores={"claim_hallucination": rate, "clean_responses": float(clean)},
            evidence=None,
        )

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every claim without a verdict supported, or not supported."""
        claims = items["claims"] + items["unscored_claims"]
        wrong = items["hallucinated"] + (0.0 if best else items["unscored_claims"])
        # At worst, a response with an open claim is not clean.
        clean = items["clean"] if best else items["clean"] * (items["unscored_claims"] == 0)
        grouped: dict[str, FloatArray] = {}
        for counted, own_wrong, missing in (group.columns for group in _GROUPS):
            grouped[counted] = items[counted] + items[missing]
            grouped[own_wrong] = items[own_wrong] + (0.0 if best else items[missing])
        # Counts of a response without a claim, as a caller's table may have it, are all 0.
        rate = wrong / np.maximum(claims, 1)
        own = {"claims": claims, "hallucinated": wrong, "rate": rate, "clean": clean}
        return {**items, **own, **grouped}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return a response with as many claims as the largest: all supported, or none."""
        claims = float(observed["claims"].max(initial=1.0))
        columns = {
            "claims": claims,
            "hallucinated": 0.0 if best else claims,
            "clean": float(best),
            "rate": float(not best),
        }
        for counted, wrong, _ in (group.columns for group in _GROUPS):
            most = float(observed[counted].max(initial=1.0))
            columns |= {counted: most, wrong: 0.0 if best else most}
        return columns


def _timing(claim: ClaimVerdict) -> str:
    """Return whether a claim about a video is about a moment that the text names."""
    if claim.moment is None:
        return ""
    return "timed" if claim.moment else "untimed"


def _counts(claims: Sequence[ClaimVerdict]) -> tuple[int, int, int]:
    """Return how many claims have a verdict, are not supported, and have no verdict."""
    missing = sum(claim.verdict is Verdict.UNSCORED for claim in claims)
    return len(claims) - missing, sum(map(is_hallucinated, claims)), missing
