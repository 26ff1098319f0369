"""Groups of HallusionBench's answers within a set: pairs and figures.

A pair is one question about all figures of a set; a figure has several questions. Label columns of
the table of answers identify them. The value of a pair or figure is stored in one of its rows, so
that sums over rows are sums over pairs or figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..framework.columns_and_scores import FloatArray

    BoolArray = NDArray[np.bool_]


CATEGORIES = ("VD", "VS")
"""Visual dependent (needs its figure) and visual supplement (has an answer without one)."""

WRONG, RIGHT, UNCLEAR = 0, 1, 2
"""Correctness of an answer, as the released files write it."""

NO_VERDICT = 3
"""The verdict of an unscored answer."""

UNKNOWN = 2
"""Value if it is unknown whether an answer agrees with the one for figure 0."""

CAUSES = ("language_hallucination", "visual_illusion", "mixed")
"""Causes of a wrong answer."""


_VS, _ORIGINAL, _VISUAL = 1, 2, 4


def place_code(*, supplement: bool, original: bool, visual_input: int) -> int:
    """Return category, figure 0 and visual input as one number."""
    return _VS * supplement + _ORIGINAL * original + _VISUAL * visual_input


@lru_cache(maxsize=1 << 16)
def key_of(*parts: str) -> int:
    """Return a number for a pair or a figure, above 0 and exact in a float."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=6).digest()) + 1


def made_columns(items: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the columns of pairs, figures and causes for a table of answers."""
    rows = _Rows.of(items)
    pairs = _Grouping(items["pair"], rows.all)
    blame = _blame(rows, pairs)
    return {
        **_pair_columns(rows, pairs, blame),
        **_accuracy("easy", _Grouping(items["pair"], rows.visual_input != 2), rows),
        **_accuracy("hard", _Grouping(items["pair"], rows.visual_input == 2), rows),
        **_figure_columns(rows, _Grouping(items["figure"], items["figure"] > 0)),
        **_failure_columns(rows, blame),
    }


class _Rows(NamedTuple):
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
    def of(cls, items: Mapping[str, FloatArray]) -> _Rows:
        import numpy as np

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
        found: BoolArray = self.verdict == NO_VERDICT
        return found

    @property
    def wrong(self) -> BoolArray:
        return ~self.right & ~self.unscored

    @property
    def zeros(self) -> FloatArray:
        import numpy as np

        return np.zeros(self.verdict.shape)


class _Grouping:
    """Groups of rows.

    Args:
        keys: Key of each row's group.
        mask: The rows that count.
    """

    def __init__(self, keys: FloatArray, mask: BoolArray) -> None:
        import numpy as np

        self.rows = np.flatnonzero(mask)
        _, first, of = np.unique(keys[self.rows], return_index=True, return_inverse=True)
        self.of: NDArray[np.intp] = of
        self._first = self.rows[first]
        self._size = len(keys)

    def count(self, column: BoolArray) -> FloatArray:
        """Return for each group how many of its rows are true."""
        import numpy as np

        counts = np.bincount(self.of[column[self.rows]], minlength=len(self._first))
        return counts.astype(np.float64)

    def placed(self, values: BoolArray) -> FloatArray:
        """Return a column with each group's value in one of its rows."""
        import numpy as np

        out = np.zeros(self._size)
        out[self._first] = values
        return out


def _accuracy(name: str, groups: _Grouping, rows: _Rows) -> dict[str, FloatArray]:
    """Return complete groups, and those with no wrong answer."""
    whole = groups.count(rows.unscored) == 0
    right = whole & (groups.count(rows.wrong) == 0)
    return {name: groups.placed(whole), f"{name}_right": groups.placed(right)}


def _pair_columns(rows: _Rows, pairs: _Grouping, blame: _Blame) -> dict[str, FloatArray]:
    wrong = (pairs.count(rows.unscored) == 0) & (pairs.count(rows.wrong) > 0)
    language, vision = pairs.count(blame.language) > 0, pairs.count(blame.vision) > 0
    causes = _causes(wrong & language, wrong & vision)
    unknown = wrong & (pairs.count(blame.unknown) > 0)
    return {
        **_accuracy("pairs", pairs, rows),
        "pairs_wrong": pairs.placed(wrong),
        "pairs_unknown": pairs.placed(unknown),
        **{f"pair_{cause}": pairs.placed(found) for cause, found in causes.items()},
    }


def _figure_columns(rows: _Rows, figures: _Grouping) -> dict[str, FloatArray]:
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


def _failure_columns(rows: _Rows, blame: _Blame) -> dict[str, FloatArray]:
    import numpy as np

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


def _blame(rows: _Rows, pairs: _Grouping) -> _Blame:
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


def _compared(rows: _Rows, pairs: _Grouping) -> tuple[FloatArray, FloatArray]:
    """Return the verdict for figure 0, and whether the answer is the same, for each row."""
    import numpy as np

    size = int(pairs.of.max(initial=-1)) + 1
    verdicts, answers = np.full(size, float(NO_VERDICT)), np.zeros(size)
    verdicts[pairs.of[rows.original]] = rows.verdict[rows.original]
    answers[pairs.of[rows.original]] = rows.said[rows.original]
    first = answers[pairs.of]
    both = (rows.said > 0) & (first > 0)
    return verdicts[pairs.of], np.where(both, rows.said == first, rows.same)
