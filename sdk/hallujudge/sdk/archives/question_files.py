"""Questions and labels in files of their own, with which answers to closed questions are joined."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from string import ascii_uppercase
from typing import TypeGuard

from hallujudge.metrics.answers.answer_items import HeldAnswers
from hallujudge.metrics.answers.closed_questions import ClosedQuestions, EachRecord, Unfold
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.json_values import well_formed

from ..errors import ArchiveError
from .bad_records import note_bad
from .inputs import InputOptions, References
from .joins import refuse
from .json_files import shown
from .record_values import ID_FLAG, canonical_id, choose_key, optional_text, structured
from .records import Record, read_records, unwrapped

LABELS_INVALID = "LABELS_INVALID"
"""Reason of an error about labels that the benchmark does not have."""
_WORD = re.compile(r"\w+")
# One letter more or less in ten; "bowl" and "owl", or "car" and "cat", are further apart.
_MISSPELT = 0.9


def joined_labels(
    declared: ClosedQuestions, sources: Sequence[Path | Iterable[object]]
) -> list[Record]:
    """Return the questions of several files; labels are joined by image and question text.

    LLaVA's question file has ids and categories, but no labels. POPE's files, one for each
    category, have labels, but their ids start over in each file. A label depends on image and
    object only, and is therefore equal in every category.

    Raises:
        ArchiveError: One question has two labels, or a question has none.
    """
    records = [list(read_records(source)) for source in sources]
    open_ones = [r for rows in records for r in rows if given_label(declared, r) is None]
    if not open_ones:
        return in_order(row for rows in records for row in rows)
    labels = _labels_by_text(
        declared, (r for rows in records for r in rows if given_label(declared, r) is not None)
    )
    asked = declared.keys.asked
    missing = [row for row in open_ones if normal_text(declared, row, asked) not in labels]
    if missing:
        raise refuse(
            "questions have no label",
            [id_of(declared, row, required=False) for row in missing],
            "Give all label files of the benchmark with references=…",
        )
    return in_order(
        row._replace(values={**row.values, "label": labels[normal_text(declared, row, asked)]})
        for row in open_ones
    )


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return records of several files with their positions among all."""
    return [record._replace(position=position) for position, record in enumerate(records)]


def given_label(declared: ClosedQuestions, record: Record) -> object:
    """Return the label as a record has it; None without one."""
    keys = declared.keys.label
    return next((record.values[key] for key in keys if key in record.values), None)


def _labels_by_text(
    declared: ClosedQuestions, records: Iterable[Record]
) -> dict[tuple[str, str], object]:
    labels: dict[tuple[str, str], object] = {}
    for record in records:
        label = given_label(declared, record)
        key = normal_text(declared, record, declared.keys.asked)
        if not key[1]:
            raise ArchiveError(
                f"{record.place}: a label is found by image and question, and this record has no "
                f"question; found {', '.join(sorted(record.values))}. Add them to each label, or "
                "write the labels into the file of questions"
            )
        if labels.setdefault(key, label) != label:
            raise ArchiveError(
                f"{record.place}: the label of {key[1]!r:.80} about {key[0]} is {label!r:.20}, but "
                f"{labels[key]!r:.20} in another record; correct one of them"
            )
    return labels


def normal_text(declared: ClosedQuestions, record: Record, keys: Sequence[str]) -> tuple[str, str]:
    """Return image and question; instructions follow the question on further lines.

    Args:
        declared: The benchmark.
        record: A question, or an answer that repeats it.
        keys: Keys of the question.
    """
    text = optional_text(record, keys).strip().partition("\n")[0]
    return optional_text(record, declared.keys.media), " ".join(text.split())


def asks_the_same(text: str, question: str) -> bool:
    """Return whether a prompt is a question, or has the words of one among instructions.

    A misspelt word is the same word: POPE asks what is "in the imange" 54 times, RePOPE never.
    """
    if text == question:
        return True
    ours, theirs = (f" {' '.join(_WORD.findall(t.casefold()))} " for t in (question, text))
    # A text without words can't be compared.
    return ours in theirs or theirs in ours or not theirs.strip() or _is_misspelt(text, question)


def _is_misspelt(text: str, question: str) -> bool:
    """Return whether the first line of a prompt is a question but for a letter of one word."""
    ours, theirs = (
        _WORD.findall(t.strip().partition("\n")[0].casefold()) for t in (question, text)
    )
    other = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
    if len(ours) != len(theirs) or len(other) != 1:
        return False
    [pair] = other
    return SequenceMatcher(None, *pair).ratio() >= _MISSPELT


def id_of(declared: ClosedQuestions, record: Record, *, required: bool) -> str:
    """Return the id of a question or an answer; without one, its position counted from one.

    Args:
        declared: The benchmark.
        record: The question or the answer.
        required: Whether a record without an id is an error.

    Raises:
        ArchiveError: A required id is missing.
    """
    keys, values = declared.keys.id, record.values
    for key in keys:
        if key in values:
            value = values[key]
            return str(value) if type(value) is int else canonical_id(value, record.place)
    if required:
        raise ArchiveError(
            f"{record.place}: no question id ({', '.join(keys)}), unlike other records; found "
            f"{', '.join(sorted(record.values))}. Add the id, or remove the record"
        )
    return str(record.position + 1)


