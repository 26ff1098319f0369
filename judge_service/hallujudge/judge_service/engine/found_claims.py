"""Claims as extractors return them, without verdicts.

They name matchers' mentions, which the specification of a run does not: commands load that first.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from hallujudge.metrics.framework.claims import Modality, Triplet
from hallujudge.synonym_graphs import Mention

ClaimValue: TypeAlias = Mention | Triplet | str
"""An object mention, a triplet, or a keyword in its root form."""


class FoundClaim(Struct, frozen=True, kw_only=True):
    """A claim and its place in a text."""

    start: int
    """The first character."""
    end: int
    """One past the last character."""
    claim: ClaimValue
    """What the text says there."""
    kind: str = ""
    """The kind of a keyword: ``objects`` or ``behaviors``."""
    modality: Modality | None = None
    """How the text puts a triplet; None if unknown."""
