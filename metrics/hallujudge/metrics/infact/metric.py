"""INFACT: the same question under a clean video, and under induced conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ..errors import OptionError, UnknownVariantError
from ..framework.metric import Column, ScoreDefinition, ratio
from ..framework.signature import Signature
from .answers import RIGHT, UNREAD, WRONG, ParsedRun, outcomes_of, read_run
from .evidence import InfactEvidence, RunVerdict
from .items import InfactItem
from .taxonomy import (
    BASE,
    EVIDENCE_CORRUPTION,
    INVARIANT,
    OPERATORS,
    TEMPORAL,
    TEXT_ONLY,
    VISUAL_DEGRADATION,
)

if TYPE_CHECKING:
    from ..framework.metric import FloatArray, Sums

__all__ = ["KNOWLEDGE_GAP", "OVERCONFIDENT", "InfactMetric", "InfactScored"]

OVERCONFIDENT = 0.7
"""A wrong answer with at least this confidence is like a hallucination (papers/infact.txt, A.4)."""
KNOWLEDGE_GAP = 0.4
"""A wrong answer with at most this confidence is like a knowledge gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactScored:
    """A question's statistics and what they rest on."""

    statistics: tuple[int, ...]
    """One number for each column of the metric."""
    scores: Mapping[str, float | None]
    """The question's own scores."""
    evidence: InfactEvidence
    """What was read under each operator."""
    readable: bool
    """Whether the base answer could be read; nothing can be said of the question otherwise."""


def _mean_of(*parts: Callable[[Sums], FloatArray]) -> Callable[[Sums], FloatArray]:
    """The plain mean of scores; NaN where one of them is."""

    def value(sums: Sums) -> FloatArray:
        total = parts[0](sums)
        for part in parts[1:]:
            total = total + part(sums)
        return total / len(parts)

    return value


def _kept(operator: str) -> Callable[[Sums], FloatArray]:
    return ratio(f"kept_{operator}", f"asked_{operator}")


def _changed(operator: str, suffix: str = "") -> Callable[[Sums], FloatArray]:
    return ratio(f"changed_{operator}{suffix}", f"asked_{operator}{suffix}")


