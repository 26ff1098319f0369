"""An archive reader: the keys that identify a layout, and how its records are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, TypeAlias

from ...errors import ArchiveError, HallujudgeError
from ..records import Record

Convert: TypeAlias = "Callable[[Iterator[Record]], Iterator[Record]]"
"""Turns the raw records of an archive into records with the common keys."""

NAME_A_METRIC = "name a metric that scores its answers, and give its references with references=…"
"""What to do with responses whose benchmark the layout does not name."""
# Tools nest responses by request and by repeat; deeper lists are not responses.
_MAX_NESTING = 8
# Python's text of a list of one word.
_LISTED = re.compile(r"""\[(?P<quote>['"])(?P<only>\w+)(?P=quote)\]""")


def _any_values(_values: Mapping[str, object]) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReader:
    """Reads one layout of files, which it recognises by the keys of the first record.

    A reader of your own is registered by an entry point of the group
    ``hallujudge.archive_readers`` and is tried before the built-in ones.
    """

    name: str
    """Name of the layout with its article, for messages: ``an lmms-eval sample file``."""
    keys: tuple[str, ...]
    """Keys that every record has."""
    matches: Callable[[Mapping[str, object]], bool] = _any_values
    """Further test of the first record's values, where keys alone do not decide."""
    shape: str = ""
    """What ``matches`` looks for, in the words of an inspection: ``every value is one letter``."""
    metrics: tuple[str, ...] = ()
    """Metrics that score the layout, the usual one first; empty if none does."""
    any_metric: bool = False
    """Whether any metric may read the layout, such as a tool's general log of answers."""
    only_labels: bool = False
    """Whether only the labels identify the metric, so that other benchmarks share the layout."""
    role: str = "responses"
    """Role of the file: ``responses``, ``references`` or ``companion``, which repeats another."""
    table: str = ""
    """Of a companion: the option of a metric's archives that takes it, such as ``reviews``."""
    also_references: bool = False
    """Whether a file of responses in this layout may be given as references too."""
    convert: Convert | None = None
    """Yields records with the common keys ``id``, ``response``, ``label``, ``question``,
    ``image``, ``category``, ``reference_objects``, …; None if the metric reads them as they are."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Common key -> key of the layout, for inspection, where ``convert`` is None; an empty ``id``
    means that no single key is the id."""
    arguments: str = ""
    """Options that the command needs in addition to ``--responses``."""
    variant: str = ""
    """The metric's variant that the layout needs; empty for the default."""
    allow_missing: bool = False
    """Whether the layout leaves out questions of the benchmark."""
    may_lack_references: bool = False
    """Whether samples without what they are compared with are unscored, as they are in the tool."""
    remedy: str = ""
    """Next step for a file that no metric reads."""
    named_by_task: bool = False
    """Whether the name of a file is that of its task, whose ids other files have too."""
    model_key: str = ""
    """Key, or path into objects, of the model's name; empty if the folder has it."""

    def recognises(self, values: Mapping[str, object]) -> bool:
        """Return whether a record has this layout."""
        # Keys first, so that the functions of readers may rely on them.
        return values.keys() >= set(self.keys) and self.matches(values)

    def converted(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield records with the common keys where the reader converts them.

        Raises:
            ArchiveError: ``convert`` fails, as that of another package may.
        """
        return records if self.convert is None else self._guarded(self.convert, records)

    def _guarded(self, convert: Convert, records: Iterator[Record]) -> Iterator[Record]:
        place = ""

        def placed() -> Iterator[Record]:
            nonlocal place
            for record in records:
                # The last record that the function took, which may take several before it yields
                # one.
                place = record.place
                yield record

        try:
            yield from convert(placed())
        except HallujudgeError:
            raise
        # The function may be that of another package.
        except Exception as err:
            problem = f"{type(err).__name__}: {err}".rstrip(": ")
            raise ArchiveError(
                f"{place}: the archive reader of {self.name} failed ({problem:.200}); correct the "
                "record, or the reader"
            ) from err

    def command(self, path: str, metric: str = "") -> str:
        """Return the command that scores a file of this layout; empty if no metric does."""
        metric = metric or next(iter(self.metrics), "")
        option = "--references" if self.role == "references" else "--responses"
        given = [f"hallujudge score {metric} {option} {quote(path)}", self.arguments]
        given += ["--allow-missing"] if self.allow_missing else []
        given += [f"--variant {self.variant}"] if self.variant else []
        return " ".join(filter(None, given)) if metric else ""


def converting(make: Callable[[Mapping[str, object]], Mapping[str, object]]) -> Convert:
    """Return a conversion that adds common keys to each record by itself.

    Args:
        make: Returns the common keys of a record; those that are None are left out.
    """

    def convert(records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            common = {key: value for key, value in make(record.values).items() if value is not None}
            # In some layouts, response is an object, which must not be taken for the text.
            yield record._replace(values={**record.values, "response": None, **common})

    return convert


def mapping_at(values: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object under a key; an empty one if it is something else."""
    value = values.get(key)
    return value if isinstance(value, Mapping) else {}


def first_text(value: object) -> object:
    """Return the first value of nested lists, such as ``[["Yes"]]``; None if they are empty."""
    for _ in range(_MAX_NESTING):
        if not isinstance(value, (list, tuple)):
            return value
        value = value[0] if value else None
    return None


def yes_or_no(value: object) -> bool:
    """Return whether a label is yes or no, in any case."""
    return isinstance(value, str) and value.strip().casefold() in ("yes", "no")


def readers_by_labels(
    name: str,
    keys: tuple[str, ...],
    label: Callable[[Mapping[str, object]], object],
    convert: Convert,
    **more: Any,
) -> tuple[ArchiveReader, ArchiveReader]:
    """Return two readers of a tool's log of any benchmark: with yes/no labels, and with others.

    Args:
        name: Name of the log, with its article.
        keys: Keys of its records.
        label: Returns the label of a record.
        convert: Adds the common keys.
        more: Further fields of both readers.
    """
    other = ArchiveReader(
        name=name, keys=keys, convert=convert, any_metric=True, remedy=NAME_A_METRIC, **more
    )
    labelled = replace(
        other,
        name=f"{name} with yes/no labels",
        matches=lambda values: other.matches(values) and yes_or_no(label(values)),
        metrics=("pope",),
        only_labels=True,
        remedy="",
    )
    return labelled, other


def only_label(target: object) -> object:
    """Return a target, or the only one of a list, which logs also hold as text: ``['yes']``."""
    if isinstance(target, (list, tuple)) and len(target) == 1:
        return target[0]
    listed = _LISTED.fullmatch(target.strip()) if isinstance(target, str) else None
    return target if listed is None else listed["only"]
