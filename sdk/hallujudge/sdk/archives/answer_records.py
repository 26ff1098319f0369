"""Answers of records, a response with its label and fields each, and the items of their bundles."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from itertools import repeat

from msgspec import Struct, structs

from hallujudge.metrics.answers.answer_items import UNANSWERED
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import metric_of

from ..errors import ArchiveError, HallujudgeError
from .asked_questions import AskedQuestions
from .bad_records import SKIP, noted
from .inputs import InputOptions
from .joins import Faults, MediaCheck
from .json_files import named, shown
from .question_files import LABELS_INVALID, bad_label, labels_of, options_of
from .record_fields import declared_fields, fields_of
from .record_values import LABEL, TEXT_FLAG, choose_key, optional_text, response_text
from .records import Record
from .set_files import known_sets

UNLABELLED = "answers have neither"
"""How the fault of answers without a label begins, where a verdict may stand for it."""
_NOTHING: Mapping[str, str] = {}


class Entry(Struct, frozen=True, gc=False):
    """One answer of a bundle."""

    bundle: str
    """Id of the bundle."""
    name: str
    """Name of the answer within it."""
    fields: Mapping[str, str]
    """Declared fields of the item."""
    outer: Mapping[str, object]
    """The values of the record."""
    values: Mapping[str, object]
    """Those of the answer, which may be the record itself."""
    position: int
    """Position of the record in the archive."""
    place: str
    """The record's file and line, for messages."""
    empty: bool = False
    """Whether it represents a bundle without answers."""

    @property
    def record(self) -> Record:
        """The answer as a record."""
        return Record(self.values, self.position, self.place)

    @property
    def whole(self) -> Mapping[str, object]:
        """The values of the record and of the answer."""
        same = self.outer is self.values
        return self.outer if same else {**self.outer, **self.values}


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
        self._label_remedy = "Add one"
        self.remedy = "one of these names"
        """The next step where a record lacks a value."""
        if declared.question_files and not asked.references:
            self.remedy += ", or give what the records lack with references=…"
            self._label_remedy = "Give the benchmark's questions with references=…"
        self._declared = declared
        self._keys = declared.keys
        self._bundle = declared.bundle
        self._options = options
        self._faults = faults
        self._fields = declared_fields(declared, declared.of_answers, options, self.remedy)
        self._has_fields = bool(self._fields)
        self._reads_whole = bool(self._has_fields or declared.complete)
        metric = metric_of(declared)
        self._is_question = metric.is_question
        # Most benchmarks have none of these, and many answers.
        self._fault = metric.fault if metric.overrides("fault") else None
        self._lacks = metric.lacks if metric.overrides("lacks") else None
        self._needs_choices = declared.choices and not declared.question_files
        self._option_keys = declared.keys.options
        self._has_labels = bool(declared.keys.label)
        # Where each answer is judged, one that has a verdict stands beside one that needs none.
        verdict = declared.keys.fields.get(declared.verdict, ()) if declared.judges_each else ()
        self._verdict_keys, self._verdict = verdict, declared.verdict
        self._complete = declared.complete
        self._question_keys: tuple[str, ...] = ()
        # That of the first record, and those that come before it.
        self._question_key, self._before = "", frozenset[str]()
        self._places = list(declared.limits.items())
        self._label_of = labels_of(declared)
        self._found = ""
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
            keys = tuple(key for key in self._keys.question if key not in self.chosen)
            usual = next(filter(first.values.__contains__, keys), keys[0])
            self._question_keys, self._question_key = keys, usual
            self._before = frozenset(keys[: keys.index(usual)])
        return self.chosen

    def _choose(self, first: Record) -> tuple[str, str]:
        options = self._options
        for name, key in options.key_map.items():
            if first.values.get(name) is None:
                # It raises the error that names the keys of the record.
                choose_key(first, key, (), name, "InputOptions(key_map=…)")
        label = "label" if "label" in options.key_map else None
        response = choose_key(first, options.text_key, self._keys.response, "the answer", TEXT_FLAG)
        # A key that holds the response is not the label's as well.
        others = [key for key in self._keys.label if key != response]
        if not self._keys.label:
            return response, ""
        # A verdict may stand for a label, so that each record is looked at by itself.
        if label is None and self._declared.verdicts and not has_any(first, others):
            self._found = f" (found {named(sorted(first.values))})"
            return response, others[0]
        return response, choose_key(first, label, others, LABEL, self.remedy)

    def answer(self, entry: Entry) -> Answer:
        """Return the answer of an entry; what is wrong with it becomes a fault."""
        values = entry.values
        response_key, label_key = self.chosen or self.keys_of(entry.record)
        found = values.get(label_key)
        label = self._label_of(found) if label_key else ""
        held = values if entry.outer is values or not self._reads_whole else entry.whole
        # Nearly all are such texts, which the functions return as they are.
        text, asked = values.get(response_key), values.get(self._question_key)
        if type(text) is not str or not text.isascii():
            joins = joins_lists(self._declared, response_key)
            text = response_text(entry.record, response_key, joins=joins)
        others = self._before and not values.keys().isdisjoint(self._before)
        if type(asked) is not str or not asked or not asked.isascii() or others:
            asked = optional_text(entry.record, self._question_keys)
        lacks_choices = not self._needs_choices and values.keys().isdisjoint(self._option_keys)
        choices = _NOTHING if lacks_choices else self._choices(entry.record)
        fields = self._fields.of(held, entry.place) if self._has_fields else _NOTHING
        if self._verdict_keys and all(held.get(key) is None for key in self._verdict_keys):
            # Absent, and not empty: an empty verdict is what a judge said.
            fields = {name: said for name, said in fields.items() if name != self._verdict}
        answer = Answer(text, label or "", entry.name, asked, choices, fields)
        if self._complete is not None:
            answer = self._completed(entry, answer, held)
        if not answer.label and self._has_labels and self._is_question(entry.outer):
            self._refuse_label(answer, entry, found)
        for name, allowed in self._places:
            value = answer.fields.get(name, entry.fields.get(name))
            if value is not None and value not in allowed:
                known = ", ".join(filter(None, allowed))
                fault = f"values of {name} are not one of {known}"
                self._refuse(fault, f"{entry.bundle} ({shown(value)})", "Correct them")
        for part, tried in self._lacks(answer, held) if self._lacks else ():
            self.lacks_part(part, f"tried {tried}; found {named(sorted(held))}")
        if self._fault and (wrong := self._fault(answer, held)) is not None:
            place = f"{entry.bundle} ({_short(wrong.found)})"
            self._refuse(wrong.problem, place, wrong.remedy)
        return answer

    def _refuse(self, problem: str, place: str, remedy: str, *, reason: str = "") -> None:
        """Count an answer that would be unscored, unless bad records may be."""
        if not self._options.skip_bad:
            self._faults.add(problem, place, remedy=f"{remedy}, or {SKIP}", reason=reason)

    def _choices(self, record: Record) -> Mapping[str, str]:
        """Return the choices of an answer, which its record holds unless others do.

        Raises:
            ArchiveError: It lacks them; the message lists the tried and the found keys.
        """
        keys = self._keys.options
        found = options_of(record, keys)
        if self._needs_choices and not found:
            key = choose_key(record, None, keys, "the choices")
            raise ArchiveError(f"{record.place}: {key!r} has no choices; give their texts")
        if not all(map(str.strip, found.values())):
            empty = [letter for letter, text in found.items() if not text.strip()]
            part = f"{self._declared.unit} have choices without a text"
            self.lacks_part(part, f"{named(empty)} in {record.place}")
        return found

    def _refuse_label(self, answer: Answer, entry: Entry, found: object) -> None:
        """Note a label that is not valid, or is missing unless a verdict came with the answer."""
        missing, verdict = found in (None, ""), self._declared.verdicts[:1]
        if missing and any(map(answer.fields.get, verdict)):
            found_keys = f"tried {self._keys.label[0]}; found {named(sorted(entry.values))}"
            self.lacks_part(f"answers have no {self._keys.label[0]}", found_keys)
            return
        if missing and self._options.allow_unknown:
            return
        if missing and verdict:
            both = f"{self._keys.label[0]} nor {self._declared.verdict}"
            self._refuse(f"{UNLABELLED} {both}{self._found}", entry.bundle, self._label_remedy)
            return
        name = f"{answer.name}: " if answer.name else ""
        place = f"{entry.bundle} ({name}{shown(found)})"
        remedy = "Correct these labels"
        self._refuse(bad_label(self._declared), place, remedy, reason=LABELS_INVALID)

    def lacks_part(self, part: str, keys: str) -> None:
        """Count an answer that lacks something; the keys of the first one are kept."""
        number, first = self.lacking.get(part, (0, keys))
        self.lacking[part] = number + 1, first

    def _completed(self, entry: Entry, answer: Answer, whole: Mapping[str, object]) -> Answer:
        """Return an answer with what only its benchmark reads of its record."""
        assert self._complete is not None, "asked only then"
        # A record that has all its fields needs no copy.
        values = whole if whole.keys() >= entry.fields.keys() else {**entry.fields, **whole}
        try:
            return self._complete(answer, values)
        except ValueError as err:
            self.note(entry, err)
            return answer

    def note(self, entry: Entry, err: ValueError) -> None:
        """Note the fault that a function of the benchmark finds."""
        fault, remedy, *found = err.args
        place = f"{entry.bundle} ({_short(found[0])})" if found else placed(entry)
        self._faults.add(fault, place, remedy=remedy)


