"""VideoHallucer: pairs of questions about what a video shows and does not show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ..answers import yes_no_parser
from ..answers.evidence import AnswerEvidence
from ..framework.base import MetricBase
from ..framework.definitions import Paper, VariantDefinition
from ..framework.metric import Column, ScoreDefinition
from ..framework.result import ScoredItem
from .evidence import VideoHallucerEvidence
from .items import BASIC, HALLUCINATION, PAPER_SETS, VideoHallucerItem, VideoHallucerRun
from .scores import COLUMNS, SCORES, SET_COLUMNS, set_columns

if TYPE_CHECKING:
    from ..framework.metric import FloatArray

__all__ = ["VideoHallucerMetric"]

_CODES = {name: code for code, name in enumerate(PAPER_SETS, start=1)}
_WORDS = {label: re.compile(rf"\b{label}\b", re.IGNORECASE) for label in ("yes", "no")}
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerMetric(MetricBase):
    """VideoHallucer (Wang et al., 2024; released script ``evaluation_utils.py``, ``cal_score``).

    A pair is a basic question, about what the video shows, and a hallucinated one.

    * ``basic_accuracy``, ``hallucination_accuracy`` = right answers / pairs
    * ``pair_accuracy`` = pairs with two right answers / pairs
    * ``mean_…_accuracy``: the means over the paper's five sets, with equal weights. None if one of
      them has no pair.
    * ``yes_percent_difference`` = share of yes answers - share of yes labels
    * ``false_positive_ratio`` = wrong answers with the label no / wrong answers
    * ``unparsed_rate`` = pairs with an answer that could not be parsed / pairs with two answers

    ``published`` follows the released script: an answer is right if it contains the label as a
    word, in any letter case. "No, ... Yes" is therefore right for both labels. For the yes bias, a
    right answer counts as its label and a wrong one as the opposite.
    ``corrected`` uses the strict parser of yes and no; a pair with an unparsed answer is unscored.

    Differences from the released scripts: the script of the bias uses the hallucinated question if
    the basic answer is wrong, and the reverse, and counts answers twice; here every answer counts
    once. The released means are over the sets that were run; here they need all five.

    Attributes:
        variant: ``published`` or ``corrected``.
    """

    name: ClassVar[Literal["video-hallucer"]] = "video-hallucer"
    summary: ClassVar[str] = "Pairs of questions about what videos show and do not show."
    papers: ClassVar[tuple[Paper, ...]] = (
        Paper(
            title="VideoHallucer",
            authors="Wang et al.",
            year=2024,
            link="arXiv:2406.16338",
            where="section 4 and evaluation_utils.py",
        ),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published",
            meaning="Reproduces the released script: right if the label is a word of the answer.",
        ),
        VariantDefinition(
            name="corrected",
            meaning="Parses a clear yes or a clear no; pairs with another answer are unscored.",
        ),
    )
    unit: ClassVar[Literal["pairs"]] = "pairs"
    folds: ClassVar[bool] = False
    unresolved: ClassVar[str] = "unscored"
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = SCORES

    def score_pair(self, item: VideoHallucerItem) -> ScoredItem[VideoHallucerEvidence]:
        """Return the statistics of a pair with two answers and two labels."""
        basic = self._answer(item.runs[BASIC])
        hallucination = self._answer(item.runs[HALLUCINATION])
        readable = basic.answer is not None and hallucination.answer is not None
        counted = readable or self.variant == "published"
        return ScoredItem(
            statistics=(
                _counts(basic, hallucination, self._set_code(item))
                if counted
                else self.unscored_row(item, unparsed=True)
            ),
            scores=_own_scores(basic, hallucination) if counted else {},
            evidence=VideoHallucerEvidence(basic=basic, hallucination=hallucination),
            readable=counted,
        )

    def unscored_row(self, item: VideoHallucerItem, *, unparsed: bool) -> tuple[float, ...]:
        """Return the statistics of a pair that does not count."""
        zeros = (0,) * (len(self.columns) - len(_LAST))
        return (*zeros, int(unparsed), int(unparsed), 1, self._set_code(item))

    def _answer(self, run: VideoHallucerRun) -> AnswerEvidence:
        assert run.response is not None, "a pair without it is unscored"
        if self.variant == "corrected":
            answer = yes_no_parser("strict")(run.response)
            return AnswerEvidence(
                answer=answer, label=run.label, correct=answer == run.label, how="strict"
            )
        right = _WORDS[run.label].search(run.response) is not None
        other = _OPPOSITE[run.label]
        found = run.label if right else other if _WORDS[other].search(run.response) else None
        return AnswerEvidence(answer=found, label=run.label, correct=right, how="word")

    def _set_code(self, item: VideoHallucerItem) -> int:
        return _CODES.get(item.set_name, 0)

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of single sets."""
        return set_columns(items)

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every unscored pair right, or wrong, in its set."""
        right = items["unscored"] * float(best)
        decided = {
            f"{kind}_right": items[f"{kind}_right"] + right
            for kind in (BASIC, HALLUCINATION, "pair")
        }
        counted = {"set": items["set"], "parsed": items["parsed"] + items["unscored"]}
        return {**items, **set_columns({**counted, **decided})}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return a right pair or a wrong one; :meth:`resolve` has its set."""
        names = (*(column.name for column in self.columns), *SET_COLUMNS)
        right = {f"{kind}_right": float(best) for kind in (BASIC, HALLUCINATION, "pair")}
        return dict.fromkeys(names, 0.0) | {"parsed": 1.0} | right


_LAST = ("unparsed", "answered", "unscored", "set")


def _counts(
    basic: AnswerEvidence, hallucination: AnswerEvidence, set_code: int
) -> tuple[float, ...]:
    both = (basic, hallucination)
    return (
        1,
        int(basic.correct),
        int(hallucination.correct),
        int(basic.correct and hallucination.correct),
        len(both),
        sum(each.correct == (each.label == "yes") for each in both),
        sum(each.label == "yes" for each in both),
        sum(not each.correct for each in both),
        sum(not each.correct and each.label == "no" for each in both),
        0,
        1,
        0,
        set_code,
    )


def _own_scores(basic: AnswerEvidence, hallucination: AnswerEvidence) -> dict[str, float | None]:
    return {
        "basic_accuracy": float(basic.correct),
        "hallucination_accuracy": float(hallucination.correct),
        "pair_accuracy": float(basic.correct and hallucination.correct),
    }
