"""Answers to yes/no questions for POPE, joined with the questions and their labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from hallujudge.metrics.pope import PopeItem

from ..errors import ArchiveError, InvalidInputError
from .formats import read_format
from .inputs import InputOptions, ItemSource, Reader, References, Responses, are_paths
from .joins import JoinCheck, numbered, refuse
from .records import (
    TEXT_FLAG,
    Record,
    Records,
    canonical_id,
    choose_key,
    fields_of,
    no_records,
    optional_text,
    read_records,
    shown,
    text_of,
)

ID_KEYS = ("question_id", "id")
LABEL_KEYS = ("label", "gt", "gt_answer", "ground_truth", "answer")
_QUESTION_KEYS = ("question", "prompt", "text")
IMAGE_KEYS = ("image", "image_id", "image_source")
# The category in a file's name, such as coco_pope_random.json, but not in a longer word.
_CATEGORY = re.compile(r"(?<![a-z])(random|popular|adversarial)(?![a-z])")
_LABELS = {"yes": "yes", "no": "no"}
# If a record has both, `answer` is the label and `prediction` the response (VLMEvalKit).
_ANSWER_KEYS = ("response", "output", "prediction", "predict", "answer", "text", "caption")
_WORD = re.compile(r"\w+")
# Answers that are searched for question marks before a file of questions is refused.
_LOOKED_AT = 100
Source: TypeAlias = "Path | Records | list[Record]"
JOINS = ("auto", "id", "text", "order")


def read_pope(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return answers joined with their questions.

    Raises:
        ArchiveError: See :func:`read_items`; also if a label is neither yes nor no.
    """
    if options.join not in JOINS:
        raise InvalidInputError(
            f"InputOptions(join={options.join!r}) is unknown; choose one of {', '.join(JOINS)}"
        )
    if references is None:
        return Answers(responses, None, options, group_by).checked()
    if are_paths(references):
        paths = [Path(path) for path in references]
        sources = [(path, read_format(path).source) for path in paths]
        if have_category(responses):
            sources = [(path, categorised(path, source)) for path, source in sources]
        references = joined_labels([source for _, source in sources])
    elif isinstance(references, (str, Path)) and have_category(responses):
        references = categorised(Path(references), Path(references))
    questions = read_questions(references, responses, options, group_by)
    return Answers(responses, questions, options, group_by).checked()


READERS: Mapping[str, Reader] = {"pope": read_pope}
"""Metric -> its archive reader."""


