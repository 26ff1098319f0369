"""Inspection of archives: what each file is, and which command scores it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from shlex import quote, split
from typing import TYPE_CHECKING

from msgspec import structs

from hallujudge.judge_service.settings.connection import masked
from hallujudge.metrics.families import benchmark_named, benchmarks_of, families

from ..errors import ArchiveError, HallujudgeError
from .archive_files import Archive, open_file
from .asked_questions import held_table
from .chair_references import OBJECT_KEYS
from .example_files import usual_files
from .found_files import STDIN_NAME, FoundFile, found_files
from .inputs import InputOptions
from .joins import IdCheck
from .layouts import declared_layout
from .layouts.archive_reader import ArchiveReader, yes_or_no
from .local_files import STDIN
from .record_values import canonical_id, key_in, response_value, value_at
from .records import LISTED_TEXT, Record, no_records
from .table_files import EXCEL_CELL_CHARS

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.responses import ResponseCheck

_ID_KEYS = ("id", "question_id", "image_id", "image_name", "video", "index")
_RESPONSE_KEYS = (
    "response", "caption", "prediction", "model_prediction", "predict", "output", "text",
    "description", "answer",
)  # fmt: skip
_LABEL_KEYS = ("label", "gt_answer", "ground_truth", "gt")
_OF_MODELS = ("response", "prediction", "model_prediction", "predict", "output")
_OBJECT_FILE = "-R objects.json"  # what commands need for records without objects
_ONE_FILE = re.compile(r"-R \S+")
# Ids and duplicates that a summary shows as examples.
_SHOWN_IDS = 3
_MOST_DUPLICATES = 10
# A reply that reached the limit of tokens, in the words of OpenAI's and Inspect AI's logs.
_CUT_OFF = ("length", "max_tokens")
_STOP_PATHS = ("finish_reason", "stop_reason", "output.choices.0.stop_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSummary:
    """What a file is, and what can be done with it."""

    path: str
    """The file, as it was named or found."""
    format: str = ""
    """``json``, ``csv``, ``tsv``, ``xlsx``, ``parquet``, ``eval`` or ``text``."""
    layout: str = ""
    """Name of the layout; empty for plain records."""
    why: tuple[str, ...] = ()
    """Keys that decided, or what else did; all keys of plain records."""
    role: str = ""
    """``responses``, ``references`` or ``companion``."""
    metrics: tuple[str, ...] = ()
    """Metrics that score it, the usual one first."""
    model: str = ""
    """Name of the model; empty if neither the records nor the folder has it."""
    task: str = ""
    """Name of the tool's task; empty if the file's name does not have it."""
    records: int = 0
    """How many records it has."""
    ids: tuple[str, ...] = ()
    """The first ids."""
    duplicates: tuple[str, ...] = ()
    """Up to ten duplicate ids."""
    duplicate_count: int = 0
    """How many ids are duplicate."""
    without_id: int = 0
    """Records without an id."""
    missing: int = 0
    """Records without a response, or with an empty one."""
    failures: int = 0
    """Responses that are a tool's failure text."""
    truncated: int = 0
    """Responses that were cut off, by the limit of tokens or by Excel."""
    notes: tuple[str, ...] = ()
    """Oddities of the file."""
    status: str = ""
    """How a log's run ended if it did not end well, such as ``error``."""
    next_step: str = ""
    """Next step where no command scores the file."""
    any_metric: bool = False
    """Whether its keys fit any metric, so that its references decide."""
    needs_references: bool = False
    """Whether the command needs further files."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Options that the command needs -> the usual value of each."""
    also_references: bool = False
    """Whether a file of responses in this layout may be one of references too."""
    table: str = ""
    """The option of a metric's archives that takes the file; empty for most files."""
    variant: str = ""
    """The metric's variant that the layout needs; empty for the default."""
    allow_missing: bool = False
    """Whether the layout leaves out questions of the benchmark."""
    unknown_keys: tuple[str, ...] = ()
    """Of plain records: guesses of ``--map`` for keys that no metric looks for."""
    command: str = ""
    """Command that scores it; empty if none does."""
    problem: str = ""
    """Why the file can't be read; empty if it can."""


def inspect_archives(paths: Iterable[str | Path]) -> list[ArchiveSummary]:
    """Return what files are, without scoring them.

    A file that can't be read is described by its problem.

    Args:
        paths: Files, folders, patterns, URLs, or ``-`` for standard input.
    """
    summaries: list[ArchiveSummary] = []
    for path in paths:
        try:
            files = found_files(path)
        except HallujudgeError as err:
            summaries.append(ArchiveSummary(path=masked(str(path)), problem=str(err)))
        else:
            summaries += [inspect_file(file) for file in files]
    return summaries


