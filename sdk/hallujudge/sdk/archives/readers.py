"""Entry point of the archive readers: files, mappings or records to items of a metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from msgspec import structs

from hallujudge.judge_service.errors import TOO_MANY_DIGITS, fault_of
from hallujudge.metrics import Item
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.families import FAMILIES, benchmark_named, benchmarks_of

from ..errors import ArchiveError, HallujudgeError, UnsupportedError
from . import set_files
from .answers import read_answers
from .archive_keys import (
    group_notes,
    mapped_keys,
    refuse_unused_keys,
    with_named_keys,
    with_own_thoughts,
)
from .bad_records import BadRecord, BadRecords, finding, unscored_item
from .found_files import FoundFile, is_url, refuse_texts
from .inputs import (
    CheckedArchive,
    CheckHelp,
    HelpedReader,
    InputOptions,
    ItemSource,
    Reader,
    ReaderInput,
    References,
    Responses,
    are_paths,
    declared_inputs,
    family_module,
)
from .joins import own_references, same_files
from .json_files import named
from .local_files import STDIN, OpenPath
from .opened_archives import (
    Opened,
    explained,
    files_of,
    has_references_only,
    open_references,
    open_responses,
    opened_once,
    recorded_asking,
    renamed,
    without_copies,
)
from .plain_values import plain, plain_source
from .records import Record, Records, name_of, read_records


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
    with _readable():
        responses = _single(plain_source(responses, "responses"))
        references = _single(plain_source(references, "references"))
        archives = responses, references
        if all(isinstance(s, (str, Path)) and str(s) == STDIN for s in archives):
            raise ArchiveError(
                "both responses and references are standard input; give one as a file"
            )
        options = options or InputOptions()
        options = replace(options, own=plain(options.own))
        archive = _Archives(metric, archives, options, group_by, metric_groups)
        try:
            return archive.read(archive.opened(), check)
        except ArchiveError as err:
            bad = archive.bad_records()
            # What holds of every record is wrong with the archive, as its own error says.
            if not bad.all or len(bad.all) == bad.total:
                raise archive.in_file(err) from err
            if not options.skip_bad:
                raise archive.in_file(bad.error()) from err
            return archive.items_without(bad)


@contextmanager
def _readable() -> Iterator[None]:
    """Say what Python can't write or follow in values of a program: files are checked as read."""
    try:
        yield
    except HallujudgeError:
        raise
    except RecursionError as err:
        raise ArchiveError(f"responses or references: {fault_of(err)}; give flat values") from err
    except ValueError as err:
        if (fault := fault_of(err)) != TOO_MANY_DIGITS:
            raise
        raise ArchiveError(f"responses or references: {fault}; give it as a text") from err


class _Inputs(NamedTuple):
    """Archives that were opened, and how they are read."""

    given: Opened
    known: Opened
    options: InputOptions
    same: str


