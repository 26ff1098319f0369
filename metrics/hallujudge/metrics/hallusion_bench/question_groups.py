"""Groups of HallusionBench's answers within a set: pairs and figures.

A pair is one question about all figures of a set; a figure has several questions. Label columns of
the table of answers identify them. The value of a pair or figure is stored in one of its rows, so
that sums over rows are sums over pairs or figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..answers.answer_scores import ReadAnswer
from ..answers.groupings import Grouping
from ..framework.arrays import BoolArray, FloatArray, np

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