def inspect_file(file: FoundFile) -> ArchiveSummary:
    """Return what one file is."""
    try:
        archive = open_file(file)
        if archive.reader is None:
            archive = structs.replace(archive, reader=declared_layout(archive.first))
        if archive.reader is None and LISTED_TEXT in archive.first:
            raise ArchiveError(f"{file.path}: a list of texts; write one object for each record")
        return _summary(archive)
    except HallujudgeError as err:
        if (known := _further_file(file)) is not None:
            return known
        problem = str(err).replace(str(file.path), file.name)
        return ArchiveSummary(path=file.name, problem=problem)


def _further_file(file: FoundFile) -> ArchiveSummary | None:
    """Return what a file without records is, by its usual name, if its metric can read it."""
    name = file.path.name
    name = Path(name).stem if name.endswith((".gz", ".zst")) else name
    for declared in (each for family in families() for each in benchmarks_of(family)):
        for table in declared.tables:
            usual = name in usual_files(declared.name).get(table.name, ())
            if not usual or table.form not in ("lines", "in order"):
                continue
            try:
                held = held_table(declared, table, InputOptions(own={table.name: file.path}))
            # A file of this name may be another benchmark's.
            except HallujudgeError:
                continue
            return ArchiveSummary(
                path=file.name,
                format="text" if table.form == "lines" else "json",
                layout=f"{table.name.replace('_', ' ')} of {declared.name}",
                why=(f"its usual name {name}",),
                role="companion",
                records=len(held or ()),
                table=table.name,
                next_step=f"give it with InputOptions(own=dict({table.name}=…)), beside answers",
            )
    return None


def _summary(archive: Archive) -> ArchiveSummary:
    reader = archive.reader
    if archive.content.format == "text" and not archive.first:
        raise ArchiveError(
            f"{archive.file.path}: plain text, which only Mementos reads, as a folder of keyword "
            "files; give JSON, JSON lines or a table"
        )
    if reader is None and not archive.first:
        raise no_records(archive.file.path, "response")
    needs = "" if reader is None else _without_own(archive, reader).arguments
    unknown_keys = _unknown_keys(archive)
    counts = _Counts(archive)
    if reader is None or reader.role == "responses" or reader.metrics:
        for record in archive.records():
            counts.add(record)
    metrics = reader.metrics if reader is not None else _metrics_of(archive.first)
    duplicates = counts.duplicates()
    return ArchiveSummary(
        path=archive.file.name,
        format=archive.content.format,
        layout="" if reader is None else reader.name,
        why=_why(archive),
        role="responses" if reader is None else reader.role,
        metrics=metrics,
        model=archive.model,
        task=archive.task,
        # Such a file is read as one record.
        records=len(archive.first) if _maps_ids_to_responses(reader) else counts.records,
        ids=tuple(counts.first_ids),
        duplicates=tuple(duplicates[:_MOST_DUPLICATES]),
        duplicate_count=len(duplicates),
        without_id=counts.without_id,
        missing=counts.missing,
        failures=counts.failures,
        truncated=counts.truncated,
        notes=archive.content.notes,
        status=archive.content.status if archive.aborted else "",
        next_step=_next_step(archive, metrics),
        table="" if reader is None else reader.table,
        variant="" if reader is None else reader.variant,
        allow_missing=reader is not None and reader.allow_missing,
        unknown_keys=unknown_keys,
        any_metric=reader.any_metric and (bool(needs) or not metrics)
        if reader is not None
        else bool(archive.first) and not metrics and not unknown_keys,
        needs_references=bool(needs),
        needs=dict(zip(split(needs)[::2], split(needs)[1::2], strict=True)),
        also_references=reader is not None and reader.also_references,
        command=_command(archive, metrics),
    )


def _maps_ids_to_responses(reader: ArchiveReader | None) -> bool:
    """Return whether a file is one object whose keys are ids and whose values are responses."""
    return reader is not None and reader.fields.get("response") == ""


