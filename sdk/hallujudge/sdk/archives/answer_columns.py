"""Answers of many records at once, as long as nothing is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hallujudge.metrics.answers.answer_text import fraction_of
from hallujudge.metrics.answers.closed_questions import Answer, ClosedQuestions

from ..errors import HallujudgeError
from .answer_records import AnswerMaker, Entry, FieldWay, text_of
from .asked_questions import AskedQuestions
from .ids import canonical_id
from .inputs import InputOptions
from .joins import Faults
from .question_files import label_of, place_of, places_of
from .record_columns import Columns, fields_of_rows
from .records import Record

_NOTHING: Mapping[str, str] = {}


class AnswerColumns:
    """Makes the answers of entries key by key, where each is made as by itself.

    Args:
        declared: The benchmark.
        asked: What is known of the questions.
        maker: Makes the answers one by one, and notes what is wrong.
    """

    def __init__(
        self, declared: ClosedQuestions, asked: AskedQuestions, maker: AnswerMaker
    ) -> None:
        self._declared = declared
        self._keys = declared.keys
        self._asked = asked
        self._maker = maker
        self._ways = maker.ways_of((*declared.seen, *declared.kept))
        self._needs_choices = declared.choices and not declared.question_files
        whole = declared.bundle.whole
        self._whole = None if whole is None else whole.name

    def answers(self, entries: Sequence[Entry]) -> list[Answer | None] | None:
        """Return the answer of each entry, None for one about the whole bundle.

        Instead of the list, None if something may be wrong: then each is to be made by itself, so
        that faults are noted in their order.
        """
        own = entries
        if self._whole is not None:
            own = [entry for entry in entries if entry.name != self._whole]
        if self._maker.chosen is None or not own:
            return None
        try:
            made = self._made(own, *self._maker.chosen)
        except (HallujudgeError, ValueError):
            return None
        if made is None or len(own) == len(entries):
            return None if made is None else [*made]
        each = iter(made)
        return [None if entry.name == self._whole else next(each) for entry in entries]

    def _made(
        self, entries: Sequence[Entry], response_key: str, label_key: str
    ) -> list[Answer] | None:
        values = [entry.inner.values for entry in entries]
        columns = Columns(values, lambda: [entry.inner for entry in entries])
        if self._declared.bundle.inside and not columns.under((response_key,)):
            return None

        def label(record: Record) -> str | None:
            return label_of(self._declared, record.values.get(label_key))

        texts = columns.read(response_key, partial(text_of, key=response_key))
        labels = columns.read(label_key, label, self._maker.label_of)
        asked = columns.texts(self._keys.question)
        choices = [_NOTHING] * columns.size
        if self._needs_choices or columns.has_any(self._keys.options):
            choices = list(map(self._maker.choices, columns.records()))
        whole: Sequence[Mapping[str, object]] = values
        complete = self._declared.complete
        if self._ways or complete is not None:
            whole = [entry.whole for entry in entries]
        fields = self._fields(entries, whole) if self._ways else [_NOTHING] * columns.size
        if name := self._declared.place_field:
            places = [str(entry.inner.position + 1) for entry in entries]
            fields = [{**f, name: place} for f, place in zip(fields, places, strict=True)]
        names = [entry.name for entry in entries]
        known = [label or "" for label in labels]
        rows = zip(texts, known, names, asked, choices, fields, strict=True)
        answers = [Answer(*row) for row in rows]
        if complete is not None:
            completed = self._maker.completed_values
            pairs = zip(answers, map(completed, entries, whole), strict=True)
            answers = [complete(*pair) for pair in pairs]
        return None if self._may_be_wrong(entries, answers, whole) else answers

    def _fields(
        self, entries: Sequence[Entry], whole: Sequence[Mapping[str, object]]
    ) -> list[Mapping[str, str]]:
        """Return the declared fields of answers."""
        records = (Record(v, 0, e.inner.place) for v, e in zip(whole, entries, strict=True))
        return fields_in(self._maker, self._ways, Columns(whole, lambda: records))

    def _may_be_wrong(
        self,
        entries: Sequence[Entry],
        answers: Sequence[Answer],
        whole: Sequence[Mapping[str, object]],
    ) -> bool:
        """Return whether something may be wrong with an answer."""
        pairs = zip(entries, answers, strict=True)
        if self._keys.label and not all(answer.label for answer in answers):
            is_special = self._asked.is_special
            if not all(answer.label or is_special(entry.outer) for entry, answer in pairs):
                return True
        for name, allowed in self._declared.places.items():
            pairs = zip(entries, answers, strict=True)
            found = {a.fields.get(name, e.fields.get(name)) for e, a in pairs}
            if not found <= {None, *allowed}:
                return True
        if not (name := self._keys.confidence):
            return False
        stated = [answer.fields.get(name) for answer in answers]
        wrong = {text for text in set(stated) if text is not None and fraction_of(text) is None}
        return bool(wrong) and any(
            text in wrong and self._maker.stated(values) is not None
            for text, values in zip(stated, whole, strict=True)
        )


def fields_in(
    maker: AnswerMaker, ways: Sequence[tuple[str, FieldWay]], columns: Columns
) -> list[Mapping[str, str]]:
    """Return what :meth:`AnswerMaker.fields_of` does of each record; equal fields are one value.

    Args:
        maker: Reads one field of one record.
        ways: How the fields are read.
        columns: The records.
    """
    read = []
    for name, way in ways:
        found = columns.same_texts(way.keys)
        if found is None or (not found and way.needed):
            found = [maker.field(name, r, needed=way.needed) for r in columns.records()]
        elif way.value is not None:
            found = list(map(way.value, found or [""] * columns.size))
        read.append(found or [""] * columns.size)
    return fields_of_rows([name for name, _ in ways], read)


class AnswerNames:
    """Finds the names of answers within their bundles.

    Args:
        declared: The benchmark.
        options: How the archive is read.
        faults: Collects what is wrong.
    """

    def __init__(self, declared: ClosedQuestions, options: InputOptions, faults: Faults) -> None:
        self._declared = declared
        self._faults = faults
        self._line_keys = (options.id_key, declared.keys.id[0])
        self._line_ids: set[str] = set()

    def of_one(self, record: Record) -> str | None:
        """Return the name of a record within its bundle; None if it may not have it."""
        return self._known_name(
            "_".join(place_of(self._declared, record, self._declared.bundle.name))
        )

    def _known_name(self, name: str) -> str | None:
        if not (known := self._declared.bundle.known):
            return name
        folded = name.strip().casefold().replace("-", "_").replace(" ", "_")
        return folded if folded in known else None

    def of(self, columns: Columns) -> list[str] | None:
        """Return what :meth:`of_one` does of some records.

        None if one may have no name, or an id of its line next to that of its bundle.

        Raises:
            ArchiveError: A record lacks a part of its name.
        """
        keys = filter(None, self._line_keys)
        if "id" not in self._line_keys and columns.has_any(("id",)) and columns.has_any(keys):
            return None
        texts = places_of(self._declared, columns, self._declared.bundle.name)
        known = {text: self._known_name(text) for text in set(texts)}
        return None if None in known.values() else [known[text] or "" for text in texts]

    def check_line_id(self, record: Record) -> None:
        """Note a duplicate id of a line, in addition to the id of its bundle."""
        keys = self._line_keys
        if not any(key in record.values for key in keys):
            return
        value = record.values.get("id") if "id" not in keys else None
        if value is None:
            return
        identifier = canonical_id(value, record.place)
        if identifier in self._line_ids:
            self._faults.add("duplicate line ids", identifier)
        self._line_ids.add(identifier)
