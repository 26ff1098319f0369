"""Lines of ``items.jsonl``: one for each item, with everything that its report is computed from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Literal, TypeVar

from msgspec import UNSET, Raw, defstruct
from msgspec.json import Encoder

from hallujudge.metrics import AnswersItem, Column, Evidence, Item, ItemResult, Outcome
from hallujudge.metrics.framework.columns_and_scores import are_counts
from hallujudge.metrics.framework.json_values import schema_of
from hallujudge.metrics.framework.results import JsonValue

_UNSCORED = Outcome.UNSCORED
_LINE = (
    *("id", "group_id", "outcome", "reason", "detail", "fields", "question_hash", "reference_hash"),
    *("scores", "statistics", "response", "response_sha256", "thought", "traits", "kept"),
    *("evidence", "thought_evidence"),
)
"""The keys of a line, in their order; :meth:`ItemResult.head` has the first of them."""
# One object for all, as what lines share is told by identity.
_NO_FIELDS: Mapping[str, str] = {}
_Value = TypeVar("_Value")


@cache
def _line_type() -> tuple[Callable[..., object], object]:
    """Return the class of lines, with its fields in their order, and the value of absent ones."""
    fields = [(name, object, UNSET) for name in _LINE]
    # Lines hold no cycles, so the garbage collector need not look at each of them.
    return defstruct("ItemLine", fields, gc=False), UNSET


class ItemLines:
    """Makes lines of items.

    Args:
        columns: The results' statistics.
        keep_text: Whether responses are written; otherwise their SHA-256 is.
    """

    def __init__(self, columns: Sequence[Column], *, keep_text: bool) -> None:
        self._columns = columns
        self._names = tuple(column.name for column in columns)
        self._whole = [place for place, column in enumerate(columns) if column.integral]
        self._keep_text = keep_text
        self._statistics = _statistics_type(self._names)

    def of(self, pairs: Iterable[tuple[Item, ItemResult]]) -> bytes:
        """Return a line for each item.

        Args:
            pairs: The scored items with their results.

        Raises:
            ValueError: A statistic or score is not a finite number, or a statistic is none that
                its column can hold: readers would refuse the line.
        """
        line, absent = _line_type()
        keep_text, lines, made = self._keep_text, [], list(pairs)
        results = [result for _, result in made]
        numbers_of = self._named if self._are_whole(results) else self._named_plainly
        # A loop without calls in Python, and values that are encoded in two thirds of the time of a
        # dict: these are most of what a run of closed questions writes.
        for (item, result), fields, scores, numbers, evidence in zip(
            made,
            # Most items have no fields; what they share is not written.
            _encoded([result.fields or _NO_FIELDS for result in results], _by_name),
            _encoded([result.scores for result in results], dict),
            _encoded([result.statistics for result in results], numbers_of),
            _encoded([result.evidence for result in results], _evidence),
            strict=True,
        ):
            said = response_of(item)
            reason = detail = absent
            if result.outcome is _UNSCORED:
                # The detail may quote the response.
                reason, detail = result.reason, result.detail if keep_text else ""
            traits, kept = result.traits, result.kept
            lines.append(
                line(
                    result.id,
                    result.group_id,
                    result.outcome,
                    reason,
                    detail,
                    fields if result.fields else absent,
                    result.question_hash or absent,
                    result.reference_hash or absent,
                    scores,
                    numbers,
                    said if keep_text else absent,
                    absent if keep_text else _hashed(said),
                    (item.thought or absent) if keep_text else absent,
                    _by_name(traits) if traits else absent,
                    list(map(_plain, kept)) if kept else absent,
                    evidence,
                    absent if result.thought is None else _evidence(result.thought.evidence),
                )
            )
        return _encoder().encode_lines(lines)

    def _named(self, numbers: Sequence[float]) -> object:
        """Return the statistics of a result by name."""
        return self._statistics(*numbers)

    def _named_plainly(self, numbers: Sequence[float]) -> object:
        """Return the statistics of a result by name, whole ones without their point."""
        return self._named([*map(_plain, numbers)])

    def _are_whole(self, results: Sequence[ItemResult]) -> bool:
        """Return whether all statistics are whole numbers, as nearly all are.

        Raises:
            ValueError: JSON does not have a number, or its column can't hold it.
        """
        # Equal answers share their scores, and most their statistics.
        for result in {id(each.scores): each for each in results}.values():
            _refuse_infinite(result, result.scores.values())
        own = {id(result.statistics): result for result in results if result.statistics}
        rows = [result.statistics for result in own.values()]
        whole = set(map(type, chain.from_iterable(rows))) <= {int}
        if whole and set(map(len, rows)) <= {len(self._names)}:
            columns = [*zip(*rows, strict=True)]
            counts = [*chain.from_iterable([columns[at] for at in self._whole if columns])]
            if not counts or are_counts(counts):
                return True
        for result in own.values():
            _refuse_infinite(result, result.statistics)
            if len(result.statistics) != len(self._names):
                raise ValueError(f"item {result.id!r} has {len(result.statistics)} statistics")
            _refuse_unreadable(result, self._columns)
        return whole


def _encoded(values: Sequence[_Value], made: Callable[[_Value], object]) -> Iterable[object]:
    """Return what is written of each value: as JSON, made once, where most share theirs.

    Args:
        values: A value of each line, one object for equal answers.
        made: Returns what is written of a value.
    """
    own = {id(value): value for value in values}
    if len(own) > len(values) // 2:
        return map(made, values)
    known = {key: _raw(made(value)) for key, value in own.items()}
    return [known[id(value)] for value in values]


def _by_name(values: Mapping[str, object]) -> Raw:
    """Return values in the order of their names: protobuf maps have none."""
    return Raw(_encoder("sorted").encode(values))


def _evidence(evidence: Evidence | None) -> object:
    return {} if evidence is None else evidence.to_json()


@cache
def _statistics_type(names: tuple[str, ...]) -> Callable[..., object]:
    """Return the class of statistics by name, which are left out where an item has none."""
    if any(_encoder().encode(name) != f'"{name}"'.encode() for name in names):
        # msgspec takes no such name, which may have a value of a declaration's field.
        return lambda *numbers: dict(zip(names, numbers, strict=bool(numbers)))
    own = {f"column_{place}": name for place, name in enumerate(names)}
    # A column's name need not be an identifier of Python, which a field's must be.
    return defstruct("Statistics", [(each, object, UNSET) for each in own], rename=own, gc=False)


def _raw(value: object) -> Raw:
    return Raw(_encoder().encode(value))


def signed_lines(lines: bytes, signature: str) -> bytes:
    """Return whole lines with schema and signature; the signature is known when a run ends."""
    # JSON escapes line feeds within texts. One byte is found in a quarter of the time of two.
    return _end(signature).join([line[:-1] for line in lines.split(b"\n")])


def unsigned_lines(lines: bytes, signature: str) -> bytes:
    """Return whole lines without what :func:`signed_lines` adds."""
    # No text can contain this end: JSON escapes its quotation marks and its line feed.
    return lines.replace(_end(signature), b"}\n")


def _end(signature: str) -> bytes:
    schema, signed = map(_encoder().encode, (schema_of("item"), signature))
    return b',"schema":%b,"signature":%b}\n' % (schema, signed)


def response_of(item: Item) -> str | Mapping[str, str | None] | None:
    """Return an item's response; for items with several answers, name -> response."""
    if not isinstance(item, AnswersItem):
        response = getattr(item, "response", None)
        return response if isinstance(response, str) else None
    answers = item.answers
    if len(answers) > 1:
        return {answer.name: answer.response for answer in answers}
    return answers[0].response if answers else None


