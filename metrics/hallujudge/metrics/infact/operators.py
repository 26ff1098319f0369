"""INFACT's operators and taxonomy, and the statistics and scores of each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..answers.answer_text import folded
from ..framework.columns_and_scores import Column, ScoreDefinition, mean_of, ratio, share

if TYPE_CHECKING:
    from ..framework.columns_and_scores import Direction, FloatArray, Sums


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
    return _LEVELS.get(leaf_name(leaf), "")


def leaf_name(leaf: str) -> str:
    """Return a leaf's name without case, punctuation and the numbers before it."""
    words = folded(leaf).split()
    while words and words[0].isdigit():
        words = words[1:]
    return " ".join(words)


def _kept(operator: str) -> Callable[[Sums], FloatArray]:
    return ratio(f"kept_{operator}", f"asked_{operator}")


def _changed(operator: str, suffix: str = "") -> Callable[[Sums], FloatArray]:
    return ratio(f"changed_{operator}{suffix}", f"asked_{operator}{suffix}")


def _pairs(kind: str, operators: tuple[str, ...], suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{part}_{operator}{suffix}" for operator in operators for part in (kind, "asked"))


def _columns() -> tuple[Column, ...]:
    meanings = {
        "right_base": "right answers to the clean video",
        "read_base": "parsed answers to the clean video",
        "right_text_only": "right answers without the video",
        "read_text_only": "parsed answers without the video",
        **_meanings("kept", INVARIANT, "still right under {}"),
        **_meanings("changed", TEMPORAL, "order-sensitive, no longer the label under {}"),
        **_meanings(
            "changed", TEMPORAL, "not order-sensitive, no longer the label under {}", _OTHER
        ),
        "split": "wrong base answers with a confidence or words of uncertainty",
        "overconfident": "of these, confidence of at least 0.7",
        "knowledge_gap": "of these, confidence of at most 0.4, or unsure",
        "runs": "answers under any operator",
        "unparsed": "answers that could not be parsed",
    }
    return tuple(Column(name=name, meaning=meaning) for name, meaning in meanings.items())


def _meanings(
    kind: str, operators: tuple[str, ...], meaning: str, suffix: str = ""
) -> dict[str, str]:
    """Return the meanings of each operator's two columns."""
    return {
        f"{part}_{operator}{suffix}": (
            f"base-right questions {'asked' if part == 'asked' else meaning.format(operator)}"
            + (f" under {operator}" if part == "asked" else "")
        )
        for operator in operators
        for part in (kind, "asked")
    }


_OTHER = "_order_insensitive"
_RR_VISUAL = mean_of(*map(_kept, VISUAL_DEGRADATION))
_RR_EVIDENCE = mean_of(*map(_kept, EVIDENCE_CORRUPTION))
_TSS = mean_of(*map(_changed, TEMPORAL))


def _mode(
    name: str,
    meaning: str,
    value: Callable[[Sums], FloatArray],
    columns: tuple[str, ...],
    *,
    count: str = "",
    direction: Direction = "higher",
) -> ScoreDefinition:
    return ScoreDefinition(
        name=name,
        meaning=meaning,
        direction=direction,
        columns=columns,
        value=value,
        # The number of questions asked under the mode's first operator.
        count=count or columns[1],
        bounded=direction == "higher",
    )


def _rr(operator: str) -> ScoreDefinition:
    meaning = f"base-right questions still right under {operator} / asked"
    return share(f"rr_{operator}", meaning, f"kept_{operator}", f"asked_{operator}")


def _tss(operator: str, suffix: str = "") -> ScoreDefinition:
    kind = "other" if suffix else "order-sensitive"
    return share(
        f"tss_{operator}{suffix}",
        f"base-right, {kind} questions with a changed answer under {operator} / asked",
        f"changed_{operator}{suffix}",
        f"asked_{operator}{suffix}",
        direction="neither" if suffix else "higher",
        bounded=not suffix,
    )


def _scores() -> tuple[ScoreDefinition, ...]:
    return (
        share("base_accuracy", "right answers / answers", "right_base", "read_base"),
        *map(_rr, INVARIANT),
        _mode(
            "rr_visual_degradation",
            "mean rr over noise, blur and compression",
            _RR_VISUAL,
            _pairs("kept", VISUAL_DEGRADATION),
        ),
        _mode(
            "rr_evidence_corruption",
            "mean rr over injected captions, corrupted subtitles and adversarial noise",
            _RR_EVIDENCE,
            _pairs("kept", EVIDENCE_CORRUPTION),
        ),
        *map(_tss, TEMPORAL),
        _mode("tss", "mean tss over shuffle and reverse", _TSS, _pairs("changed", TEMPORAL)),
        _mode(
            "average",
            "mean of rr_evidence_corruption, rr_visual_degradation and tss",
            mean_of(_RR_EVIDENCE, _RR_VISUAL, _TSS),
            (*_pairs("kept", INVARIANT), *_pairs("changed", TEMPORAL)),
            count="right_base",
        ),
        share(
            "text_only",
            "right answers without the video / answers",
            "right_text_only",
            "read_text_only",
            direction="neither",
            bounded=False,
        ),
        *(_tss(operator, _OTHER) for operator in TEMPORAL),
        _mode(
            f"tss{_OTHER}",
            "mean tss over questions that are not order-sensitive",
            mean_of(*(_changed(operator, _OTHER) for operator in TEMPORAL)),
            _pairs("changed", TEMPORAL, _OTHER),
            direction="neither",
        ),
        share(
            "overconfident_share",
            "wrong base answers with confidence of at least 0.7 / with a confidence",
            "overconfident",
            "split",
            direction="lower",
            bounded=False,
        ),
        share(
            "knowledge_gap_share",
            "wrong base answers with confidence of at most 0.4 or unsure / with a confidence",
            "knowledge_gap",
            "split",
            direction="neither",
            bounded=False,
        ),
        share(
            "unparsed_rate",
            "answers that could not be parsed / answers",
            "unparsed",
            "runs",
            direction="lower",
            bounded=False,
        ),
    )


COLUMNS: tuple[Column, ...] = _columns()
"""The statistics of a question, in order."""

SCORES: tuple[ScoreDefinition, ...] = _scores()
"""The scores, in the order of the report."""

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