def _pairs(kind: str, operators: tuple[str, ...], suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{part}_{operator}{suffix}" for operator in operators for part in (kind, "asked"))


def _columns() -> tuple[Column, ...]:
    names = (
        *("right_base", "read_base", "right_text_only", "read_text_only"),
        *_pairs("kept", INVARIANT),
        *_pairs("changed", TEMPORAL),
        *_pairs("changed", TEMPORAL, _OTHER),
        *("split", "overconfident", "knowledge_gap", "runs", "unparsed"),
    )
    return tuple(Column(name=name) for name in names)


_OTHER = "_order_insensitive"
_RR_VISUAL = _mean_of(*map(_kept, VISUAL_DEGRADATION))
_RR_EVIDENCE = _mean_of(*map(_kept, EVIDENCE_CORRUPTION))
_TSS = _mean_of(*map(_changed, TEMPORAL))
_MODES = {
    "rr_visual_degradation": (_RR_VISUAL, _pairs("kept", VISUAL_DEGRADATION), True),
    "rr_evidence_corruption": (_RR_EVIDENCE, _pairs("kept", EVIDENCE_CORRUPTION), True),
    "tss": (_TSS, _pairs("changed", TEMPORAL), True),
    "average": (
        _mean_of(_RR_EVIDENCE, _RR_VISUAL, _TSS),
        (*_pairs("kept", INVARIANT), *_pairs("changed", TEMPORAL)),
        True,
    ),
    f"tss{_OTHER}": (
        _mean_of(*(_changed(operator, _OTHER) for operator in TEMPORAL)),
        _pairs("changed", TEMPORAL, _OTHER),
        False,
    ),
}


def _share(name: str, top: str, bottom: str, *, good: bool | None = True) -> ScoreDefinition:
    return ScoreDefinition(
        name=name,
        columns=(top, bottom),
        value=ratio(top, bottom),
        count=bottom,
        bounded=good is not None,
        higher_is_better=bool(good),
    )


def _scores() -> tuple[ScoreDefinition, ...]:
    modes = {
        name: ScoreDefinition(
            name=name,
            columns=columns,
            value=value,
            count="right_base" if name == "average" else columns[1],
            bounded=good,
            higher_is_better=good,
        )
        for name, (value, columns, good) in _MODES.items()
    }
    return (
        _share("base_accuracy", "right_base", "read_base"),
        *(_share(f"rr_{op}", f"kept_{op}", f"asked_{op}") for op in INVARIANT),
        modes["rr_visual_degradation"],
        modes["rr_evidence_corruption"],
        *(_share(f"tss_{op}", f"changed_{op}", f"asked_{op}") for op in TEMPORAL),
        modes["tss"],
        modes["average"],
        _share("text_only", "right_text_only", "read_text_only", good=None),
        *(
            _share(f"tss_{op}{_OTHER}", f"changed_{op}{_OTHER}", f"asked_{op}{_OTHER}", good=None)
            for op in TEMPORAL
        ),
        modes[f"tss{_OTHER}"],
        _share("overconfident_share", "overconfident", "split", good=None),
        _share("knowledge_gap_share", "knowledge_gap", "split", good=None),
        _share("unparsed_rate", "unparsed", "runs", good=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactMetric:
    """INFACT (Yang et al., 2026; papers/infact.txt, section 3.4; no script is public).

    With "base-right" the questions answered rightly with the clean video:

    * ``base_accuracy``, ``text_only``: right answers / answers, with and without the video
    * ``rr_<operator>`` (Resist Rate): base-right questions still right under an operator that
      leaves the label as it is / base-right questions asked under it
    * ``rr_visual_degradation``, ``rr_evidence_corruption``: the means over a mode's three operators
    * ``tss_<operator>`` (Temporal Sensitivity Score): base-right, order-sensitive questions whose
      answer is no longer the label / base-right, order-sensitive questions asked; ``tss``: the mean
      of shuffle and reverse; ``…_order_insensitive``: the same over the other questions
    * ``average`` = (``rr_evidence_corruption`` + ``rr_visual_degradation`` + ``tss``) / 3
    * ``overconfident_share``, ``knowledge_gap_share``: of wrong base answers with a confidence (or
      that say they are unsure), those with at least 0.7, and of the rest those with at most 0.4 or
      unsure (A.4)
    * ``unparsed_rate``: runs whose answer could not be read / runs

    A ratio without base-right questions is None, and so is every mean that it is part of: a mode
    with an operator that was not run has no mean. ``n`` is the number of questions in the
    denominator: for a mode its first operator's, for ``average`` the base-right ones.

    An answer that can't be read leaves its operator's numerator and denominator; a question whose
    base answer can't be read is unscored. With ``unparsed="wrong"`` it counts as a wrong answer
    instead (which under shuffle and reverse is a changed one).

    Attributes:
        variant: ``paper``.
        unparsed: What an unread answer is: ``unscored`` or ``wrong``.
    """

    name: ClassVar[Literal["infact"]] = "infact"
    variants: ClassVar[tuple[str, ...]] = ("paper",)
    unparsed_choices: ClassVar[tuple[str, ...]] = ("unscored", "wrong")
    unit: ClassVar[Literal["questions"]] = "questions"
    folds: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]] = _columns()
    scores: ClassVar[tuple[ScoreDefinition, ...]] = _scores()

    variant: str = "paper"
    unparsed: str = "unscored"

    def __post_init__(self) -> None:
        if self.variant not in self.variants:
            raise UnknownVariantError(self.name, self.variant, self.variants)
        if self.unparsed not in self.unparsed_choices:
            problem = f"{self.unparsed!r} is not one of {', '.join(self.unparsed_choices)}"
            raise OptionError(self.name, "unparsed", problem)

    @property
    def signature(self) -> Signature:
        """The reading, and what an unread answer is."""
        return Signature(
            metric=self.name, fields=(("var", self.variant), ("unparsed", self.unparsed))
        )

    def score_question(self, item: InfactItem) -> InfactScored:
        """Statistics of one question; its runs have known operators, and one is ``base``."""
        options = tuple(sorted(item.options.items()))
        read: dict[str, ParsedRun] = {}
        for operator in OPERATORS:
            run = item.runs.get(operator)
            if run is not None and run.response is not None:
                read[operator] = read_run(run.response, item.label, options)
        correct = {operator: reading.correct for operator, reading in read.items()}
        unparsed = sum(value is None for value in correct.values())
        if self.unparsed == "wrong":
            correct = {operator: bool(value) for operator, value in correct.items()}
        counts = (
            *_accuracies(correct),
            *_reliability(correct, item.order_sensitive),
            *_confidence(item, correct, read),
        )
        return InfactScored(
            statistics=(*counts, len(read), unparsed),
            scores=_own_scores(correct, item.order_sensitive),
            evidence=InfactEvidence(
                label=item.label,
                runs=tuple(RunVerdict(operator, *row[:3]) for operator, row in read.items()),
            ),
            readable=correct.get(BASE) is not None,
        )

    def total(
        self,
        answers: Mapping[str, Sequence[str]],
        labels: Sequence[str],
        order_sensitive: Sequence[bool],
    ) -> dict[str, float | None]:
        """Operators' scores over many questions at once, without a result for each.

        Every distinct pair of answer and label is read once. Confidences are not looked at.

        Args:
            answers: Operator -> one answer for each question; ``base`` is among them.
            labels: One for each question.
            order_sensitive: One for each question.

        Returns:
            ``base_accuracy``, ``rr_<operator>`` and ``tss_<operator>`` for the operators given.
        """
        import numpy as np

        unread = WRONG if self.unparsed == "wrong" else UNREAD
        read = {
            operator: np.frombuffer(outcomes_of(rows, labels, unread), dtype=np.uint8)
            for operator, rows in answers.items()
        }
        right = read[BASE] == RIGHT
        subset = right & np.fromiter(order_sensitive, dtype=bool, count=len(labels))
        counts = {"base_accuracy": (right.sum(), (read[BASE] != UNREAD).sum())}
        for operator, found in read.items():
            if operator in INVARIANT:
                asked = right & (found != UNREAD)
                counts[f"rr_{operator}"] = ((asked & (found == RIGHT)).sum(), asked.sum())
            elif operator in TEMPORAL:
                asked = subset & (found != UNREAD)
                counts[f"tss_{operator}"] = ((asked & (found != RIGHT)).sum(), asked.sum())
        return {name: float(top / of) if of else None for name, (top, of) in counts.items()}

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Nothing beside the sums."""
        return clusters

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """An unscored question may have been right throughout.

        At its worst it was wrong with the clean video, for the accuracy, and right there and
        nowhere else (unmoved by shuffling) for the rates; each score reads its own columns.
        """
        row = dict.fromkeys((column.name for column in self.columns), 0.0)
        row |= {name: 1.0 for name in row if name.startswith(("asked_", "read_"))}
        good = ("right_", "kept_", "changed_")
        return row | {name: float(best) for name in row if name.startswith(good)}


def _accuracies(correct: Mapping[str, bool | None]) -> tuple[int, ...]:
    base, text_only = correct.get(BASE), correct.get(TEXT_ONLY)
    counted = base is not None
    return (
        int(base is True),
        int(counted),
        int(counted and text_only is True),
        int(counted and text_only is not None),
    )


def _reliability(correct: Mapping[str, bool | None], order_sensitive: bool) -> tuple[int, ...]:
    """Kept and asked for each operator; then changed and asked, on the subset and off it."""
    if correct.get(BASE) is not True:
        return _NOTHING
    kept = [number for op in INVARIANT for number in _outcome(correct.get(op), wanted=True)]
    changed = [number for op in TEMPORAL for number in _outcome(correct.get(op), wanted=False)]
    none = [0] * len(changed)
    return (*kept, *(changed + none if order_sensitive else none + changed))


_NOTHING = (0,) * (2 * len(INVARIANT) + 4 * len(TEMPORAL))


def _outcome(correct: bool | None, *, wanted: bool) -> tuple[int, int]:
    return (0, 0) if correct is None else (int(correct is wanted), 1)


def _confidence(
    item: InfactItem, correct: Mapping[str, bool | None], read: Mapping[str, ParsedRun]
) -> tuple[int, int, int]:
    """Whether a wrong base answer can be split, is overconfident, or is a knowledge gap."""
    if correct.get(BASE) is not False:
        return (0, 0, 0)
    confidence = item.runs[BASE].confidence
    if confidence is not None and confidence >= OVERCONFIDENT:
        return (1, 1, 0)
    if read[BASE].unsure or (confidence is not None and confidence <= KNOWLEDGE_GAP):
        return (1, 0, 1)
    return (int(confidence is not None), 0, 0)


def _own_scores(
    correct: Mapping[str, bool | None], order_sensitive: bool
) -> dict[str, float | None]:
    base = correct.get(BASE)
    if base is None:
        return {}
    scores: dict[str, float | None] = {"base_accuracy": float(base)}
    if not base:
        return scores
    for operator, value in correct.items():
        if value is not None and operator in INVARIANT:
            scores[f"rr_{operator}"] = float(value)
        elif value is not None and operator in TEMPORAL and order_sensitive:
            scores[f"tss_{operator}"] = float(not value)
    return scores
