"""Choosing the files of one run among those of a folder or pattern."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import ArchiveError, HallujudgeError
from .archive_files import ArchiveFile, open_file
from .found_files import FoundFile, is_pattern
from .records import canonical_id, named

__all__ = ["gathered"]


def gathered(
    files: Sequence[FoundFile], given: str, metric: str
) -> tuple[list[ArchiveFile], tuple[str, ...]]:
    """Return the files that hold one run's responses for a metric, and notes on the others.

    Args:
        files: The files.
        given: What the user gave, for messages.
        metric: The metric.

    Raises:
        ArchiveError: There is none; or they are of several layouts or models, or have equal ids.
    """
    opened, notes = _opened(files)
    chosen = _of_benchmark(_for_metric(opened, metric), metric)
    if not chosen and is_pattern(Path(given)):
        chosen = _shards(opened)
    if not chosen:
        raise _nothing(opened, given, metric, notes)
    _refuse_mixed(chosen, given, metric)
    _refuse_other_benchmarks(chosen, given, metric)
    if len(chosen) > 1:
        _refuse_duplicates(chosen)
    others = len(files) - len(chosen)
    if others:
        notes = (
            *notes,
            f"{given}: {len(chosen)} of {len(files)} files hold responses for {metric}: "
            f"{named([archive.file.name for archive in chosen])}",
        )
    return chosen, notes


def _opened(files: Sequence[FoundFile]) -> tuple[list[ArchiveFile], tuple[str, ...]]:
    opened, notes = [], []
    for file in files:
        try:
            opened.append(open_file(file))
        except HallujudgeError as err:
            notes.append(f"left out: {err}")
    return opened, tuple(notes)


def _for_metric(opened: Sequence[ArchiveFile], metric: str) -> list[ArchiveFile]:
    """Return the files that hold responses for a metric, the most certain ones first."""
    suited = [a for a in opened if a.reader is not None and metric in a.reader.metrics]
    own = [a for a in suited if a.reader is not None and a.reader.role == "responses"]
    # A log of another benchmark with yes/no labels may lie beside the log of the metric itself.
    certain = [a for a in own if a.reader is not None and not a.reader.any_metric]
    general = [
        a
        for a in opened
        if a.reader is None or (a.reader.any_metric and a.reader.role == "responses")
    ]
    judged = [a for a in suited if a.reader is not None and a.reader.role == "companion"]
    # A single file of plain records may be anything; several can't be told apart.
    return certain or own or judged or (general if len(general) == 1 else [])


def _of_benchmark(chosen: Sequence[ArchiveFile], metric: str) -> list[ArchiveFile]:
    """Return the files without those of other benchmarks, where names of files tell.

    Logs of MME and tables of AMBER hold yes/no answers with labels as those of POPE do.
    """
    own = [archive for archive in chosen if _is_named(archive, metric)]
    return [a for a in chosen if a in own or not own or not _has_only_labels(a)]


def _shards(opened: Sequence[ArchiveFile]) -> list[ArchiveFile]:
    """Return files of plain records that a pattern names, if they have the same keys.

    A folder may hold anything, whereas a pattern says which files are meant.
    """
    plain = [archive for archive in opened if archive.reader is None]
    keys = {frozenset(archive.first) for archive in plain}
    return plain if len(keys) == 1 else []


def _is_named(archive: ArchiveFile, metric: str) -> bool:
    return metric in archive.file.path.name.casefold()


def _has_only_labels(archive: ArchiveFile) -> bool:
    return archive.reader is not None and archive.reader.only_labels


def _refuse_other_benchmarks(chosen: Sequence[ArchiveFile], given: str, metric: str) -> None:
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
    opened: Sequence[ArchiveFile], given: str, metric: str, notes: Sequence[str]
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


def _refuse_mixed(chosen: Sequence[ArchiveFile], given: str, metric: str) -> None:
    models = {archive.model: archive for archive in chosen}
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


def _refuse_duplicates(chosen: Sequence[ArchiveFile]) -> None:
    """Refuse two files of one task with the same ids; ids begin anew in each task of a tool."""
    if len({archive.task for archive in chosen}) == len(chosen):
        return
    where: dict[tuple[str, str], str] = {}
    for archive in chosen:
        name = archive.file.name
        for record in archive.records():
            value = next((record.values[k] for k in _ID_KEYS if k in record.values), None)
            if value is None:
                continue
            identifier = canonical_id(value, record.place)
            other = where.setdefault((archive.task, identifier), name)
            if other != name:
                raise ArchiveError(
                    f"{other} and {name} both hold the id '{named([identifier])}'; give "
                    "one of them, or the folder or pattern of one run"
                )


_ID_KEYS = ("id", "question_id", "image_id", "image_name", "video")
