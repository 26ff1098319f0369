"""The questions of an archive of bundles, and what further files say of them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from hallujudge.metrics.answers.closed_questions import (
    AnswersItem,
    ClosedQuestions,
    InputTable,
    SpecialItem,
)
from hallujudge.metrics.answers.declared_metrics import metric_of

from ..errors import ArchiveError
from .inputs import InputOptions, References
from .joins import Faults, read_mapping
from .json_files import amount, named, read_text, read_values
from .local_files import as_path
from .question_files import bundle_id, by_columns, held_by, known_questions, question_key
from .record_values import canonical_id, structured
from .records import Record, read_records, unwrapped

_UNKNOWN = "answers are to questions that the references lack"
_REMEDY = "Give their questions, or pass InputOptions(allow_unknown=True)"
_SHOWN_IDS = 3
_NONE: Mapping[str, object] = {}


class AskedQuestions:
    """The questions of an archive by the key that joins them with answers.

    Args:
        declared: The benchmark.
        references: The file of questions; None without.
        options: How the archive is read.
        faults: Collects what is wrong with records.

    Raises:
        ArchiveError: A file can't be read, or is missing.
    """

    def __init__(
        self,
        declared: ClosedQuestions,
        references: References | None,
        options: InputOptions,
        faults: Faults,
    ) -> None:
        self._declared = declared
        self._metric = metric_of(declared)
        self._options = options
        self._faults = faults
        held = {table: held_table(declared, table, options) for table in declared.tables}
        self._tables = {table: content for table, content in held.items() if content is not None}
        self.references = known_questions(declared, references, options)
        # Without files of questions, a table that every bundle needs says which ones there are.
        needed = (held for table, held in self._tables.items() if table.required)
        self.questions: Mapping[str, Mapping[str, object]] = self.references or {
            key: {} for held in needed for key in held
        }
        self.joins = bool(self.questions or self._tables)
        """Whether questions or tables say something of records."""
        self._joined: set[str] = set()
        self._records = 0
        self._bundles: set[str] = set()
        self._ignored: list[str] = []
        keys = declared.keys
        self._of_answers = {key for name in declared.verdicts for key in keys.fields[name]}
        # What joins a record with its question is then the id of its bundle.
        self._by_id = not declared.bundle.by
        self._key_of = bundle_id if self._by_id else question_key
        self._holds = metric_of(declared).overrides("held_answers")
        known = bool(self.questions) and not options.allow_unknown
        self._leaves_out = declared.incomplete and known

    @property
    def asking(self) -> str | None:
        """The file that would say what was asked, for messages; None if it is not needed."""
        if self._table("asked") is not None:
            return None
        tables = (each for each in self._declared.tables if each.form == "asked")
        return next((f"the {t.name} with InputOptions(own=dict({t.name}=…))" for t in tables), None)

    def _table(self, form: str) -> Mapping[str, object] | None:
        """Return the content of the table of a form; None if it is not given."""
        return next((held for table, held in self._tables.items() if table.form == form), None)

    def completed(self, record: Record, *, leave_out: bool = False) -> tuple[Record, str] | None:
        """Return a record with what it leaves out, from the file of questions and the tables.

        And the id of its bundle; empty if it did not have to be looked up.

        Args:
            record: The record.
            leave_out: Whether one that answers no question is left out, in a benchmark that leaves
                such out: the result is then None.
        """
        if not self.joins:
            return record, ""
        key, values = "", record.values
        if self.questions:
            if not self._records:
                self._match_columns(record)
            key = self._key_of(self._declared, record, self._options)
            if leave_out and self._leaves_out and key not in self.questions:
                self._ignored.append(key)
                return None
            if key not in self.questions and not self._options.allow_unknown:
                self._faults.add(_UNKNOWN, key, remedy=_REMEDY)
            self._joined.add(key)
            if known := self.known(key):
                # What the record itself says comes first.
                values = {**known, **values}
        self._records += 1
        bundle = key if self._by_id else ""
        if self._tables:
            if not bundle:
                whole = Record(values, record.position, record.place)
                bundle = bundle_id(self._declared, whole, self._options)
            values = self._with_tables(values, bundle, record.position)
        if values is not record.values:
            record = Record(values, record.position, record.place)
        return record, bundle

    def _match_columns(self, first: Record) -> None:
        """Take questions apart whose answers are in columns, if each is a record in the archive."""
        if not self._holds or held_by(self._declared, first) is not None:
            return
        self.references = self.questions = {
            question_key(self._declared, record, self._options): record.values
            for key, values in self.questions.items()
            for record in by_columns(self._declared, Record(values, 0, key))
        }

    def known(self, key: str) -> Mapping[str, object]:
        """Return what is known of a question, without verdicts on another model's answer to it."""
        known = self.questions.get(key, _NONE)
        if not self._of_answers:
            return known
        return {name: value for name, value in known.items() if name not in self._of_answers}

    def check(self) -> None:
        """Note that no answer could be joined, or that a list has another number of values."""
        for table, held in self._tables.items():
            more = [key for key in held if key not in self._bundles]
            if table.form == "in order" and not isinstance(held, _Listed):
                fault = f"{table.name} are of {self._declared.unit} that the archive lacks"
                self._faults.add(fault, *more, remedy="Give their ids as the archive has them")
            if isinstance(held, _Listed) and len(held) != self._records:
                numbers = f"{len(held)} for {self._records}"
                fault = f"there are not as many {table.name} as {self._declared.unit}"
                remedy = "Give one for each, in their order, or an object with ids as keys"
                self._faults.add(fault, numbers, remedy=remedy)
        if self.questions and self._joined.isdisjoint(self.questions):
            some = named(list(self.questions)[:_SHOWN_IDS])
            hint = f"{_REMEDY}. No answer could be joined. The references have {some}"
            self._faults.add(_UNKNOWN, *self._ignored, remedy=hint)

    def with_tables(self, record: Record) -> Record:
        """Return a record with what the tables say of its bundle."""
        if not self._tables:
            return record
        bundle = bundle_id(self._declared, record, self._options)
        return record._replace(values=self._with_tables(record.values, bundle, record.position))

    def _with_tables(
        self, values: Mapping[str, object], key: str, position: int
    ) -> Mapping[str, object]:
        made = values
        added: dict[str, object] = {}
        self._bundles.add(key)
        for table, held in self._tables.items():
            if (
                table.required
                and key not in held
                and (key in self.questions or not self._options.allow_unknown)
            ):
                fault = f"{self._declared.unit} have no {table.name}"
                remedy = f"Give the {table.name} file of the same release"
                self._faults.add(fault, key, remedy=remedy)
            form = table.form
            if form in _OF_RECORDS:
                more: Any = held.get(key, _NONE)
                made = {**more, **made}
            elif form == "own":
                added[table.name] = held
            elif form in ("by id", "in order"):
                place = str(position) if type(held) is _Listed else key
                added[table.name] = held.get(place)
        return {**made, **added} if added else made

    def answering(self, gathered: Container[str]) -> Iterator[Record]:
        """Yield the records of tables that count as answers, where there is no other."""
        key = self._options.id_key or self._declared.keys.id[0]
        held = self._table("answers") if gathered else None
        for bundle, values in (held or {}).items():
            if bundle not in gathered and isinstance(values, Mapping):
                yield Record({**values, key: bundle}, 0, bundle)

    def silent(self) -> list[str]:
        """Return the questions without an answer, those that were not asked apart."""
        given = self._table("asked")
        asked = self.questions if given is None else given
        silent = [key for key in self.questions if key in asked and key not in self._joined]
        # A task of which nothing is answered was not run.
        task = self._metric.task
        run = {task(self.questions[key]) for key in self._joined if key in self.questions}
        return [key for key in silent if task(self.questions[key]) in run]

    def special(self, item: AnswersItem, values: Mapping[str, object]) -> AnswersItem:
        """Return the item of a record that is no question.

        Raises:
            ValueError: The record, or a table, can't be used.
        """
        if self._item_maker is None:
            return item
        # Only texts of a table's cells may hold something else.
        held = {
            name: structured(value) if isinstance(value, str) else value
            for name, value in values.items()
        }
        return self._item_maker(item, held)

    @cached_property
    def _item_maker(self) -> SpecialItem | None:
        held = {t.name: content for t, content in self._tables.items() if t.form in _OF_ARCHIVE}
        return self._metric.item_maker(held)

    def notes(self) -> Iterator[str]:
        """Yield which bundles of tables the questions lack, and which questions were left out."""
        unit = self._declared.unit
        if self._ignored:
            yield (
                f"{amount(len(self._ignored), 'answer is', 'answers are')} to {unit} that the "
                f"references lack, and {'does' if len(self._ignored) == 1 else 'do'} not count: "
                f"{named(self._ignored)}"
            )
        if self._declared.incomplete and (lacking := self.silent()):
            yield (
                f"{len(lacking)} of the {len(self.questions)} {unit} have no answer: "
                f"{named(lacking)}"
            )
        for table, held in self._tables.items():
            if isinstance(held, _Listed):
                yield f"the {table.name} have no ids, and belong to the {unit} in their order"
            more = [key for key in held if self.references and key not in self.references]
            if more and table.form == "by id":
                yield (
                    f"no annotations for {len(more)} of the {unit} with {table.name}: "
                    f"{named(more)}. Give the {table.name} file of the same release"
                )
        silent = self.silent() if self.asking and not self._options.allow_missing else ()
        if silent:
            yield (
                f"{len(silent)} of the {len(self.questions)} {unit} in the references have no "
                f"answer and are left out: {named(silent)}. To count those that were asked, give "
                f"{self.asking}"
            )


