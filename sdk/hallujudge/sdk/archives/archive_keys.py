"""Keys of an archive: those that users name, others that may be meant instead, and thoughts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from msgspec import structs

from hallujudge.metrics.answers.answer_text import folded
from hallujudge.metrics.answers.closed_questions import Answer, ClosedQuestions
from hallujudge.metrics.errors import choose_from, meant
from hallujudge.metrics.responses import THOUGHT_KEYS, answer_of, thought_in
from hallujudge.metrics.responses.thoughts import with_thought

from ..errors import ArchiveError, InvalidInputError
from .archive_files import first_values
from .inputs import InputOptions, ItemSource, References, Responses, are_paths
from .json_files import named, shown
from .local_files import open_binary
from .question_files import label_of
from .record_values import value_at
from .records import Record, Records, changed, read_records

LOOKED_AT = 100
"""Records that are searched for signs of a fault, or for the keys that an error lists."""
Held: TypeAlias = "tuple[str, Mapping[str, object]]"
"""Place of a record, and its values."""
Pairs: TypeAlias = "list[tuple[Held, Answer]]"
"""Some records, each with the answer made of it."""
Source: TypeAlias = "Responses | References"
_RESPONSE_KEYS = ("response", "caption", "text", "answer", "output", "prediction", "description")
# An archive has thoughts if one of the first records has.
_THOUGHTS_LOOKED_AT = 200
_BYTES_LOOKED_AT = 1 << 20
_THOUGHT_MARKS = tuple(f'"{key}"'.encode() for key in THOUGHT_KEYS)
# Records of records, such as the answers of a pair.
_MOST_DEEP = 3


# Named keys ---------------------------------------------------------------------------------------


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
    _refuse_unknown_keys(metric, options.key_map, {*read, *groups, "id", "response"})


def _refuse_unknown_keys(metric: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
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
    _refuse_unknown_keys(declared.name, keys, places)
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
        for record in islice(read_records(archive), LOOKED_AT):
            yield from key_paths(record.values)
    except ArchiveError:
        # Some layouts of references have no records.
        return


# Rival keys ---------------------------------------------------------------------------------------


def refuse_other_values(
    name: str,
    chosen: str,
    keys: Iterable[str],
    held: Sequence[Held],
    meaning: Callable[[int, object], object],
) -> None:
    """Refuse records that have other values for the same thing under another usual key.

    Args:
        name: Common name of the thing, such as ``response``.
        chosen: The key that is read.
        keys: The usual keys.
        held: Some records.
        meaning: Returns what a value of the record with a number means; None for another thing.

    Raises:
        ArchiveError: There is such a key.
    """
    for key in keys:
        places = [n for n, (_, values) in enumerate(held) if key != chosen and key in values]
        found = [
            (n, meaning(n, held[n][1].get(chosen)), meaning(n, held[n][1][key])) for n in places
        ]
        known = [each for each in found if each[2] is not None]
        differing = [n for n, ours, other in known if ours is not None and ours != other]
        # Where most values mean nothing, the key is that of something else.
        if not differing or 2 * len(known) <= len(places):
            continue
        place, values = held[differing[0]]
        shown_values = f"{shown(values[chosen])} and {shown(values[key])}"
        raise ArchiveError(
            f"{place}: {chosen!r} and {key!r} differ, and each may be the {name}: {shown_values}. "
            f"Name the right one with InputOptions(key_map=…): {name}={chosen}, or {name}={key}"
        )


def refuse_other_texts(
    source: Iterable[Record], chosen: str | None, keys: Iterable[str], options: InputOptions
) -> None:
    """Refuse records with other texts than the response under another usual key of responses.

    Questions, and prompts that all records share, are no responses.

    Args:
        source: The records.
        chosen: The key of the response; None without.
        keys: The usual keys.
        options: How the archive is read; nothing is refused if they name the key.

    Raises:
        ArchiveError: There is such a key.
    """
    if chosen is None or options.text_key is not None or "response" in options.key_map:
        return
    held = [(record.place, record.values) for record in islice(source, LOOKED_AT)]
    texts = {key: {folded(str(values.get(key))) for _, values in held} for key in keys}

    def meaning(_number: int, value: object) -> object:
        if not isinstance(value, str) or asks(value):
            return None
        return folded(answer_of(value)) or None

    own = [key for key, each in texts.items() if len(each) > 1 or len(held) == 1]
    refuse_other_values("response", chosen, own, held, meaning)


def asks(text: str | None) -> bool:
    """Return whether a text is a question; a lone question mark is not one.

    Instructions may follow it, as in LLaVA's files.
    """
    if text is None or "?" not in text:
        return False
    # A model may ask itself questions before it answers.
    text = answer_of(text)
    if "?" not in text or len(text.split(None, 2)) <= 2:
        return False
    if text.rstrip().endswith("?"):
        return True
    first = text.partition("?")[0].strip()
    return " " in first and not set(first) & set(".!\n")


def refuse_other_keys(
    declared: ClosedQuestions,
    chosen: tuple[str, str],
    pairs: Pairs,
    options: InputOptions,
) -> None:
    """Refuse answers that are others, or have another label, under another usual key.

    Args:
        declared: The benchmark.
        chosen: The keys of response and label.
        pairs: Some records, each with the answer made of it.
        options: How the archive is read; nothing is refused under a key that they name.

    Raises:
        ArchiveError: There are such answers.
    """
    held, keys, parse = [each for each, _ in pairs], declared.keys, declared.variants[-1].parse
    # Where each answer is judged, parsers look at verdicts.
    is_open = declared.judged is not None and not declared.partial

    def said(number: int, text: object) -> object:
        if not isinstance(text, str) or asks(text):
            return None
        text = answer_of(text)
        return (
            folded(text)
            if is_open
            else parse(structs.replace(pairs[number][1], response=text)).value
        )

    def is_label(key: str) -> bool:
        found = [(n, v[key]) for n, (_, v) in enumerate(held) if key in v]
        same = (said(n, value) == said(n, pairs[n][1].label) for n, value in found)
        return bool(keys.label) and all(same)

    named_keys = options.key_map
    if options.text_key is None and "response" not in named_keys:
        # A usual key of responses, such as answer, may hold the label instead.
        others = [key for key in keys.response if key != chosen[1] and not is_label(key)]
        refuse_other_values("response", chosen[0], others, held, said)
    if chosen[1] and "label" not in named_keys:
        labels = [key for key in keys.label if key not in keys.response]
        refuse_other_values(
            "label", chosen[1], labels, held, lambda _, value: label_of(declared, value)
        )


# Thoughts -----------------------------------------------------------------------------------------


def with_own_thoughts(
    source: Source, declared: ClosedQuestions | None, options: InputOptions
) -> Source:
    """Return responses with the thoughts that their records hold under keys of their own.

    Args:
        source: The responses.
        declared: The benchmark; None for a metric without a declaration.
        options: How the archive is read.
    """
    path = options.key_map.get("response", "")
    usual = _RESPONSE_KEYS if declared is None else declared.keys.response
    named = (options.text_key,) if options.text_key else ()
    keys = (*named, *([] if options.text_key else usual), *_RESPONSE_KEYS[:1])
    thoughts = _Thoughts(keys, path.rpartition(".")[0])
    return thoughts.joined(source) if thoughts.are_in(source) else source


class _Thoughts:
    """Joins the thoughts of records with their responses.

    Args:
        keys: Keys of the response, the usual one first.
        folder: The path of the object that holds the response; empty for the record itself.
    """

    def __init__(self, keys: Sequence[str], folder: str) -> None:
        self._keys = keys
        self._folder = folder

    def are_in(self, source: Source) -> bool:
        """Return whether one of the first records has a thought."""
        if isinstance(source, Path):
            if source.is_dir():
                return False
            with open_binary(source) as file:
                start = file.read(_BYTES_LOOKED_AT)
            if not any(key in start for key in _THOUGHT_MARKS):
                return False
        elif are_paths(source) or (
            isinstance(source, Mapping)
            and not any(isinstance(value, (Mapping, list)) for value in source.values())
        ):
            return False
        first = islice(read_records(source), _THOUGHTS_LOOKED_AT)
        return any(self._joined(record.values) is not record.values for record in first)

    def joined(self, source: Source) -> Source:
        """Return the source with the thoughts of its records."""
        if isinstance(source, Mapping):
            return {
                key: self._joined(value) if isinstance(value, Mapping) else value
                for key, value in source.items()
            }
        return changed(source, self._joined)

    def _joined(self, values: Mapping[str, object], deep: int = 0) -> Mapping[str, object]:
        """Return a record with its thought before the response; the record itself without one."""
        held = value_at(values, self._folder) if self._folder else values
        found = thought_in(held) if isinstance(held, Mapping) else None
        key = next((key for key in self._keys if key in values), None)
        if found is not None and key is not None:
            return self._with_thought(values, key, *found)
        if deep == _MOST_DEEP:
            return values
        changed = {
            name: inner
            for name, value in values.items()
            if (inner := self._within(value, deep + 1)) is not value
        }
        return {**values, **changed} if changed else values

    def _within(self, value: object, deep: int) -> object:
        if isinstance(value, Mapping):
            return self._joined(value, deep)
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            parts = [self._joined(one, deep) for one in value]
            return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
        return value

    def _with_thought(
        self, values: Mapping[str, object], key: str, name: str, thought: str
    ) -> Mapping[str, object]:
        answer = values[key]
        # pandas has NaN for an empty cell.
        answer = None if answer != answer else answer
        # Some tools have put the thought into the response already.
        if not (answer is None or isinstance(answer, str)) or (answer and thought in answer):
            return values
        return {**values, key: with_thought(thought, answer, name)}