class BundleItems:
    """Makes the items of bundles, and notes what is wrong with them.

    Args:
        declared: The benchmark.
        options: How the archive is read.
        faults: Collects what is wrong.
        asked: What is known of the questions.
        maker: Makes the answers.
        group_by: Fields to group by.
        of_first: Fields of the first answer to group by.
    """

    def __init__(
        self,
        declared: ClosedQuestions,
        options: InputOptions,
        faults: Faults,
        asked: AskedQuestions,
        maker: AnswerMaker,
        group_by: Sequence[str],
        of_first: Sequence[str],
    ) -> None:
        self._declared = declared
        self._keys = declared.keys
        self._bundle = declared.bundle
        self._faults = faults
        self._asked = asked
        self._names = declared.names
        self._metric = metric_of(declared)
        self._has_tasks = self._metric.overrides("is_question")
        # One question under several conditions has one label.
        one_label = self._metric.overrides("conditions")
        self._same = (*["label"] * one_label, *declared.same)
        # Released scripts that count null answers as wrong never see a question that was not asked.
        wrong = any(each.missing == "wrong" for each in declared.variants)
        self._counts_null = wrong and not declared.incomplete
        self._maker = maker
        self._group_by = group_by
        self._of_first = of_first
        self._has_groups = bool(group_by or of_first)
        self._needed = () if options.allow_missing else declared.needed
        may_lack = ", or pass InputOptions(allow_missing=True) to leave them unscored"
        self._remedy = (
            f"Give every one its answers {' and '.join(self._needed)}"
            f"{may_lack if declared.question_files else ''}"
        )
        self._usual_media = next(iter(self._keys.media), "")
        self._own_media = self._keys.own_media
        self._media = MediaCheck(() if self._own_media else self._keys.media)

    def alone(self, entry: Entry) -> AnswersItem:
        """Return the item of a bundle that is one answer."""
        answer = self._answer(entry)
        fields, group = entry.fields, self._media_of(entry)
        if self._has_groups:
            fields = self._grouped(fields, entry, answer.fields)
        only = AnswersItem(id=entry.bundle, group_id=group, fields=fields, answers=(answer,))
        return self._special(entry, only) if self._has_tasks else only

    def _answer(self, entry: Entry) -> Answer:
        try:
            answer = self._maker.answer(entry)
            if not self._counts_null or not entry.values.get(UNANSWERED):
                return answer
            return structs.replace(answer, fields={**answer.fields, UNANSWERED: "true"})
        except HallujudgeError:
            with noted(entry.position, entry.bundle):
                raise
        # Only where bad records are looked for.
        return Answer(response=None, label="", name=entry.name)

    def _special(self, entry: Entry, item: AnswersItem) -> AnswersItem:
        """Return an item, or that of another task if its record is no question."""
        if self._metric.is_question(entry.outer):
            return item
        try:
            return self._asked.special(item, entry.outer)
        except ValueError as err:
            self._maker.note(entry, err)
            return item

    def of(self, entries: Sequence[Entry]) -> AnswersItem:
        """Return the item of a bundle."""
        first = entries[0]
        # Most bundles are one answer.
        if len(entries) == 1 and not self._needed and not first.empty:
            return self.alone(first)
        answers: dict[str, Answer] = {}
        media = []
        for entry in entries:
            if entry.empty:
                continue
            if entry.name in answers:
                self._faults.add(Fault.TWICE, placed(entry))
            answers[entry.name] = self._answer(entry)
            media.append(self._media_of(entry))
        if self._same and len(answers) == len(entries):
            self._check_same(entries, tuple(answers.values()))
        lacking = [name for name in self._needed if name not in answers]
        if lacking and not self._metric.may_lack(first.outer):
            fault = f"{self._declared.unit} have no {' and no '.join(lacking)} answer"
            self._faults.add(fault, first.bundle, remedy=self._remedy)
        in_order = [answers[name] for name in self._names if name in answers]
        # Some questions are duplicates with the halves of a video in the other order.
        group = media[0] if len(media) == 1 else min(filter(None, media), default="")
        fields = self._fields_of(entries, answers[first.name].fields if answers else {})
        found = tuple(in_order or answers.values())
        item = AnswersItem(id=first.bundle, group_id=group, fields=fields, answers=found)
        return self._special(first, item)

    def _check_same(self, entries: Sequence[Entry], answers: Sequence[Answer]) -> None:
        """Note values that differ within a bundle and must not."""
        for name in self._same:
            found = set(map(_value_of, entries, answers, repeat(name)))
            # Nearly all are the same to the letter.
            if len(found) > 1 and len({each.strip().casefold() for each in found if each}) > 1:
                self._faults.add(differing(self._declared, name), entries[0].bundle)

    def _fields_of(self, entries: Sequence[Entry], known: Mapping[str, str]) -> Mapping[str, str]:
        """Return the fields of an item, where its first answer has precedence."""
        first = entries[0]
        fields = first.fields
        if fields and any(each.fields is not fields for each in entries[1:]):
            # Backwards, so that texts of the first answer stay.
            fields = {
                name: text for each in reversed(entries) for name, text in each.fields.items()
            }
        return self._grouped(fields, first, known) if self._has_groups else fields

    def _grouped(
        self, fields: Mapping[str, str], first: Entry, known: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return fields of an item with those to group by that others have."""
        of_first = {name: known.get(name, "") for name in self._of_first}
        if self._group_by:
            return {**fields, **fields_of(self._group_by, first.outer), **of_first}
        return {**fields, **of_first}

    def _media_of(self, entry: Entry) -> str:
        """Return the image or video of an answer; empty without one."""
        keys, values = self._keys.media, entry.values
        found = values.get(self._usual_media)
        # Nearly all are such texts.
        if type(found) is not str or not found or not found.isascii():
            found = optional_text(entry.record, keys) if keys else ""
            if not found and entry.outer is not values and keys:
                found = optional_text(Record(entry.outer, 0, entry.place), keys)
        if found:
            self._media.found = True
        elif not self._own_media:
            self._media.add("", entry.place, entry.whole, entry.position)
        # Where the id of an item names its image, intervals group by nothing.
        return "" if self._own_media and found == entry.bundle else found

    def media_notes(self) -> tuple[str, ...]:
        """Return a note if no item has an image or a video."""
        asking = self._asked.asking
        return self._media.notes("" if asking is None else f", or give {asking}")


def _value_of(entry: Entry, answer: Answer, name: str) -> str:
    if name == "label":
        return answer.label
    return entry.fields.get(name, "") or answer.fields.get(name, "")


class Fault(enum.StrEnum):
    """What is wrong with the bundles of an archive."""

    NO_SET = "records have no set that is known"
    TWICE = "questions are answered more than once"
    SILENT = "questions have no answer"
    UNKNOWN_NAME = "records have a name that is not known"


def remedies_of(declared: ClosedQuestions) -> dict[str, str]:
    """Return the next step for each fault of a benchmark's bundles."""
    sets = declared.set_files
    keys = (declared.keys.fields[name][0] for name in declared.bundle.by)
    by = " and ".join(map(repr, [*keys] or declared.keys.id[:1]))
    joined = f"Correct these lines: they have the same {by}, or are joined by their order"
    return {
        Fault.NO_SET: ""
        if sets is None
        else f"Name the file after its set, or give each record the key {sets.field!r}: "
        f"{known_sets(sets)}",
        **{differing(declared, name): joined for name in ("label", *declared.same)},
        Fault.TWICE: "Give different questions, and other samples, ids of their own; keep one of "
        "those that are the same",
        Fault.UNKNOWN_NAME: f"Use one of {', '.join(declared.names)}",
        Fault.SILENT: "Give their answers, or pass InputOptions(allow_missing=True)",
    }


def differing(declared: ClosedQuestions, name: str) -> str:
    """Return the fault of bundles whose records differ in what must be equal."""
    return f"{declared.unit} have lines with another {name}"


def has_any(record: Record, keys: Sequence[str]) -> bool:
    """Return whether a record has one of some keys."""
    return any(key in record.values for key in keys)


def _short(value: object) -> str:
    return f"{value!r:.40}"


def placed(entry: Entry) -> str:
    """Return the place of an answer, for messages."""
    return f"{entry.bundle} ({entry.name})" if entry.name else entry.bundle


def joins_lists(declared: ClosedQuestions, key: str) -> bool:
    """Return whether a list of texts is one answer, as a list of letters or of a table's words is.

    Elsewhere it is several answers to one question, such as repeats, and one of them is meant.
    """
    of_table = key in [table.name for table in declared.tables]
    return of_table or (declared.labels != ("yes", "no") and declared.judged is None)
