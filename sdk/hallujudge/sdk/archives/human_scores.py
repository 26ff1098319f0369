"""Human scores of responses, one for each annotator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ..errors import ArchiveError
from .records import Record
from .table_files import structured

USUAL_SCORE_KEYS = ("human_score", "human_scores")
"""Keys of human scores that a record may have."""
_MAX_ANNOTATORS = 1000
# Far above any real scale. Squares of larger numbers would overflow a float in correlations.
_MAX_SCORE = 1e9


def human_scores(record: Record, keys: Sequence[str]) -> tuple[float, ...]:
    """Return the human scores of a record, one for each annotator.

    A key holds a number, or several in a list, or by annotator in an object; null means no score.

    Args:
        record: The record.
        keys: The keys; empty for the usual ones, which a record may lack.

    Raises:
        ArchiveError: A named key is missing, or a value is not a number.
    """
    if missing := [key for key in keys if key not in record.values]:
        raise ArchiveError(
            f"{record.place}: no key {missing[0]!r} for human scores; found "
            f"{', '.join(sorted(record.values))}. Write null for an annotator without a score"
        )
    found = tuple(
        _score_of(value, f"{record.place}, {key}")
        for key in keys or USUAL_SCORE_KEYS
        for value in _given_scores(record.values.get(key))
        if value is not None
    )
    if len(found) > _MAX_ANNOTATORS:
        raise ArchiveError(
            f"{record.place}: {len(found)} human scores; give at most {_MAX_ANNOTATORS}"
        )
    return found


def _given_scores(given: object) -> Iterable[object]:
    value = structured(given)
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else (value,)


def _score_of(value: object, place: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) <= _MAX_SCORE:
            return number
    raise ArchiveError(
        f"{place}: {value!r:.60} is not a score; give a number from {-_MAX_SCORE:g} to "
        f"{_MAX_SCORE:g}, or null"
    )
