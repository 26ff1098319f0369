"""The files of an archive: their format and layout, and which of a folder belong to one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct, structs

from hallujudge.metrics.families import benchmark_named

from ..errors import ArchiveError, HallujudgeError
from .bad_records import Unreadable
from .formats import Content, read_format
from .found_files import FoundFile, is_pattern, with_given_name
from .inputs import Responses
from .json_files import named, read_values
from .layouts import recognised
from .layouts.archive_reader import ArchiveReader
from .record_values import canonical_id, value_at
from .records import Record, read_records
from .set_files import split_of_file

# VLMEvalKit puts each run into a folder such as T20260102-030405 or T20260102_Gabcdef.
# evalscope: DATE_TIME/predictions/MODEL/BENCHMARK_SUBSET.jsonl.
_RUN_FOLDER = re.compile(r"T\d{8}([-_]\w+)*|\d{8}_\d{6}|predictions")
# lmms-eval: 20260102_030405_samples_pope.jsonl; before 0.2.4: samples_pope_20260102.jsonl.
# lmms-eval until 0.2.3: DATE_TIME_MODEL_model_args_HASH.
_OLD_FOLDER = re.compile(r"\d{4}_\d{4}_(?P<model>.+)_model_args_[0-9a-f]+")
_SAMPLES = re.compile(r"(?:^|_)samples_(?P<task>.+?)(?:_\d{4}[-_T\d.]*)?$")
# Inspect AI: 2026-01-02T03-04-05+00-00_TASK_ID.eval, or .json.
_INSPECT_LOG = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+(?:[+-][\d-]+|Z)?_(?P<task>.+)_\w+")
# The common key first, which every converted record has.
_ID_KEYS = ("id", "question_id", "image_id", "image_name", "video")


class Archive(Struct, frozen=True, kw_only=True):
    """A file whose layout is known, or is plain records."""

    file: FoundFile
    """Its path, and the name that the user gave."""
    content: Content
    """Its format and records."""
    reader: ArchiveReader | None
    """The reader that recognises its layout; None for plain records."""
    first: Mapping[str, object]
    """Values of the first record; empty if the file has no records."""

    @property
    def converts(self) -> bool:
        """Whether records are converted to the common keys."""
        return self.reader is not None and self.reader.convert is not None

    @property
    def model(self) -> str:
        """Name of the model: from the records, or from the folder; empty if neither has it."""
        key = "" if self.reader is None else self.reader.model_key
        named = value_at(self.first, key) if key else None
        return named if isinstance(named, str) and named else self._folder()

    @property
    def aborted(self) -> bool:
        """Whether the file is the log of a run that did not end well, and may lack samples."""
        return self.content.status not in ("", "success")

    @property
    def task(self) -> str:
        """Name of the task in the name of a tool's log, such as ``pope_adv``."""
        stem = re.split(r"\.(?:json|eval)", self.file.path.name)[0]
        if self.reader is not None and self.reader.named_by_task:
            return stem
        match = _INSPECT_LOG.fullmatch(stem) or _SAMPLES.search(stem)
        return match["task"] if match else ""

    def records(self) -> Iterator[Record]:
        """Yield the records, with the common keys where the reader converts them."""
        records = read_records(self.content.source)
        return records if self.reader is None else self.reader.converted(records)

    def _folder(self) -> str:
        """Return the folder of the file that a model is named by, below the one that was given."""
        root = self.file.root
        if root is None:
            return ""
        parts = self.file.path.relative_to(root).parent.parts
        return "/".join(
            _OLD_FOLDER.sub(r"\g<model>", part) for part in parts if not _RUN_FOLDER.fullmatch(part)
        )


def open_file(file: FoundFile, metric: str = "") -> Archive:
    """Return a file with its format and reader.

    Args:
        file: The file.
        metric: The metric that scores it, whose layouts are tried; empty to try all.

    Raises:
        ArchiveError: The file can't be read.
        MissingExtraError: A package for its format is not installed.
    """
    with with_given_name(file):
        content = read_format(file.path)
        candidates = list(first_values(content.source))
    found = next(((values, r) for values in candidates if (r := recognised(values, metric))), None)
    values, reader = found or (candidates[-1] if candidates else {}, None)
    # Inspect AI's log in JSON says how its run ended.
    stated = (v["status"] for v in candidates if {"version", "status", "eval"} <= v.keys())
    status = content.status or str(next(stated, ""))
    if status not in ("", "success"):
        note = f"{file.path}: the status of its run is {status!r:.40}, so it may lack samples"
        notes = (*content.notes, note)
        content = structs.replace(content, status=status, notes=notes, about_scores=(note,))
    return Archive(file=file, content=content, reader=reader, first=values)