_OF_ARCHIVE = ("whole", "lines")
_OF_RECORDS = ("asked", "answers")


class _Listed(dict[str, object]):
    """Values of a table by the position of the record that they belong to."""


def _in_order(declared: ClosedQuestions, source: object, what: str) -> Mapping[str, object]:
    """Return the values of a list by position, unless each has the id of a bundle; else by id."""
    if isinstance(source, Mapping):
        return read_mapping(source, what)
    if isinstance(source, (str, Path)):
        listed = [placed.value for placed in read_values(Path(source))]
        # A list of one object is read as one value too; only the text tells it from an object.
        if len(listed) == 1 and isinstance(listed[0], Mapping) and _is_object(Path(source)):
            return read_mapping(source, what)
    else:
        listed = list(cast("Iterable[object]", source))
    # The id of a judge's reply is not that of the bundle.
    keys = [key for key in declared.keys.id if key != "id"]
    ids = [
        next((canonical_id(each[key], what) for key in keys if key in each), None)
        if isinstance(each, Mapping)
        else None
        for each in listed
    ]
    known = [key for key in ids if key is not None]
    if len(known) == len(listed) == len(set(known)):
        return dict(zip(known, listed, strict=True))
    # Positions look like ids, and only the class tells them apart.
    return _Listed({str(place): value for place, value in enumerate(listed)})


