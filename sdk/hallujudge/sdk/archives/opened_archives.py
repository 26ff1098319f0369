"""Archives that were opened: their files, converted to the common keys where a layout is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from msgspec import structs

from hallujudge.metrics.framework.signature import ASKED, PROMPTS

from ..errors import ArchiveError, HallujudgeError
from .archive_files import Archive, first_values, gathered, open_file
from .formats import read_format
from .found_files import FoundFile, found_files, is_url, with_given_name
from .inputs import References, Responses, are_paths
from .json_files import amount, named
from .layouts import declared_layout, recognised
from .layouts.archive_reader import ArchiveReader
from .local_files import ZIP, OpenPath, open_binary
from .record_values import structured, value_at
from .records import Record, Records, name_of, read_records, unwrapped
from .table_files import recoded

FilesOf: TypeAlias = Callable[[tuple[str | Path, ...]], list[FoundFile]]
"""Returns the files of paths, patterns or URLs."""
# Half of the files that macOS lets a process have open, of which a run has others.
_MOST_OPEN = 128
# Tools give each record that they write other values of these.
_OWN_KEYS = frozenset({"answer_id", "uuid", "request_id", "created", "timestamp", "time"})
_ASKED_KEY = "asked"
_ASKED_MARK = _ASKED_KEY.encode()
# Option of a spec -> its key in the object under the key above.
_HOW_KEYS = {PROMPTS: "prompts", ASKED: "how"}
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An archive that can be read twice."""

    source: Responses | References | None
    """What the metric's reader reads."""
    reader: ArchiveReader | None = None
    """The archive reader that recognised it; None for plain records."""
    notes: tuple[str, ...] = ()
    """Oddities of its files."""
    about_scores: tuple[str, ...] = ()
    """Those of the notes that concern the scores."""
    files: Sequence[FoundFile] = ()
    """What it was read from, each with the name that the user gave."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """How the model was asked, as options of a spec, if its records say that."""

    @property
    def names(self) -> Mapping[str, str]:
        """Path of a temporary copy -> the name that the user gave."""
        return {str(file.path): file.name for file in self.files if str(file.path) != file.name}

    @property
    def name(self) -> str:
        """Name for messages."""
        if isinstance(self.source, Path):
            return self.names.get(str(self.source), str(self.source))
        return next(iter(self.names.values()), "")


def files_of(sources: tuple[str | Path, ...], encoding: str = "") -> list[FoundFile]:
    """Return the files of paths, patterns or URLs, which are opened once each.

    Args:
        sources: The paths, patterns or URLs of an archive.
        encoding: Code of the files that are not UTF-8; empty if all are.

    Raises:
        ArchiveError: There are none, or one can't be read.
    """
    found = (file for source in sources for file in found_files(source))
    return opened_once([recoded(file, encoding) for file in found])


def open_responses(
    responses: Responses,
    metric: str,
    files_of: FilesOf = files_of,
    *,
    may_repeat: bool = False,
) -> Opened:
    """Return an archive of responses, converted to the common keys where its layout is known.

    Args:
        responses: The archive.
        metric: The metric that scores it.
        files_of: Returns the files of paths.
        may_repeat: Whether several files may have equal ids.

    Raises:
        ArchiveError: It can't be read, or belongs to another metric; the message names it.
    """
    if isinstance(responses, Mapping):
        return Opened(source=unwrapped(responses))
    if are_paths(responses):
        files = files_of(tuple(responses))
        return _opened_files(
            files, ", ".join(map(str, responses)), metric, are_named=True, may_repeat=may_repeat
        )
    if isinstance(responses, (str, Path)):
        files = files_of((responses,))
        if len(files) == 1 and files[0].root is None:
            return replace(_opened_file(open_file(files[0], metric), metric), files=files)
        return _opened_files(files, str(responses), metric, may_repeat=may_repeat)
    return _opened_records(responses, metric)


def open_references(references: References | None, files_of: FilesOf = files_of) -> Opened:
    """Return an archive of references.

    Args:
        references: The archive.
        files_of: Returns the files of paths.

    Raises:
        ArchiveError: It can't be read.
    """
    if are_paths(references):
        files = files_of(tuple(references))
        return Opened(source=[file.path for file in files], files=files)
    if isinstance(references, (str, Path)):
        files = files_of((references,))
        if len(files) == 1 or files[0].root is None:
            return _plain_file(files[0])
        raise ArchiveError(
            f"{references}: {len(files)} files, where one file of references is needed; name it"
        )
    return Opened(source=references)


def opened_once(files: list[FoundFile]) -> list[FoundFile]:
    """Return files that are opened once each, however often they are read."""
    # A folder may have more files than a process may have open.
    if len(files) > _MOST_OPEN:
        return files
    return [structs.replace(file, path=OpenPath(file.path)) for file in files]


def _opened_files(
    files: list[FoundFile],
    source: str,
    metric: str,
    *,
    are_named: bool = False,
    may_repeat: bool,
) -> Opened:
    archives, notes = gathered(files, source, metric, are_named=are_named, may_repeat=may_repeat)
    if len(archives) == 1:
        opened = _opened_file(archives[0], metric)
        return replace(opened, files=files, notes=(*notes, *opened.notes))
    return Opened(
        source=_joined(archives, source),
        reader=archives[0].reader,
        notes=(*notes, *(note for archive in archives for note in archive.content.notes)),
        about_scores=tuple(note for each in archives for note in each.content.about_scores),
        files=files,
    )


def _plain_file(file: FoundFile) -> Opened:
    with with_given_name(file):
        content = read_format(file.path)
    return Opened(source=content.source, notes=content.notes, files=[file])


def _joined(archives: list[Archive], source: str) -> Records:
    """Return the records of several files; only those of no known tool are kept apart as parts."""
    plain = not any(archive.converts for archive in archives)
    parts = [Records(archive.records, archive.file.name) for archive in archives if plain]
    return Records(lambda: _chained(archives), source, parts)


def _chained(archives: list[Archive]) -> Iterator[Record]:
    """Yield the records of several files; splits of a benchmark keep equal ids apart."""
    tasks = {archive.task for archive in archives}
    position = 0
    for archive in archives:
        for record in archive.records():
            values = record.values
            if len(tasks) > 1:
                values = {"category": archive.task, **values}
                # Each file counts its ids from the start.
                values["id"] = f"{archive.task}:{values.get('id')}"
            yield record._replace(values=values, position=position)
            position += 1


def _opened_file(archive: Archive, metric: str) -> Opened:
    reader, content, file = archive.reader, archive.content, archive.file
    _refuse_other(reader, file.name, metric)
    if isinstance(content.source, list) and not content.source:
        raise ArchiveError(f"{file.path}: no records; give rows after the header")
    converts = reader is not None and reader.convert is not None
    return Opened(
        source=Records(archive.records, str(file.path)) if converts else content.source,
        reader=reader,
        notes=(*content.notes, *_other_protocol(reader, file.name, metric)),
        about_scores=content.about_scores,
    )


def _other_protocol(reader: ArchiveReader | None, name: str, metric: str) -> tuple[str, ...]:
    """Return a note if the answers look like those of the benchmark's other protocol.

    They are not refused: a model may answer every question in the wrong form.
    """
    if reader is None or metric in reader.metrics or reader.convert is not None:
        return ()
    family = metric.partition("-")[0]
    if not any(own.partition("-")[0] == family for own in reader.metrics):
        return ()
    return (f"{name} looks like {reader.name}; for those, use `{reader.command(name)}`",)


def _opened_records(records: Iterable[object], metric: str) -> Opened:
    first = next(read_records(records), None)
    reader = None if first is None else recognised(first.values, metric)
    if reader is None or reader.convert is None:
        return Opened(source=records, reader=reader)
    _refuse_other(reader, "The archive of responses", metric)
    return Opened(
        source=Records(lambda: reader.converted(read_records(records))),
        reader=reader,
    )


def _refuse_other(reader: ArchiveReader | None, name: str, metric: str) -> None:
    """Refuse an archive that is certainly of another metric.

    Raises:
        ArchiveError: It names the layout and the command that scores it.
    """
    if reader is None or reader.any_metric or reader.role == "references" or not reader.metrics:
        return
    if metric not in reader.metrics:
        # A name for messages, which has blanks, is no path.
        shown = "ARCHIVE" if " " in name else name
        raise ArchiveError(f"{name} is {reader.name}; use `{reader.command(shown)}`")


def explained(
    err: ArchiveError, metric: str, responses: Opened, references: Opened
) -> ArchiveError:
    """Return the error, extended with the file's layout if it is known and does not fit.

    Args:
        err: The error of the metric's archive reader.
        metric: Name of the metric.
        responses: The archive of responses.
        references: The archive of references.
    """
    given, known = _reader_of(responses), _reader_of(references)
    if responses.reader is None:
        # The metric's own layouts alone were tried so far.
        _refuse_other(given, responses.name or "The archive of responses", metric)
    sentences = [
        sentence
        for role, opened, reader in (
            ("responses", responses, given),
            ("references", references, known),
        )
        if reader is not None and (sentence := _layout_sentence(opened.name, reader, role, metric))
    ]
    if not sentences:
        return err
    # The metric's reader could not find responses here, so its message would mislead.
    if given is not None and given.role == "companion" and not given.metrics:
        return ArchiveError(sentences[0], metadata=dict(err.metadata))
    if given is not None and known is not None and _are_swapped(metric, given, known):
        return ArchiveError(". ".join(sentences), metadata=dict(err.metadata))
    return ArchiveError(
        f"{str(err).rstrip('.')}. {'. '.join(sentences)}",
        reason=err.reason,
        metadata=err.metadata,
    )


def _layout_sentence(name: str, reader: ArchiveReader, role: str, metric: str) -> str:
    """Return what an archive is and how it is used; empty if it fits its role and metric."""
    known = role == reader.role or (role == "references" and reader.also_references)
    if known and (metric in reader.metrics or (reader.any_metric and reader.metrics)):
        return ""
    what = name or f"The archive of {role}"
    if metric in reader.metrics and reader.role in ("responses", "references"):
        return f"{what} is {reader.name}: give it as {reader.role}"
    if not reader.metrics:
        return f"{what} is {reader.name}: {reader.remedy}"
    return f"{what} is {reader.name}; use `hallujudge score {reader.metrics[0]}`"


def _are_swapped(metric: str, given: ArchiveReader, known: ArchiveReader) -> bool:
    both = metric in given.metrics and metric in known.metrics
    return both and (given.role, known.role) == ("references", "responses")


def has_references_only(opened: Opened) -> bool:
    """Return whether the layout of an archive is one of references."""
    reader = _reader_of(opened)
    return reader is not None and reader.role == "references"


def _reader_of(opened: Opened) -> ArchiveReader | None:
    """Return the reader of an archive; None if it is unknown or can't be read at all."""
    source = opened.source
    if opened.reader is not None or source is None:
        return opened.reader
    try:
        found = (recognised(v) or declared_layout(v) for v in first_values(source))
        return next((reader for reader in found if reader is not None), None)
    except ArchiveError:
        return None


