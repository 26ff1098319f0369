"""Answers to closed questions: one record for each, or one for each bundle, for any benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from hallujudge.metrics.answers.answer_text import folded
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.responses.reader import answer_of

from ..errors import ArchiveError, HallujudgeError, InvalidInputError
from .answer_bundles import read_bundles
from .answer_records import joins_lists, text_of
from .bad_records import SKIP
from .inputs import InputOptions, ItemSource, Reader, References, Responses, are_paths
from .joined_questions import JOINS, Question, Questions, read_questions
from .joins import JoinCheck, MediaCheck, numbered, refuse
from .json_files import amount, named, read_json, shown
from .label_sets import last_labels
from .local_files import as_path
from .named_keys import fields_of
from .question_files import asks_the_same, bundle_id, id_of, label_of, labels_are_wrong
from .record_columns import Columns, first_fault, read_columns, usable_records
from .records import TEXT_FLAG, Record, choose_key, first_record, id_under, read_records
from .rival_keys import LOOKED_AT, asks, refuse_other_keys
from .set_files import parts_of
from .split_files import joined_splits

# Key of the response in some layouts, and of the label in others.
_LABEL_OR_RESPONSE = "answer"
# Items that are kept from the check of an archive; more are read again.
_MOST_HELD = 1 << 17
_NOTHING: Mapping[str, str] = {}


class _Read(NamedTuple):
    """Answers of records that follow each other."""

    keys: list[str]
    """What joins each with its question: an id, a position, or image and text."""
    answers: list[Answer]
    """The answers."""
    images: Sequence[str]
    """The image of each."""
    fields: Sequence[Mapping[str, str]] | None
    """The fields of their questions, which have precedence; None without questions."""


def reader_of(declared: ClosedQuestions) -> Reader:
    """Return the archive reader of a benchmark."""
    return partial(read_answers, declared)


def read_answers(
    declared: ClosedQuestions,
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return the answers to a benchmark's questions, joined with files of questions if there are.

    Args:
        declared: The benchmark.
        responses: The archive of answers.
        references: Files of questions; None where answers carry their labels.
        options: How the archive is read.
        group_by: Fields to group by.

    Raises:
        ArchiveError: See :func:`read_items`; also if a label is not one of the benchmark's.
        InvalidInputError: There is no such way to join.
    """
    source = _read(declared, responses, references, options, group_by)
    items = (item for item in islice(source, LOOKED_AT) if isinstance(item, AnswersItem))
    answers = [answer for item in items for answer in item.answers]
    _refuse_questions([answer.response for answer in answers])
    if options.text_key is None and "response" not in options.key_map:
        _refuse_labels(declared, answers, responses)
    return source


