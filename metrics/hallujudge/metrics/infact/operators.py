"""INFACT's operators and taxonomy, and its analyses by mode, level, confidence and audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from ..answers.answer_scores import AnswerScore, ReadAnswer, count, share
from ..answers.answer_text import folded
from ..framework.columns_and_scores import mean_of_known

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
        # First: a question counts only with an answer under the first condition.
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


# Analyses -----------------------------------------------------------------------------------------


OVERCONFIDENT = 0.7
"""Wrong answers with at least this confidence resemble hallucinations (appendix A.4)."""
KNOWLEDGE_GAP = 0.4
"""Wrong answers with at most this confidence resemble knowledge gaps."""


def taxonomy_means(leaves: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return scores of the taxonomy: levels are means of leaves, dimensions means of levels.

    Args:
        leaves: Leaf -> score, such as a report's ``groups["category"]``; None and missing leaves
            are left out of the means.

    Returns:
        ``dimension``, ``dimension/level`` and ``dimension/level/leaf`` -> score, top down; None if
        no leaf below has a score.

    Raises:
        ValueError: A leaf is not in the taxonomy, or is a duplicate.
    """
    given = {leaf_name(leaf): value for leaf, value in leaves.items()}
    if len(given) < len(leaves):
        raise ValueError("two of the leaves are spellings of one leaf; give each leaf once")
    out: dict[str, float | None] = {}
    for dimension, levels in TAXONOMY.items():
        rows: dict[str, float | None] = {}
        means = []
        for level, names in levels.items():
            # What is left of the given leaves in the end is none of the taxonomy.
            scores = [given.pop(folded(name), None) for name in names]
            rows[f"{dimension}/{level}"] = mean_of_known(scores)
            means.append(rows[f"{dimension}/{level}"])
            rows |= {
                f"{dimension}/{level}/{name}": score
                for name, score in zip(names, scores, strict=True)
            }
        out[dimension] = mean_of_known(means)
        out |= rows
    if given:
        raise ValueError(f"leaves that are not in the taxonomy: {', '.join(sorted(given)[:5])}")
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Overconfidence:
    """Wrong answers by the model's stated confidence (appendix A.4 of the paper)."""

    hallucination_like: int = 0
    """Wrong answers with a confidence of at least 0.7."""
    knowledge_gap_like: int = 0
    """Other wrong answers with at most 0.4, or with words of uncertainty."""
    other: int = 0
    """Wrong answers between the two."""
    unanalysable: int = 0
    """Wrong answers without a confidence or words of uncertainty."""

    def plus(self, kind: str) -> Overconfidence:
        """Return the counts with one more answer of a kind, which is a field's name."""
        return replace(self, **{kind: getattr(self, kind) + 1})

    @property
    def analysable(self) -> int:
        """Wrong answers with a confidence."""
        return self.hallucination_like + self.knowledge_gap_like + self.other

    @property
    def overconfident_share(self) -> float | None:
        """Hallucination-like / analysable; None without any."""
        return self.hallucination_like / self.analysable if self.analysable else None

    @property
    def knowledge_gap_share(self) -> float | None:
        """Knowledge-gap-like / analysable; None without any."""
        return self.knowledge_gap_like / self.analysable if self.analysable else None


def _resembles(answer: ReadAnswer) -> str:
    """Return what a wrong base answer resembles; empty without a sign, or for other answers."""
    if answer.name != BASE or answer.right:
        return ""
    stated = answer.field("confidence")
    # Items whose confidence is not a number are unscored; see OperatorsMetric.problem().
    if stated and float(stated) >= OVERCONFIDENT:
        return "overconfident"
    # Words of uncertainty are evidence of a knowledge gap even without a stated confidence.
    if answer.unsure or (stated and float(stated) <= KNOWLEDGE_GAP):
        return "knowledge_gap"
    return "neither" if stated else ""


_SPLIT = count(
    "split",
    "wrong base answers with a confidence or words of uncertainty",
    lambda answer: bool(_resembles(answer)),
)


def _split_share(kind: str, confidence: str) -> AnswerScore:
    return share(
        f"{kind}_share",
        f"wrong base answers with confidence of {confidence} / with a confidence",
        count(kind, f"of these, confidence of {confidence}", lambda a: _resembles(a) == kind),
        _SPLIT,
        direction="lower" if kind == "overconfident" else "neither",
        bounded=False,
    )


OVERCONFIDENCE_SCORES = (
    _split_share("overconfident", "at least 0.7"),
    _split_share("knowledge_gap", "at most 0.4 or unsure"),
)
"""The shares of wrong base answers that resemble hallucinations, and gaps in knowledge."""


class AuditedCase(NamedTuple):
    """A question under an operator, as several people answered it."""

    label: str
    """The label of the clean video."""
    choices: Sequence[str | None]
    """Each person's choice; None if they found the question not answerable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAudit:
    """People's check that operators keep labels."""

    cases: int
    """Number of cases."""
    answerable: int
    """Cases that more than half of the people found answerable."""
    preserved: int
    """Answerable cases whose most frequent choice is the label."""
    no_majority: int
    """Answerable cases with several most frequent choices; they do not count as preserved."""

    @property
    def answerability(self) -> float | None:
        """Answerable / cases; None without any."""
        return self.answerable / self.cases if self.cases else None

    @property
    def label_preservation(self) -> float | None:
        """Preserved / answerable; None without any."""
        return self.preserved / self.answerable if self.answerable else None


def label_audit(cases: Iterable[AuditedCase]) -> LabelAudit:
    """Return answerability and label preservation by majority vote (appendix A.3, Table A3).

    The paper has three people for each case and does not say what a tie means. Here a tie is not
    a majority.

    Args:
        cases: The cases, with choices and labels that are equal if they mean the same.
    """
    total = answerable = preserved = ties = 0
    for label, choices in cases:
        total += 1
        votes = Counter(choice for choice in choices if choice is not None)
        # Half of the people or fewer found an answer: no majority could answer it.
        if 2 * votes.total() <= len(choices):
            continue
        answerable += 1
        most = max(votes.values())
        winners = [choice for choice, count in votes.items() if count == most]
        ties += len(winners) > 1
        preserved += winners == [label]
    return LabelAudit(cases=total, answerable=answerable, preserved=preserved, no_majority=ties)
