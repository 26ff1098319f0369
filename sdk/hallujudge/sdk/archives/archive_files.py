"""One file of an archive: its format, the reader that recognises it, and its records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..errors import ArchiveError
from .formats import Content, read_format
from .found_files import FoundFile, with_given_name
from .json_files import read_values
from .layouts import ArchiveReader, recognised
from .records import Record, Records, read_records

__all__ = ["ArchiveFile", "first_values", "open_file", "value_at"]

# VLMEvalKit puts each run into a folder such as T20260102-030405 or T20260102_Gabcdef.
_RUN_FOLDER = re.compile(r"T\d{8}([-_]\w+)*")
# lmms-eval: 20260102_030405_samples_pope.jsonl; before 0.2.4: samples_pope_20260102.jsonl.
# lmms-eval until 0.2.3: DATE_TIME_MODEL_model_args_HASH.
_OLD_FOLDER = re.compile(r"\d{4}_\d{4}_(?P<model>.+)_model_args_[0-9a-f]+")
_PLACE = re.compile(r"-?\d{1,9}", re.ASCII)
_SAMPLES = re.compile(r"(?:^|_)samples_(?P<task>.+?)(?:_\d{4}[-_T\d.]*)?$")
# Inspect AI: 2026-01-02T03-04-05+00-00_TASK_ID.eval, or .json.
_LOG = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+(?:[+-][\d-]+|Z)?_(?P<task>.+)_\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFile:
    """A file whose layout is known, or is plain records."""

    file: FoundFile
    """The file."""
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
        """Name of the model: from the records, or from the folder; empty if neither tells."""
        key = "" if self.reader is None else self.reader.model_key
        named = value_at(self.first, key) if key else None
        return named if isinstance(named, str) and named else self._folder()

    @property
    def task(self) -> str:
        """Name of the task in the name of a tool's log, such as ``pope_adv``."""
        stem = re.split(r"\.(?:json|eval)", self.file.path.name)[0]
        match = _LOG.fullmatch(stem) or _SAMPLES.search(stem)
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


def open_file(file: FoundFile) -> ArchiveFile:
    """Return a file with its format and reader.

    Raises:
        ArchiveError: The file can't be read.
        MissingExtraError: A package for its format is not installed.
    """
    with with_given_name(file):
        content = read_format(file.path)
        candidates = list(first_values(content.source))
    found = next(((values, r) for values in candidates if (r := recognised(values))), None)
    values, reader = found or (candidates[-1] if candidates else {}, None)
    return ArchiveFile(file=file, content=content, reader=reader, first=values)


def first_values(source: Path | Records | list[Record]) -> Iterator[Mapping[str, object]]:
    """Yield the first whole value of a file, and the first record, which it may hold."""
    if isinstance(source, Path):
        try:
            whole = next(islice(read_values(source), 1), None)
        except ArchiveError:
            # Mementos' keyword files are plain texts.
            if source.suffix.lower() == ".txt":
                return
            raise
        if whole and isinstance(whole.value, Mapping):
            yield whole.value
        if whole and not isinstance(whole.value, Mapping):
            return
    if (first := next(iter(read_records(source)), None)) is not None:
        yield first.values


def value_at(values: Mapping[str, object], path: str) -> object:
    """Return the value of a key, or at the end of a path such as ``doc.answer`` or ``resps.0``.

    ``messages.-1`` is the last one of a list.
    """
    if path in values:
        return values[path]
    value: object = values
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)) and _PLACE.fullmatch(part):
            place = int(part)
            value = value[place] if -len(value) <= place < len(value) else None
        else:
            return None
    return value