def label_of(declared: ClosedQuestions, value: object) -> str | None:
    """Return a label of the benchmark; None for anything else."""
    if _is_number(value) and ("label" in declared.keys.values or not declared.labels):
        value = str(int(value) if value == int(value) else value)
    if not isinstance(value, str) or not (text := value.strip()):
        return None
    if not declared.labels:
        return text
    return _spellings(declared).get(text.rstrip(".").casefold())


@cache
def _spellings(declared: ClosedQuestions) -> Mapping[str, str]:
    """Return label as files may write it, in lower case -> label."""
    own = {label.casefold(): label for label in declared.labels}
    return {**own, **declared.keys.values.get("label", {})}


def labels_of(declared: ClosedQuestions) -> Callable[[object], str | None]:
    """Return :func:`label_of` of a benchmark, which remembers texts: they repeat."""
    known = lru_cache(maxsize=1024)(partial(label_of, declared))
    return lambda value: known(value) if type(value) is str else label_of(declared, value)


def bad_label(declared: ClosedQuestions) -> str:
    """Return the fault of labels that a benchmark does not have."""
    return f"labels are neither {' nor '.join(declared.labels) or 'a text nor a number'}"


def labels_are_wrong(
    declared: ClosedQuestions, places: list[str], where: str, more: str = ""
) -> ArchiveError:
    """Return the error of labels that the benchmark does not have.

    Args:
        declared: The benchmark.
        places: The ids with the labels.
        where: The file to correct.
        more: What else to do.
    """
    remedy = f"Correct these labels in {where}{more}"
    return refuse(bad_label(declared), places, remedy, reason=LABELS_INVALID)


def known_questions(
    declared: ClosedQuestions,
    references: References | None,
    options: InputOptions,
    what: str = "questions in the references",
) -> dict[str, Mapping[str, object]]:
    """Return the records of a file of questions by the key that joins them with answers.

    Args:
        declared: The benchmark.
        references: The file; None without.
        options: How the archive is read; the key of the id may be that of the answers alone.
        what: What the file holds, for messages.

    Raises:
        ArchiveError: A question has no key, or is a duplicate.
    """
    known: dict[str, Mapping[str, object]] = {}
    twice: list[str] = []
    if references is None:
        return known
    key_of, with_choices = question_key if declared.bundle.by else bundle_id, declared.choices
    for record in unfolded(declared, read_records(references), "label"):
        values = record.values
        if not known and options.id_key not in values:
            # The named key is that of the answers alone.
            options = replace(options, id_key=None)
        if with_choices and declared.keys.options[0] not in values:
            choose_key(record, None, declared.keys.options, "the choices")
        if (key := key_of(declared, record, options)) in known:
            twice.append(key)
        known[key] = values
    if twice:
        raise refuse(
            f"duplicate {what}",
            twice,
            "Give different ones different ids, and keep one of those that are the same",
        )
    return known


def unfolded(declared: ClosedQuestions, records: Iterable[Record], key: str) -> Iterable[Record]:
    """Return the bundles of records, of which those of released files may hold many.

    Args:
        declared: The benchmark.
        records: The records.
        key: ``response``, or ``label`` for questions.

    Raises:
        ArchiveError: A record has another form.
    """
    unfold = declared.unfold
    if isinstance(unfold, EachRecord):
        # One at a time: the records of a file need not be held.
        return _changed(unfold, records, key)
    return records if unfold is None else _unfolded(unfold, records, key)


def _changed(each: EachRecord, records: Iterable[Record], key: str) -> Iterator[Record]:
    ahead, position, change = iter(records), 0, each.change
    before: Record | None = None
    while (record := next(ahead, None)) is not None:
        try:
            values = change(_content(record), position, key)
        except ValueError as err:
            after = [*islice(ahead, 1)]
            ahead = chain(after, ahead)
            near = [*filter(None, (before, record, *after))]
            bad = _not_unfolded(err, record.place, near, position)
            if not note_bad(bad, position, record.place):
                raise bad from err
        else:
            same = values is record.values and position == record.position
            yield record if same else Record(values, position, record.place)
        before = record
        position += 1


def _content(record: Record) -> Mapping[str, object]:
    content = unwrapped(record.values)
    # An assertion that it is a mapping would take longer than all the rest.
    assert not isinstance(content, list), "a list would have been read as records"
    return content


def _unfolded(unfold: Unfold, records: Iterable[Record], key: str) -> Iterator[Record]:
    listed = list(records)

    def bad_at(position: int, err: ValueError) -> ArchiveError:
        near = listed[max(0, position - 1) : position + 2]
        return _not_unfolded(err, listed[position].place, near, position)

    try:
        contents = [_content(record) for record in listed]
        for position, values in unfold(contents, key):
            place = listed[position].place
            if not isinstance(values, ValueError):
                yield Record(values, position, place)
            elif not note_bad(bad := bad_at(position, values), position, place):
                raise bad
    except ValueError as err:
        raise bad_at(0, err) from err