def _is_object(path: Path) -> bool:
    return read_text(path).lstrip().startswith("{")


def _own(declared: ClosedQuestions, source: str | Path | Iterable[object]) -> Mapping[Any, object]:
    """Return what the benchmark makes of the records of a table.

    Raises:
        ArchiveError: A record can't be used.
    """
    records = list(read_records(source))
    try:
        return metric_of(declared).own_table(record.values for record in records)
    except ValueError as err:
        # Benchmarks raise both as the arguments of their error.
        fault, remedy = err.args
        raise ArchiveError(f"{records[0].place}: {fault}. {remedy}") from err


def _lines(source: Any, what: str) -> Mapping[str, object]:
    """Return the lines of a file, or the texts of a list, that are not empty.

    Raises:
        ArchiveError: The file can't be read, or a value of the list is no text.
    """
    texts = source if isinstance(source, (list, tuple)) else read_text(as_path(source)).splitlines()
    if others := [str(text) for text in texts if not isinstance(text, str)]:
        raise ArchiveError(
            f"{what}: no texts, but {named(others)}; give a list of texts, or a file with one on "
            "each line"
        )
    return dict.fromkeys(stripped for text in texts if (stripped := text.strip()))


def held_table(
    declared: ClosedQuestions, table: InputTable, options: InputOptions
) -> Mapping[str, object] | None:
    """Return the content of a table; None if it is not given and need not be.

    Args:
        declared: The benchmark.
        table: Its table.
        options: How the archive is read, with the file of the table.

    Raises:
        ArchiveError: It is needed, or can't be read.
    """
    source = options.own.get(table.name)
    if source is not None and table.form in _OF_RECORDS:
        return known_questions(declared, source, options, table.name)
    if source is not None and table.form == "own":
        return _own(declared, source)
    if source is not None and table.form == "in order":
        return _in_order(declared, source, table.name)
    if source is not None and table.form == "lines":
        return _lines(source, table.name)
    if source is not None:
        held = unwrapped(read_mapping(source, table.name))
        if isinstance(held, Mapping):
            return read_mapping(held, table.name)
        return _in_order(declared, held, table.name)
    if not table.required:
        return None
    raise ArchiveError(
        f"the {table.name} are missing: give InputOptions(own=dict({table.name}=…)), "
        f"{table.meaning[0].lower()}{table.meaning[1:]}"
    )
