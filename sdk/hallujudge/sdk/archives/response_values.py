"""Responses of records as texts, and people's scores of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hallujudge.metrics.framework.claims import json_kind, well_formed

from ..errors import ArchiveError
from .bad_records import RESPONSE_KEY
from .json_files import named, shown
from .records import Record, response_value
from .table_files import structured

# Keys of texts that are never what a model said: ids, and what describes a message.
_NAMES_NO_RESPONSE = re.compile(
    r"(?:^|[_-])(?:id|uuid|hash|fingerprint|role|type|object|model|status|finish_reason|stop_reason)$"
    r"|Id$"
)
# How deep texts are looked for in an object that was given as a response.
_MAX_DEPTH = 6


def response_text(record: Record, key: str) -> str | None:
    """Return the response of a record; None if it has none.

    Raises:
        ArchiveError: The response is not a text.
    """
    value = response_value(record, key)
    # As in answers, a list of one text, such as a sampled response, is that text.
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if value is None or isinstance(value, str):
        return value and well_formed(value)
    raise not_a_text(record, key)


def not_a_text(record: Record, key: str, what: str = "a text") -> ArchiveError:
    """Return the error of a response that is not a text; it names the texts that it holds.

    ``what`` says what it may be.
    """
    value = record.values.get(key)
    problem = f"{record.place}: {key!r} is {json_kind(value)}, not {what}"
    texts = [f"response={key}.{path}" for path in _paths_of_texts(value)]
    if not texts:
        problem += f" (found {shown(value)}); write what the model said as a text, or name the "
        problem += "key that has it with InputOptions(key_map=…): response=KEY"
        return ArchiveError(problem, metadata={RESPONSE_KEY: key})
    problem += f"; name one in it with InputOptions(key_map=…): {named(texts)}"
    return ArchiveError(problem, metadata={RESPONSE_KEY: key})


def _paths_of_texts(value: object, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield the paths of the texts in a value, of lists of objects in the last one; no ids."""
    if not depth:
        return
    if isinstance(value, (list, tuple)) and value and isinstance(value[-1], Mapping):
        yield from (f"-1.{path}" for path in _paths_of_texts(value[-1], depth - 1))
        return
    lists = enumerate(value) if isinstance(value, (list, tuple)) else ()
    for name, held in value.items() if isinstance(value, Mapping) else lists:
        if isinstance(held, str) and not _NAMES_NO_RESPONSE.search(str(name)):
            yield str(name)
        elif not isinstance(held, str):
            yield from (f"{name}.{path}" for path in _paths_of_texts(held, depth - 1))


# Human scores -------------------------------------------------------------------------------------


USUAL_SCORE_KEYS = ("human_score", "human_scores")
"""Keys of human scores that a record may have."""
# No study has so many; the key then holds something else.
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
        # JSON's whole numbers may be larger than any float.
        except OverflowError:
            number = math.inf
        if abs(number) <= _MAX_SCORE:
            return number
    raise ArchiveError(
        f"{place}: {value!r:.60} is not a score; give a number from {-_MAX_SCORE:g} to "
        f"{_MAX_SCORE:g}, or null"
    )
