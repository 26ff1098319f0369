"""Questions with their labels, in a file of their own, that answers are joined with one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

from msgspec import Struct

from hallujudge.metrics.answers.closed_questions import ClosedQuestions

from ..errors import ArchiveError
from .inputs import InputOptions, References, Responses
from .joins import MediaCheck, refuse
from .json_files import shown
from .question_files import id_of, label_of, labels_are_wrong
from .record_columns import Columns, columns_of, first_fault, read_columns
from .records import Record, choose_key, first_record, id_under, optional_text, read_records

JOINS = ("auto", "id", "text", "order")
"""How answers find their questions."""


class Question(Struct, frozen=True, gc=False):
    """A question, its label, its image, and the fields that results are grouped by."""

    identifier: str
    text: str
    label: str
    image: str
    fields: Mapping[str, str]

    @property
    def filled(self) -> Mapping[str, str]:
        """The fields that are not empty."""
        return {key: value for key, value in self.fields.items() if value}


class Questions(Struct, frozen=True, kw_only=True):
    """Questions by join key."""

    declared: ClosedQuestions
    """The benchmark."""
    by: str
    """``id``, ``text`` or ``order``."""
    table: Mapping[str, Question]
    """Key -> question."""
    notes: tuple[str, ...] = ()
    """Notes on what questions lack."""

    def keys_of(self, columns: Columns) -> list[str]:
        """Return the join keys of answers."""
        if self.by == "id":
            required = partial(id_of, self.declared, required=True)
            return columns.ids(self.declared.keys.id, required)
        if self.by == "order":
            return [str(record.position) for record in columns.records()]
        return [_text_key(self.declared, record, answer=True) for record in columns.records()]


def read_questions(
    declared: ClosedQuestions,
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
    question = first_record(_question_records(references), references, "question")
    first = first_record(read_records(responses), responses, "answer")
    named_id = options.id_key
    by = options.join
    if by == "auto":
        by = _way_to_join(declared, first, question, named_id)
    label_key = choose_key(question, None, declared.keys.label, "the label")
    # The named key may be that of the answers alone.
    id_key = named_id if named_id in question.values else None
    table: dict[str, Question] = {}
    duplicates: list[str] = []
    bad: list[str] = []
    media = MediaCheck(declared.keys.media)
    reader = _QuestionReader(declared, by, id_key, label_key, group_by)
    for columns in _question_columns(references):
        keys, questions, lacking = first_fault(reader.read, columns)
        bad += lacking
        media.extend([one.image for one in questions], columns.records, responses=False)
        for key, each in zip(keys, questions, strict=True):
            if key in table:
                duplicates.append(each.identifier)
            table[key] = each
    if duplicates:
        raise refuse(
            "duplicate questions in the file of questions",
            duplicates,
            "Give different questions different ids, or join by text",
        )
    if bad:
        raise labels_are_wrong(declared, bad, "the file of questions")
    return Questions(declared=declared, by=by, table=table, notes=media.notes())


class _QuestionReader:
    """Reads questions of a file, many at a time."""

    def __init__(
        self,
        declared: ClosedQuestions,
        by: str,
        id_key: str | None,
        label_key: str,
        group_by: tuple[str, ...],
    ) -> None:
        self._declared = declared
        self._by = by
        self._id_key = id_key
        self._label_key = label_key
        self._group_by = group_by
        # Labels repeat, and there is one for every question.
        self._known_label = lru_cache(maxsize=1024)(partial(label_of, declared))
        # Texts and images repeat; share equal strings to save memory.
        self._shared: dict[str, str] = {}

    def read(self, columns: Columns) -> tuple[list[str], list[Question], list[str]]:
        """Return the join key of each question, the questions, and the ids of wrong labels."""
        declared, key = self._declared, self._label_key
        ids = self._ids(columns)
        keys = self._keys(columns, ids)
        labels = columns.read(key, self._label, self._known_label)
        bad = [
            f"{each} ({shown(values.get(key))})"
            for each, label, values in zip(ids, labels, columns.values, strict=True)
            if label is None
        ]
        texts = self._once(columns.texts(declared.keys.asked))
        images = self._once(columns.texts(declared.keys.media))
        fields = columns.fields(self._group_by)
        known = [label or "" for label in labels]
        rows = zip(ids, texts, known, images, fields, strict=True)
        return keys, [Question(*row) for row in rows], bad

    def _ids(self, columns: Columns) -> list[str]:
        if (key := self._id_key) is not None:
            return columns.ids((key,), partial(id_under, key=key))
        plain = partial(id_of, self._declared, required=self._by == "id")
        return columns.ids(self._declared.keys.id, plain)

    def _keys(self, columns: Columns, ids: list[str]) -> list[str]:
        if self._by == "order":
            found = [str(record.position) for record in columns.records()]
        elif self._by == "text":
            found = [
                _text_key(self._declared, record, answer=False) for record in columns.records()
            ]
        else:
            found = ids
        return found

    def _label(self, record: Record) -> str | None:
        return label_of(self._declared, record.values.get(self._label_key))

    def _once(self, texts: list[str]) -> list[str]:
        return list(map(self._shared.setdefault, texts, texts))


def _question_columns(references: References) -> Iterator[Columns]:
    """Yield the questions of a file many at a time, those of id -> label from memory."""
    if isinstance(references, Mapping):
        return columns_of(_question_records(references))
    return read_columns(references)


def _question_records(references: References) -> Iterator[Record]:
    if not isinstance(references, Mapping):
        yield from read_records(references)
        return
    for position, (key, value) in enumerate(references.items()):
        row = value if isinstance(value, Mapping) else {"label": value}
        values = {"question_id": key, **row}
        yield Record(values=values, position=position, place=f"entry {key!r}")


def _way_to_join(
    declared: ClosedQuestions, answer: Record, question: Record, id_key: str | None
) -> str:
    ids, media = declared.keys.id, declared.keys.media
    if id_key is not None:
        ids = (id_key, *ids)
    has_id = [any(key in record.values for key in ids) for record in (answer, question)]
    if all(has_id):
        return "id"
    if any(key in answer.values for key in media):
        return "text"
    found = "; found ".join(", ".join(sorted(record.values)) for record in (answer, question))
    raise ArchiveError(
        f"{answer.place}: answers and questions need a question id ({', '.join(ids)}), or an image "
        f"({', '.join(media)}) and a question, to join by; found {found}. If they are in the order "
        "of the questions, set InputOptions(join='order')"
    )


def _text_key(declared: ClosedQuestions, record: Record, *, answer: bool) -> str:
    # Prompts may end with instructions that the question file does not have.
    short = not answer or "answer" in record.values
    keys = declared.keys.asked if short else declared.keys.question
    text, image = optional_text(record, keys), optional_text(record, declared.keys.media)
    if not text or not image:
        raise ArchiveError(
            f"{record.place}: joining by text needs an image and a question; "
            f"found {', '.join(sorted(record.values))}"
        )
    return f"{image}: {' '.join(text.split())}"
