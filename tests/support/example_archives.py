"""The examples of declared benchmarks as values, from which tests make archives."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from shlex import split
from typing import Any

from hallujudge.metrics.answers.closed_questions import ClosedQuestions, EachRecord
from hallujudge.metrics.families import FAMILIES, benchmarks_of
from hallujudge.sdk.archives.example_files import example_archives
from hallujudge.sdk.archives.layouts import recognised
from hallujudge.sdk.archives.records import LISTED_TEXT, Record

__all__ = [
    "declared_examples",
    "example_of",
    "numbered",
    "one_item",
    "plain_records",
    "unanswered_run",
]

# What no benchmark's parser reads, and no answer at all.
UNREAD = (None, "Perhaps.")


def declared_examples() -> Iterator[ClosedQuestions]:
    """Yield the benchmarks that are declarations and have an example, in the order of tables."""
    declared = (each for family in FAMILIES for each in benchmarks_of(family))
    return (each for each in declared if each.name in example_archives())


def example_of(metric: str) -> dict[str, Any]:
    """Return the records of a metric's example: ``responses``, and ``references`` if it has them.

    The records of an object are in a list, each with its key as id.
    """
    example = example_archives()[metric]
    files = ((option, example.files.get(name)) for option, name in pairwise(split(example.command)))
    return {option.lstrip("-"): _records(text) for option, text in files if text is not None}


def _records(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = [json.loads(line) for line in text.splitlines() if line]
    if isinstance(found, dict):
        return [{"id": name, **held} for name, held in found.items()]
    return [{LISTED_TEXT: each} if isinstance(each, str) else each for each in found]


def unanswered_run(declared: ClosedQuestions) -> dict[str, Any]:
    """Return a run of an example whose first answers are missing and unreadable."""
    run = example_of(declared.name)
    first = [answered(declared, *each) for each in zip(run["responses"], UNREAD, strict=False)]
    run["responses"][: len(first)] = first
    return {**run, "variant": declared.variants[-1].name}


def answered(declared: ClosedQuestions, record: dict[str, Any], text: str | None) -> dict[str, Any]:
    """Return a record with another response."""
    key = next(filter(record.__contains__, declared.keys.response), declared.keys.response[0])
    return {**_without_responses(declared, record), key: text}


def _without_responses(declared: ClosedQuestions, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without its response, which may be in a chat completion."""
    others = declared.keys.response
    return {k: v for k, v in record.items() if k not in others and not isinstance(v, dict)}


def one_item(declared: ClosedQuestions) -> Iterator[tuple[str, tuple[str, Any, Any]]]:
    """Yield the first item of an example as plain records with the keys that it needs, by name.

    Answers have their labels, and once more they are in a file of questions that is read as it is.
    """
    keys = declared.keys
    rows = plain_records(declared)[: len(declared.names) or 1]
    fields = {name: used for name, used in keys.fields.items() if name not in keys.optional}
    ids = {*keys.id, *_names(fields, (*declared.bundle.by, *declared.bundle.name))}
    known = {*keys.label, *_names(fields, fields)} - {*keys.response}
    answer = {keys.response[0]}
    yield declared.name, (declared.name, _kept(rows, known | ids | answer), None)
    if declared.question_files and not declared.unfold:
        joined = _kept(rows, ids | answer), _kept(rows, known | ids)
        yield f"{declared.name}, joined", (declared.name, *joined)


def plain_records(declared: ClosedQuestions) -> list[dict[str, Any]]:
    """Return the answers of an example, each with its question and its response as texts.

    Optional fields that only reading adds, such as a place in the file, are left out.
    """
    run, keys = example_of(declared.name), declared.keys
    pairs: Iterable[tuple[Mapping[str, Any], ...]] = zip_longest(
        _unfolded(declared, [*map(_converted, run["responses"])], "response"),
        _unfolded(declared, run.get("references", []), "label"),
        fillvalue={},
    )
    added = _names(keys.fields, keys.optional) - run["responses"][0].keys()
    rows = [
        {
            **_without_responses(declared, {**asked, **said}),
            keys.response[0]: next(said[key] for key in keys.response if key in said),
        }
        for said, asked in pairs
    ]
    return [{key: held for key, held in row.items() if key not in added} for row in rows]


def numbered(declared: ClosedQuestions) -> tuple[int, Callable[[int], dict[str, Any]]]:
    """Return an example over and over, with other ids and questions: its size, and the nth record.

    What scores are grouped by stays, so that there are as many groups as in the example.
    """
    keys, first = declared.keys, plain_records(declared)
    identity = _names(keys.fields, {*declared.bundle.by} - {*declared.group_by})
    own = {*keys.id, *keys.question, *keys.media, *identity} - {*keys.label}

    def record(n: int) -> dict[str, Any]:
        copy, place = divmod(n, len(first))
        return {
            key: held if key not in own or held is None else _other(held, copy)
            for key, held in first[place].items()
        }

    return len(first), record


def _other(value: Any, copy: int) -> Any:
    return value + (copy << 32) if isinstance(value, int) else f"{copy} {value}"


def _converted(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with the common keys that its layout adds."""
    reader = recognised(record)
    found = reader.converted(iter([Record(record, 0, "")])) if reader else ()
    return next((each.values for each in found), record)


def _unfolded(
    declared: ClosedQuestions, records: Sequence[Mapping[str, Any]], key: str
) -> Iterator[Mapping[str, Any]]:
    if declared.unfold is None:
        yield from records
        return
    if isinstance(declared.unfold, EachRecord):
        yield from (declared.unfold.change(row, n, key) for n, row in enumerate(records))
        return
    for _, row in declared.unfold(records, key):
        assert isinstance(row, Mapping), row
        yield row


def _names(fields: Mapping[str, Sequence[str]], chosen: Iterable[str]) -> set[str]:
    return {key for name in chosen for key in fields.get(name, ())}


def _kept(rows: Iterable[Mapping[str, Any]], keys: Container[str]) -> list[dict[str, Any]]:
    return [{key: held for key, held in row.items() if key in keys} for row in rows]
