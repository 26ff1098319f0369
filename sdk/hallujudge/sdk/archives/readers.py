"""Entry point of the archive readers: files, mappings or records to items of a metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.families import FAMILIES, benchmark_named, benchmarks_of

from ..errors import ArchiveError, InvalidInputError, UnsupportedError
from . import set_files
from .answers import reader_of
from .archive_files import ArchiveFile, first_values, gathered, open_file
from .formats import read_format
from .found_files import FoundFile, found_files, is_url, with_given_name
from .inputs import (
    CheckedArchive,
    CheckHelp,
    HelpedReader,
    InputOptions,
    ItemSource,
    Reader,
    References,
    Responses,
    are_paths,
    declared_inputs,
    family_module,
)
from .joins import own_references, same_files
from .json_files import kept_values, named
from .layouts import recognised
from .layouts.archive_reader import ArchiveReader
from .local_files import STDIN
from .named_keys import key_paths, mapped_keys, refuse_unused_keys, with_named_keys
from .own_thoughts import with_own_thoughts
from .plain_values import plain, plain_source
from .records import Record, Records, read_records, unwrapped

# How many records are searched for the keys that an error lists.
_RECORDS_LOOKED_AT = 100


@kept_values()
def read_items(
    metric: str,
    responses: Responses,
    references: References | None,
    *,
    options: InputOptions | None = None,
    group_by: tuple[str, ...] = (),
    metric_groups: tuple[str, ...] = (),
    check: CheckHelp | None = None,
) -> ItemSource:
    """Return the items of a metric after checking the whole archive.

    The archive is read once before anything is scored, so that an error in its last line costs no
    judge call. Items of answers are held in memory up to 131,072; of more, and of captions, JSON
    files need eight bytes of memory for each id. Tables are held in memory.

    Args:
        metric: The metric's name.
        responses: A file (JSON, JSON lines, CSV, TSV, XLSX, Parquet or a log of Inspect AI, also
            with gzip or zstd), a folder or a pattern of such files, a URL, ``-`` for standard
            input, a mapping id -> text, a DataFrame, or any iterable of records.
        references: The same for references; None where responses carry them.
        options: How archives are read and joined.
        group_by: Keys whose values the items carry as fields; paths such as ``doc.category``
            lead into objects.
        metric_groups: Keys of the metric itself, which items may lack.
        check: What saves this process the check of the whole archive: what is known of it if its
            bytes were checked before, or processes that check slices of it. Only the readers of
            some metrics use it.

    Raises:
        ArchiveError: A file can't be read, ids are missing or duplicate, or ids don't join; each
            is named.
        InvalidInputError: No item has one of the keys to group by, or an option is given that the
            metric's reader does not use.
        UnsupportedError: The SDK has no archive reader for the metric.
    """
    declared = benchmark_named(metric)
    family = None if declared is not None else family_module(metric)
    if declared is None and family is None:
        raise UnsupportedError(f"there is no archive reader for metric {metric!r} yet")
    responses = plain_source(responses, "responses")
    references = plain_source(references, "references")
    responses = _single(responses) if isinstance(responses, list) else responses
    references = _single(references) if isinstance(references, list) else references
    if all(isinstance(s, (str, Path)) and str(s) == STDIN for s in (responses, references)):
        raise ArchiveError("both responses and references are standard input; give one as a file")
    options = options or InputOptions()
    options = replace(options, own=plain(options.own))
    if declared is not None:
        key_map = mapped_keys(declared, options.key_map, (*metric_groups, *group_by))
        own_keys = (key for key in declared.input_keys if key.name in options.own)
        key_map |= {key.field: str(options.own[key.name]) for key in own_keys}
        options = replace(options, key_map=key_map)
    else:
        read_keys = getattr(family, "MAPPED_KEYS", None)
        refuse_unused_keys(metric, read_keys, options, (*metric_groups, *group_by))
    path = Path(responses) if isinstance(responses, (str, Path)) else None
    same = same_files(responses, references, options)
    # Of records with several answers, the reader looks up the mapped keys in each answer.
    mapping = {} if declared is not None and not declared.joins_by_text else options.key_map
    if path is not None and _files_of(family if declared is None else declared, path):
        given = Opened(source=path)
    else:
        given = open_responses(responses, metric)
    known = open_references(references)
    if declared is not None and declared.set_files and path and isinstance(given.source, list):
        # The name of a table may say which set it has.
        given = replace(given, source=Records(given.source.__iter__, str(path)))
    assert given.source is not None, "only references may be None"
    found, references, names = given.source, known.source, options.key_map
    if names:
        found, references, names = with_named_keys(found, mapping, references, names)
        given, known = replace(given, source=found), replace(known, source=references)
    keys = tuple(dict.fromkeys((*metric_groups, *group_by)))
    # Ids of questions appear once in each category of lmms-eval's samples. Question files have no
    # other id, so that a join still goes by question id.
    has_splits = declared is not None and declared.split_files is not None
    own_id = has_splits and given.reader is not None and references is None
    options = replace(options, key_map=names)
    options = _with_common_keys(options, converted=given.converted, own_id=own_id)
    declared_inputs(metric).refuse_unused(metric, options)
    found = with_own_thoughts(found, declared, options)
    read: Reader = family.READERS[metric] if family is not None else reader_of(declared)  # type: ignore[arg-type]  # one of them is there
    helped: HelpedReader | None = getattr(family, "HELPED_READERS", {}).get(metric)
    inputs = (found, references, options, keys)
    try:
        source = read(*inputs) if check is None or helped is None else helped(*inputs, check)
    except ArchiveError as err:
        raise _renamed(explained(err, metric, given, known), given, known) from err
    if isinstance(check, CheckedArchive) and helped is not None:
        # The notes were shown by the run that checked the archive.
        return source
    groups = group_notes(source, group_by, (given.source, known.source)) if group_by else ()
    own = own_references(source, same, partial(_has_references_only, given))
    return replace(source, notes=(*given.notes, *known.notes, *source.notes, *groups, *own))


def folder_files(folder: Path) -> tuple[str, tuple[Path, ...]]:
    """Return a metric whose own reader reads a folder as a whole, and the files that it reads.

    The metric is empty if there is none.
    """
    for family in FAMILIES:
        for declared in benchmarks_of(family):
            if files := _files_of(declared, folder):
                return declared.name, files
        if not benchmarks_of(family):
            module = import_module(f".{family}", __package__)
            if files := _files_of(module, folder):
                return str(next(iter(module.READERS))), files
    return "", ()


def _files_of(family: ModuleType | ClosedQuestions | None, path: Path) -> tuple[Path, ...]:
    """Return the files that a family's own reader reads of a folder; none of anything else."""
    if not path.is_dir():
        return ()
    if isinstance(family, ClosedQuestions):
        return set_files.folder_files(family, path)
    reads = getattr(family, "folder_files", None)
    return () if reads is None else reads(path)