def _metrics_of(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the metric of plain records that carry labels or objects."""
    # Beside a text, it may as well be the answer to a question.
    labels = (*_LABEL_KEYS, "answer") if key_in(values, _OF_MODELS) else _LABEL_KEYS
    if any(yes_or_no(values.get(key)) for key in labels):
        return ("pope",)
    has_objects = any(key in values for key in OBJECT_KEYS)
    return ("chair",) if has_objects and key_in(values, _RESPONSE_KEYS) else ()


def _command(archive: Archive, metrics: tuple[str, ...]) -> str:
    if not metrics:
        return ""
    name = _argument(archive)
    if archive.reader is not None:
        command = _without_own(archive, archive.reader).command(name)
    else:
        command = f"hallujudge score {metrics[0]} --responses {quote(name)}"
        command += "".join(f" --map {quote(pair)}" for pair in _unknown_keys(archive))
    given = "ARCHIVE" if archive.reader and archive.reader.role == "references" else ""
    return f"{command} {f'--responses {given}' if given else ''} --out results".replace("  ", " ")


def _without_own(archive: Archive, reader: ArchiveReader) -> ArchiveReader:
    """Return a reader that asks for no file of what the records have."""
    if reader.arguments == _OBJECT_FILE:
        needed: list[Sequence[str]] = [OBJECT_KEYS]
    elif _ONE_FILE.fullmatch(reader.arguments) and (declared := benchmark_named(reader.metrics[0])):
        # Logs without the questions may have labels, but not what results are grouped by.
        groups = declared.group_by or ("",)
        needed = [declared.keys.label, *(declared.keys.fields.get(name, ()) for name in groups)]
    else:
        return reader
    own = Record(archive.first, 0, "")
    first = next(reader.converted(iter([own])), own)
    held = [any(first.values.get(key) is not None for key in keys) for keys in needed]
    return replace(reader, arguments="") if all(held) else reader


def _argument(archive: Archive) -> str:
    """Return what names the archive on the command line."""
    return STDIN if archive.file.name == STDIN_NAME else archive.file.name


def _why(archive: Archive) -> tuple[str, ...]:
    if archive.reader is None:
        return tuple(sorted(archive.first))
    return archive.reader.keys + ((archive.reader.shape,) if archive.reader.shape else ())


def _unknown_keys(archive: Archive) -> tuple[str, ...]:
    """Return what ``--map`` would say of plain records whose keys no metric looks for."""
    if archive.reader is not None or not archive.first:
        return ()
    guesses = (
        ("id", (*_ID_KEYS, "image"), ("id",)),
        ("response", _RESPONSE_KEYS, ("response", "output", "answer", "pred", "caption")),
    )
    pairs = (
        f"{name}={_guess(archive.first, words)}"
        for name, usual, words in guesses
        if not key_in(archive.first, usual)
    )
    # Answers with labels need no id, since nothing is joined to them.
    needless = "id=KEY" if _metrics_of(archive.first) == ("pope",) else ""
    return tuple(pair for pair in pairs if pair != needless)


def _guess(values: Mapping[str, object], words: Iterable[str]) -> str:
    return next((key for word in words for key in values if word in key.casefold()), "KEY")


def _next_step(archive: Archive, metrics: tuple[str, ...]) -> str:
    if archive.reader is not None and not metrics:
        return archive.reader.remedy
    if archive.reader is None and not metrics and not _unknown_keys(archive):
        return (
            "give it to its metric with the references: `hallujudge score METRIC --responses "
            f"{quote(_argument(archive))} --references FILE`"
        )
    if archive.reader is None and not metrics:
        return (
            "name its keys with --map, such as --map id=KEY --map response=KEY --map label=KEY, "
            "in the command of the metric"
        )
    return ""


@dataclass(slots=True)
class _Counts:
    """Counts of an archive's records."""

    archive: Archive
    records: int = 0
    without_id: int = 0
    missing: int = 0
    failures: int = 0
    truncated: int = 0
    first_ids: list[str] = field(default_factory=list)
    _ids: IdCheck = field(default_factory=IdCheck)

    def add(self, record: Record) -> None:
        """Count a record."""
        self.records += 1
        identifier = self._id(record)
        if identifier is None:
            self.without_id += self._has_ids
        else:
            self._ids.add(identifier)
            if len(self.first_ids) < _SHOWN_IDS:
                self.first_ids.append(identifier)
        self._add_response(record)

    def duplicates(self) -> list[str]:
        """Return the duplicate ids."""
        return self._ids.duplicates(
            lambda: (
                found
                for record in self.archive.records()
                if (found := self._id(record)) is not None
            )
        )

    @property
    def _has_ids(self) -> bool:
        reader = self.archive.reader
        return reader is None or reader.fields.get("id") != ""

    def _id(self, record: Record) -> str | None:
        key = self._key("id", record, _ID_KEYS)
        value = record.values.get(key)
        if value is None or isinstance(value, (bool, list, dict)) or not str(value).strip():
            return None
        return canonical_id(value, record.place)

    def _add_response(self, record: Record) -> None:
        key = self._key("response", record, _RESPONSE_KEYS)
        if not key:
            return
        value = response_value(record, key)
        if value is None or (isinstance(value, str) and not value.strip()):
            self.missing += 1
        elif _is_failure(value):
            self.failures += 1
        elif _is_cut_off(record, value):
            self.truncated += 1

    def _key(self, common: str, record: Record, usual: Iterable[str]) -> str:
        reader = self.archive.reader
        if reader is not None and common in reader.fields:
            return reader.fields[common]
        return key_in(record.values, usual)


@cache
def _check() -> ResponseCheck:
    # The engine is loaded only where responses are counted.
    from hallujudge.judge_service.engine.responses import ResponseCheck

    return ResponseCheck({})


def _is_failure(value: object) -> bool:
    if not isinstance(value, str):
        return False
    # Other problems, such as an empty response, are counted apart.
    problem = _check().problem(value)
    return problem is not None and problem[0].name == "RESPONSE_FAILED"


def _is_cut_off(record: Record, value: object) -> bool:
    # A cell holds no longer text, so that this one was most likely cut off.
    if isinstance(value, str) and len(value) == EXCEL_CELL_CHARS:
        return True
    return any(value_at(record.values, path) in _CUT_OFF for path in _STOP_PATHS)
