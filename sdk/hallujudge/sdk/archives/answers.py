"""Answers to closed questions: one record for each, or one for each bundle, for any benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import structs

from hallujudge.metrics.answers.answer_text import folded
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.responses import answer_of

from ..errors import ArchiveError, InvalidInputError
from .answer_bundles import read_bundles
from .answer_records import joins_lists
from .archive_keys import LOOKED_AT, asks, refuse_other_keys
from .bad_records import SKIP, note_bad, noted
from .inputs import InputOptions, ItemSource, ReaderInput, References, Responses, are_paths
from .joined_questions import JOINS, Question, Questions, read_questions
from .joins import JoinCheck, MediaCheck, numbering, refuse
from .json_files import amount, named, read_json, shown
from .json_lines import FilePart
from .label_sets import last_labels
from .local_files import as_path
from .question_files import asks_the_same, bundle_id, id_of, labels_are_wrong, labels_of
from .record_fields import Row, RowDecoder, SharedFields
from .record_values import (
    LABEL,
    TEXT_FLAG,
    canonical_id,
    choose_key,
    id_under,
    key_in,
    optional_text,
    present,
    response_text,
)
from .records import Record, first_record, read_records
from .set_files import parts_of
from .split_files import joined_splits

# Key of the response in some layouts, and of the label in others.
_LABEL_OR_RESPONSE = "answer"
# Items that are kept from the check of an archive; more are read again.
_MOST_HELD = 1 << 17
_NOTHING: Mapping[str, str] = {}


def read_answers(declared: ClosedQuestions, given: ReaderInput) -> ItemSource:
    """Return the answers to a benchmark's questions, joined with files of questions if there are.

    Args:
        declared: The benchmark.
        given: The archive of answers, and files of questions where answers lack their labels.

    Raises:
        ArchiveError: See :func:`read_items`; also if a label is not one of the benchmark's.
        InvalidInputError: There is no such way to join.
    """
    source, options = _read(declared, given), given.options
    items = (item for item in islice(source, LOOKED_AT) if isinstance(item, AnswersItem))
    answers = [answer for item in items for answer in item.answers]
    _refuse_questions([answer.response for answer in answers])
    if options.text_key is None and "response" not in options.key_map:
        _refuse_labels(declared, answers, given.responses)
    return source


def _read(declared: ClosedQuestions, given: ReaderInput) -> ItemSource:
    """Return the answers as :func:`read_answers` does, whatever their texts are."""
    references, options = given.references, given.options
    if references is not None and metric_of(declared).overrides("listed"):
        source = read_bundles(declared, given._replace(references=None))
        notes = _notes_on_lists(declared, references, {item.id for item in source})
        return replace(source, notes=(*source.notes, *notes))
    if references is not None and not declared.question_files:
        raise ArchiveError(f"{declared.name}'s files hold their labels; leave the references out")
    if declared.joins_by_text and options.join not in JOINS:
        raise InvalidInputError(
            f"InputOptions(join={options.join!r}) is unknown; {choose_from(options.join, JOINS)}"
        )
    if references is not None:
        given = joined_splits(declared, last_labels(declared, given))
    if not declared.joins_by_text:
        return read_bundles(declared, given)
    questions = None if references is None else read_questions(declared, given)
    return Answers(declared, given, questions).checked()


def _refuse_questions(texts: Sequence[str | None]) -> None:
    """Refuse the texts of questions: read as answers, many of them say yes or no."""
    if texts and all(map(asks, texts)):
        raise ArchiveError(
            f"the responses are questions, such as {texts[0]!s:.80}; give the model's "
            "answers as responses and the questions as references"
        )


def _refuse_labels(
    declared: ClosedQuestions, answers: Sequence[Answer], responses: Responses
) -> None:
    """Refuse labels in place of responses, as under ``answer`` in tables of some tools.

    A perfect model gives the same texts, so that only records with other texts that the benchmark
    can parse are refused.
    """
    # Where every record is bad there is nothing to look at.
    if not answers or not all(
        each.label and folded(answer_of(each.response)) == folded(each.label) for each in answers
    ):
        return
    # A folder of sets is not one file of records.
    found = (record for part in parts_of(declared, responses) for record in part.records)
    keys, records = declared.keys, list(islice(found, LOOKED_AT))
    if not all(key_in(record.values, keys.response) == _LABEL_OR_RESPONSE for record in records):
        return
    known = {*keys.response, *keys.label, *keys.id, *keys.question, *keys.asked, *keys.media}
    known.update(*keys.fields.values(), keys.options, declared.verdicts)
    parse = declared.variants[-1].parse
    for key in sorted(records[0].values.keys() - known):
        texts = [text for record in records if isinstance(text := record.values.get(key), str)]
        read = [
            parse(structs.replace(answers[0], response=answer_of(text))).value for text in texts
        ]
        if len(set(texts)) > 1 and 2 * (len(read) - read.count(None)) > len(records):
            raise ArchiveError(
                f"{records[0].place}: all responses, under {_LABEL_OR_RESPONSE!r}, are their "
                f"labels, and {key!r} has answers too. Name the key of the responses with "
                f"{TEXT_FLAG}"
            )


def _notes_on_lists(
    declared: ClosedQuestions, references: References, answered: set[str]
) -> Iterator[str]:
    """Yield how many answers the benchmark's lists lack, and how many of these are not answered.

    Args:
        declared: The benchmark.
        references: The files of its lists, or name -> content.
        answered: The ids of the answers.

    Raises:
        ArchiveError: A list can't be read.
    """
    if isinstance(references, Mapping):
        lists = {str(name): content for name, content in references.items()}
    else:
        files = references if are_paths(references) else [references]
        paths = [as_path(file) for file in files if isinstance(file, (str, Path))]
        if not paths:
            raise ArchiveError("the references are not lists of the benchmark; give its JSON files")
        lists = {path.stem: read_json(path) for path in paths}
    listed: set[str] = set()
    for name, content in lists.items():
        records = listed_questions(declared, name, content)
        listed.update(bundle_id(declared, record, InputOptions()) for record in records)
    if others := [each for each in answered if each not in listed]:
        yield (
            f"{len(others):,} of {len(answered):,} answers are not in the lists of the references, "
            f"such as {min(others)!r:.80}; they count by their own labels"
        )
    if silent := len(listed - answered):
        yield f"{silent:,} of {len(listed):,} {declared.unit} in the references have no answer"


def listed_questions(declared: ClosedQuestions, name: str, content: object) -> list[Record]:
    """Return the questions of a released list.

    Args:
        declared: A benchmark with such lists.
        name: The name of the list's file without its ending.
        content: What the file holds.

    Raises:
        ArchiveError: It is not such a list.
    """
    try:
        found = list(
            metric_of(declared).listed(name, content if isinstance(content, Mapping) else {})
        )
    except ValueError as err:
        fault, remedy = err.args
        raise ArchiveError(f"{name}: {fault}. {remedy}") from err
    return [Record(values, position, name) for position, values in enumerate(found)]


class Answers:
    """An archive of answers, read once to check and once to score."""

    def __init__(
        self, declared: ClosedQuestions, given: ReaderInput, questions: Questions | None
    ) -> None:
        responses, _, options, group_by = given
        keys = declared.keys
        self._declared = declared
        self._responses = responses
        self._questions = questions
        self._label_of = labels_of(declared)
        self._options = options
        self._groups = SharedFields(group_by)
        self._left_out: Mapping[str, int] = {}
        first = first_record(read_records(responses), responses, "answer")
        self._text_key = choose_key(first, options.text_key, keys.response, "the answer", TEXT_FLAG)
        with_ids = any(key in first.values for key in keys.id)
        self._key_of: Callable[[Record], str] = partial(id_of, declared, required=with_ids)
        if options.id_key is not None:
            self._key_of = partial(id_under, key=options.id_key)
        elif questions is not None:
            self._key_of = questions.key_of
        self._label_key = (
            choose_key(
                first,
                "label" if "label" in options.key_map else None,
                [key for key in keys.label if key != self._text_key],
                LABEL,
                "one of these names, or give the questions with references=…",
            )
            if questions is None
            else ""
        )
        self._joins = joins_lists(declared, self._text_key)
        chosen = (self._text_key, self._label_key, *keys.question)
        asked = [key for key in keys.asked if key not in chosen]
        self._present = present(keys.question, asked, keys.media, self._groups.begun)
        self._ids: Mapping[str, str] = {} if questions is None else questions.identifiers
        of_rows: dict[str, Sequence[str]] = {
            "id": keys.id if options.id_key is None else (options.id_key,),
            "response": (self._text_key,),
            "question": keys.question,
        }
        if questions is None:
            of_rows |= {"label": (self._label_key,), "added": asked, "image": keys.media}
        self._decoder = RowDecoder(first.values, of_rows, self._groups)

    def checked(self) -> ItemSource:
        """Return the items after checking every id."""
        declared, allowed = self._declared, self._options
        known = None if self._questions is None else self._questions.table
        check = JoinCheck("questions", allowed, known)
        bad: list[str] = []
        others: list[str] = []
        # Who names the id as what joins knows that the texts of questions may differ.
        media, repeats = MediaCheck(declared.keys.media), allowed.join != "id"
        # Duplicates get their numbers when the items are read again.
        held: list[AnswersItem] | None = None if allowed.allow_duplicates else []
        for key, row in self._rows():
            check.add(key)
            if known is None:
                if row.image:
                    media.found = True
                elif (record := row.record) is not None:
                    media.add(row.image, record.place, record.values, record.position)
                if self._label_of(row.label) is None:
                    bad += self._unlabelled(key, row.label)
            elif repeats and row.question and (question := known.get(key)) is not None:
                others += _others(self._ids.get(key, key), row.question, question)
            if held is not None:
                held = self._held(held, key, row)
        if bad and not allowed.skip_bad:
            raise labels_are_wrong(declared, bad, "the file of answers", f", or {SKIP}")
        check.refuse(self._all_keys)
        self._left_out = check.left_out
        if others:
            raise refuse(
                "answers repeat a question that differs from the joined one", others, self._remedy()
            )
        # Other answers, or labels, may be under other usual keys.
        chosen = self._text_key, self._label_key
        refuse_other_keys(declared, chosen, list(self._first()), allowed)
        missing = check.missing()
        dropped = sum(self._left_out.values())
        return ItemSource(
            count=len(check) + len(missing) - dropped,
            make=lambda: self._items(missing, held),
            notes=(*self._notes(), *(media.notes() if known is None else ())),
        )

    def _held(self, held: list[AnswersItem], key: str, row: Row) -> list[AnswersItem] | None:
        """Return the items with one more; None if they are to be read again to save memory."""
        try:
            held.append(self._item(key, row))
        except InvalidInputError:
            # It is raised when the items are read again: first come errors of the archive.
            return None
        return held if len(held) <= _MOST_HELD else None

    def _notes(self) -> Iterator[str]:
        """Yield notes on what questions lack, and on answers to questions that labels dropped."""
        yield from () if self._questions is None else self._questions.notes
        if count := sum(self._left_out.values()):
            yield (
                f"{amount(count, 'answer is', 'answers are')} to questions that the labels "
                f"dropped, and left out: {named(list(self._left_out))}"
            )

    def _unlabelled(self, key: str, given: object) -> Iterator[str]:
        """Yield an answer whose label is not valid."""
        if not (given in (None, "") and self._options.allow_unknown):
            yield f"{key} ({shown(given)})"

    def _remedy(self) -> str:
        if self._options.join == "order":
            return (
                "Join by id, or by image and question "
                "(InputOptions(join='text')); "
                "if the order is correct, remove the questions from the answers"
            )
        return (
            "Give the question file of the same split and release. If the ids are correct, set "
            "InputOptions(join='id')"
        )

    def _all_keys(self) -> Iterator[str]:
        return (key for key, _ in self._rows())

    def _items(self, missing: list[str], held: list[AnswersItem] | None) -> Iterator[AnswersItem]:
        # Held items are also those that are left out.
        yield from self._read_again() if held is None or self._left_out else held
        assert self._questions is not None or not missing, "only questions can lack an answer"
        for key in missing:
            question = self._questions.table[key]  # type: ignore[union-attr]  # see above
            answer = Answer(None, question.label, "", question.text, _NOTHING, _NOTHING)
            yield AnswersItem(
                id=self._ids.get(key, key),
                group_id=question.image,
                fields=question.fields,
                answers=(answer,),
            )

    def _read_again(self) -> Iterator[AnswersItem]:
        unique = numbering(self._options)
        for key, row in self._rows():
            if key not in self._left_out:
                item = self._item(key, row)
                own = unique(item.id)
                yield item if own is item.id else structs.replace(item, id=own)

    def _rows(self) -> Iterator[tuple[str, Row]]:
        """Yield what joins each answer with its question, and what is read of the answer."""
        by_id = self._questions is None or self._questions.by == "id" or self._options.id_key
        usable = by_id and ("image" in self._decoder.fields or self._questions is not None)
        found: Any
        part = FilePart(decode=self._decoder if usable else None)
        for found in read_records(self._responses, part):
            if type(found) is not Record:
                yield canonical_id(found.id, "an answer"), found
                continue
            try:
                row = self._row(found)
            except ArchiveError as err:
                if note_bad(err, found.position, found.place):
                    continue
                raise
            yield row.key, row

    def _row(self, record: Record) -> Row:
        """Return what is read of an answer."""
        values, key = record.values, self._key_of(record)
        text = response_text(record, self._text_key, joins=self._joins)
        own, added, media, groups = self._present(tuple(values))
        return Row(
            "",
            key,
            text,
            values.get(self._label_key),
            optional_text(record, own),
            optional_text(record, added),
            optional_text(record, media),
            values if groups else _NOTHING,
            record,
        )

    def _first(self) -> Iterator[tuple[tuple[str, Mapping[str, object]], Answer]]:
        """Yield the places and values of the first records, each with its answer."""
        for record in islice(read_records(self._responses), LOOKED_AT):
            with noted(record.position, record.place):
                row = self._row(record)
                yield (record.place, record.values), self._answer(row, self._question(row.key))

    def _question(self, key: str) -> Question | None:
        """Return the question of an answer; None if answers carry their labels."""
        if self._questions is None:
            return None
        return self._questions.table.get(key) or Question("", "", "", self._groups.blank)

    def _answer(self, row: Row, question: Question | None) -> Answer:
        """Return an answer; one whose label is not valid has none."""
        if question is not None:
            return Answer(row.response, question.label, "", question.text, _NOTHING, _NOTHING)
        # The question of a record of a question file that an answer was added to.
        asked = row.question or (row.added if asks(row.added) else "")
        label = self._label_of(row.label) or ""
        return Answer(row.response, label, "", asked, _NOTHING, _NOTHING)

    def _item(self, key: str, row: Row) -> AnswersItem:
        """Return the item of an answer."""
        image, fields = row.image, self._groups.blank
        if (question := self._question(key)) is not None:
            image, fields = question.image, question.fields
        if row.groups and not (fields and all(fields.values())):
            # Fields of questions have precedence, unless they are empty.
            fields = self._groups.of(row.groups, fields)
        answers = (self._answer(row, question),)
        return AnswersItem(
            id=self._ids.get(key, key), group_id=image, fields=fields, answers=answers
        )


def _others(identifier: str, text: str, question: Question) -> Iterator[str]:
    """Yield the question that an answer repeats, if it differs from the joined one."""
    # Most answers repeat the very one.
    if text != question.text and not asks_the_same(text, question.text):
        yield f"{identifier} ({text.strip()!r:.80} for {question.text!r:.80})"