def without_copies(given: Opened) -> Opened:
    """Return an archive without records whose values an earlier one has, and a note on these.

    Such copies pad the last batch of several GPUs.
    """
    source = given.source
    if source is None or isinstance(source, Mapping):
        return given
    seen: set[bytes] = set()
    copies: dict[int, str] = {}
    for record in read_records(source):
        if (content := _content(record.values)) in seen:
            copies[record.position] = record.place
        seen.add(content)
    kept = Records(
        lambda: (r for r in read_records(source) if r.position not in copies), name_of(source)
    )
    count = amount(len(copies), "record is a copy", "records are copies")
    note = f"{count} of an earlier one and left out: {named(list(copies.values()))}"
    return replace(given, source=kept, notes=(*given.notes, *([note] if copies else ())))


def _content(values: Mapping[str, object]) -> bytes:
    own = {key: value for key, value in values.items() if key not in _OWN_KEYS}
    # Values that a caller gives may be of any type.
    text = json.dumps(own, sort_keys=True, default=repr)
    # JSON may hold half of a surrogate pair, which UTF-8 refuses otherwise.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def renamed(err: ArchiveError, *archives: Opened) -> ArchiveError:
    """Return an error with the names that the user gave for temporary copies."""
    message = str(err)
    for archive in archives:
        for path, name in archive.names.items():
            message = message.replace(path, name)
    return ArchiveError(message, reason=err.reason, metadata=err.metadata)


