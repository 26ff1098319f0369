"""Values of records: those under the usual keys, ids, responses as texts, and human scores."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

from hallujudge.metrics.answers.answer_items import listed
from hallujudge.metrics.errors import meant
from hallujudge.metrics.framework.json_values import json_kind, well_formed
from hallujudge.metrics.responses import sent_text

from ..errors import ArchiveError
from .bad_records import RESPONSE_KEY
from .json_files import named, shown
from .records import Record, has_records

ID_FLAG = "InputOptions(id_key=…)"
"""The option that names the key of the id, for messages."""
TEXT_FLAG = "InputOptions(text_key=…)"
"""The option that names the key of the text, for messages."""
KEY_MISSING = "KEY_MISSING"
"""Reason of an error about a record without any usual key of a value."""
LABEL = "the label"
"""The label among the values that an error may name."""
MOST_EXACT = 1 << 53
"""Floats hold every whole number below this one; many above it become another one."""
USUAL_SCORE_KEYS = ("human_score", "human_scores")
"""Keys of human scores that a record may have."""
# A place in a list; more digits than any list has would slow down int().
_INDEX = re.compile(r"-?\d{1,9}", re.ASCII)
# What has more digits than a float holds exactly stays a text.
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
# Keys of texts that are never what a model said: ids, and what describes a message.
_NAMES_NO_RESPONSE = re.compile(
    r"(?:^|[_-])(?:id|uuid|hash|fingerprint|role|type|object|model|status|finish_reason|stop_reason)$"
    r"|Id$"
)
# How deep texts are looked for in an object that was given as a response.
_MAX_DEPTH = 6
# No study has so many; the key then holds something else.
_MAX_ANNOTATORS = 1000
# Far above any real scale. Squares of larger numbers would overflow a float in correlations.
_MAX_SCORE = 1e9


def choose_key(
    record: Record,
    wanted: str | None,
    candidates: Sequence[str],
    what: str,
    flag: str = "one of these names",
) -> str:
    """Return the key of a value, chosen by the archive's first record.

    Args:
        record: The first record.
        wanted: The key that the user named; None to search the candidates.
        candidates: Usual keys, the most likely first.
        what: Name of the value, for the message.
        flag: The option that names the key, or ``one of these names``, for the message.

    Raises:
        ArchiveError: No key matches; the message lists the record's keys.
    """
    for key in (wanted,) if wanted else candidates:
        if key in record.values:
            return key
    looked = wanted or ", ".join(candidates)
    found = named(sorted(record.values)) or "none"
    if wanted and (near := meant(wanted, record.values)):
        found += f"; did you mean {near!r}?"
    remedy = f"Give it {flag}" if flag.startswith("one of") else f"Name it with {flag}"
    if lists := [name for name, value in record.values.items() if has_records(value)]:
        remedy = f"{named(lists)} is a list of records: give a file of that list alone"
    raise ArchiveError(
        f"{record.place}: no key for {what}: tried {looked}; found {found}. {remedy}",
        reason=KEY_MISSING,
        metadata={"value": what},
    )


def key_in(values: Mapping[str, object], keys: Iterable[str]) -> str:
    """Return the first of some keys that a record has; empty without one."""
    return next((key for key in keys if key in values), "")


def present(*groups: Collection[str]) -> Callable[[tuple[str, ...]], Sequence[tuple[str, ...]]]:
    """Return the function from a record's keys to those of some groups of usual keys that it has.

    Nearly all records of an archive have the same keys, so that usual keys that none has are
    looked up once, and not in each record.
    """

    @lru_cache(maxsize=256)
    def found(keys: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        return [tuple(key for key in group if key in keys) for group in groups]

    return found


def value_at(values: Mapping[str, object], path: str) -> object:
    """Return the value of a key, or at the end of a path such as ``doc.answer`` or ``resps.0``.

    ``messages.-1`` is the last one of a list.
    """
    if path in values:
        return values[path]
    # Most keys have no path, and fields to group by are looked up in every record.
    if "." not in path:
        return None
    value: object = values
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)) and _INDEX.fullmatch(part):
            place = int(part)
            value = value[place] if -len(value) <= place < len(value) else None
        else:
            return None
    return value


def structured(value: object) -> object:
    """Return the list, object or number that a table's cell holds; other values as they are.

    Only for keys that never hold a text: a response may begin with a bracket too.
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    if value.lstrip()[0] in "[{" or _NUMBER.fullmatch(value.strip()):
        return listed(value)
    return value


