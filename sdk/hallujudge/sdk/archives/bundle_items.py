"""Items of bundles: the answers of the records that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat

from msgspec import structs

from hallujudge.metrics.answers.answer_items import UNANSWERED
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import metric_of

from ..errors import HallujudgeError
from .answer_records import AnswerMaker, Entry, Fault, differing, placed
from .asked_questions import AskedQuestions
from .bad_records import noted
from .inputs import InputOptions
from .joins import Faults, MediaCheck
from .named_keys import fields_of
from .question_files import place_of
from .record_values import canonical_id, optional_text
from .records import Record


class AnswerNames:
    """Finds the names of answers within their bundles.

    Args:
        declared: The benchmark.
        options: How the archive is read.
        faults: Collects what is wrong.
    """

    def __init__(self, declared: ClosedQuestions, options: InputOptions, faults: Faults) -> None:
        self._declared = declared
        self._known = declared.names
        self._faults = faults
        self._line_keys = (options.id_key, declared.keys.id[0])
        self._line_ids: set[str] = set()

    def of(self, record: Record) -> str | None:
        """Return the name of a record within its bundle; None if it may not have it."""
        name = place_of(self._declared, record, self._declared.bundle.name)
        if not (known := self._known) or name in known:
            return name
        folded = name.strip().casefold().replace("-", "_").replace(" ", "_")
        return folded if folded in known else None

    def check_line_id(self, record: Record) -> None:
        """Note a duplicate id of a line, in addition to the id of its bundle."""
        keys, values = self._line_keys, record.values
        value = None if "id" in keys else values.get("id")
        if value is None or not any(key in values for key in keys):
            return
        identifier = canonical_id(value, record.place)
        if identifier in self._line_ids:
            self._faults.add("duplicate line ids", identifier)
        self._line_ids.add(identifier)


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
