"""POPE's answers, joined with their questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from hallujudge.metrics.pope import PopeItem

from ...errors import ArchiveError
from ..inputs import InputOptions, ItemSource, Responses
from ..joins import numbered, refuse
from ..qa import JoinCheck, fields_of, optional_text, text_of
from ..records import Record, canonical_id, choose_key, no_records, read_records, shown
from .questions import ID_KEYS, IMAGE_KEYS, LABEL_KEYS, Question, Questions, id_of, label_of

__all__ = ["Answers"]

# If a record has both, `answer` is the label and `prediction` the response (VLMEvalKit).
_ANSWER_KEYS = ("response", "output", "prediction", "predict", "answer", "text", "caption")
_WORD = re.compile(r"\w+")
_LOOKED_AT = 100


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
        self._text_key = choose_key(
            first,
            options.text_key,
            _ANSWER_KEYS,
            what="the answer",
            flag="InputOptions(text_key=…)",
        )
        self._id_key = options.id_key
        self._with_ids = any(key in first.values for key in ID_KEYS)
        self._label_key = (
            choose_key(
                first,
                None,
                [key for key in LABEL_KEYS if key != self._text_key],
                what="the label",
                flag="one of these names, or give the questions with references=…",
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
        first = [record.values.get(self._text_key) for record in self._first_records()]
        if first and all(map(_asks, first)):
            raise ArchiveError(
                f"the responses are questions, such as {first[0]!s:.80}; give the model's "
                "answers as responses and the questions as references"
            )

    def _first_records(self) -> Iterator[Record]:
        return islice(read_records(self._responses), _LOOKED_AT)

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