class Answers:
    """An archive of answers, read once to check and once to score."""

    def __init__(
        self,
        responses: Responses,
        questions: Questions | None,
        options: InputOptions,
        group_by: tuple[str, ...],
    ) -> None:
        self._responses = responses
        self._questions = questions
        self._options = options
        self._group_by = group_by
        first = next(read_records(responses), None)
        if first is None:
            raise no_records(responses, "answers", "answer")
        self._text_key = choose_key(first, options.text_key, _ANSWER_KEYS, "the answer", TEXT_FLAG)
        self._id_key = options.id_key
        self._with_ids = any(key in first.values for key in ID_KEYS)
        self._label_key = (
            choose_key(
                first,
                None,
                [key for key in LABEL_KEYS if key != self._text_key],
                "the label",
                "one of these names, or give the questions with references=…",
            )
            if questions is None
            else ""
        )

    def checked(self) -> ItemSource:
        """Return the items after checking every id."""
        self._refuse_questions()
        known = None if self._questions is None else self._questions.table
        check = JoinCheck("questions", self._options, known)
        bad: list[str] = []
        others: list[str] = []
        for record in read_records(self._responses):
            key = self._key(record)
            check.add(key)
            text_of(record, self._text_key)
            if other := self._other(record, key):
                others.append(other)
            if known is None and label_of(record.values.get(self._label_key)) is None:
                bad.append(f"{key} ({shown(record.values.get(self._label_key))})")
        if bad:
            raise refuse(
                "labels are neither yes nor no", bad, "Correct these labels in the file of answers"
            )
        check.refuse(lambda: map(self._key, read_records(self._responses)))
        if others:
            raise refuse(
                "answers repeat a question that differs from the joined one", others, self._remedy()
            )
        missing = check.missing()
        return ItemSource(
            count=len(check) + len(missing), make=lambda: self._items(missing), notes=()
        )

    def _refuse_questions(self) -> None:
        """Refuse a file of questions: with the answers as labels, all would be right."""
        records = islice(read_records(self._responses), _LOOKED_AT)
        first = [record.values.get(self._text_key) for record in records]
        if first and all(map(_asks, first)):
            raise ArchiveError(
                f"the responses are questions, such as {first[0]!s:.80}; give the model's "
                "answers as responses and the questions as references"
            )

    def _other(self, record: Record, key: str) -> str:
        """Return a question that differs from the joined one; empty with join='id'."""
        if self._questions is None or self._options.join == "id":
            return ""
        known = self._questions.table.get(key)
        asked = _other_question(record, known.text) if known is not None else ""
        if known is None or not asked:
            return ""
        return f"{known.identifier} ({asked.strip()!r:.80} for {known.text!r:.80})"

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

    def _key(self, record: Record) -> str:
        if self._questions is not None and self._id_key is None:
            return self._questions.key_of(record)
        if self._id_key is not None:
            return canonical_id(record.values.get(self._id_key), record.place)
        return id_of(record, with_category=False, required=self._with_ids)

    def _items(self, missing: list[str]) -> Iterator[PopeItem]:
        records = read_records(self._responses)
        if self._options.allow_duplicates:
            keys = map(self._key, read_records(self._responses))
            for record, identifier in zip(records, numbered(map(self._name, keys)), strict=True):
                yield self._item(record, identifier)
        else:
            for record in records:
                yield self._item(record, self._name(self._key(record)))
        assert self._questions is not None or not missing, "only questions can lack an answer"
        for key in missing:
            yield self._made(self._questions.table[key], None, None)  # type: ignore[union-attr]  # see above

    def _name(self, key: str) -> str:
        known = self._questions.table.get(key) if self._questions is not None else None
        return known.identifier if known is not None else key

    def _item(self, record: Record, identifier: str) -> PopeItem:
        text = text_of(record, self._text_key)
        if self._questions is None:
            question = Question(
                identifier,
                optional_text(record, ("question", "prompt")),
                label_of(record.values.get(self._label_key)) or "",
                optional_text(record, IMAGE_KEYS),
                {},
            )
        else:
            unknown = Question(identifier, "", "", "", {})
            question = self._questions.table.get(self._key(record), unknown)
        return self._made(question._replace(identifier=identifier), text, record)

    def _made(self, question: Question, text: str | None, record: Record | None) -> PopeItem:
        fields: Mapping[str, object] = record.values if record is not None else {}
        return PopeItem(
            id=question.identifier,
            group_id=question.image,
            response=text,
            question=question.text,
            label=question.label,
            fields=fields_of(self._group_by, _filled(question.fields), fields),
        )


def _asks(text: object) -> bool:
    """Return whether a text is a question; a lone question mark is not one."""
    return isinstance(text, str) and text.rstrip().endswith("?") and len(text.split()) > 2


def _filled(fields: Mapping[str, str]) -> Mapping[str, object]:
    return {key: value for key, value in fields.items() if value}


def _other_question(record: Record, text: str) -> str:
    """Return the question that an answer repeats, if it differs from the joined question.

    A prompt may add text around the question, such as instructions.
    """
    asked = optional_text(record, ("question", "prompt"))
    if asked == text:
        return ""
    ours, theirs = (f" {' '.join(_WORD.findall(t.casefold()))} " for t in (text, asked))
    # A text without words can't be compared.
    return "" if ours in theirs or theirs in ours or not theirs.strip() else asked


