"""Evidence of a Tri-HE item."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..framework.claims import ClaimVerdict, Verdict
from ..framework.result import JsonValue
from ..framework.triplets import Triplet

__all__ = ["TriHeEvidence", "checked_against_all"]


def checked_against_all(claim: ClaimVerdict) -> bool:
    """Return whether a judge compared a claim with the whole scene graph."""
    return claim.verdict is not Verdict.UNSCORED and not claim.references


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeEvidence:
    """Evidence of a response's Tri-HE scores."""

    claims: tuple[ClaimVerdict, ...]
    """Every claim with its verdict, in the order of the response."""
    extractor: str = ""
    """The extractor that found the claims; empty if they were given."""
    judging: tuple[dict[str, JsonValue], ...] = field(default=())
    """The judges that were called, in order: verdicts, fallbacks, tokens, latency and cost."""
    scene_graph: tuple[Triplet, ...] = ()
    """The image's scene graph, if a claim was checked against all of it; such a claim has no
    references of its own."""
    human_scores: tuple[float, ...] = ()
    """Human scores of the response, one for each annotator."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the claims with their extractor and judges, if these are known."""
        line: dict[str, JsonValue] = {"claims": [claim.to_json() for claim in self.claims]}
        if self.extractor:
            line["extractor"] = self.extractor
        if self.judging:
            line["judging"] = list(self.judging)
        if self.scene_graph:
            line["scene_graph"] = [list(triplet) for triplet in self.scene_graph]
        if self.human_scores:
            line["human_scores"] = list(self.human_scores)
        return line
