"""INFACT's operators and taxonomy (papers/infact.txt, sections 3.1, 3.3 and A.1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..answers.text import folded

__all__ = [
    "BASE",
    "EVIDENCE_CORRUPTION",
    "INVARIANT",
    "OPERATORS",
    "TAXONOMY",
    "TEMPORAL",
    "TEXT_ONLY",
    "VISUAL_DEGRADATION",
    "level_of",
]

BASE = "base"
"""The clean video (mode I)."""
TEXT_ONLY = "text_only"
"""The question without its video."""
VISUAL_DEGRADATION = ("gaussian_noise", "motion_blur", "compression")
"""Mode II: operators that keep the label."""
EVIDENCE_CORRUPTION = ("caption_injection", "subtitle_corruption", "adversarial_noise")
"""Mode III: operators that keep the label."""
TEMPORAL = ("shuffle", "reverse")
"""Mode IV: operators after which the label is no longer right."""
INVARIANT = (*EVIDENCE_CORRUPTION, *VISUAL_DEGRADATION)
"""Operators that keep the label."""
OPERATORS = (BASE, TEXT_ONLY, *INVARIANT, *TEMPORAL)
"""Every operator, base first."""

TAXONOMY: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "faithfulness": MappingProxyType(
            {
                "static entities & attributes": (
                    "entity recognition",
                    "unique entity counting",
                    "temporal attributes recognition",
                    "static attributes recognition",
                    "scene text recognition",
                ),
                "dynamic actions & motions": (
                    "action recognition",
                    "repetitive action counting",
                    "motion attributes recognition",
                ),
                "spatio-temporal relations": (
                    "spatial relation recognition",
                    "temporal relation recognition",
                    "state transition detection",
                    "temporal localization",
                ),
            }
        ),
        "factuality": MappingProxyType(
            {
                "domain knowledge": (
                    "cultural event recognition",
                    "historical background identification",
                    "geospatial localization",
                    "entertainment-related recognition",
                ),
                "procedural knowledge": (
                    "electronic procedural judgement",
                    "mechanical procedural judgement",
                    "domestic procedural judgement",
                    "clinical procedural judgement",
                ),
                "physical knowledge": (
                    "newtonian mechanical reasoning",
                    "fluid mechanics reasoning",
                    "material property reasoning",
                    "spatio-temporal continuity reasoning",
                ),
            }
        ),
    }
)
"""Dimension -> level -> leaves: 12 leaves of faithfulness and 12 of factuality."""

_LEVELS = {
    folded(leaf): level
    for levels in TAXONOMY.values()
    for level, leaves in levels.items()
    for leaf in leaves
}


def level_of(leaf: str) -> str:
    """Return the level of a leaf; empty if the taxonomy has no such leaf.

    Case, punctuation and numbers before the name (``1.1 Entity Recognition``) are ignored.
    """
    words = folded(leaf).split()
    while words and words[0].isdigit():
        words = words[1:]
    return _LEVELS.get(" ".join(words), "")
