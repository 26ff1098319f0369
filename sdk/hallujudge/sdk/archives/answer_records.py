"""Answers of records: a response with its label and fields, under the keys of an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from hallujudge.metrics.answers.closed_questions import Answer, ClosedQuestions, WholeAnswer

from .asked_questions import AskedQuestions
from .inputs import InputOptions
from .joins import Faults
from .json_files import named
from .question_files import field_text, label_of, options_of
from .records import TEXT_FLAG, Record, choose_key, optional_text, shown, text_of

_T = TypeVar("_T")


class Entry(NamedTuple):
    """One answer of a bundle."""

    bundle: str
    """Id of the bundle."""
    name: str
    """Name of the answer within it."""
    fields: Mapping[str, str]
    """Declared fields of the item."""
    outer: Mapping[str, object]
    """The record."""
    inner: Record
    """The answer, which may be the record itself."""
    empty: bool = False
    """Whether it stands for a bundle without answers."""

    @property
    def whole(self) -> Mapping[str, object]:
        """The values of the record and of the answer."""
        same = self.outer is self.inner.values
        return self.outer if same else {**self.outer, **self.inner.values}


class AnswerMaker:
    """Makes the answers of an archive, by the keys of its first one.

    Args:
        declared: The benchmark.
        options: How the archive is read.
        faults: Collects what is wrong.
        asked: What is known of the questions.
    """

    def __init__(
        self,
        declared: ClosedQuestions,
        options: InputOptions,
        faults: Faults,
        asked: AskedQuestions,
    ) -> None:
        self._asked = asked
        self._remedy = "one of these names"
        if declared.question_files and not asked.references:
            self._remedy += ", or give what the records lack with references=…"
        self._declared = declared
        self._keys = declared.keys
        self._bundle = declared.bundle
        self._options = options
        self._faults = faults
        self._fields = [n for n in (*declared.seen, *declared.kept) if n in declared.keys.fields]
        optional = declared.keys.fields if options.allow_unknown else declared.keys.optional
        self._needed = declared.keys.fields.keys() - set(optional)
        self._label_remedy = _NO_LABEL_REMEDY
        self.chosen: tuple[str, str] | None = None
        """The keys of response and label; None before the first answer."""
        self.lacking: dict[str, tuple[int, str]] = {}
        """Part of the answers about whole bundles -> how many lack it, and the first one's keys."""

    def keys_of(self, first: Record) -> tuple[str, str]:
        """Return the keys of response and label, chosen by the first answer.

        Raises:
            ArchiveError: It has none; the message lists the tried and the found keys.
        """
        if self.chosen is None:
            self.chosen = self._choose(first)
        return self.chosen

    def _choose(self, first: Record) -> tuple[str, str]:
        options = self._options
        for name, key in options.key_map.items():
            if first.values.get(name) is None:
                choose_key(first, key, (), name, "InputOptions(key_map=…)")
        label = "label" if "label" in options.key_map else None
        response = choose_key(first, options.text_key, self._keys.response, "the answer", TEXT_FLAG)
        others = [key for key in self._keys.label if key != response]
        if not self._keys.label:
            return response, ""
        if label is None and self._keys.verdict and not has_any(first, others):
            self._label_remedy += f". Found {named(sorted(first.values))}"
            return response, others[0]
        return response, choose_key(first, label, others, "the label", self._remedy)

    def answer(self, entry: Entry) -> Answer:
        """Return the answer of an entry; what is wrong with it becomes a fault."""
        record, whole = entry.inner, self._bundle.whole
        if whole is not None and entry.name == whole.name:
            return self._completed(entry, self._whole_answer(whole, record))
        response_key, label_key = self.keys_of(record)
        if self._bundle.inside and response_key not in record.values:
            found_keys = f"found {named(sorted(entry.inner.values))}"
            self._faults.add(f"answers have no {response_key!r}", f"{placed(entry)} ({found_keys})")
        both = Record(entry.whole, record.position, record.place)
        answer = Answer(
            response=text_of(record, response_key),
            label=label_of(self._declared, record.values.get(label_key)) or "",
            name=entry.name,
            question=optional_text(record, self._keys.question),
            options=self._choices(record),
            fields=self._fields_of(both),
        )
        answer = self._completed(entry, answer)
        if self._keys.label and not answer.label and not self._asked.is_special(entry.outer):
            self._refuse_label(answer, entry, record.values.get(label_key))
        for name in filter(answer.fields.__contains__, self._declared.places):
            self._check_place(name, answer.fields[name], record)
        return answer

    def _choices(self, record: Record) -> Mapping[str, str]:
        """Return the choices of an answer, which its record holds unless others do.

        Raises:
            ArchiveError: It lacks them; the message lists the tried and the found keys.
        """
        if self._declared.choices and not self._declared.question_files:
            choose_key(record, None, self._keys.options, "the choices")
        return options_of(record, self._keys.options)

    def _fields_of(self, record: Record) -> dict[str, str]:
        """Return the declared fields of an answer, and its place if the order counts."""
        found = {name: self.field(name, record) for name in self._fields}
        if place := self._declared.place_field:
            found[place] = str(record.position + 1)
        return found

    def _refuse_label(self, answer: Answer, entry: Entry, found: object) -> None:
        """Note a label that is not valid, or is missing unless a verdict came with the answer."""
        missing, verdict = found in (None, ""), self._keys.verdict[:1]
        if missing and (self._options.allow_unknown or any(map(answer.fields.get, verdict))):
            return
        if missing and verdict:
            self._faults.add(
                unlabelled(self._declared), entry.inner.place, remedy=self._label_remedy
            )
            return
        name = f"{answer.name}: " if answer.name else ""
        place = f"{entry.inner.place} ({name}{shown(found)})"
        self._faults.add(bad_label(self._declared), place)

    def _check_place(self, name: str, value: str, record: Record) -> None:
        """Note a value that a field may not have."""
        allowed = self._declared.places[name]
        if value not in allowed:
            known = ", ".join(filter(None, allowed))
            fault = f"values of {name} are not one of {known}"
            self._faults.add(fault, f"{record.place} ({shown(value)})", remedy="Correct them")

    def _whole_answer(self, whole: WholeAnswer, record: Record) -> Answer:
        keys = {"response": whole.response, **whole.fields}
        found = {name: _first_text(record, names) for name, names in keys.items()}
        for name in keys if has_any(record, whole.keys) else ():
            if not has_any(record, keys[name]):
                found_keys = f"tried {', '.join(keys[name])}; found {named(sorted(record.values))}"
                part = f"{whole.name}s have no {name}"
                number, first = self.lacking.get(part, (0, found_keys))
                self.lacking[part] = number + 1, first
        response = found.pop("response")
        fields = {name: text for name, text in found.items() if text is not None}
        return Answer(response=response, label=whole.label, name=whole.name, fields=fields)

    def _completed(self, entry: Entry, answer: Answer) -> Answer:
        """Return an answer with what only its benchmark reads of its record."""
        if (complete := self._declared.complete) is None:
            return answer
        values = {**entry.fields, **entry.whole}
        return self.checked(entry, answer, lambda: complete(answer, values))

    def checked(self, entry: Entry, known: _T, make: Callable[[], _T]) -> _T:
        """Return what a function of the benchmark makes; what is known if it finds a fault."""
        try:
            return make()
        except ValueError as err:
            fault, remedy, *found = err.args
            place = f"{entry.bundle} ({_short(found[0])})" if found else placed(entry)
            self._faults.add(fault, place, remedy=remedy)
            return known

    def field(self, name: str, record: Record, *, needed: bool = True) -> str:
        """Return the value of a declared field; empty without one that records may lack.

        Raises:
            ArchiveError: The record lacks it; the message lists the tried and the found keys.
        """
        # A key that the user named is the only one.
        keys = (name,) if name in self._options.key_map else self._keys.fields[name]
        if needed and keys[0] not in record.values and name in self._needed:
            choose_key(record, None, keys, f"the {name}", self._remedy)
        text = field_text(record.values, keys)
        if (values := self._keys.values.get(name)) is None:
            return text
        text = text.strip().removesuffix(".0")
        return values.get(text.casefold(), text)


def bad_label(declared: ClosedQuestions) -> str:
    """Return the fault of labels that a benchmark does not have."""
    return f"labels are neither {' nor '.join(declared.labels) or 'a text nor a number'}"


def unlabelled(declared: ClosedQuestions) -> str:
    """Return the fault of answers without a label, where a verdict may stand for it."""
    return f"answers have neither {declared.keys.label[0]} nor {declared.keys.verdict[0]}"


_NO_LABEL_REMEDY = (
    "Give the benchmark's questions with references=…, or pass InputOptions(allow_unknown=True) to "
    "leave them unscored"
)


def has_any(record: Record, keys: Sequence[str]) -> bool:
    """Return whether a record has one of some keys."""
    return any(key in record.values for key in keys)


def _short(value: object) -> str:
    return f"{value!r:.40}"


def placed(entry: Entry) -> str:
    """Return the place of an answer, for messages."""
    return f"{entry.bundle} ({entry.name})" if entry.name else entry.bundle


def _first_text(record: Record, keys: Sequence[str]) -> str | None:
    """Return the text of the first key that a record has; None if there is none."""
    return next((text_of(record, key) for key in keys if key in record.values), None)