def categorised(path: Path, source: Source) -> Source:
    """Return the questions of a file, with the category that its name has and its lines lack.

    POPE's files, ``coco_pope_random.json`` and so on, each number their questions from the
    start; results of tools that ran all of them have the category in addition to the id.

    Args:
        path: Name of the file.
        source: Where its records are read from.
    """
    found = _CATEGORY.search(path.name.lower())
    if found is None:
        return source
    added = {"category": found[0]}
    return Records(
        lambda: (r._replace(values={**added, **r.values}) for r in read_records(source)), str(path)
    )


def have_category(answers: Responses) -> bool:
    """Return whether the first answer has the category of its question."""
    first = next(read_records(answers), None)
    return first is not None and _has_category(first)


def joined_labels(sources: Sequence[Path | Iterable[object]]) -> list[Record]:
    """Return the questions of several files; labels are joined by image and question text.

    LLaVA's question file has ids and categories, but no labels. POPE's files, one for each
    category, have labels, but their ids start over in each file. A label depends on image and
    object only, and is therefore equal in every category.

    Raises:
        ArchiveError: One question has two labels, or a question has none.
    """
    records = [list(read_records(source)) for source in sources]
    open_ones = [r for rows in records for r in rows if _given_label(r) is None]
    if not open_ones:
        return [
            row._replace(position=position)
            for position, row in enumerate(row for rows in records for row in rows)
        ]
    labels = _labels_by_text(r for rows in records for r in rows if _given_label(r) is not None)
    missing = [row for row in open_ones if _normal_text(row) not in labels]
    if missing:
        raise refuse(
            "questions have no label",
            [id_of(row, with_category=False, required=False) for row in missing],
            "Give all label files of the benchmark with references=…",
        )
    return [
        row._replace(position=position, values={**row.values, "label": labels[_normal_text(row)]})
        for position, row in enumerate(open_ones)
    ]


def _given_label(record: Record) -> object:
    return next((record.values[key] for key in LABEL_KEYS if key in record.values), None)


def _labels_by_text(records: Iterable[Record]) -> dict[tuple[str, str], object]:
    labels: dict[tuple[str, str], object] = {}
    for record in records:
        label = _given_label(record)
        key = _normal_text(record)
        if labels.setdefault(key, label) != label:
            raise ArchiveError(
                f"{record.place}: the label of {key[1]!r:.80} about {key[0]} is {label!r:.20}, but "
                f"{labels[key]!r:.20} in another record; correct one of them"
            )
    return labels


def _normal_text(record: Record) -> tuple[str, str]:
    """Return image and question; instructions follow the question on further lines."""
    text = optional_text(record, _QUESTION_KEYS).strip().partition("\n")[0]
    return optional_text(record, IMAGE_KEYS), " ".join(text.split())


