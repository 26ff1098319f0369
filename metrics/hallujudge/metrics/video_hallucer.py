"""VideoHallucer: pairs of questions about what a video shows and does not show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from .answers.closed_questions import AnswerEvidence, yes_bias_scores
from .answers.yes_no import yes_no_parser
from .framework.columns_and_scores import Column, ScoreDefinition, mean_of, ratio, share
from .framework.metric import Metric, Paper, VariantDefinition
from .framework.results import CanonicalRecord, Item, JsonValue, ScoredItem

if TYPE_CHECKING:
    from .framework.columns_and_scores import FloatArray


PAPER_SETS = (
    "object_relation",
    "temporal",
    "semantic_detail",
    "external_factual",
    "external_nonfactual",
)
"""The sets that the paper's overall accuracy is the mean of."""
SETS = (*PAPER_SETS, "interaction", "fact_detect")
"""All sets."""
BASIC = "basic"
"""The question about what the video shows."""
HALLUCINATION = "hallucination"
"""The question about what it does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerRun:
    """One question of a pair, and the answer."""

    response: str | None
    """What the model wrote; None without a response."""
    label: str
    """The right answer: ``yes`` or ``no``."""
    question: str = ""
    """The question."""
    video: str = ""
    """The video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerItem(Item):
    """A basic question and its hallucinated question."""

    set_name: str
    """One of :data:`SETS`."""
    kind: str = ""
    """Kind of the question within its set."""
    runs: Mapping[str, VideoHallucerRun] = field(default_factory=dict)
    """``basic`` and ``hallucination`` -> question and answer."""

    def question_record(self) -> CanonicalRecord:
        """Return the questions and videos of the pair."""
        return [(name, run.question, run.video) for name, run in self._pair if run.question]

    def reference_record(self) -> CanonicalRecord:
        """Return the labels of the pair, and what the benchmark says of it."""
        return [(name, run.label) for name, run in self._pair], self.set_name, self.kind

    @property
    def _pair(self) -> list[tuple[str, VideoHallucerRun]]:
        return sorted(self.runs.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerEvidence:
    """Evidence of a pair's scores."""

    basic: AnswerEvidence
    """The answer to the basic question."""
    hallucination: AnswerEvidence
    """The answer to the hallucinated question."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return both answers with their labels."""
        return {"basic": self.basic.to_json(), "hallucination": self.hallucination.to_json()}


COLUMNS: tuple[Column, ...] = (
    Column(name="parsed", meaning="pairs whose answers count"),
    Column(name="basic_right", meaning="right answers to basic questions"),
    Column(name="hallucination_right", meaning="right answers to hallucinated questions"),
    Column(name="pair_right", meaning="pairs with two right answers"),
    Column(name="answers", meaning="answers of these pairs"),
    Column(name="yes_answers", meaning="of these, yes"),
    Column(name="yes_labels", meaning="of these, with the label yes"),
    Column(name="wrong", meaning="of these, wrong"),
    Column(name="wrong_yes", meaning="of these, wrong with the label no"),
    Column(name="unparsed", meaning="pairs with an answer that could not be parsed"),
    Column(name="answered", meaning="pairs with two answers"),
    Column(name="unscored", meaning="pairs that do not count"),
    Column(name="set", meaning="set, as a number", label=True),
)
"""The statistics of a pair, in order."""

_KINDS = ("basic", "hallucination", "pair")

SET_COLUMNS = tuple(
    name for part in PAPER_SETS for name in (part, *(f"{kind}_{part}" for kind in _KINDS))
)
"""Columns of single sets, made from a table of pairs."""


def set_columns(items: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return for each of the paper's sets its pairs and right answers."""
    out: dict[str, FloatArray] = {}
    for code, name in enumerate(PAPER_SETS, start=1):
        here = (items["set"] == code).astype(float)
        out[name] = items["parsed"] * here
        out |= {f"{kind}_{name}": items[f"{kind}_right"] * here for kind in _KINDS}
    return out


def _mean_score(kind: str) -> ScoreDefinition:
    return ScoreDefinition(
        name=f"mean_{kind}_accuracy",
        meaning=f"{kind}_accuracy, mean over the paper's five sets",
        direction="higher",
        columns=tuple(column for name in PAPER_SETS for column in (f"{kind}_{name}", name)),
        value=mean_of(*(ratio(f"{kind}_{name}", name) for name in PAPER_SETS)),
        count="parsed",
    )


SCORES: tuple[ScoreDefinition, ...] = (
    share("basic_accuracy", "right answers to basic questions / pairs", "basic_right", "parsed"),
    share(
        "hallucination_accuracy",
        "right answers to hallucinated questions / pairs",
        "hallucination_right",
        "parsed",
    ),
    share("pair_accuracy", "pairs with two right answers / pairs", "pair_right", "parsed"),
    *map(_mean_score, _KINDS),
    *yes_bias_scores("answers", "wrong"),
    share(
        "unparsed_rate",
        "pairs with an answer that could not be parsed / pairs",
        "unparsed",
        "answered",
        direction="lower",
        bounded=False,
    ),
)
"""The scores, in the order of the report."""


_CODES = {name: code for code, name in enumerate(PAPER_SETS, start=1)}
_WORDS = {label: re.compile(rf"\b{label}\b", re.IGNORECASE) for label in ("yes", "no")}
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerMetric(Metric):
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
    # Columns of single sets are made from whole tables, so rows must stay as they are.
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
        # The released script looks for the label alone: "No, ... Yes" is right either way.
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
        # The released bias: a right answer counts as its label, any other as the opposite.
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
