"""INFACT's analyses: means of modes, levels of the taxonomy, overconfidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from ..answers.answer_text import folded
from ..framework.columns_and_scores import mean_of_known
from . import KNOWLEDGE_GAP, OVERCONFIDENT
from .operators import EVIDENCE_CORRUPTION, TAXONOMY, TEMPORAL, VISUAL_DEGRADATION, leaf_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeMeans:
    """Mode means of one model."""

    rr_visual_degradation: float | None
    """Mean of the three operators of mode II."""
    rr_evidence_corruption: float | None
    """Mean of the three operators of mode III."""
    tss: float | None
    """Mean of shuffle and reverse."""
    average: float | None
    """Mean of the three modes."""


def mode_means(
    operators: Mapping[str, float | None], *, printed_digits: int | None = None
) -> ModeMeans:
    """Return mode means and their average (section 3.4 of the paper, Tables 2 and 3).

    A mode with a missing operator has no mean; a model with a missing mode has no average.

    Args:
        operators: Operator -> RR, or TSS for shuffle and reverse.
        printed_digits: Number of digits to which modes are rounded, halves up, before they are
            averaged; the paper's tables use 3. None, as in reports, does not round.

    Raises:
        ValueError: An operator is unknown.
    """
    known = {*VISUAL_DEGRADATION, *EVIDENCE_CORRUPTION, *TEMPORAL}
    if unknown := sorted(set(operators) - known):
        raise ValueError(f"unknown operators {unknown}; choose from {', '.join(sorted(known))}")
    visual, evidence, temporal = (
        _printed(_strict_mean([operators.get(name) for name in names]), printed_digits)
        for names in (VISUAL_DEGRADATION, EVIDENCE_CORRUPTION, TEMPORAL)
    )
    return ModeMeans(
        rr_visual_degradation=visual,
        rr_evidence_corruption=evidence,
        tss=temporal,
        average=_strict_mean([evidence, visual, temporal]),
    )


def _printed(value: float | None, digits: int | None) -> float | None:
    if value is None or digits is None:
        return value
    # 0.1905 has no exact binary form; rounding to nine digits first restores the half.
    cell = Decimal(1).scaleb(-digits)
    return float(Decimal(f"{value:.9f}").quantize(cell, rounding=ROUND_HALF_UP))


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
    """Wrong answers by the model's stated confidence."""

    hallucination_like: int
    """Wrong answers with a confidence of at least 0.7."""
    knowledge_gap_like: int
    """Wrong answers with at most 0.4, or with less than 0.7 and words of uncertainty."""
    other: int
    """Wrong answers between the two."""
    unanalysable: int
    """Wrong answers without a confidence."""

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


def overconfidence(wrong: Iterable[tuple[float | None, bool]]) -> Overconfidence:
    """Group wrong answers by confidence (section A.4 of the paper).

    Args:
        wrong: For each wrong answer, the confidence in [0, 1], or None if it is unknown, and
            whether its words express uncertainty.

    Raises:
        ValueError: A confidence is not a number from 0 to 1.
    """
    sure = gap = other = unknown = 0
    for confidence, unsure in wrong:
        if confidence is not None and not 0 <= confidence <= 1:
            raise ValueError(f"the confidence {confidence} is not a number from 0 to 1")
        if confidence is not None and confidence >= OVERCONFIDENT:
            sure += 1
        elif unsure or (confidence is not None and confidence <= KNOWLEDGE_GAP):
            gap += 1
        elif confidence is None:
            unknown += 1
        else:
            other += 1
    return Overconfidence(
        hallucination_like=sure, knowledge_gap_like=gap, other=other, unanalysable=unknown
    )


def _strict_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None