class _Archives:
    """Responses and references of a metric, which can be read again without bad records."""

    def __init__(
        self,
        metric: str,
        archives: tuple[Responses, References | None],
        options: InputOptions,
        group_by: tuple[str, ...],
        metric_groups: tuple[str, ...],
    ) -> None:
        self._metric = metric
        self._declared = benchmark_named(metric)
        self._family = None if self._declared is not None else family_module(metric)
        if self._declared is None and self._family is None:
            raise UnsupportedError(f"there is no archive reader for metric {metric!r} yet")
        self._responses, self._references = archives
        self._group_by = group_by
        self._keys = tuple(dict.fromkeys((*metric_groups, *group_by)))
        if (declared := self._declared) is None:
            read_keys = getattr(self._family, "MAPPED_KEYS", None)
            refuse_unused_keys(metric, read_keys, options, self._keys)
        else:
            # The keys that the metric's reader looks up.
            key_map = mapped_keys(declared, options.key_map, self._keys)
            options = replace(options, key_map=key_map)
        self._options = options
        # A file stays the one that was checked while it is read again without bad records.
        self._files_of = cache(partial(files_of, encoding=options.encoding))
        self._used = declared_inputs(metric).used

    def bad_records(self) -> BadRecords:
        """Return the records that can't be used; none if they can't be told apart."""
        found = BadRecords()
        # What stops the reading is not in one record; the caller then raises its own error.
        with suppress(HallujudgeError):
            self._without(BadRecords(), found)
        return found

    def in_file(self, err: ArchiveError) -> ArchiveError:
        """Return an error that names the file of responses, if it names none and is about it."""
        name, said = name_of(self._responses), str(err)
        # Addresses may hold secrets, and standard input has no name.
        if not name or name == STDIN or is_url(name) or self._references is not None:
            return err
        if Path(name).name in said:
            return err
        return ArchiveError(f"{name}: {said}", reason=err.reason, metadata=err.metadata)

    def items_without(self, bad: BadRecords) -> ItemSource:
        """Return the items, of which those of bad records have nothing to score.

        Args:
            bad: The bad records, to which those are added that are only found without them.
        """
        # Readers stop at some faults, and find others once those are left out.
        while True:
            found = BadRecords()
            try:
                source = self._without(bad, found)
            except ArchiveError:
                if not bad.add(found):
                    raise
                continue
            if not bad.add(found):
                return replace(source, notes=(*source.notes, bad.note()))

    def _without(self, bad: BadRecords, found: BadRecords) -> ItemSource:
        """Return the items without bad records, and note those that are bad among the others."""
        with finding(found, unreadable=True):
            inputs = self.opened()
            if not isinstance(inputs.given.source, (Path, list, Records)):
                raise ArchiveError("the records can't be told apart")
        records = _without(bad, found, inputs.given.source)
        kept = set()
        for number, record in enumerate(records, 1):
            found.total = number
            if record.position in bad.by_position:
                kept.add(record.position)
        found.total += len(found.unreadable)
        lost = bad.lost(kept)
        inputs = inputs._replace(given=replace(inputs.given, source=records))
        # Questions whose answers are bad are unanswered instead.
        are_asked = "allow_missing" in self._used and inputs.known.source is not None
        with finding(found):
            try:
                source = self.read(inputs)
            except ArchiveError as err:
                count = err.metadata.get("count", "")
                # No more may be missing than are bad: the others were never answered.
                if not are_asked or not count.isdecimal() or int(count) > len(lost):
                    raise
                options = replace(inputs.options, allow_missing=True)
                source = self.read(inputs._replace(options=options))
            finally:
                found.rename(inputs.given.names)
        # One item shows the class and the fields that unscored ones need.
        like = None if are_asked else next(iter(source), None)
        more = [] if like is None else [self._unscored(like, each) for each in lost]
        return replace(
            source, count=source.count + len(more), make=lambda: chain(source, more), slices=None
        )

    def _unscored(self, like: Item, bad: BadRecord) -> Item:
        """Return the item of a bad record."""
        item = unscored_item(like, bad)
        if isinstance(item, AnswersItem) and self._declared and self._declared.judges_each:
            # Without any answer it would be a caption without objects, which counts.
            return structs.replace(item, answers=(Answer(None),))
        return item

    def opened(self) -> _Inputs:
        """Open the archives, and return them with the keys that the user named."""
        declared, options = self._declared, self._options
        path = Path(self._responses) if isinstance(self._responses, (str, Path)) else None
        same = same_files(self._responses, self._references, options)
        # Of records with several answers, the reader looks up the mapped keys in each answer.
        mapping = {} if declared is not None and not declared.joins_by_text else options.key_map
        own = self._family if declared is None else declared
        if path is not None and (files := _files_of(own, path)):
            inside = [FoundFile(path=file, name=str(file), root=path) for file in files]
            given = Opened(source=path, files=opened_once(inside))
        else:
            given = open_responses(
                self._responses,
                self._metric,
                self._files_of,
                may_repeat=options.drop_equal_duplicates,
            )
            given = without_copies(given) if options.drop_equal_duplicates else given
        given = replace(given, asked=recorded_asking(self._responses, given))
        known = open_references(self._references, self._files_of)
        if declared is not None and declared.set_files and path and isinstance(given.source, list):
            # The name of a table may say which set it has.
            given = replace(given, source=Records(given.source.__iter__, str(path)))
        assert given.source is not None, "only references may be None"
        if names := options.key_map:
            found, references, names = with_named_keys(given.source, mapping, known.source, names)
            given, known = replace(given, source=found), replace(known, source=references)
        # Ids of questions appear once in each category of lmms-eval's samples. Question files have
        # no other id, so that a join still goes by question id.
        has_splits = declared is not None and declared.split_files is not None
        own_id = has_splits and given.reader is not None and known.source is None
        lacking = given.reader is not None and given.reader.may_lack_references
        if lacking and known.source is None and "allow_unknown" in self._used:
            options = replace(options, allow_unknown=True)
        options = replace(options, key_map=names)
        converted = given.reader is not None and given.reader.convert is not None
        options = _with_common_keys(options, converted=converted, own_id=own_id)
        declared_inputs(self._metric).refuse_unused(self._metric, options)
        found = with_own_thoughts(given.source or (), declared, options)
        return _Inputs(replace(given, source=found), known, options, same)

    def read(self, inputs: _Inputs, check: CheckHelp | None = None) -> ItemSource:
        """Return the items of opened archives after checking them as a whole."""
        given, known, options, same = inputs
        assert given.source is not None, "only references may be None"
        metric, family = self._metric, self._family
        declared = self._declared
        read: Reader = partial(read_answers, declared) if declared else family.READERS[metric]  # type: ignore[union-attr]  # one of them is there
        helped: HelpedReader | None = getattr(family, "HELPED_READERS", {}).get(metric)
        archives = ReaderInput(given.source, known.source, options, self._keys)
        try:
            source = read(archives) if check is None or helped is None else helped(archives, check)
        except ArchiveError as err:
            raise renamed(explained(err, metric, given, known), given, known) from err
        files = tuple(file.path for file in (*given.files, *known.files))
        if isinstance(check, CheckedArchive) and helped is not None:
            # The notes were shown by the run that checked the archive.
            return replace(source, files=files, asked=given.asked)
        both = (given.source, known.source)
        groups = group_notes(source, self._group_by, both) if self._group_by else ()
        own = own_references(source, same, partial(has_references_only, given))
        notes = (*given.notes, *known.notes, *source.notes, *groups, *own)
        # What was kept for the check would stay in memory while items are scored.
        for file in files:
            if isinstance(file, OpenPath):
                file.only = None
        return replace(
            source,
            notes=tuple(note for note in notes if note not in given.about_scores),
            about_scores=given.about_scores,
            files=files,
            asked=given.asked,
        )


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


def _single(source: Any) -> Any:
    """Return the only file of a list with one; other lists as they are.

    Raises:
        ArchiveError: A file is given twice, or is a text.
    """
    if isinstance(source, (str, Path)):
        refuse_texts([source])
    if not are_paths(source):
        return source
    refuse_texts(source)
    # One file may be named in several ways.
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


def _without(bad: BadRecords, found: BadRecords, source: Path | list[object] | Records) -> Records:
    """Return records without bad ones, or without their responses; others are noted.

    What is not even an object is noted while these records are read, and not those of references.
    """

    def readable() -> Iterator[Record]:
        records = read_records(source)
        while True:
            # Around each record alone: the caller would share a context that stays over a yield.
            with finding(found, unreadable=True):
                record = next(records, None)
            if record is None:
                return
            if (values := bad.repaired(record.position, record.values)) is not None:
                yield record._replace(values=values)

    return Records(readable, name_of(source))
