"""Opening an archive of responses or references: what a metric's reader then reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import ArchiveError
from .archive_files import ArchiveFile, open_file, value_at
from .formats import read_format
from .found_files import FoundFile, found_files, with_given_name
from .gathering import gathered
from .inputs import InputOptions, References, Responses
from .layouts import ArchiveReader, recognised
from .records import Record, Records, named, read_records
from .tables import read_frame

__all__ = ["Opened", "open_references", "open_responses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An archive that can be read twice."""

    source: Responses | References | None
    """What the metric's reader reads."""
    reader: ArchiveReader | None = None
    """The archive reader that recognised it; None for plain records."""
    converted: bool = False
    """Whether its records have the common keys."""
    notes: tuple[str, ...] = ()
    """Oddities of its files."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Path of a temporary copy -> the name that the user gave."""

    @property
    def name(self) -> str:
        """Name for messages."""
        if isinstance(self.source, Path):
            return self.names.get(str(self.source), str(self.source))
        return next(iter(self.names.values()), "")


def open_responses(
    responses: Responses, metric: str, options: InputOptions, reads_folder: Callable[[Path], bool]
) -> Opened:
    """Return an archive of responses, converted to the common keys where its layout is known.

    Args:
        responses: The archive.
        metric: The metric that scores it.
        options: How archives are read.
        reads_folder: Whether the metric's own reader reads a folder as a whole.

    Raises:
        ArchiveError: It can't be read, or belongs to another metric; the message names it.
    """
    if isinstance(responses, (str, Path)) and reads_folder(Path(responses)):
        return Opened(source=Path(responses))
    opened = _opened(responses, "responses", metric)
    if not options.key_map:
        return opened
    return replace(opened, source=_mapped(opened, options.key_map))


def open_references(references: References | None) -> Opened:
    """Return an archive of references.

    Raises:
        ArchiveError: It can't be read.
    """
    if (
        isinstance(references, list)
        and references
        and all(isinstance(path, (str, Path)) for path in references)
    ):
        files = [file for path in references for file in found_files(path)]
        return Opened(source=[file.path for file in files], names=_names(files))
    if isinstance(references, (str, Path)):
        files = found_files(references)
        if len(files) == 1 or files[0].root is None:
            return _plain_file(files[0])
        raise ArchiveError(
            f"{references}: {len(files)} files, where one file of references is needed; name it"
        )
    return _opened(references, "references", "")


def _are_paths(source: object) -> bool:
    return isinstance(source, list) and all(isinstance(path, (str, Path)) for path in source or [0])


def _plain_file(file: FoundFile) -> Opened:
    with with_given_name(file):
        content = read_format(file.path)
    return Opened(source=content.source, notes=content.notes, names=_names([file]))


def _names(files: list[FoundFile]) -> dict[str, str]:
    return {str(file.path): file.name for file in files if str(file.path) != file.name}


def _opened(source: Responses | References | None, role: str, metric: str) -> Opened:
    if isinstance(source, (str, Path)):
        return _opened_path(source, metric)
    if source is None or isinstance(source, Mapping):
        return Opened(source=source)
    rows = read_frame(source, role)
    records = rows if rows is not None else source
    if not isinstance(records, Records):
        records = list(records)
    return _opened_records(records, metric) if role == "responses" else Opened(source=records)


def _opened_path(source: str | Path, metric: str) -> Opened:
    files = found_files(source)
    names = _names(files)
    if len(files) == 1 and files[0].root is None:
        return replace(_opened_file(open_file(files[0]), metric), names=names)
    archives, notes = gathered(files, str(source), metric)
    if len(archives) == 1:
        opened = _opened_file(archives[0], metric)
        return replace(opened, names=names, notes=(*notes, *opened.notes))
    return Opened(
        source=Records(lambda: _chained(archives), str(source)),
        reader=archives[0].reader,
        converted=archives[0].converts,
        notes=(*notes, *(note for archive in archives for note in archive.content.notes)),
        names=names,
    )


def _chained(archives: list[ArchiveFile]) -> Iterator[Record]:
    """Yield the records of several files; splits of a benchmark keep equal ids apart."""
    tasks = {archive.task for archive in archives}
    position = 0
    for archive in archives:
        for record in archive.records():
            values = record.values
            if len(tasks) > 1:
                values = {"category": archive.task, **values}
                values["id"] = f"{archive.task}:{values.get('id')}"
            yield record._replace(values=values, position=position)
            position += 1


def _opened_file(archive: ArchiveFile, metric: str) -> Opened:
    _refuse_other(archive.reader, archive.file.name, metric)
    if isinstance(archive.content.source, list) and not archive.content.source:
        raise ArchiveError(f"{archive.file.path}: no records; the file has nothing but a header")
    return Opened(
        source=Records(archive.records, str(archive.file.path))
        if archive.converts
        else archive.content.source,
        reader=archive.reader,
        converted=archive.converts,
        notes=(*archive.content.notes, *_other_protocol(archive, metric)),
    )


def _other_protocol(archive: ArchiveFile, metric: str) -> tuple[str, ...]:
    """Return a note if the answers look like those of the benchmark's other protocol.

    They are not refused: a model may answer every question in the wrong form.
    """
    reader, family = archive.reader, metric.partition("-")[0]
    if reader is None or metric in reader.metrics or archive.converts:
        return ()
    if not any(name.partition("-")[0] == family for name in reader.metrics):
        return ()
    name = archive.file.name
    return (f"{name} looks like {reader.name}; for those, use `{reader.command(name)}`",)


def _opened_records(records: list[object] | Records, metric: str) -> Opened:
    first = next(read_records(records), None)
    reader = None if first is None else recognised(first.values)
    if reader is None or reader.convert is None:
        return Opened(source=records, reader=reader)
    _refuse_other(reader, "The archive of responses", metric)
    return Opened(
        source=Records(lambda: reader.converted(read_records(records))),
        reader=reader,
        converted=True,
    )


def _refuse_other(reader: ArchiveReader | None, name: str, metric: str) -> None:
    """Refuse an archive that is certainly of another metric.

    Raises:
        ArchiveError: It names the layout and the command that scores it.
    """
    if reader is None or reader.any_metric or reader.role == "references" or not reader.metrics:
        return
    if metric not in reader.metrics:
        shown = "ARCHIVE" if " " in name else name
        raise ArchiveError(f"{name} is {reader.name}; use `{reader.command(shown)}`")


def _mapped(opened: Opened, keys: Mapping[str, str]) -> Records:
    """Return records with more keys, each a copy of another value of the record.

    Raises:
        ArchiveError: The first record lacks a value to copy.
    """
    source = opened.source
    assert source is not None, "only references may be None"
    first = next(read_records(source), None)
    lacking = [key for key in keys.values() if first and value_at(first.values, key) is None]
    if first is not None and lacking:
        raise ArchiveError(
            f"{first.place}: no value for {named(lacking)}, which InputOptions(key_map=…) names; "
            f"found {named(sorted(first.values))}"
        )

    def records() -> Iterator[Record]:
        for record in read_records(source):
            more = {name: value_at(record.values, key) for name, key in keys.items()}
            yield record._replace(values={**record.values, **more})

    if isinstance(source, (str, Path)):
        return Records(records, str(source))
    return Records(records, source.name if isinstance(source, Records) else "")
