"""HallusionBench's groups of answers, and the causes of wrong ones: language, vision, or both.

A pair is one question about all figures of a set; a figure has several questions. Label columns of
the table of answers identify them. The value of a pair or figure is stored in one of its rows, so
that sums over rows are sums over pairs or figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..answers.answer_scores import ReadAnswer, count, value_of
from ..framework.arrays import BoolArray, FloatArray, np
from ..framework.columns_and_scores import Grouping, ScoreDefinition, Sums, ratio

CATEGORIES = ("VD", "VS")
"""Visual dependent (needs its figure) and visual supplement (has an answer without one)."""

WRONG, RIGHT, UNCLEAR = 0, 1, 2
"""Correctness of an answer, as the released files write it."""

NO_VERDICT = 3
"""The verdict of an unscored answer."""

JUDGES = ("llm", "router")
"""Sources of correctness that are language models, asked with the reference answer."""
VERDICTS = {"right": RIGHT, "wrong": WRONG, "unclear": UNCLEAR}
"""Verdicts on answers, given ones and those of judges."""

UNKNOWN_INPUT = 3
"""The visual input of an answer about a figure that may be original or edited."""

# Two bits and a factor, with which one column of the table holds all three.
_VS, _ORIGINAL, _VISUAL = 1, 2, 4


def code_by(value: str | None, label: str) -> int:
    """Return the correctness of a value: a verdict, or a parsed answer; None is unclear."""
    if value is None or value in VERDICTS:
        return VERDICTS[value or "unclear"]
    return RIGHT if value == label else WRONG


def code_of(answer: ReadAnswer) -> int:
    """Return the correctness of an answer."""
    return code_by(answer.value, answer.label) if answer.counted else NO_VERDICT


def place_code(*, supplement: bool, original: bool, visual_input: int) -> int:
    """Return category, figure 0 and visual input as one number."""
    return _VS * supplement + _ORIGINAL * original + _VISUAL * visual_input


def group_columns(
    items: Mapping[str, FloatArray], rows: Rows, pairs: Grouping
) -> dict[str, FloatArray]:
    """Return the columns of pairs and figures for a table of answers."""
    return {
        **_accuracy("pairs", pairs, rows),
        **_accuracy("easy", Grouping(items["pair"], rows.visual_input < 2), rows),
        **_accuracy("hard", Grouping(items["pair"], rows.visual_input == 2), rows),
        **_figure_columns(rows, Grouping(items["figure"], items["figure"] > 0)),
    }


class Rows(NamedTuple):
    """Decoded columns of a table."""

    all: BoolArray
    supplement: BoolArray
    original: BoolArray
    visual_input: FloatArray
    verdict: FloatArray
    right: BoolArray
    same: FloatArray
    said: FloatArray

    @classmethod
    def of(cls, items: Mapping[str, FloatArray]) -> Rows:
        """Return the columns of a table."""
        place, verdict = items["place"].astype(np.int64), items["verdict"]
        supplement, original = (place & _VS) > 0, (place & _ORIGINAL) > 0
        return cls(
            all=np.ones(place.shape, dtype=np.bool_),
            supplement=supplement,
            original=original,
            visual_input=(place // _VISUAL).astype(np.float64),
            verdict=verdict,
            right=(verdict == RIGHT) | ((verdict == UNCLEAR) & supplement & original),
            same=items["same"],
            said=items["said"],
        )

    @property
    def unscored(self) -> BoolArray:
        """Whether answers have no correctness."""
        found: BoolArray = self.verdict == NO_VERDICT
        return found

    @property
    def wrong(self) -> BoolArray:
        """Whether answers are wrong."""
        return ~self.right & ~self.unscored

    @property
    def zeros(self) -> FloatArray:
        """A column of zeros."""
        return np.zeros(self.verdict.shape)


def _accuracy(name: str, groups: Grouping, rows: Rows) -> dict[str, FloatArray]:
    """Return complete groups, and those with no wrong answer."""
    whole = groups.count(rows.unscored) == 0
    right = whole & (groups.count(rows.wrong) == 0)
    return {name: groups.placed(whole), f"{name}_right": groups.placed(right)}


def _figure_columns(rows: Rows, figures: Grouping) -> dict[str, FloatArray]:
    right, wrong = figures.count(rows.right), figures.count(rows.wrong)
    whole = figures.count(rows.unscored) == 0
    share = rows.zeros
    # The value is spread over all right answers: the order of rows must not change a sum's last
    # digit.
    part = whole / (right + wrong).clip(min=1)
    share[figures.rows] = rows.right[figures.rows] * part[figures.of]
    return {
        "figures": figures.placed(whole),
        "figures_right": figures.placed(whole & (wrong == 0)),
        "figures_wrong": figures.placed(whole & (right == 0)),
        "figures_mixed": figures.placed(whole & (right > 0) & (wrong > 0)),
        "figure_share": share,
    }


UNKNOWN = 2
"""Value if it is unknown whether an answer agrees with the one for figure 0."""

CAUSES = ("language_hallucination", "visual_illusion", "mixed")
"""Causes of a wrong answer."""
_OPPOSITE = {"yes": "no", "no": "yes"}
_SAID = {"yes": 1, "no": 2}
_SAME = {"1": 1, "0": 0}


def _said(answer: ReadAnswer) -> int:
    """Return the answer as a code; a judged answer is its label if right, else the opposite."""
    value, verdict = answer.value or "", code_of(answer)
    # A judge states correctness only; the answer follows from it, as there are but two.
    if answer.how in JUDGES and answer.label and verdict != UNCLEAR:
        value = answer.label if verdict == RIGHT else _OPPOSITE[answer.label]
    return _SAID.get(value, 0)


def _same(answer: ReadAnswer) -> int:
    return _SAME.get(answer.field("same"), UNKNOWN) if answer.how == "given" else UNKNOWN


def _blamed(cause: str) -> Callable[[ReadAnswer], bool]:
    return lambda answer: _cause_of(answer) == cause


def _cause_of(answer: ReadAnswer) -> str:
    """Return the cause of a wrong answer by the answer alone; empty for a right one."""
    verdict = code_of(answer)
    if answer.field("category") == "VD":
        blind = answer.field("figure_id") == "0"
        failed = "visual_illusion" if blind else "mixed"
        unclear = "visual_illusion"
    else:
        shown = answer.field("visual_input") != "0"
        failed, unclear = ("mixed", "visual_illusion") if shown else ("language_hallucination", "")
    return {WRONG: failed, UNCLEAR: unclear}.get(verdict, "")


QUESTION_CAUSES = tuple(
    count(f"question_{cause}", f"{meaning}, by the answer alone", _blamed(cause))
    for cause, meaning in zip(
        CAUSES,
        ("wrong without a figure", "wrong because of the figure", "wrong for either reason"),
        strict=True,
    )
)
"""Counts of the causes of wrong answers, by the answer alone."""
COMPARED = (
    value_of("same", "whether it agrees with figure 0", _same),
    value_of("said", "the parsed answer", _said),
)
"""The columns by which an answer is compared with the one for figure 0."""


def _known(top: str, bottom: str, unknown: str) -> Callable[[Sums], FloatArray]:
    """Return a share that is undefined if the cause of a failure is unknown."""
    over = ratio(top, bottom)

    def value(sums: Sums) -> FloatArray:
        return np.where(sums[unknown] > 0, np.nan, over(sums))

    return value


def _cause(prefix: str, cause: str, failures: str, bottom: str, unknown: str) -> ScoreDefinition:
    name = f"{prefix}{cause}"
    # Shares of wrong answers have no prefix; their columns are named ``failure_…``.
    top = name if prefix else f"failure_{cause}"
    return ScoreDefinition(
        name=name,
        meaning=f"{failures} with the cause {cause.replace('_', ' ')} / {failures}",
        columns=(top, bottom, unknown) if unknown else (top, bottom),
        value=_known(top, bottom, unknown) if unknown else ratio(top, bottom),
        count=bottom,
        bounded=False,
    )


_CAUSES = (
    ("", "wrong answers", "failures", "failures_unknown"),
    ("question_", "wrong answers judged alone", "failures", ""),
    ("pair_", "wrong pairs", "pairs_wrong", "pairs_unknown"),
)
CAUSE_SCORES = tuple(_cause(prefix, cause, *of) for prefix, *of in _CAUSES for cause in CAUSES)
"""The shares of causes."""


def cause_columns(rows: Rows, pairs: Grouping) -> dict[str, FloatArray]:
    """Return the columns of the causes of wrong pairs and wrong answers."""
    blame = _blame(rows, pairs)
    return {**_pair_columns(rows, pairs, blame), **_failure_columns(rows, blame)}


def _pair_columns(rows: Rows, pairs: Grouping, blame: _Blame) -> dict[str, FloatArray]:
    wrong = (pairs.count(rows.unscored) == 0) & (pairs.count(rows.wrong) > 0)
    language, vision = pairs.count(blame.language) > 0, pairs.count(blame.vision) > 0
    causes = _causes(wrong & language, wrong & vision)
    unknown = wrong & (pairs.count(blame.unknown) > 0)
    return {
        "pairs_wrong": pairs.placed(wrong),
        "pairs_unknown": pairs.placed(unknown),
        **{f"pair_{cause}": pairs.placed(found) for cause, found in causes.items()},
    }


def _failure_columns(rows: Rows, blame: _Blame) -> dict[str, FloatArray]:
    causes = _causes(blame.language, blame.vision)
    return {
        "failures": rows.wrong.astype(np.float64),
        "failures_unknown": blame.unknown.astype(np.float64),
        **{f"failure_{cause}": found.astype(np.float64) for cause, found in causes.items()},
    }


def _causes(language: BoolArray, vision: BoolArray) -> dict[str, BoolArray]:
    return dict(
        zip(CAUSES, (language & ~vision, vision & ~language, language & vision), strict=True)
    )


class _Blame(NamedTuple):
    """Causes of each wrong answer."""

    language: BoolArray
    vision: BoolArray
    unknown: BoolArray


def _blame(rows: Rows, pairs: Grouping) -> _Blame:
    """Return the causes by the released script's table, which docs/reference lists."""
    before, same = _compared(rows, pairs)
    edited, failed, unclear = ~rows.original, rows.verdict == WRONG, rows.verdict == UNCLEAR
    depends, supplement = edited & ~rows.supplement, edited & rows.supplement
    was_right, was_wrong, was_unclear = (before == v for v in (RIGHT, WRONG, UNCLEAR))
    no_before = before == NO_VERDICT
    # A wrong answer that repeats the one for figure 0 ignores the figure: language is the cause.
    copied = (depends & was_right & failed) | (supplement & was_wrong & failed)
    copied |= supplement & was_right & failed & (rows.visual_input == 2)
    unknown = (copied & (same == UNKNOWN)) | (
        no_before & ((depends & failed) | (supplement & (failed | unclear)))
    )
    unknown |= supplement & was_right & failed & (rows.visual_input == UNKNOWN_INPUT)
    language = rows.original & rows.supplement & failed
    language |= copied & (same == 1)
    language |= supplement & was_wrong & (failed | unclear)
    vision = rows.original & ~rows.supplement & (failed | unclear)
    vision |= depends & (failed | unclear)
    vision |= supplement & was_unclear & (failed | unclear)
    vision |= supplement & was_right & (unclear | (failed & (rows.visual_input != 2)))
    vision |= supplement & was_right & failed & (rows.visual_input == 2) & (same == 0)
    vision |= supplement & was_wrong & (unclear | (failed & (same == 0)))
    return _Blame(language & ~unknown, vision & ~unknown, unknown)


def _compared(rows: Rows, pairs: Grouping) -> tuple[FloatArray, FloatArray]:
    """Return the verdict for figure 0, and whether the answer is the same, for each row."""
    # A table without rows has no pairs, and no largest number.
    size = int(pairs.of.max(initial=-1)) + 1
    # A pair whose figure 0 is missing stays without a verdict, so that its cause is unknown.
    verdicts, answers = np.full(size, float(NO_VERDICT)), np.zeros(size)
    verdicts[pairs.of[rows.original]] = rows.verdict[rows.original]
    answers[pairs.of[rows.original]] = rows.said[rows.original]
    first = answers[pairs.of]
    both = (rows.said > 0) & (first > 0)
    return verdicts[pairs.of], np.where(both, rows.said == first, rows.same)
