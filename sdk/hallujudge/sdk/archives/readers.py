"""Entry point of the archive readers: files, mappings or records to items of a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from hallujudge.metrics.families import FAMILIES

from ..errors import ArchiveError, UnsupportedError
from .explaining import explained
from .groups import group_notes
from .inputs import CheckedArchive, CheckedReader, InputOptions, ItemSource, References, Responses
from .local_files import STDIN
from .opening import Opened, open_references, open_responses

__all__ = ["read_items", "reads_folder"]


def _family(metric: str) -> ModuleType | None:
    """Return the module of a metric's archive reader; None if it has none."""
    for family in FAMILIES:
        module = import_module(f".{family}", __package__)
        if metric in module.READERS:
            return module
    return None


def reads_folder(path: Path) -> str:
    """Return the metric whose own reader reads a folder as a whole; empty if there is none."""
    for family in FAMILIES:
        module = import_module(f".{family}", __package__)
        if hasattr(module, "reads_folder") and module.reads_folder(path):
            return str(next(iter(module.READERS)))
    return ""


def read_items(
    metric: str,
    responses: Responses,
    references: References | None,
    *,
    options: InputOptions | None = None,
    group_by: tuple[str, ...] = (),
    metric_groups: tuple[str, ...] = (),
    checked: CheckedArchive | None = None,
) -> ItemSource:
    """Return the items of a metric after checking the whole archive.

    The archive is read once before anything is scored, so that an error in its last line costs no
    judge call. JSON files need eight bytes of memory for each id; tables are held in memory.

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
        checked: What is known of the archive if its bytes were checked before; it is then read
            once, from where scoring begins. Readers of other metrics check it again.

    Raises:
        ArchiveError: A file can't be read, ids are missing or duplicate, or ids don't join; each
            is named.
        InvalidInputError: No item has one of the keys to group by.
        UnsupportedError: The SDK has no archive reader for the metric.
    """
    family = _family(metric)
    if family is None:
        raise UnsupportedError(f"there is no archive reader for metric {metric!r} yet")
    references = _single(references)
    if _is_stdin(responses) and _is_stdin(references):
        raise ArchiveError("both responses and references are standard input; give one as a file")
    options = options or InputOptions()
    given = open_responses(
        responses, metric, options, getattr(family, "reads_folder", lambda _path: False)
    )
    known = open_references(references)
    keys = tuple(dict.fromkeys((*metric_groups, *group_by)))
    options = _with_common_keys(options, given, metric, joined=references is not None)
    assert given.source is not None, "only references may be None"
    trusting: Mapping[str, CheckedReader] = getattr(family, "CHECKED_READERS", {})
    if checked is not None and metric in trusting:
        return trusting[metric](given.source, known.source, options, keys, checked)
    try:
        source: ItemSource = family.READERS[metric](given.source, known.source, options, keys)
    except ArchiveError as err:
        raise _renamed(explained(err, metric, given, known), given, known) from err
    groups = group_notes(source, group_by, (given.source, known.source))
    return replace(source, notes=(*given.notes, *known.notes, *source.notes, *groups))


def _with_common_keys(
    options: InputOptions, given: Opened, metric: str, *, joined: bool
) -> InputOptions:
    """Return the options, with the common keys that records have unless the user named some."""
    mapped = options.key_map
    text_key = "response" if given.converted or "response" in mapped else None
    # POPE's question ids appear once in each category of lmms-eval's samples. Question files have
    # no other id, so that a join still goes by question id.
    own_id = given.converted and metric == "pope" and given.reader is not None and not joined
    id_key = "id" if own_id or "id" in mapped else None
    return replace(options, text_key=options.text_key or text_key, id_key=options.id_key or id_key)


def _renamed(err: ArchiveError, *archives: Opened) -> ArchiveError:
    """Return an error with the names that the user gave for temporary copies."""
    message = str(err)
    for archive in archives:
        for path, name in archive.names.items():
            message = message.replace(path, name)
    return ArchiveError(message, metadata=dict(err.metadata))


def _single(references: References | None) -> References | None:
    """Return the only file of a list with one file; other values as they are."""
    if isinstance(references, list) and len(references) == 1:
        [only] = references
        return only if isinstance(only, (str, Path)) else references
    return references


def _is_stdin(source: object) -> bool:
    return isinstance(source, (str, Path)) and str(source) == STDIN