def first_values(source: Responses) -> Iterator[Mapping[str, object]]:
    """Yield the first whole value of a file, and the first record, which it may hold."""
    if isinstance(source, Path):
        try:
            whole = next(islice(read_values(source), 1), None)
        except ArchiveError:
            # Mementos' keyword files are plain texts.
            if source.suffix.lower() == ".txt":
                return
            raise
        if whole and isinstance(whole.value, Mapping) and not isinstance(whole.value, Unreadable):
            yield whole.value
        if whole and type(whole.value) is not str and not isinstance(whole.value, Mapping):
            return
    if (first := next(iter(read_records(source)), None)) is not None:
        yield first.values


def gathered(
    files: Sequence[FoundFile],
    given: str,
    metric: str,
    *,
    are_named: bool = False,
    may_repeat: bool = False,
) -> tuple[list[Archive], tuple[str, ...]]:
    """Return the files that hold one run's responses for a metric, and notes on the others.

    Args:
        files: The files.
        given: What the user gave, for messages.
        metric: The metric.
        are_named: Whether the user named each file, so that all belong to the run.
        may_repeat: Whether several files may have equal ids, of which copies are left out later.

    Raises:
        ArchiveError: There is none; or they are of several layouts or models, or have equal ids.
    """
    if are_named:
        opened = chosen = [open_file(file) for file in files]
        notes: tuple[str, ...] = ()
    else:
        opened, notes = _opened_files(files)
        chosen = _of_benchmark(_for_metric(opened, metric), metric)
    if not chosen and is_pattern(Path(given)):
        chosen = _shards(opened)
    if not chosen:
        raise _nothing(opened, given, metric, notes)
    chosen, aborted = _without_aborted(chosen)
    notes = (*notes, *aborted)
    _refuse_mixed(chosen, given, metric, are_named=are_named)
    _refuse_other_benchmarks(chosen, given, metric)
    if len(chosen) > 1 and not may_repeat:
        _refuse_duplicates(chosen, metric, are_named=are_named)
    others = len(files) - len(chosen)
    if others:
        notes = (
            *notes,
            f"{given}: {len(chosen)} of {len(files)} files hold responses for {metric}: "
            f"{named([archive.file.name for archive in chosen])}",
        )
    return chosen, notes


def _opened_files(files: Sequence[FoundFile]) -> tuple[list[Archive], tuple[str, ...]]:
    opened, notes = [], []
    for file in files:
        try:
            opened.append(open_file(file))
        except HallujudgeError as err:
            # A folder may hold files of any kind: one that can't be read must not hide the others.
            notes.append(f"left out: {err}")
    return opened, tuple(notes)


def _for_metric(opened: Sequence[Archive], metric: str) -> list[Archive]:
    """Return the files that hold responses for a metric, the most certain ones first."""
    suited = [a for a in opened if a.reader is not None and metric in a.reader.metrics]
    own = [a for a in suited if a.reader is not None and a.reader.role == "responses"]
    # A log of another benchmark with yes/no labels may be in the folder of the metric's own log.
    certain = [a for a in own if a.reader is not None and not a.reader.any_metric]
    general = [
        a
        for a in opened
        if a.reader is None or (a.reader.any_metric and a.reader.role == "responses")
    ]
    judged = [a for a in suited if a.reader is not None and a.reader.role == "companion"]
    # A single file of plain records may be anything; of several, the right one is unknown.
    return certain or own or judged or (general if len(general) == 1 else [])


def _of_benchmark(chosen: Sequence[Archive], metric: str) -> list[Archive]:
    """Return the files without those of other benchmarks, by the names of the files.

    Logs of MME and tables of AMBER hold yes/no answers with labels as those of POPE do.
    """
    own = [archive for archive in chosen if _is_named(archive, metric)]
    return [a for a in chosen if a in own or not own or not _has_only_labels(a)]


def _without_aborted(
    chosen: Sequence[Archive],
) -> tuple[list[Archive], tuple[str, ...]]:
    """Return the files without aborted logs of tasks that were run again, and notes on these."""
    ended = {(archive.model, archive.task) for archive in chosen if not archive.aborted}
    out = [a for a in chosen if a.aborted and (a.model, a.task) in ended]
    return [a for a in chosen if a not in out], tuple(
        f"left out: {aborted_reason(a.file.name, a.content.status)}" for a in out
    )


def aborted_reason(name: str, status: str) -> str:
    """Return why an aborted log is left out."""
    return (
        f"{name}: the status of its run is {status!r:.40}, and another log is of a whole run of "
        "its task; remove that log to score this one"
    )


