"""Keys that users name: which ones a metric reads, and records that have their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.errors import choose_from, meant
from hallujudge.metrics.framework.claims import well_formed

from ..errors import ArchiveError, InvalidInputError
from .archive_files import first_values
from .inputs import InputOptions, ItemSource, References, Responses, are_paths
from .json_files import named, shown
from .record_values import value_at
from .records import Records, changed, read_records

Source: TypeAlias = "Responses | References"
# How many records are searched for the keys that an error lists.
_RECORDS_LOOKED_AT = 100
MOST_SHARED = 4096
"""Different fields that are remembered, so that equal ones are one value."""
_NOTHING: Mapping[str, str] = {}


def refuse_unused_keys(
    metric: str, read: Collection[str] | None, options: InputOptions, groups: tuple[str, ...]
) -> None:
    """Refuse a mapped key that the metric's reader does not look up.

    Args:
        metric: The metric.
        read: The keys that it looks up, those of id and response apart; None if unknown.
        options: The options.
        groups: Keys to group by.

    Raises:
        InvalidInputError: There is one.
    """
    if read is None:
        return
    known = {*read, *groups, "id", "response"}
    for name in options.key_map.keys() - known:
        raise InvalidInputError(
            f"{metric} reads no key {name!r}, which InputOptions(key_map=…) names; "
            + choose_from(name, sorted(known))
        )


def mapped_keys(
    declared: ClosedQuestions, keys: Mapping[str, str], group_by: Iterable[str]
) -> dict[str, str]:
    """Return the user's keys under the names that a benchmark's reader looks up first.

    Args:
        declared: The benchmark.
        keys: Common name, or a usual key of the benchmark, -> key of the archive.
        group_by: Keys to group by, which may be mapped too.

    Raises:
        InvalidInputError: A name is not one that the reader looks up.
    """
    own, by_text = declared.keys, declared.joins_by_text
    fields = {} if by_text else own.fields
    more = [*["label"] * bool(own.label), *_split_keys(declared)]
    places = {
        **{key: key for key in (*own.question, *(own.asked if by_text else own.options))},
        **{key: own.media[0] for key in ("image", "video", *own.media) if own.media},
        **{name: names[0] for name, names in fields.items()},
        **{key: names[0] for names in fields.values() for key in names},
        **dict.fromkeys(own.response, "response"),
        **dict.fromkeys(own.label, "label"),
        **({} if declared.bundle.by else dict.fromkeys(("id", *own.id), "id")),
        **{name: name for name in ("response", "question", *more, *group_by, *declared.group_by)},
    }
    for name in keys:
        if name not in places:
            raise InvalidInputError(
                f"{declared.name} reads no key {name!r}, which InputOptions(key_map=…) names; "
                + choose_from(name, sorted(places))
            )
    return {places[name]: key for name, key in keys.items()}


def _split_keys(declared: ClosedQuestions) -> tuple[str, ...]:
    return () if declared.split_files is None else (declared.split_files.field,)


def with_named_keys(
    given: Source, of_given: Mapping[str, str], known: Source | None, keys: Mapping[str, str]
) -> tuple[Source, Source | None, Mapping[str, str]]:
    """Return responses and references with more keys, each a copy of another value of a record.

    Each value is copied in whichever of the two has it, or in both. The last value has the names
    that concern the responses.

    Args:
        given: The responses.
        of_given: Name -> key that their reader does not look up itself.
        known: The references.
        keys: Name -> key, all of them.

    Raises:
        ArchiveError: The first records of both lack a value to copy.
    """
    of_known = _there(first := _first_of(known), keys)
    if of_known and known is not None:
        known = _mapped(known, of_known)
    if not of_given and not of_known:
        return given, known, keys
    record = next(read_records(given), None)
    there = {} if record is None else _there(record.values, keys)
    lacking = [key for name, key in of_given.items() if name not in {*there, *of_known}]
    if record is not None and lacking:
        found = [f"found {named(sorted(each))}" for each in (record.values, first) if each]
        near = meant(lacking[0], {**record.values, **(first or {})})
        raise ArchiveError(
            f"{record.place}: no value for {named(lacking)}, which InputOptions(key_map=…) "
            f"names; {', and in the references '.join(found)}"
            + (f"; did you mean {near!r}?" if near else "")
        )
    if of_given:
        given = _mapped(given, there)
    # The id may have its usual key in one of the two.
    apart = {"id"} & (of_known.keys() - there.keys())
    return given, known, {name: key for name, key in keys.items() if name not in apart}


def fields_of(keys: Iterable[str], *records: Mapping[str, object]) -> dict[str, str]:
    """Return values to group by, each from the first record that has it; empty if none has.

    A list names several groups, which are joined by commas.

    Args:
        keys: Names of keys, or paths such as ``doc.category`` into objects.
        records: The records, in the order of precedence.

    Raises:
        InvalidInputError: A key has an object as its value.
    """
    out = {}
    first = records[0]
    for key in keys:
        # Nearly all values are texts of the first record.
        if type(text := first.get(key)) is str:
            out[key] = well_formed(text)
            continue
        value = None
        for record in records:
            if (value := value_at(record, key)) is not None:
                break
        else:
            out[key] = ""
            continue
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, (Mapping, list)) for part in parts):
            inner = next(iter(parts[0]), "") if isinstance(parts[0], Mapping) else ""
            example = f"{key}.{inner}" if inner else "doc.category"
            raise InvalidInputError(
                f"the key {key!r} to report groups by holds {shown(value)}; name a key of the "
                f"object, such as {example!r:.80}, or another key"
            )
        out[key] = well_formed(",".join(map(str, parts)))
    return out


class SharedFields:
    """Reads values to group by; equal fields of records are one value, of which most are few.

    Args:
        keys: Names of keys, or paths into objects.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        """The keys."""
        self.begun = {*keys, *(key.partition(".")[0] for key in keys)}
        """Where paths begin: a record without any of these keys has blank fields."""
        self.blank: Mapping[str, str] = dict.fromkeys(keys, "")
        """The fields of records without any value."""
        self._known: dict[tuple[str, ...], Mapping[str, str]] = {}

    def of(
        self, values: Mapping[str, object], before: Mapping[str, str] = _NOTHING
    ) -> Mapping[str, str]:
        """Return what :func:`fields_of` does.

        Args:
            values: A record.
            before: Fields that have precedence, unless they are empty.
        """
        filled = {key: value for key, value in before.items() if value}
        records = (filled, values) if filled else (values,)
        found = fields_of(self.keys, *records)
        if len(self._known) == MOST_SHARED:
            self._known.clear()
        return self._known.setdefault(tuple(found.values()), found)


