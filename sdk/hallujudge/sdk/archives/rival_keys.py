"""Keys that may be meant in place of the chosen one: other texts or labels in the same records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, product
from typing import TypeAlias

from msgspec import structs

from hallujudge.metrics.answers.answer_text import folded
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
from hallujudge.metrics.responses.reader import answer_of

from ..errors import ArchiveError
from .answer_records import Entry
from .inputs import InputOptions
from .json_files import shown
from .question_files import label_of
from .records import Record

LOOKED_AT = 100
"""Records that are searched for signs of a fault before an archive is scored."""
Held: TypeAlias = "tuple[str, Mapping[str, object]]"
"""Place of a record, and its values."""
Pairs: TypeAlias = "list[tuple[Held, Answer]]"
"""Some records, each with the answer made of it."""


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


def entries_with_answers(
    gathered: Iterable[Sequence[Entry]], items: Iterable[AnswersItem]
) -> Pairs:
    """Return the first records of bundles, each with the answer made of it."""
    bundles = islice(zip(gathered, items, strict=True), LOOKED_AT)
    return [
        ((entry.place, entry.values), answer)
        for entries, item in bundles
        for entry, answer in product(entries, item.answers)
        if entry.name == answer.name and not entry.empty
    ]


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
