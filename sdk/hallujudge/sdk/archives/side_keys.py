"""Keys of records beside the response: the model's thoughts, and how it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.framework.signature import ASKED, PROMPTS
from hallujudge.metrics.responses.reader import THOUGHT_KEYS, thought_in
from hallujudge.metrics.responses.thoughts import with_thought

from ..errors import HallujudgeError
from .found_files import is_url
from .inputs import InputOptions, References, Responses, are_paths
from .local_files import open_binary
from .opened_archives import Opened
from .record_values import structured, value_at
from .records import Record, changed, read_records

Source: TypeAlias = "Responses | References"

_RESPONSE_KEYS = ("response", "caption", "text", "answer", "output", "prediction", "description")
# An archive has thoughts if one of the first records has.
_RECORDS_LOOKED_AT = 200
_BYTES_LOOKED_AT = 1 << 20
_THOUGHT_MARKS = tuple(f'"{key}"'.encode() for key in THOUGHT_KEYS)
# Records of records, such as the answers of a pair.
_MOST_DEEP = 3
_ASKED_KEY = "asked"
_ASKED_MARK = _ASKED_KEY.encode()
# Option of a spec -> its key in the object under the key above.
_HOW_KEYS = {PROMPTS: "prompts", ASKED: "how"}
_PIECE = 1 << 20
_ZIP = b"PK\x03\x04"


def with_own_thoughts(
    source: Source, declared: ClosedQuestions | None, options: InputOptions
) -> Source:
    """Return responses with the thoughts that their records hold under keys of their own.

    Args:
        source: The responses.
        declared: The benchmark; None for a metric without a declaration.
        options: How the archive is read.
    """
    path = options.key_map.get("response", "")
    usual = _RESPONSE_KEYS if declared is None else declared.keys.response
    named = (options.text_key,) if options.text_key else ()
    keys = (*named, *([] if options.text_key else usual), *_RESPONSE_KEYS[:1])
    thoughts = _Thoughts(keys, path.rpartition(".")[0])
    return thoughts.joined(source) if thoughts.are_in(source) else source


class _Thoughts:
    """Joins the thoughts of records with their responses.

    Args:
        keys: Keys of the response, the usual one first.
        folder: The path of the object that holds the response; empty for the record itself.
    """

    def __init__(self, keys: Sequence[str], folder: str) -> None:
        self._keys = keys
        self._folder = folder

    def are_in(self, source: Source) -> bool:
        """Return whether one of the first records has a thought."""
        if isinstance(source, Path):
            if source.is_dir():
                return False
            with open_binary(source) as file:
                start = file.read(_BYTES_LOOKED_AT)
            if not any(key in start for key in _THOUGHT_MARKS):
                return False
        elif are_paths(source) or (
            isinstance(source, Mapping)
            and not any(isinstance(value, (Mapping, list)) for value in source.values())
        ):
            return False
        first = islice(read_records(source), _RECORDS_LOOKED_AT)
        return any(self._joined(record.values) is not record.values for record in first)

    def joined(self, source: Source) -> Source:
        """Return the source with the thoughts of its records."""
        if isinstance(source, Mapping):
            return {
                key: self._joined(value) if isinstance(value, Mapping) else value
                for key, value in source.items()
            }
        return changed(source, self._joined)

    def _joined(self, values: Mapping[str, object], deep: int = 0) -> Mapping[str, object]:
        """Return a record with its thought before the response; the record itself without one."""
        held = value_at(values, self._folder) if self._folder else values
        found = thought_in(held) if isinstance(held, Mapping) else None
        key = next((key for key in self._keys if key in values), None)
        if found is not None and key is not None:
            return self._with_thought(values, key, *found)
        if deep == _MOST_DEEP:
            return values
        changed = {
            name: inner
            for name, value in values.items()
            if (inner := self._within(value, deep + 1)) is not value
        }
        return {**values, **changed} if changed else values

    def _within(self, value: object, deep: int) -> object:
        if isinstance(value, Mapping):
            return self._joined(value, deep)
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            parts = [self._joined(one, deep) for one in value]
            return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
        return value

    def _with_thought(
        self, values: Mapping[str, object], key: str, name: str, thought: str
    ) -> Mapping[str, object]:
        answer = values[key]
        # pandas has NaN for an empty cell.
        answer = None if answer != answer else answer
        # Some tools have put the thought into the response already.
        if not (answer is None or isinstance(answer, str)) or (answer and thought in answer):
            return values
        return {**values, key: with_thought(thought, answer, name)}


# How the model was asked --------------------------------------------------------------------------


def recorded_asking(responses: object, opened: Opened) -> dict[str, str]:
    """Return how the model of an archive was asked, as options of a spec; empty if it is unknown.

    Several ways have all their values, joined by ``+``.

    Args:
        responses: The archive: paths, or plain values. A URL is not looked at.
        opened: The same, whose files may be open.
    """
    # Whatever is wrong with an archive, its reader says.
    with suppress(HallujudgeError, OSError):
        if isinstance(responses, (str, Path)) or are_paths(responses):
            paths = [responses] if isinstance(responses, (str, Path)) else responses
            # Most archives do not say it, and are not read once more.
            if any(map(is_url, paths)) or not any(_mentions(file.path) for file in opened.files):
                return {}
            return _all_ways(record.values for record in read_records(opened.source or ()))
        if isinstance(responses, (list, Mapping)):
            given = responses.values() if isinstance(responses, Mapping) else responses
            records = (each.values if isinstance(each, Record) else each for each in given)
            return _all_ways(values for values in records if isinstance(values, Mapping))
    return {}


def _all_ways(records: Iterable[Mapping[str, object]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for name, text in (pair for values in records for pair in _told(values)):
        found.setdefault(name, set()).add(text)
    return {name: "+".join(sorted(found[name])) for name in _HOW_KEYS if name in found}


def _told(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a record says; a table has it in a cell, or in a column for each value."""
    given = structured(values.get(_ASKED_KEY))
    for name, key in _HOW_KEYS.items():
        held = given if isinstance(given, Mapping) else {}
        text = held.get(key, value_at(values, f"{_ASKED_KEY}.{key}"))
        if isinstance(text, str) and text:
            yield name, text


def _mentions(path: Path) -> bool:
    """Return whether a file may say how its model was asked."""
    with open_binary(path) as file:
        before = file.read(_PIECE)
        if before.startswith(_ZIP):
            # A workbook, which is in memory; a log of Inspect AI has other parts.
            return b"xl/" in before
        while before:
            if _ASKED_MARK in before:
                return True
            more = file.read(_PIECE)
            # The end of a piece may cut the mark in two.
            before = before[-len(_ASKED_MARK) :] + more if more else b""
    return False