def _not_unfolded(
    err: ValueError, place: str, near: Sequence[Record], position: int
) -> ArchiveError:
    fault, remedy = err.args
    # A list may be on one line.
    which = f", record {position}" if [each.place for each in near].count(place) > 1 else ""
    return ArchiveError(f"{place}{which}: {fault}. {remedy}")


def held_by(declared: ClosedQuestions, record: Record) -> HeldAnswers | None:
    """Return the answers that a record holds; None if it is an answer itself.

    Raises:
        ArchiveError: It can't be used.
    """
    try:
        return metric_of(declared).held_answers(record.values)
    except ValueError as err:
        fault, remedy = err.args
        raise ArchiveError(f"{record.place}: {fault}. {remedy}") from err


def by_columns(declared: ClosedQuestions, record: Record) -> Iterator[Record]:
    """Yield a record for each answer of one that holds them by name, such as clip -> label."""
    held = held_by(declared, record) if declared.bundle.name else None
    if held is None or not held.answers:
        yield record
        return
    rest = without(record, held.keys).values
    for name, own in held.answers.items():
        yield record._replace(values={**rest, declared.bundle.name[0]: name, **own})


def without(record: Record, keys: Container[str]) -> Record:
    """Return a record without some keys."""
    return record._replace(values={k: v for k, v in record.values.items() if k not in keys})


def question_key(declared: ClosedQuestions, record: Record, options: InputOptions) -> str:
    """Return what joins a record with its question: the place of the answer, or of the bundle."""
    bundle = declared.bundle
    if not bundle.by or held_by(declared, record) is not None:
        return bundle_id(declared, record, options)
    place = place_of(declared, record, bundle.name)
    return "_".join(filter(None, (bundle_id(declared, record, options), place)))


def bundle_id(declared: ClosedQuestions, record: Record, options: InputOptions) -> str:
    """Return the id of a record's bundle.

    Raises:
        ArchiveError: The record has none; the message lists the tried and the found keys.
    """
    if by := declared.bundle.by:
        return place_of(declared, record, by)
    key, values = options.id_key or declared.keys.id[0], record.values
    if key not in values:
        key = choose_key(record, options.id_key, declared.keys.id, "the id", ID_FLAG)
    value = values[key]
    return str(value) if type(value) is int else canonical_id(value, record.place)


def place_of(declared: ClosedQuestions, record: Record, names: Sequence[str]) -> str:
    """Return the values of fields that place an answer in its benchmark, as one text.

    Raises:
        ArchiveError: The record lacks one; the message lists the tried and the found keys.
    """
    fields, values = declared.keys.fields, record.values
    texts = []
    for name in names:
        key = fields[name][0]
        if key not in values:
            key = choose_key(record, None, fields[name], f"the {name}")
        value = values[key]
        # Nearly all are such texts or numbers; only an error needs the place, which names the key.
        text = value.strip() if type(value) is str and value.isascii() else ""
        if not text or text.endswith(".0"):
            is_int = type(value) is int
            text = str(value) if is_int else canonical_id(value, f"{record.place}, {key}")
        texts.append(text)
    return "_".join(texts)


def field_text(values: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the first text, number or truth value under some keys; empty if there is none."""
    value: object = None
    # A loop takes half the time of a generator, and there are several fields for every answer.
    for key in keys:
        if (value := values.get(key)) is not None:
            break
    if isinstance(value, bool):
        return str(value).casefold()
    # A data frame's NaN is no value; as a text, it would be VQA's ``<NAN>``.
    return str(value) if isinstance(value, str) or _is_number(value) else ""


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def options_of(record: Record, keys: Sequence[str]) -> Mapping[str, str]:
    """Return choices from an object letter -> text, or a list in the order of the letters.

    Raises:
        ArchiveError: The choices have another form.
    """
    key = next(filter(record.values.__contains__, keys), None)
    if key is None or (value := structured(record.values[key])) is None:
        return {}
    if isinstance(value, (list, tuple)) and len(value) <= len(ascii_uppercase):
        value = dict(zip(ascii_uppercase, value, strict=False))
    if type(value) is dict and {*map(type, value), *map(type, value.values())} == {str}:
        texts: list[str] = list(value.values())
        # Nearly all choices are such texts, which are taken as they are.
        if "".join(texts).isascii():
            return dict(zip(map(str.strip, value), texts, strict=True))
    # The test of a dict takes a fifth of the time of that of a mapping.
    held = value if isinstance(value, (dict, Mapping)) else {"": None}
    if all(type(text) is str or _is_number(text) for text in held.values()):
        return {
            str(letter).strip(): well_formed(text if type(text) is str else str(text))
            for letter, text in held.items()
        }
    raise ArchiveError(
        f"{record.place}: choices must be an object letter -> text or a list of texts; found "
        f"{shown(value)}"
    )