def _first_of(source: Source | None) -> Mapping[str, object]:
    """Return the first record of references; empty without one, and of several files."""
    if source is None or isinstance(source, Mapping) or are_paths(source):
        return {}
    try:
        # A whole file of another form, such as COCO's, is not a record with the user's keys.
        return next(first_values(source), {})
    except ArchiveError:
        # Its reader says what is wrong with it.
        return {}


def _there(values: Mapping[str, object], keys: Mapping[str, str]) -> dict[str, str]:
    return {name: key for name, key in keys.items() if value_at(values, key) is not None}


def _mapped(source: Source, keys: Mapping[str, str]) -> Records:
    return changed(
        source, lambda own: {**own, **{name: value_at(own, key) for name, key in keys.items()}}
    )


def key_paths(values: Mapping[str, object]) -> Iterator[str]:
    """Yield the keys of values, and paths into objects that they hold."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{inner}" for inner in value if isinstance(inner, str))
        elif not isinstance(value, (list, tuple)):
            yield key


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
        there = sorted({key for archive in archives for key in _keys_of(archive)})
        near = meant(wrong[0], there)
        raise InvalidInputError(
            f"no item has the key {wrong[0]!r} to report groups by; "
            f"{f'did you mean {near!r}? The' if near else 'the'} keys are {named(there)}"
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