def listed_texts(given: object, key: str, place: str) -> tuple[str, ...]:
    """Return the texts of a list, or of a table's cell that holds one, without blank ones.

    Args:
        given: The list.
        key: Its key, for messages.
        place: The place of its record, for messages.

    Raises:
        ArchiveError: It is something else.
    """
    value = structured(given)
    if isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value):
        return tuple(well_formed(text) for text in value if text.strip())
    raise ArchiveError(f"{place}: {key!r} is {shown(value)}, not a list of texts")


def optional_text(record: Record, keys: Sequence[str]) -> str:
    """Return the first text or number under some keys; empty if there is none."""
    for key in keys:
        value = record.values.get(key)
        # An empty cell of a table is what null is elsewhere.
        if value == "":
            continue
        if type(value) is str:
            return value if value.isascii() else well_formed(value)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return well_formed(str(value))
    return ""


# Ids ----------------------------------------------------------------------------------------------


def id_under(record: Record, key: str, what: str = "the id") -> str:
    """Return the id that a record has under the archive's key.

    Raises:
        ArchiveError: The record lacks the key, unlike the first one, or its value is no id.
    """
    if key in record.values:
        return canonical_id(record.values[key], record.place)
    near = meant(key, record.values)
    raise ArchiveError(
        f"{record.place}: {what} is missing: tried {key}, as in the first record; found "
        f"{named(sorted(record.values)) or 'none'}. "
        f"{f'Did you mean {near!r}? ' if near else ''}Give every record {what}"
    )


def canonical_id(value: object, place: str) -> str:
    """Return an id as text: 42, 42.0, "42" and "42.0" are the same id.

    Tables have numbers with ``.0`` where pandas wrote a column of numbers that once lacked one.

    Raises:
        ArchiveError: The value is not an id: null, an empty text, a boolean, a fraction or a list.
    """
    if type(value) is int:
        return str(value)
    # Nearly all ids are of these kinds, and there are many.
    if type(value) is str and value.isascii():
        if value.isalnum():
            return value
        if (text := value.strip()) and not text.endswith(".0"):
            return text
    if isinstance(value, str) and (text := value.strip()):
        whole = text.removesuffix(".0")
        return whole if whole.isascii() and whole.isdigit() else well_formed(text)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < MOST_EXACT:
        return str(int(value))
    raise _not_an_id(value, place)


def _not_an_id(value: object, place: str) -> ArchiveError:
    if isinstance(value, float) and value.is_integer():
        return ArchiveError(
            f"{place}: the id {value:.0f} may have lost its last digits: tables hold numbers of "
            "more than 15 digits as floats; write ids as texts"
        )
    if isinstance(value, (bytes, bytearray)):
        return ArchiveError(f"{place}: the id is bytes ({value[:40]!r}); decode it to a text")
    return ArchiveError(f"{place}: {shown(value)} is not an id; give a whole number or a text")


# Responses ----------------------------------------------------------------------------------------


def response_text(record: Record, key: str, *, joins: bool = False) -> str | None:
    """Return the answer as text; that of a list of one text is the text.

    Args:
        record: The record.
        key: The key of the answer.
        joins: Whether the texts of a list are joined: by commas, or by line ends if one has commas
            or spaces.

    Raises:
        ArchiveError: The answer is neither a text nor such a list.
    """
    # Nearly all responses are texts.
    if type(value := record.values.get(key)) is str:
        return value if value.isascii() else well_formed(value)
    value = response_value(record, key)
    if isinstance(value, (list, tuple)) and [*value] == [None]:
        value = None
    if value is None or isinstance(value, str):
        return value and well_formed(value)
    parts = value if isinstance(value, (list, tuple)) and (joins or len(value) == 1) else (None,)
    if all(isinstance(part, str) for part in parts):
        plain = all(part.strip() == part and "," not in part and " " not in part for part in parts)
        return well_formed((", " if plain else "\n").join(parts))
    raise not_a_text(record, key, "a text or a list of texts" if joins else "a text")


def response_value(record: Record, key: str) -> object:
    """Return the value of a response; that of a model server's reply is its text.

    The remains of a failed call become a failure text: tools leave an object with an ``error``, or
    a data frame's NaN, which scoring then recognises.
    """
    value = record.values.get(key)
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and value.get("error"):
        return json.dumps({"error": value["error"]}, default=str)
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return sent_text(value)


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
