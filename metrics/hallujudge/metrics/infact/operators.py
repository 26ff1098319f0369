"""INFACT's operators and taxonomy, and the note on means without a value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..answers.answer_text import folded

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
OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        BASE: "mode I: the clean video",
        TEXT_ONLY: "the question without its video",
        "gaussian_noise": "mode II, visual degradation: Gaussian noise on every frame",
        "motion_blur": "mode II, visual degradation: blur on every frame",
        "compression": "mode II, visual degradation: a lossy bitrate",
        "caption_injection": "mode III, evidence corruption: irrelevant or misleading subtitles",
        "subtitle_corruption": "mode III, evidence corruption: noisy subtitles out of step",
        "adversarial_noise": "mode III, evidence corruption: an attack made with other models",
        "shuffle": "mode IV, temporal intervention: frames in random order",
        "reverse": "mode IV, temporal intervention: frames in reverse order",
    }
)
"""Every operator -> what it does to the video (sections 3.3 and A.2), base first."""

_LEAVES = {
    "faithfulness": {
        "static entities & attributes": "entity recognition, unique entity counting, temporal "
        "attributes recognition, static attributes recognition, scene text recognition",
        "dynamic actions & motions": "action recognition, repetitive action counting, motion "
        "attributes recognition",
        "spatio-temporal relations": "spatial relation recognition, temporal relation recognition, "
        "state transition detection, temporal localization",
    },
    "factuality": {
        "domain knowledge": "cultural event recognition, historical background identification, "
        "geospatial localization, entertainment-related recognition",
        "procedural knowledge": "electronic procedural judgement, mechanical procedural judgement, "
        "domestic procedural judgement, clinical procedural judgement",
        "physical knowledge": "newtonian mechanical reasoning, fluid mechanics reasoning, material "
        "property reasoning, spatio-temporal continuity reasoning",
    },
}
TAXONOMY: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        dimension: MappingProxyType({level: tuple(text.split(", ")) for level, text in own.items()})
        for dimension, own in _LEAVES.items()
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
    return _LEVELS.get(leaf_name(leaf), "")


def leaf_name(leaf: str) -> str:
    """Return a leaf's name without case, punctuation and the numbers before it."""
    words = folded(leaf).split()
    while words and words[0].isdigit():
        words = words[1:]
    return " ".join(words)


_MODES = {
    "rr_visual_degradation": VISUAL_DEGRADATION,
    "rr_evidence_corruption": EVIDENCE_CORRUPTION,
    "tss": TEMPORAL,
}


def undefined_note(totals: Mapping[str, float]) -> str:
    """Return why means of modes have no value; empty if all have one, or nothing is scored.

    Args:
        totals: The sums of the columns over all questions.
    """
    if not totals["runs"]:
        return ""
    missing = {
        mode: lacking
        for mode, operators in _MODES.items()
        if (lacking := [name for name in operators if not totals[f"asked_{name}"]])
    }
    if not missing:
        return ""
    scores = ", ".join((*missing, "average"))
    if not totals["right_base"]:
        return f"No value: {scores}. No question has a right answer to the clean video."
    operators = ", ".join(name for lacking in missing.values() for name in lacking)
    only = " tss counts order-sensitive questions only." if "tss" in missing else ""
    return (
        f"No value: {scores}. They are means over operators, and no base-right question has a "
        f"parsed answer under {operators}.{only}"
    )