def _single(source: list[object]) -> Responses:
    """Return the only file of a list with one file; other lists as they are.

    Raises:
        ArchiveError: A file is given twice.
    """
    if not are_paths(source):
        return source
    given = Counter(str(path) if is_url(path) else str(Path(path).resolve()) for path in source)
    if twice := [name for name, count in given.items() if count > 1]:
        raise ArchiveError(f"files are given twice: {named(twice)}. Give each file once")
    return source[0] if len(source) == 1 else source


def _with_common_keys(options: InputOptions, *, converted: bool, own_id: bool) -> InputOptions:
    """Return the options, with the common keys that records have unless the user named some.

    Args:
        options: The options.
        converted: Whether a layout's reader made the records.
        own_id: Whether only the common id distinguishes such records.
    """
    mapped = options.key_map
    text_key = "response" if converted or "response" in mapped else None
    id_key = "id" if (converted and own_id) or "id" in mapped else None
    return replace(options, text_key=options.text_key or text_key, id_key=options.id_key or id_key)


def _renamed(err: ArchiveError, *archives: Opened) -> ArchiveError:
    """Return an error with the names that the user gave for temporary copies."""
    message = str(err)
    for archive in archives:
        for path, name in archive.names.items():
            message = message.replace(path, name)
    return ArchiveError(message, metadata=dict(err.metadata))


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


def open_responses(responses: Responses, metric: str) -> Opened:
    """Return an archive of responses, converted to the common keys where its layout is known.

    Args:
        responses: The archive.
        metric: The metric that scores it.

    Raises:
        ArchiveError: It can't be read, or belongs to another metric; the message names it.
    """
    if isinstance(responses, Mapping):
        return Opened(source=unwrapped(responses))
    if are_paths(responses):
        files = [file for path in responses for file in found_files(path)]
        return _opened_files(files, ", ".join(map(str, responses)), metric, are_named=True)
    if isinstance(responses, (str, Path)):
        return _opened_path(responses, metric)
    return _opened_records(responses, metric)


