"""Questions with their labels, in a file of their own, that answers are joined with one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from msgspec import Struct

from hallujudge.metrics.answers.closed_questions import ClosedQuestions

from ..errors import ArchiveError
from .inputs import ReaderInput, References
from .joins import MediaCheck, refuse
from .json_files import shown
from .json_lines import FilePart
from .question_files import id_of, labels_are_wrong, labels_of
from .record_fields import Row, RowDecoder, SharedFields
from .record_values import LABEL, canonical_id, choose_key, id_under, optional_text, present
from .records import Record, first_record, read_records

# Different texts and images of questions that are kept as one value each; more start again, so
# that a file whose images all differ takes no table of them beside the questions.
_MOST_SHARED = 1 << 16

JOINS = ("auto", "id", "text", "order")
"""How answers find their questions."""


class Question(Struct, frozen=True, gc=False):
    """A question, its label, its image, and the fields that results are grouped by.

    There may be a million of them: with a sixth value, each takes 16 bytes more.
    """

    text: str
    label: str
    image: str
    fields: Mapping[str, str]


class Questions(Struct, frozen=True, kw_only=True):
    """Questions by join key."""

    declared: ClosedQuestions
    """The benchmark."""
    by: str
    """``id``, ``text`` or ``order``."""
    table: Mapping[str, Question]
    """Key -> question."""
    identifiers: Mapping[str, str]
    """Key -> the question's id, where they differ."""
    notes: tuple[str, ...] = ()
    """Notes on what questions lack."""

    @property
    def key_of(self) -> Callable[[Record], str]:
        """The function from an answer to its join key."""
        if self.by == "id":
            return partial(id_of, self.declared, required=True)
        if self.by == "order":
            return _order_key
        return partial(_text_key, self.declared, answer=True)


def read_questions(declared: ClosedQuestions, given: ReaderInput) -> Questions:
    """Return the questions by the key that joins them with the answers.

    Raises:
        ArchiveError: A question is a duplicate, a label is neither yes nor no, or nothing joins
            the questions with the answers.
    """
    responses, references, options, group_by = given
    assert references is not None, "they are the questions"
    question = first_record(_question_records(references), references, "question")
    first = first_record(read_records(responses), responses, "answer")
    named_id = options.id_key
    by = options.join
    if by == "auto":
        by = _way_to_join(declared, first, question, named_id)
    label_key = choose_key(question, None, declared.keys.label, LABEL)
    # The named key may be that of the answers alone.
    id_key = named_id if named_id in question.values else None
    table: dict[str, Question] = {}
    identifiers: dict[str, str] = {}
    duplicates: list[str] = []
    bad: list[str] = []
    media = MediaCheck(declared.keys.media)
    groups = SharedFields(group_by)
    reader = _QuestionReader(declared, by, id_key, label_key, groups)
    # Labels repeat, and there is one for every question. Texts and images repeat too: equal ones
    # are one value, which saves memory.
    label_of, shared = labels_of(declared), dict[str, str]()
    once = shared.setdefault
    for row in reader.rows(references, question):
        own = canonical_id(row.id, "a question")
        if (label := label_of(row.label)) is None:
            bad.append(f"{own} ({shown(row.label)})")
        if row.image:
            media.found = True
        elif row.record is not None:
            media.add(row.image, row.record.place, row.record.values)
        if (key := row.key or own) in table:
            duplicates.append(own)
        if len(shared) >= _MOST_SHARED:
            shared.clear()
        text, image = once(row.question, row.question), once(row.image, row.image)
        fields = groups.of(row.groups) if row.groups else groups.blank
        table[key] = Question(text, label or "", image, fields)
        if key != own:
            identifiers[key] = own
    if duplicates:
        raise refuse(
            "duplicate questions in the file of questions",
            duplicates,
            "Give different questions different ids, or join by text",
        )
    if bad:
        raise labels_are_wrong(declared, bad, "the file of questions")
    return Questions(
        declared=declared, by=by, table=table, identifiers=identifiers, notes=media.notes()
    )


class _QuestionReader:
    """Reads the questions of a file."""

    def __init__(
        self,
        declared: ClosedQuestions,
        by: str,
        id_key: str | None,
        label_key: str,
        groups: SharedFields,
    ) -> None:
        self._declared = declared
        self._by = by
        self._id_key = id_key
        self._label_key = label_key
        self._groups = groups
        self._present = present(declared.keys.asked, declared.keys.media, self._groups.begun)

    def rows(self, references: References, first: Record) -> Iterator[Row]:
        """Yield the questions of a file, of which the first one is known."""
        own, read = self._declared.keys, self.row
        keys = {"id": own.id if self._id_key is None else (self._id_key,)}
        keys |= {"label": (self._label_key,), "question": own.asked, "image": own.media}
        decoder = RowDecoder(first.values, keys, self._groups)
        if self._by != "id" or isinstance(references, Mapping) or "image" not in decoder.fields:
            yield from map(read, _question_records(references))
            return
        for found in read_records(references, FilePart(decode=decoder)):
            yield read(found) if type(found) is Record else found

    def row(self, record: Record) -> Row:
        """Return what is read of a question."""
        values, key = record.values, ""
        if self._id_key is not None:
            own = id_under(record, self._id_key)
        else:
            own = id_of(self._declared, record, required=self._by == "id")
        if self._by == "order":
            key = str(record.position)
        elif self._by == "text":
            key = _text_key(self._declared, record, answer=False)
        asked, media, groups = self._present(tuple(values))
        return Row(
            own,
            key,
            label=values.get(self._label_key),
            question=optional_text(record, asked),
            image=optional_text(record, media),
            groups=values if groups else {},
            record=record,
        )


def _question_records(references: References) -> Iterator[Record]:
    return _by_id(references) if isinstance(references, Mapping) else read_records(references)


def _by_id(references: Mapping[str, object]) -> Iterator[Record]:
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


def _order_key(record: Record) -> str:
    return str(record.position)


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
    # Copies of a prompt may differ in blanks and line breaks.
    return f"{image}: {' '.join(text.split())}"