def _shards(opened: Sequence[Archive]) -> list[Archive]:
    """Return files of plain records that a pattern names, if they have the same keys.

    A folder may hold anything, whereas a pattern names the files that are meant.
    """
    plain = [archive for archive in opened if archive.reader is None]
    keys = {frozenset(archive.first) for archive in plain}
    return plain if len(keys) == 1 else []


def _is_named(archive: Archive, metric: str) -> bool:
    return metric in archive.file.path.name.casefold()


def _has_only_labels(archive: Archive) -> bool:
    return archive.reader is not None and archive.reader.only_labels


def _refuse_other_benchmarks(chosen: Sequence[Archive], given: str, metric: str) -> None:
    """Refuse several files with labels, unless all are named by the metric or are of one task."""
    unsure = [a for a in chosen if _has_only_labels(a) and not _is_named(a, metric)]
    tasks = {archive.task for archive in chosen}
    names = [archive.file.path.name for archive in chosen]
    if len(chosen) > 1 and unsure and (len(tasks) > 1 or "" in tasks):
        raise ArchiveError(
            f"{given}: {len(chosen)} files hold answers with yes/no labels, {named(names)}, and "
            "may be of different benchmarks. Give one of them with `hallujudge score "
            f"{metric} --responses FILE`, or score each with `hallujudge score all FOLDER --out "
            "DIR`"
        )


def _nothing(
    opened: Sequence[Archive], given: str, metric: str, notes: Sequence[str]
) -> ArchiveError:
    known = [
        (role, f"{a.file.name} is {a.reader.name}")
        for role in ("responses", "references", "companion")
        for a in opened
        if a.reader is not None and a.reader.role == role
    ]
    found = [text for role, text in known if role == "responses"]
    plain = [archive.file.name for archive in opened if archive.reader is None]
    if not known and len(plain) > 1:
        return ArchiveError(
            f"{given}: {len(plain)} files hold records of no known tool, {named(plain)}, and may "
            f"be of different runs. Give one of them with `hallujudge score {metric} --responses "
            "FILE`, or a pattern of the files of one run"
        )
    seen = f" Found: {'; '.join(text for _, text in known[:3])}." if known else ""
    failed = f" {notes[0]}." if notes and not found else ""
    return ArchiveError(
        f"{given}: no file holds responses that are certainly of {metric}.{seen}{failed} Name the "
        f"file, or see `hallujudge archive inspect {given}`"
    )


def _refuse_mixed(chosen: Sequence[Archive], given: str, metric: str, *, are_named: bool) -> None:
    models = {archive.model: archive for archive in chosen if archive.model or not are_named}
    if len(models) > 1 and are_named:
        raise ArchiveError(
            f"{given}: runs of {len(models)} models: {named(sorted(models))}. Give the files of one"
        )
    if len(models) > 1:
        raise ArchiveError(
            f"{given}: runs of {len(models)} models: {named(sorted(models))}. Give the folder of "
            f"one, or score all with `hallujudge score all {given} --out DIR`"
        )
    layouts = {archive.reader.name: archive for archive in chosen if archive.reader is not None}
    if len(layouts) > 1:
        shown = [f"{archive.file.name} is {name}" for name, archive in layouts.items()]
        raise ArchiveError(
            f"{given}: files of {len(layouts)} layouts: {'; '.join(shown)}. Give one of them with "
            f"`hallujudge score {metric} --responses FILE`"
        )


def _refuse_duplicates(chosen: Sequence[Archive], metric: str, *, are_named: bool) -> None:
    """Refuse two files of one task, or split, with the same ids; each of them has its own ids."""
    declared = benchmark_named(metric)
    splits = None if declared is None else declared.split_files
    # Each file is of a task of its own, so that no record needs to be read.
    if len({archive.task for archive in chosen}) == len(chosen):
        return
    where: dict[tuple[str, str, str], str] = {}
    for archive in chosen:
        name = archive.file.name
        split = "" if splits is None else split_of_file(splits, Path(name))
        if splits is not None and not split and are_named:
            # The reader of the answers finds the split of each, or says what to give.
            continue
        for record in archive.records():
            value = next((record.values[k] for k in _ID_KEYS if k in record.values), None)
            if value is None:
                continue
            identifier = canonical_id(value, record.place)
            other = where.setdefault((archive.task, split, identifier), name)
            if other != name:
                raise ArchiveError(
                    f"{other} and {name} both hold the id '{named([identifier])}'; give "
                    "one of them, or the folder or pattern of one run"
                )
