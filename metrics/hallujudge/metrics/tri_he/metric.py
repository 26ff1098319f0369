"""Tri-HE: how much of what an answer claims is not in the image's scene graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ..errors import UnknownVariantError
from ..framework.claims import ClaimVerdict, Verdict
from ..framework.metric import Column, ScoreDefinition, ratio
from ..framework.signature import Signature

if TYPE_CHECKING:
    from ..framework.metric import FloatArray

__all__ = ["NULL_REASON", "TriHeMetric", "TriHeScored"]

NULL_REASON = "VERDICT_NULL"
"""Reason of a claim whose archived verdict is ``null``: its judge's reply could not be read."""

_PARTS = ("", "object_", "relation_")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeScored:
    """An answer's statistics."""

    statistics: tuple[float, ...]
    """One number for each column of the metric."""
    scores: dict[str, float | None]
    """The answer's own rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """An answer's claims, counted."""

    claims: int
    hallucinated: int
    objects: int
    relations: int
    unscored: int


def _question_score(part: str) -> ScoreDefinition:
    return ScoreDefinition(
        name=f"{part}hallu_q",
        columns=(f"{part}rate", "questions"),
        value=ratio(f"{part}rate", "questions"),
    )


def _image_score(part: str) -> ScoreDefinition:
    return ScoreDefinition(
        name=f"{part}hallu_i",
        columns=(f"{part}image_rate", "images"),
        value=ratio(f"{part}image_rate", "images"),
        count="images",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeMetric:
    """Tri-HE (Wu et al., Unified Triplet-Level Hallucination Evaluation, arXiv 2410.23114).

    Of the claims of an answer to a question about an image:

    * ``hallu_q`` = mean over questions of (hallucinated claims / claims), formula 1, section 3.2
    * ``hallu_i`` = mean over images of the mean over the image's questions, formula 2
    * ``object_…`` and ``relation_…`` = the same, with only the claims in the numerator that have a
      wrong object, or a wrong relation between objects that are both there. After section 3.1 a
      claim with a wrong object counts as object hallucination whatever its relation is.

    A claim is hallucinated where its verdict is ``not_supported``. Questions of one image share
    their ``group_id``, which is also what intervals are resampled by.

    ``published`` follows the released script. What it does that one may not expect:

    * a claim whose verdict could not be read (``null``) stays in the denominator, so that a judge
      that fails lowers the rate;
    * a hallucinated claim without a wrong object counts as relation hallucination, also where the
      judge named no part at all;
    * answers without claims are dropped in silence, and images without any answer left with them.
      Here they are unscored, which leaves the scores the same and shows in the coverage;
    * an archived answer whose verdicts are all ``null`` has the rate 0. That is kept for verdicts
      read from an archive. Where the judge is ours, such an answer is unscored: a failed judge is
      never a score.

    ``corrected`` leaves claims without verdict out of the denominator, and claims without a named
    part out of both parts (they count in ``hallu_q`` and ``hallu_i``).

    Bounds take each unscored answer as one of an image of its own.

    Attributes:
        variant: ``published`` or ``corrected``.
        judge: Who gave the verdicts, for the signature.
        extractor: Who took the claims from the answers, for the signature; ``given`` if nobody.
    """

    name: ClassVar[Literal["tri-he"]] = "tri-he"
    variants: ClassVar[tuple[str, ...]] = ("published", "corrected")
    unit: ClassVar[Literal["questions"]] = "questions"
    folds: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="claims"),
        Column(name="hallucinated"),
        Column(name="hallucinated_objects"),
        Column(name="hallucinated_relations"),
        Column(name="unscored_claims"),
        *(Column(name=f"{part}rate", integral=False) for part in _PARTS),
    )
    scores: ClassVar[tuple[ScoreDefinition, ...]] = tuple(
        make(part) for part in _PARTS for make in (_question_score, _image_score)
    )

    variant: str = "published"
    judge: str
    extractor: str = "given"

    def __post_init__(self) -> None:
        if self.variant not in self.variants:
            raise UnknownVariantError(self.name, self.variant, self.variants)

    @property
    def signature(self) -> Signature:
        """Variant, extractor and judge."""
        return Signature(
            metric=self.name,
            fields=(("var", self.variant), ("extract", self.extractor), ("judge", self.judge)),
        )

    def unscored_reason(self, verdicts: Sequence[ClaimVerdict]) -> tuple[str, str] | None:
        """Why an answer with these verdicts has no score, as reason and detail; None: it has one.

        Args:
            verdicts: The verdicts of the answer's claims.
        """
        if not verdicts:
            return "NO_CLAIMS", "the answer makes no claim that could be judged"
        missing = [claim for claim in verdicts if claim.verdict is Verdict.UNSCORED]
        archived = all(claim.reason == NULL_REASON for claim in missing)
        if len(missing) < len(verdicts) or (self.variant == "published" and archived):
            return None
        first = missing[0]
        detail = f"none of {len(missing)} claims has a verdict: {first.reason or 'no reason given'}"
        return "NO_VERDICTS", f"{detail} ({first.detail})" if first.detail else detail

    def score_answer(self, verdicts: Sequence[ClaimVerdict]) -> TriHeScored:
        """Statistics of one answer that has a score.

        Args:
            verdicts: The verdicts of its claims.

        Raises:
            ValueError: It has none; :meth:`unscored_reason` says why.
        """
        if (problem := self.unscored_reason(verdicts)) is not None:
            raise ValueError(f"an answer without score: {problem[1]}")
        counts = self._counts(verdicts)
        numerators = (counts.hallucinated, counts.objects, counts.relations)
        rates = tuple(number / counts.claims for number in numerators)
        return TriHeScored(
            statistics=(counts.claims, *numerators, counts.unscored, *rates),
            scores={f"{part}hallu_q": rate for part, rate in zip(_PARTS, rates, strict=True)},
        )

    def _counts(self, verdicts: Sequence[ClaimVerdict]) -> _Counts:
        wrong = [claim for claim in verdicts if claim.verdict is Verdict.NOT_SUPPORTED]
        unscored = sum(claim.verdict is Verdict.UNSCORED for claim in verdicts)
        objects = sum(claim.part is not None and claim.part.is_object for claim in wrong)
        nameless = sum(claim.part is None for claim in wrong)
        published = self.variant == "published"
        return _Counts(
            claims=len(verdicts) - (0 if published else unscored),
            hallucinated=len(wrong),
            objects=objects,
            relations=len(wrong) - objects - (0 if published else nameless),
            unscored=unscored,
        )

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Each image's own mean rates, and a column of ones to count images by."""
        import numpy as np

        questions = clusters["questions"]
        means = {
            f"{part}image_rate": np.divide(
                clusters[f"{part}rate"],
                questions,
                out=np.zeros_like(questions),
                where=questions != 0,
            )
            for part in _PARTS
        }
        return {**clusters, **means, "images": (questions != 0).astype(np.float64)}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """An unscored answer at its best makes only supported claims, at its worst none.

        How many claims it makes is taken from the fullest scored answer; the rates don't depend on
        it. At its worst, every claim has a wrong part of the kind that a score counts.
        """
        claims = float(observed["claims"].max(initial=1.0))
        wrong, rate = (0.0, 0.0) if best else (claims, 1.0)
        return {
            "claims": claims,
            "hallucinated": wrong,
            "hallucinated_objects": wrong,
            "hallucinated_relations": wrong,
            "unscored_claims": 0.0,
            **{f"{part}rate": rate for part in _PARTS},
        }