def open_references(references: References | None) -> Opened:
    """Return an archive of references.

    Raises:
        ArchiveError: It can't be read.
    """
    if are_paths(references):
        files = [file for path in references for file in found_files(path)]
        return Opened(source=[file.path for file in files], names=_names_of_copies(files))
    if isinstance(references, (str, Path)):
        files = found_files(references)
        if len(files) == 1 or files[0].root is None:
            return _plain_file(files[0])
        raise ArchiveError(
            f"{references}: {len(files)} files, where one file of references is needed; name it"
        )
    return Opened(source=references)


def _opened_path(source: str | Path, metric: str) -> Opened:
    files = found_files(source)
    names = _names_of_copies(files)
    if len(files) == 1 and files[0].root is None:
        return replace(_opened_file(open_file(files[0]), metric), names=names)
    return _opened_files(files, str(source), metric)


def _opened_files(
    files: list[FoundFile], source: str, metric: str, *, are_named: bool = False
) -> Opened:
    names = _names_of_copies(files)
    archives, notes = gathered(files, source, metric, are_named=are_named)
    if len(archives) == 1:
        opened = _opened_file(archives[0], metric)
        return replace(opened, names=names, notes=(*notes, *opened.notes))
    return Opened(
        source=_joined(archives, source),
        reader=archives[0].reader,
        converted=archives[0].converts,
        notes=(*notes, *(note for archive in archives for note in archive.content.notes)),
        names=names,
    )


def _plain_file(file: FoundFile) -> Opened:
    with with_given_name(file):
        content = read_format(file.path)
    return Opened(source=content.source, notes=content.notes, names=_names_of_copies([file]))


def _names_of_copies(files: list[FoundFile]) -> dict[str, str]:
    return {str(file.path): file.name for file in files if str(file.path) != file.name}


def _joined(archives: list[ArchiveFile], source: str) -> Records:
    """Return the records of several files, which only files of no known tool are told apart by."""
    plain = not any(archive.converts for archive in archives)
    parts = [Records(archive.records, archive.file.name) for archive in archives if plain]
    return Records(lambda: _chained(archives), source, parts)


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


def _opened_records(records: Iterable[object], metric: str) -> Opened:
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
        f"{str(err).rstrip('.')}. {'. '.join(sentences)}", metadata=dict(err.metadata)
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


def _has_references_only(opened: Opened) -> bool:
    reader = _reader_of(opened)
    return reader is not None and reader.role == "references"


def _reader_of(opened: Opened) -> ArchiveReader | None:
    """Return the reader of an archive; None if it is unknown or can't be read at all."""
    source = opened.source
    if opened.reader is not None or source is None:
        return opened.reader
    try:
        if isinstance(source, (str, list, Records)) or not hasattr(source, "open"):
            first = next(iter(read_records(source)), None)
            return None if first is None else recognised(first.values)
        found = (recognised(values) for values in first_values(source))  # type: ignore[arg-type]  # a path
        return next((reader for reader in found if reader is not None), None)
    except ArchiveError:
        return None


def group_notes(
    source: ItemSource, keys: tuple[str, ...], archives: Iterable[Responses | References | None]
) -> tuple[str, ...]:
    """Return a note for each key that some items lack.

    Args:
        source: The items.
        keys: The keys that the user named.
        archives: What the items were read from, for the keys that an error names.

    Raises:
        InvalidInputError: No item has a key; the message names the existing keys.
    """
    lacking: Counter[str] = Counter()
    kept: set[str] = set()
    for item in source:
        kept.update(item.fields)
        lacking.update(key for key in keys if not item.fields.get(key))
    # Scoring may add fields of its own, such as INFACT's level.
    wrong = [key for key in keys if key in kept and lacking[key] == len(source) > 0]
    if wrong:
        there = named(sorted({key for archive in archives for key in _keys_of(archive)}))
        raise InvalidInputError(
            f"no item has the key {wrong[0]!r} to report groups by; the keys are {there}"
        )
    return tuple(
        f"{count} of {len(source)} items have no {key!r}; they are in the group (none)"
        for key, count in lacking.items()
        if key in kept
    )


def _keys_of(archive: Responses | References | None) -> Iterator[str]:
    """Yield the keys of an archive's first records, and paths into objects that they hold."""
    if archive is None or isinstance(archive, Mapping):
        return
    try:
        for record in islice(read_records(archive), _RECORDS_LOOKED_AT):
            yield from key_paths(record.values)
    except ArchiveError:
        # Some layouts of references have no records.
        return