def _read(
    declared: ClosedQuestions,
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return the answers as :func:`read_answers` does, whatever their texts are."""
    if references is not None and declared.listed is not None:
        source = read_bundles(declared, responses, None, options, group_by)
        notes = _notes_on_lists(declared, references, {item.id for item in source})
        return replace(source, notes=(*source.notes, *notes))
    if references is not None and not declared.question_files:
        raise ArchiveError(f"{declared.name}'s files hold their labels; leave the references out")
    if declared.joins_by_text and options.join not in JOINS:
        raise InvalidInputError(
            f"InputOptions(join={options.join!r}) is unknown; choose one of {', '.join(JOINS)}"
        )
    if references is not None:
        references, options = last_labels(declared, references, options)
        responses, references, options = joined_splits(declared, responses, references, options)
    if not declared.joins_by_text:
        return read_bundles(declared, responses, references, options, group_by)
    if references is None:
        return Answers(declared, responses, None, options, group_by).checked()
    questions = read_questions(declared, references, responses, options, group_by)
    return Answers(declared, responses, questions, options, group_by).checked()


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
    if not all(_first_key(record, keys.response) == _LABEL_OR_RESPONSE for record in records):
        return
    known = {*keys.response, *keys.label, *keys.id, *keys.question, *keys.asked, *keys.media}
    known.update(*keys.fields.values(), keys.options, keys.verdict)
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


def _first_key(record: Record, keys: Sequence[str]) -> str:
    return next((key for key in keys if key in record.values), "")


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
    assert declared.listed is not None, "asked only then"
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
    assert declared.listed is not None, "asked only then"
    try:
        found = list(declared.listed(name, content if isinstance(content, Mapping) else {}))
    except ValueError as err:
        fault, remedy = err.args
        raise ArchiveError(f"{name}: {fault}. {remedy}") from err
    return [Record(values, position, name) for position, values in enumerate(found)]


class Answers:
    """An archive of answers, read once to check and once to score."""

    def __init__(
        self,
        declared: ClosedQuestions,
        responses: Responses,
        questions: Questions | None,
        options: InputOptions,
        group_by: tuple[str, ...],
    ) -> None:
        keys = declared.keys
        self._declared = declared
        self._responses = responses
        self._questions = questions
        # Labels repeat, and there is one for every answer.
        self._known_label = lru_cache(maxsize=1024)(partial(label_of, declared))
        self._options = options
        self._group_by = group_by
        self._left_out: Mapping[str, int] = {}
        first = first_record(read_records(responses), responses, "answer")
        self._text_key = choose_key(first, options.text_key, keys.response, "the answer", TEXT_FLAG)
        self._id_key = options.id_key
        self._with_ids = any(key in first.values for key in keys.id)
        self._label_key = (
            choose_key(
                first,
                "label" if "label" in options.key_map else None,
                [key for key in keys.label if key != self._text_key],
                "the label",
                "one of these names, or give the questions with references=…",
            )
            if questions is None
            else ""
        )
        chosen = (self._text_key, self._label_key, *keys.question)
        self._asked_keys = [key for key in keys.asked if key not in chosen]

    def checked(self) -> ItemSource:
        """Return the items after checking every id."""
        declared = self._declared
        known = None if self._questions is None else self._questions.table
        check = JoinCheck("questions", self._options, known)
        bad: list[str] = []
        others: list[str] = []
        first: list[tuple[Record, Answer]] = []
        media = MediaCheck(declared.keys.media)
        held: list[AnswersItem] | None = None if self._options.allow_duplicates else []
        for columns in read_columns(self._responses):
            if (usable := usable_records(self._read, columns)) is None:
                continue
            columns, found = usable
            check.extend(found.keys)
            if len(first) < LOOKED_AT:
                first += zip(columns.records(), found.answers, strict=True)
            others += self._others(columns, found)
            if known is None:
                media.extend(found.images, columns.records, responses=True)
                bad += self._unlabelled(columns, found)
            held = None if held is None else self._held(held, columns, found)
        if bad and not self._options.skip_bad:
            raise labels_are_wrong(declared, bad, "the file of answers", f", or {SKIP}")
        check.refuse(self._all_keys)
        self._left_out = check.left_out
        if others:
            raise refuse(
                "answers repeat a question that differs from the joined one", others, self._remedy()
            )
        # Other answers, or labels, may be under other usual keys.
        pairs = [((each.place, each.values), answer) for each, answer in first[:LOOKED_AT]]
        refuse_other_keys(declared, (self._text_key, self._label_key), pairs, self._options)
        missing = check.missing()
        dropped = sum(self._left_out.values())
        return ItemSource(
            count=len(check) + len(missing) - dropped,
            make=lambda: self._items(missing, held),
            notes=(*self._notes(), *(media.notes() if known is None else ())),
        )

    def _held(
        self, held: list[AnswersItem], columns: Columns, found: _Read
    ) -> list[AnswersItem] | None:
        """Return the items with more; None if they are to be read again to save memory."""
        try:
            held += self._made(columns, found)
        except HallujudgeError:
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

    def _label_of(self, record: Record) -> str | None:
        """Return the label of an answer that has its own; None if it is not valid."""
        return label_of(self._declared, record.values.get(self._label_key))

    def _unlabelled(self, columns: Columns, found: _Read) -> Iterator[str]:
        """Yield the answers whose label is not valid."""
        for key, answer, values in zip(found.keys, found.answers, columns.values, strict=True):
            given = values.get(self._label_key)
            if not answer.label and not (given in (None, "") and self._options.allow_unknown):
                yield f"{key} ({shown(given)})"

    def _others(self, columns: Columns, found: _Read) -> Iterator[str]:
        """Yield questions that differ from the joined ones; none with join='id'."""
        if self._questions is None or self._options.join == "id":
            return
        asked = columns.texts(self._declared.keys.question)
        for key, text, answer in zip(found.keys, asked, found.answers, strict=True):
            # Most answers repeat no question, or the very one.
            if not text or text == answer.question or key not in self._questions.table:
                continue
            if not asks_the_same(text, answer.question):
                identifier = self._questions.table[key].identifier
                yield f"{identifier} ({text.strip()!r:.80} for {answer.question!r:.80})"

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

    def _keys(self, columns: Columns) -> list[str]:
        """Return what joins each answer with its question."""
        if (key := self._id_key) is not None:
            return columns.ids((key,), partial(id_under, key=key))
        if self._questions is not None:
            return self._questions.keys_of(columns)
        plain = partial(id_of, self._declared, required=self._with_ids)
        return columns.ids(self._declared.keys.id, plain)

    def _all_keys(self) -> Iterator[str]:
        return chain.from_iterable(map(self._keys, read_columns(self._responses)))

    def _items(self, missing: list[str], held: list[AnswersItem] | None) -> Iterator[AnswersItem]:
        if held is not None and not self._left_out:
            yield from held
        else:
            yield from self._read_again()
        assert self._questions is not None or not missing, "only questions can lack an answer"
        for key in missing:
            question = self._questions.table[key]  # type: ignore[union-attr]  # see above
            answer = Answer(None, question.label, "", question.text, _NOTHING, _NOTHING)
            fields = fields_of(self._group_by, question.filled, {}) if self._group_by else _NOTHING
            yield AnswersItem(
                id=question.identifier, group_id=question.image, fields=fields, answers=(answer,)
            )

    def _read_again(self) -> Iterator[AnswersItem]:
        kept = (key for key in self._all_keys() if key not in self._left_out)
        names = numbered(map(self._name, kept)) if self._options.allow_duplicates else None
        for columns in read_columns(self._responses):
            keys = self._keys(columns) if self._left_out else []
            if not self._left_out.keys().isdisjoint(keys):
                columns = columns.without(each in self._left_out for each in keys)
            if not columns.size:
                continue
            found = first_fault(self._read, columns)
            own = None if names is None else list(islice(names, columns.size))
            yield from self._made(columns, found, own)

    def _name(self, key: str) -> str:
        known = self._questions.table.get(key) if self._questions is not None else None
        return known.identifier if known is not None else key

    def _read(self, columns: Columns) -> _Read:
        """Return the answers of records; one whose label is not valid has none."""
        keys, declared = self._keys(columns), self._declared.keys
        joins = joins_lists(self._declared, self._text_key)
        texts = columns.read(self._text_key, partial(text_of, key=self._text_key, joins=joins))
        if self._questions is not None:
            known = self._questions.table
            questions = [known.get(key) or Question(key, "", "", "", {}) for key in keys]
            texts_of = [question.text for question in questions]
            labels = [question.label for question in questions]
            images = [question.image for question in questions]
            fields = [question.fields for question in questions]
            return _Read(keys, _answers(texts, labels, texts_of), images, fields)
        found = columns.read(self._label_key, self._label_of, self._known_label)
        asked = columns.texts(declared.question)
        if not all(asked):
            # The question of a record of a question file that an answer was added to.
            added = columns.texts(self._asked_keys)
            both = zip(asked, added, strict=True)
            asked = [own or (text if asks(text) else "") for own, text in both]
        answers = _answers(texts, [label or "" for label in found], asked)
        return _Read(keys, answers, columns.texts(declared.media), None)

    def _made(
        self, columns: Columns, found: _Read, names: Sequence[str] | None = None
    ) -> list[AnswersItem]:
        """Return the items of answers, with other names than those of their questions if given."""
        if names is None:
            names = found.keys if self._questions is None else list(map(self._name, found.keys))
        fields = columns.fields(self._group_by, found.fields)
        parts = zip(names, found.images, fields, found.answers, strict=True)
        return [
            AnswersItem(id=name, group_id=image, fields=own, answers=(answer,))
            for name, image, own, answer in parts
        ]


def _answers(
    texts: Sequence[str | None], labels: Sequence[str], asked: Sequence[str]
) -> list[Answer]:
    parts = zip(texts, labels, asked, strict=True)
    return [Answer(text, label, "", said, _NOTHING, _NOTHING) for text, label, said in parts]