class Question(NamedTuple):
    """A question, its label, its image, and the fields that results are grouped by."""

    identifier: str
    text: str
    label: str
    image: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions by join key."""

    by: str
    """``id``, ``text`` or ``order``."""
    table: Mapping[str, Question]
    """Key -> question."""
    with_category: bool
    """Whether ids are only unique within a category, such as random, popular, adversarial."""

    def key_of(self, record: Record) -> str:
        """Return the join key of an answer."""
        if self.by == "order":
            return str(record.position)
        if self.by == "text":
            return _text_key(record, answer=True)
        return id_of(record, with_category=self.with_category, required=True)


def read_questions(
    references: References,
    responses: Responses,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> Questions:
    """Return the questions by the key that joins them with the answers.

    Raises:
        ArchiveError: A question is a duplicate, a label is neither yes nor no, or nothing joins
            the questions with the answers.
    """
    question = next(_question_records(references), None)
    if question is None:
        raise no_records(references, "questions", "question")
    first = next(read_records(responses), None)
    if first is None:
        raise no_records(responses, "answers", "answer")
    by = options.join if options.join != "auto" else _way_to_join(first, question)
    label_key = choose_key(question, None, LABEL_KEYS, "the label")
    with_category = by == "id" and _has_category(first) and _has_category(question)
    table: dict[str, Question] = {}
    duplicates: list[str] = []
    bad: list[str] = []
    shared: dict[object, Any] = {}
    for record in _question_records(references):
        identifier = id_of(record, with_category=with_category, required=by == "id")
        key = {"order": str(record.position), "text": ""}.get(by, identifier)
        key = key or _text_key(record, answer=False)
        label = label_of(record.values.get(label_key))
        if label is None:
            bad.append(f"{identifier} ({shown(record.values.get(label_key))})")
        if key in table:
            duplicates.append(identifier)
        # Texts, images and fields repeat; share equal strings to save memory.
        text, image = optional_text(record, _QUESTION_KEYS), optional_text(record, IMAGE_KEYS)
        fields = fields_of(group_by, record.values)
        table[key] = Question(
            identifier,
            shared.setdefault(text, text),
            label or "",
            shared.setdefault(image, image),
            shared.setdefault(tuple(fields.values()), fields),
        )
    if duplicates:
        raise refuse(
            "duplicate questions in the file of questions",
            duplicates,
            "Remove the duplicates, or join by text",
        )
    if bad:
        raise refuse(
            "labels are neither yes nor no", bad, "Correct these labels in the file of questions"
        )
    return Questions(by=by, table=table, with_category=with_category)


def _has_category(record: Record) -> bool:
    """Return whether a record has one category. VLMEvalKit's rows have several, and unique ids."""
    category = record.values.get("category")
    return isinstance(category, str) and "," not in category


def _question_records(references: References) -> Iterator[Record]:
    if not isinstance(references, Mapping):
        yield from read_records(references)
        return
    for position, (key, value) in enumerate(references.items()):
        row = value if isinstance(value, Mapping) else {"label": value}
        values = {"question_id": key, **row}
        yield Record(values=values, position=position, place=f"entry {key!r}")


def _way_to_join(answer: Record, question: Record) -> str:
    has_id = [any(key in record.values for key in ID_KEYS) for record in (answer, question)]
    if all(has_id):
        return "id"
    if any(key in answer.values for key in IMAGE_KEYS):
        return "text"
    raise ArchiveError(
        f"{answer.place}: answers have neither a question id ({', '.join(ID_KEYS)}) nor an image "
        f"({', '.join(IMAGE_KEYS)}) to join by; found {', '.join(sorted(answer.values))}. "
        "If they are in the order of the questions, set InputOptions(join='order')"
    )


def id_of(record: Record, *, with_category: bool, required: bool) -> str:
    """Return the id of a question or an answer; without one, its position counted from one.

    Args:
        record: The question or the answer.
        with_category: Whether ids are only unique within a category.
        required: Whether a record without an id is an error.

    Raises:
        ArchiveError: A required id is missing.
    """
    key = next((key for key in ID_KEYS if key in record.values), None)
    if key is None and required:
        raise ArchiveError(
            f"{record.place}: no question id ({', '.join(ID_KEYS)}), unlike other records; found "
            f"{', '.join(sorted(record.values))}. Add the id, or remove the record"
        )
    if key is None:
        return str(record.position + 1)
    identifier = canonical_id(record.values[key], record.place)
    return f"{record.values.get('category')}:{identifier}" if with_category else identifier


def _text_key(record: Record, *, answer: bool) -> str:
    # Prompts may end with instructions that the question file does not have.
    keys = ("question", "prompt") if answer else _QUESTION_KEYS
    if answer and "answer" in record.values:
        keys = _QUESTION_KEYS
    text, image = optional_text(record, keys), optional_text(record, IMAGE_KEYS)
    if not text or not image:
        raise ArchiveError(
            f"{record.place}: joining by text needs an image and a question; "
            f"found {', '.join(sorted(record.values))}"
        )
    return f"{image}: {' '.join(text.split())}"


def label_of(value: object) -> str | None:
    """Return yes or no; None for anything else."""
    return _LABELS.get(value.strip().casefold()) if isinstance(value, str) else None
