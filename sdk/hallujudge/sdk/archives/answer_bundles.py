"""Bundles of answers: records that hold several, or that belong together, alone or in sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product, repeat

from hallujudge.metrics.answers.answer_items import UNANSWERED, HeldAnswers
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import metric_of

from ..errors import ArchiveError
from .answer_records import (
    AnswerMaker,
    BundleItems,
    Entry,
    Fault,
    has_any,
    placed,
    remedies_of,
)
from .archive_keys import LOOKED_AT, Pairs, refuse_other_keys
from .asked_questions import AskedQuestions
from .bad_records import note_bad
from .inputs import ItemSource, ReaderInput
from .joins import Faults, numbering
from .json_files import amount, named, shown
from .question_files import bundle_id, held_by, place_of, unfolded, without
from .record_fields import declared_fields, share
from .record_values import canonical_id, value_at
from .records import Record
from .set_files import Part, parts_of, set_in

_NOTHING: Mapping[str, str] = {}


def read_bundles(declared: ClosedQuestions, given: ReaderInput) -> ItemSource:
    """Return bundles of answers, however the archive holds them.

    Args:
        declared: The benchmark.
        given: A folder with a JSON file for each set, one such file, an object set -> records, or
            records that name their set; and what answers leave out, by the key that joins them.

    Raises:
        ArchiveError: A set is unknown or appears in two files, a record lacks an answer, or a label
            is not one of the benchmark's.
    """
    bundles = _Bundles(declared, given)
    items = bundles.read(parts_of(declared, given.responses))
    notes = tuple(bundles.notes(items))
    return ItemSource(count=len(items), make=lambda: iter(items), notes=notes)


class _Bundles:
    """Builds items from records, and collects faults by kind."""

    def __init__(self, declared: ClosedQuestions, given: ReaderInput) -> None:
        _, references, options, group_by = given
        self._declared = declared
        self._keys = declared.keys
        self._bundle = declared.bundle
        self._options = options
        self._faults = Faults(remedies_of(declared))
        self._asked = AskedQuestions(declared, references, options, self._faults)
        # Fields of answers differ within an item.
        of_answers = {*declared.of_answers, *declared.bundle.name}
        # What unfold makes only joins records.
        of_answers.update({*declared.bundle.by} & {*declared.keys.optional})
        self._own = [name for name in declared.keys.fields if name not in of_answers]
        of_first = [name for name in group_by if name in declared.seen]
        derives = metric_of(declared).overrides("derived_fields")
        known = (*self._own, *of_first, *(declared.group_by if derives else ()))
        own_groups = [key for key in group_by if key not in known]
        # Whether records in columns have ids; set by the first.
        self._with_ids: bool | None = None
        self._may_lack = options.allow_missing or declared.incomplete
        self._holds = metric_of(declared).overrides("held_answers")
        self._known_names = declared.names
        self._line_ids: set[str] = set()
        self._unique = numbering(options)
        self._maker = AnswerMaker(declared, options, self._faults, self._asked)
        # Most archives have a record for each item, which is its only answer.
        self._alone = not (declared.several or options.allow_duplicates)
        self._sets = sets = declared.set_files
        of_set = () if sets is None else (sets.field,)
        self._item_fields = declared_fields(
            declared, self._own, options, self._maker.remedy, given=of_set, keeps_empty=False
        )
        self._has_fields = bool(self._item_fields) or sets is not None
        self._of_sets: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._items = BundleItems(
            declared, options, self._faults, self._asked, self._maker, own_groups, of_first
        )

    def read(self, parts: Iterator[Part]) -> list[AnswersItem]:
        """Return all bundles, in the order of their first answers.

        Raises:
            ArchiveError: A record can't be used; the message names all with the same fault.
        """
        # Nothing is known of these records that others could say.
        lone = self._alone and self._sets is None and not self._asked.joins
        items, pairs = (self._lone if lone else self._gathered)(parts)
        if self._maker.chosen is not None:
            refuse_other_keys(self._declared, self._maker.chosen, pairs, self._options)
        if not self._may_lack and self._asked.asking is None:
            self._faults.add(Fault.SILENT, *self._asked.silent())
        self._faults.check()
        if not items:
            raise ArchiveError(f"the archive of answers has no {self._declared.unit}; give some")
        return items

    def _lone(self, parts: Iterator[Part]) -> tuple[list[AnswersItem], Pairs]:
        """Return the items of records that are one answer each, made as they are read.

        And the first ones with their answers.
        """
        items: dict[str, AnswersItem] = {}
        pairs: Pairs = []
        entry_of, item_of = self._entry, self._items.alone
        for _, record in self._records(parts):
            try:
                entry = entry_of(record)
            except ArchiveError as err:
                if note_bad(err, record.position, record.place):
                    continue
                raise
            if not items:
                # Without the keys of the first one there is no archive, whatever may be skipped.
                self._maker.keys_of(entry.record)
            item = item_of(entry)
            if items.setdefault(entry.bundle, item) is not item:
                self._faults.add(Fault.TWICE, placed(entry))
            if len(pairs) < LOOKED_AT:
                pairs.append(((entry.place, entry.values), item.answers[0]))
        return list(items.values()), pairs

    def _gathered(self, parts: Iterator[Part]) -> tuple[list[AnswersItem], Pairs]:
        """Return the items of records that may be parts of one, or be joined with others.

        And the first ones with their answers.
        """
        gathered: defaultdict[str, list[Entry]] = defaultdict(list)
        for part, record in self._records(parts):
            for entry in self._entries_of(part, record):
                gathered[entry.bundle].append(entry)
        for record in self._asked.answering(gathered):
            for entry in self._entries("", *(self._asked.completed(record) or (record,))):
                gathered[entry.bundle].append(entry)
        self._asked.check()
        # Answers without their question lack more, which would be the wrong error.
        self._faults.check()
        for entry in self._first_of(gathered):
            self._maker.keys_of(entry.record)
        for key in self._asked.silent() if self._may_lack and gathered else ():
            for entry in self._unanswered(key):
                gathered[entry.bundle].append(entry)
        items = [self._items.of(entries) for entries in gathered.values()]
        return items, _with_answers(gathered.values(), items)

    def _first_of(self, gathered: Mapping[str, Sequence[Entry]]) -> Iterable[Entry]:
        """Return the first answer to a question, or else the first of anything else, if any."""
        is_question = metric_of(self._declared).is_question
        answers = (entry for held in gathered.values() for entry in held if not entry.empty)
        first = next(answers, None)
        if first is None or is_question(first.outer):
            return filter(None, (first,))
        return (next((entry for entry in answers if is_question(entry.outer)), first),)

    def _records(self, parts: Iterator[Part]) -> Iterator[tuple[str, Record]]:
        """Yield the records of all parts, each with the set that its file names."""
        for part in parts:
            records = map(self._renamed, part.records) if self._options.key_map else part.records
            yield from zip(repeat(part.name), unfolded(self._declared, records, "response"))

    def _unanswered(self, key: str) -> Iterator[Entry]:
        """Yield the entries of a question without an answer."""
        assert self._maker.chosen is not None, "chosen by the first record"
        response, _ = self._maker.chosen
        values = {name: v for name, v in self._asked.known(key).items() if name != response}
        for name in self._bundle.name if self._declared.needed and not self._bundle.by else ():
            # A question does not say which of its answers are missing: the required one is.
            values |= dict.fromkeys(self._keys.fields[name], self._declared.needed[0])
        values[UNANSWERED] = True
        yield from self._entries("", self._asked.with_tables(Record(values, 0, key)))

    def _entries_of(self, part: str, record: Record) -> Iterable[Entry]:
        """Return the answers of a record, which may be left out, or noted as a bad one."""
        try:
            known = self._asked.completed(record, leave_out=True)
            return () if known is None else tuple(self._entries(part, *known))
        except ArchiveError as err:
            if note_bad(err, record.position, record.place):
                return ()
            raise

    def _entries(self, part: str, record: Record, known: str = "") -> Iterable[Entry]:
        """Return the answers of a record.

        Args:
            part: The set that its file names.
            record: The record.
            known: Id of its bundle; empty to look it up.
        """
        held = held_by(self._declared, record) if self._holds else None
        if held is not None:
            record = without(record, held.keys)
        fields = self._fields(part, record) if self._has_fields else _NOTHING
        if fields is None:
            return ()
        if held is not None:
            return self._held(held, fields, record)
        if self._alone:
            return (self._entry(record, fields, known),)
        name = self._name_of(record) if self._bundle.name else ""
        bundle = self._prefix(fields) + (known or bundle_id(self._declared, record, self._options))
        if name is None:
            found = place_of(self._declared, record, self._bundle.name)
            self._faults.add(Fault.UNKNOWN_NAME, f"{bundle} ({found!r:.40})")
            return ()
        if self._bundle.name:
            self._check_line_id(record)
        bundle = self._unique(bundle)
        values = record.values
        return (
            Entry(
                bundle, name, fields, values, self._mapped(values), record.position, record.place
            ),
        )

    def _name_of(self, record: Record) -> str | None:
        """Return the name of a record within its bundle; None if it may not have it."""
        name = place_of(self._declared, record, self._bundle.name)
        if not (known := self._known_names) or name in known:
            return name
        folded = name.strip().casefold().replace("-", "_").replace(" ", "_")
        return folded if folded in known else None

    def _check_line_id(self, record: Record) -> None:
        """Note a duplicate id of a line, in addition to the id of its bundle."""
        keys, values = (self._options.id_key, self._keys.id[0]), record.values
        value = None if "id" in keys else values.get("id")
        if value is None or not any(key in values for key in keys):
            return
        identifier = canonical_id(value, record.place)
        if identifier in self._line_ids:
            self._faults.add("duplicate line ids", identifier)
        self._line_ids.add(identifier)

    def _entry(
        self, record: Record, fields: Mapping[str, str] | None = None, known: str = ""
    ) -> Entry:
        """Return the answer that a record is; fields and id are looked up if they are not given."""
        values, position, place = record.values, record.position, record.place
        if fields is None:
            fields = self._item_fields.of(values, place) if self._has_fields else _NOTHING
        bundle = known or bundle_id(self._declared, record, self._options)
        inner = self._mapped(values) if self._options.key_map else values
        return Entry(bundle, "", fields, values, inner, position, place)

    def _held(
        self, held: HeldAnswers, fields: Mapping[str, str], record: Record
    ) -> Iterator[Entry]:
        """Yield the answers that a record holds."""
        bundle = self._numbered(record)
        if held.others:
            part = f"{self._declared.unit} have answers without a label, which do not count"
            self._maker.lacks_part(part, named(sorted(held.others)))
        for name, said in held.answers.items():
            own = self._mapped({**record.values, **said})
            yield Entry(bundle, name, fields, record.values, own, record.position, record.place)
        if not held.answers and self._declared.judges_each:
            values = record.values
            yield Entry(
                bundle, "", fields, values, values, record.position, record.place, empty=True
            )

    def _numbered(self, record: Record) -> str:
        """Return the id of a record's bundle: its position from 1 if records have no ids."""
        # The first record decides whether they have any.
        if self._with_ids is None:
            named = self._options.id_key or self._bundle.by or has_any(record, self._keys.id)
            self._with_ids = bool(named)
        if self._with_ids:
            return bundle_id(self._declared, record, self._options)
        return str(record.position + 1)

    def _prefix(self, fields: Mapping[str, str]) -> str:
        """Return what ids of a set's bundles begin with, which each set counts from the start."""
        sets = self._sets
        return f"{fields[sets.field]}/" if sets and self._bundle.by else ""

    def _fields(self, part: str, record: Record) -> Mapping[str, str] | None:
        """Return the declared fields that a record has; None if it has no set."""
        found = self._item_fields.of(record.values, record.place)
        if (sets := self._sets) is None:
            return found
        given = found.get(sets.field, "")
        if name := set_in(sets, given) if given else part:
            return share(
                self._of_sets, (name, *found, *found.values()), {**found, sets.field: name}
            )
        found_keys = f"found {named(sorted(record.values))}"
        what = f"{sets.field} {shown(given)}" if given else found_keys
        self._faults.add(Fault.NO_SET, f"{record.place} ({what})")
        return None

    def _renamed(self, record: Record) -> Record:
        """Return a record with the keys that the user named, where it has their values."""
        found = {
            name: value
            for name, key in self._options.key_map.items()
            if (value := value_at(record.values, key)) is not None
        }
        return record._replace(values={**record.values, **found}) if found else record

    def _mapped(self, values: Mapping[str, object]) -> Mapping[str, object]:
        """Return an answer's values with those under the keys that the user named."""
        key_map = self._options.key_map
        if not key_map:
            return values
        return {**values, **{name: value_at(values, key) for name, key in key_map.items()}}

    def notes(self, items: Sequence[AnswersItem]) -> Iterator[str]:
        """Yield oddities of the archive: those of its media, its questions, and letters."""
        yield from self._items.media_notes()
        for part, (number, keys) in self._maker.lacking.items():
            yield f"{number} of {len(items)} {part}: {keys}"
        yield from self._asked.notes()
        yield from metric_of(self._declared).remarks(items)
        strange = dict.fromkeys(
            item.id
            for item in items
            for each in item.answers
            if each.options and _has_strange_letters(each)
        )
        if strange:
            how_many = amount(len(strange), "answer uses", "answers use")
            yield f"{how_many} letters that were not shown: {named(list(strange))}"


def _with_answers(gathered: Iterable[Sequence[Entry]], items: Iterable[AnswersItem]) -> Pairs:
    """Return the first records of bundles, each with the answer made of it."""
    bundles = islice(zip(gathered, items, strict=True), LOOKED_AT)
    return [
        ((entry.place, entry.values), answer)
        for entries, item in bundles
        for entry, answer in product(entries, item.answers)
        if entry.name == answer.name and not entry.empty
    ]


def _has_strange_letters(answer: Answer) -> bool:
    """Return whether an answer has letters that its question does not offer."""
    options = answer.options
    return bool(options) and _has_other_letters(answer.response or "", tuple(options))


# Letters repeat, unlike the captions that they stand for.
@lru_cache(maxsize=4096)
def _has_other_letters(response: str, letters: tuple[str, ...]) -> bool:
    parts = [part.strip() for part in response.split(",")]
    return any(len(part) == 1 and part.isalpha() and part not in letters for part in parts)