def _hashed(response: str | Mapping[str, str | None] | None) -> JsonValue:
    if isinstance(response, Mapping):
        return {name: _hashed(text) for name, text in response.items()}
    if response is None:
        return None
    # A response may contain half of a surrogate pair, which UTF-8 refuses to encode.
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(number: float) -> int | float:
    """Return a whole number without its point."""
    if type(number) is int:
        return number
    return int(number) if float(number).is_integer() else number


def _refuse_infinite(result: ItemResult, numbers: Iterable[float | None]) -> None:
    """Refuse numbers that JSON does not have; the encoder would write null."""
    # A sum is finite only if all its parts are. Undefined scores are left out, as are zeros.
    if not math.isfinite(sum(filter(None, numbers))):
        raise ValueError(f"item {result.id!r} has a score or statistic that is not finite")


def _refuse_unreadable(result: ItemResult, columns: Sequence[Column]) -> None:
    """Refuse a statistic that its column can't hold, which would make a run that can't be read."""
    for column, number in zip(columns, result.statistics, strict=False):
        if problem := column.problem(number):
            raise ValueError(f"item {result.id!r}: the statistic {problem}")


def builtin_value(value: object) -> object:
    """Return a number or mapping of another library as msgspec encodes it.

    Raises:
        NotImplementedError: It is neither.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON")


@cache
def _encoder(order: Literal["sorted"] | None = None) -> Encoder:
    return Encoder(enc_hook=builtin_value, order=order)
