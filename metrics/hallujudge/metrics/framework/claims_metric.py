"""What metrics of claims have alike: their judge, their verdicts, and responses without a score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .claims import ClaimVerdict, Verdict, no_verdicts, support_probability
from .metric import SoftMetric
from .results import UnscoredReason


def is_hallucinated(claim: ClaimVerdict) -> bool:
    """Return whether a claim counts as hallucinated."""
    return claim.verdict is Verdict.NOT_SUPPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsMetric(SoftMetric):
    """A metric of responses whose claims have verdicts.

    Attributes:
        judge: Name of the judge, for the signature.
        extractor: Name of the extractor, for the signature; ``given`` if claims were given.
        tentative: ``keep`` or ``omit`` hedged and conditional claims, for the signature.
        panel: Who votes, and how votes are combined, for the signature; empty without a panel.
    """

    response_noun: ClassVar[str]
    """What has claims, such as ``answer``."""
    judge_option: ClassVar[str] = "judge"
    soft_noun: ClassVar[str] = "claims"
    # The responses' own shares are fractions.
    folds: ClassVar[bool] = False
    unresolved: ClassVar[str] = "unscored_claims"

    judge: str
    extractor: str = "given"
    tentative: str = "keep"
    panel: str = ""

    def _shown_fields(self) -> tuple[tuple[str, str], ...]:
        """Return what the judge is shown, as fields of the signature."""
        return ()

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the extractor, the judge, and which claims and probabilities count."""
        omitted = () if self.tentative == "keep" else (("tentative", self.tentative),)
        panel = (("panel", self.panel),) if self.panel else ()
        judging = (*self._shown_fields(), ("judge", self.judge), *panel)
        return (("extract", self.extractor), *omitted, *self.soft_fields(), *judging)

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
            detail = f"the {self.response_noun} makes no claim that could be judged"
            return UnscoredReason.NO_CLAIMS, detail
        # One verdict is enough for a score; the bounds show what the others could change.
        if any(claim.verdict is not Verdict.UNSCORED for claim in verdicts):
            return None
        return no_verdicts(verdicts)

    def _check_score(self, verdicts: Sequence[ClaimVerdict]) -> None:
        """Check that a response has a score.

        Raises:
            ValueError: It has none; see :meth:`unscored_reason`.
        """
        if (problem := self.unscored_reason(verdicts)) is not None:
            raise ValueError(f"the {self.response_noun} has no score: {problem[1]}")

    def is_hallucinated(self, claim: ClaimVerdict) -> bool:
        """Return whether a claim counts as hallucinated."""
        return is_hallucinated(claim)

    def soft_weight(self, claim: ClaimVerdict) -> float:
        """Return what a claim with a verdict adds: 1 - P(supported), or 0 or 1 by its verdict."""
        share = support_probability(claim)
        return float(self.is_hallucinated(claim)) if share is None else 1.0 - share

    def _counted(self, known: Sequence[ClaimVerdict], wrong: int) -> tuple[float, int]:
        """Return how much claims with a verdict add, and how many add by it without a probability.

        Args:
            known: The claims.
            wrong: How many of them are hallucinated.
        """
        if not self.is_soft:
            return wrong, 0
        without = sum(support_probability(claim) is None for claim in known)
        return math.fsum(map(self.soft_weight, known)), without
