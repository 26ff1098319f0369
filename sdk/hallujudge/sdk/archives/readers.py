"""Entry point of the archive readers: files, mappings or records to items of a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from hallujudge.metrics.families import FAMILIES

from ..errors import ArchiveError, UnsupportedError
from .groups import group_notes
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .layouts import explained
from .local_files import STDIN, copy_of_stdin
from .tables import is_table, read_frame, read_table

__all__ = ["read_items"]


def _reader(metric: str) -> Reader | None:
    """Return the archive reader of a metric; None if it has none."""
    for family in FAMILIES:
        readers: Mapping[str, Reader] = import_module(f".{family}", __package__).READERS
        if metric in readers:
            return readers[metric]
    return None


def read_items(
    metric: str,
    responses: Responses,
    references: References | None,
    *,
    options: InputOptions | None = None,
    group_by: tuple[str, ...] = (),
    metric_groups: tuple[str, ...] = (),
) -> ItemSource:
    """Return the items of a metric after checking the whole archive.

    The archive is read once before anything is scored, so that an error in its last line costs no
    judge call. JSON files need eight bytes of memory for each id; tables are held in memory.

    Args:
        metric: The metric's name.
        responses: A file (JSON, JSON lines, CSV, TSV or XLSX, with or without gzip; ``-`` for
            standard input), a mapping id -> text, a DataFrame, or any iterable of records.
        references: The same for references; None where responses carry them.
        options: How archives are read and joined.
        group_by: Keys whose values the items carry as fields; paths such as ``doc.category``
            lead into objects.
        metric_groups: Keys of the metric itself, which items may lack.

    Raises:
        ArchiveError: A file can't be read, ids are missing or duplicate, or ids don't join; each
            is named.
        InvalidInputError: No item has one of the keys to group by.
        UnsupportedError: The SDK has no archive reader for the metric.
    """
    reader = _reader(metric)
    if reader is None:
        raise UnsupportedError(f"there is no archive reader for metric {metric!r} yet")
    references = _single(references)
    if _is_stdin(responses) and _is_stdin(references):
        raise ArchiveError("both responses and references are standard input; give one as a file")
    given, notes = _opened(responses, "responses")
    assert given is not None, "only references may be None"
    known, more = _opened(references, "references")
    try:
        keys = tuple(dict.fromkeys((*metric_groups, *group_by)))
        source = reader(given, known, options or InputOptions(), keys)
    except ArchiveError as err:
        raise explained(err, metric, given, known) from err
    groups = group_notes(source, group_by, (given, known))
    return replace(source, notes=(*notes, *more, *source.notes, *groups))


def _single(references: References | None) -> References | None:
    """Return the only file of a list with one file; other values as they are."""
    if isinstance(references, list) and len(references) == 1:
        [only] = references
        return only if isinstance(only, (str, Path)) else references
    return references


def _is_stdin(source: object) -> bool:
    return isinstance(source, (str, Path)) and str(source) == STDIN


def _opened(
    source: Responses | References | None, name: str
) -> tuple[Responses | References | None, tuple[str, ...]]:
    """Return an archive that can be read twice, and notes on its oddities."""
    if isinstance(source, (str, Path)):
        path = copy_of_stdin() if _is_stdin(source) else Path(source)
        return read_table(path) if is_table(path) else (path, ())
    if source is None or isinstance(source, Mapping):
        return source, ()
    if (rows := read_frame(source, name)) is not None:
        return rows, ()
    return list(source), ()