# How the model was asked --------------------------------------------------------------------------


# How the model was asked --------------------------------------------------------------------------


def recorded_asking(responses: object, opened: Opened) -> dict[str, str]:
    """Return how the model of an archive was asked, as options of a spec; empty if it is unknown.

    Several ways have all their values, joined by ``+``.

    Args:
        responses: The archive: paths, or plain values. A URL is not looked at.
        opened: The same, whose files may be open.
    """
    # Whatever is wrong with an archive, its reader says.
    with suppress(HallujudgeError, OSError):
        if isinstance(responses, (str, Path)) or are_paths(responses):
            paths = [responses] if isinstance(responses, (str, Path)) else responses
            # Most archives do not say it, and are not read once more.
            if any(map(is_url, paths)) or not any(_mentions(file.path) for file in opened.files):
                return {}
            return _all_ways(record.values for record in read_records(opened.source or ()))
        if isinstance(responses, (list, Mapping)):
            given = responses.values() if isinstance(responses, Mapping) else responses
            records = (each.values if isinstance(each, Record) else each for each in given)
            return _all_ways(values for values in records if isinstance(values, Mapping))
    return {}


def _all_ways(records: Iterable[Mapping[str, object]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for name, text in (pair for values in records for pair in _told(values)):
        found.setdefault(name, set()).add(text)
    return {name: "+".join(sorted(found[name])) for name in _HOW_KEYS if name in found}


def _told(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a record says; a table has it in a cell, or in a column for each value."""
    given = structured(values.get(_ASKED_KEY))
    for name, key in _HOW_KEYS.items():
        held = given if isinstance(given, Mapping) else {}
        text = held.get(key, value_at(values, f"{_ASKED_KEY}.{key}"))
        if isinstance(text, str) and text:
            yield name, text


def _mentions(path: Path) -> bool:
    """Return whether a file may say how its model was asked."""
    with open_binary(path) as file:
        before = file.read(_PIECE)
        if before.startswith(ZIP):
            # A workbook, which is in memory; a log of Inspect AI has other parts.
            return b"xl/" in before
        while before:
            if _ASKED_MARK in before:
                return True
            more = file.read(_PIECE)
            # The end of a piece may cut the mark in two.
            before = before[-len(_ASKED_MARK) :] + more if more else b""
    return False
