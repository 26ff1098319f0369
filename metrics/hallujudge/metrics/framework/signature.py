"""Signatures: short strings that state exactly how a score was computed, and from which data.

Which items a score is over, and what their references say, are sums modulo 2^128 of hashes of
canonical records. Sums do not depend on the order of items, and add up over shards and workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from .results import ItemResult

ITEM_SET, REFERENCES = "items", "refs"
"""The fields that say what was scored: which items, and with which references."""

PROMPTS, ASKED = "prompts", "asked"
THOUGHTS, TEMPLATE = "thoughts", "template"
"""The fields that say what was left out of the responses; only archives that have it have them."""
OF_ARCHIVE = frozenset({PROMPTS, ASKED, THOUGHTS, TEMPLATE})
"""The fields that only some archives have: how the answering model was asked, and how it writes."""

LABELS = "labels"
"""The field of the human labels that correct the scores of a calibrated run."""

OF_ITEMS = frozenset({"ci", "n", "unscored", ITEM_SET, REFERENCES})
"""The fields that say nothing about how items were scored. Intervals can be made again."""

OF_EVERY_RUN = frozenset({*OF_ITEMS, "v", LABELS, "calibrated"})
"""The fields that numbers of every metric have, those of scores corrected by labels included."""

SIGNATURE_FIELDS: Mapping[str, str] = {
    "var": "variant",
    "decl": "hash of the declaration of a benchmark from outside",
    "match": "object matcher",
    "graph": "synonym graph",
    "count": "what chair_i counts",
    "threshold": "doubt above which an object is hallucinated",
    "objects": "synonym graph of objects",
    "behaviors": "synonym graph of behaviours",
    "domain": "domain whose graphs are used; items: the domain of each item",
    "nouns": "source of a description's nouns",
    "words": "comparison of words",
    "extract": "extractor",
    "avg": "average over sequences",
    "unparsed": "outcome of unparsed answers",
    "mode": "mode of the questions",
    "tentative": "tentative claims",
    "judgements": "source of judgements",
    "ratings": "source of ratings",
    "verdicts": "source of verdicts on lines",
    "encoder": "encoder of places",
    "correctness": "source of correctness",
    "soft": "probabilities in place of verdicts",
    "shown": "pictures that the judge is shown: frames of videos",
    "judge": "judge: model, prompt, settings and report card",
    PROMPTS: "hashes of the prompts that the answering model was given",
    ASKED: "how the answering model was asked: chat, protocol, frames, parameters, longest reply",
    "panel": "judges whose verdicts were combined, and the rule that combined them",
    "responses": "handling of empty and failed responses",
    THOUGHTS: "thoughts of the responses: left out, kept or scored",
    TEMPLATE: "tokens of chat templates and repeated prompts in responses",
    "ci": "method and confidence level of intervals",
    "n": "number of items",
    "unscored": "number of unscored items",
    ITEM_SET: "hash of the item set: ids, images or videos, and questions",
    REFERENCES: "hash of the references of these items",
    "v": "release",
    LABELS: "hash of the human labels that correct the scores",
    "calibrated": "method of the correction, and number of labels",
}
"""Field -> what it states, in the order in which signatures print them. A field that a run does not
use is absent."""

declarations: dict[str, str] = {}
"""Metric -> hash of the user's file or module that declares it; our own metrics have none."""
folders: dict[str, Path] = {}
"""Such a metric -> the folder of that module, where the file of its paper may be."""
CARD_MARK = ",card="
"""What comes before the hash of a judge's report card, at the end of the judge's field."""

MASKED = "masked"
"""The judge's parameter that says whether a constraint is sent, so that its log-probabilities may
be those after the mask: probabilities among the choices."""

_LOGPROBS = "top_logprobs="

CARD_NOTE = "The report card"
"""How the note with a card's main figures begins."""

_MASKED_VALUE = re.compile(rf",(?:\w+\.)*{MASKED}=(?:yes|no)")
# What a judge's field says of the server behind its model, such as " (vllm 0.32.0)".
_SERVER = re.compile(r" \([^()|]+\)")
_SUM_BYTES = 16
_NOTHING_HASHED = blake2b(digest_size=_SUM_BYTES)
_MODULUS = 1 << 8 * _SUM_BYTES
# Signatures show so many hexadecimal digits of a sum; report.json has all 32.
_SHOWN_DIGITS = 8
# Only of these: a name such as "COCO_val.v2" has no extension.
_EXTENSIONS = frozenset(
    ["jpg", "jpeg", "png", "webp", "bmp", "gif", "mp4", "avi", "mkv", "mov", "webm"]
)


def media_name(path: str) -> str:
    """Return the name of an image or video without folder and extension, which logs may lack."""
    name = path.rpartition("/")[2]
    stem, _, extension = name.rpartition(".")
    return stem if extension.lower() in _EXTENSIONS else name


class DataSums:
    """Sums of the hashes of items and of their references, in any order and number of parts.

    An item's record is its id, its image or video, and the hash of its question. Its reference's
    record is its id and the hash of the reference. Items of a run without hashes make both unknown.
    """

    __slots__ = ("_items", "_references", "_unknown")

    def __init__(self, items: int = 0, references: int = 0, unknown: int = 0) -> None:
        self._items, self._references, self._unknown = items, references, unknown

    def add(self, results: Iterable[ItemResult]) -> None:
        """Add items, scored and unscored ones."""
        items: list[str] = []
        references: list[str] = []
        last = group = ""
        for result in results:
            # One item without makes the whole sum unknown, which `texts` says.
            if not (reference := result.reference_hash):
                self._unknown += 1
                continue
            name, given = result.id, result.group_id
            # Consecutive items are often of one image.
            if given != last:
                last = group = given
                if "." in given or "/" in given:
                    group = media_name(given)
            # Lengths tell apart records whose texts are the same one after another.
            items.append(f"{len(name)},{len(group)},{name}{group}{result.question_hash}")
            # Hashes have one length, so that the end of the id is known without its own.
            references.append(f"{name}{reference}")
        self._items += _sum_of(items)
        self._references += _sum_of(references)

    def merge(self, other: DataSums) -> None:
        """Add the sums of another part."""
        self._items += other._items
        self._references += other._references
        self._unknown += other._unknown

    def to_json(self) -> list[int]:
        """Return what the constructor takes."""
        return [self._items % _MODULUS, self._references % _MODULUS, self._unknown]

    def texts(self) -> tuple[str, str]:
        """Return both sums as 32 hexadecimal digits; empty if they are unknown."""
        if self._unknown:
            return "", ""
        return f"{self._items % _MODULUS:032x}", f"{self._references % _MODULUS:032x}"


def _sum_of(texts: Sequence[str]) -> int:
    """Return the sum of the hashes of texts."""
    try:
        encoded = list(map(str.encode, texts))
    except UnicodeEncodeError:
        # Ids may have half a surrogate pair, which UTF-8 alone can't encode.
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    # A copy is made in half the time of a new one.
    copy, digests = _NOTHING_HASHED.copy, list[bytes]()
    for text in encoded:
        hashed = copy()
        hashed.update(text)
        digests.append(hashed.digest())
    return sum(map(int.from_bytes, digests))


def data_fields(items: str, references: str) -> tuple[tuple[str, str], ...]:
    """Return the first digits of both sums as fields of a signature; none if they are unknown."""
    if not items:
        return ()
    return (ITEM_SET, items[:_SHOWN_DIGITS]), (REFERENCES, references[:_SHOWN_DIGITS])


def signature_value(text: str) -> str:
    """Return a field's value as signatures print it."""
    # A bar or a line end in a value would look like another field.
    return text.replace("|", "/").replace("\n", " ").replace("\r", " ")


def parsed_signature(signature: str) -> dict[str, str]:
    """Return the fields of a printed signature."""
    return dict(part.partition(":")[::2] for part in signature.split("|")[1:])


def differing_fields(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the fields of two signatures that say that items were scored in different ways.

    What only some archives have, such as how the model was asked, counts if both say it.
    """
    return [
        key
        for key in dict.fromkeys((*one, *other))
        if _answers_value(key, one) != _answers_value(key, other)
        and key not in OF_ITEMS
        and (key not in OF_ARCHIVE or (key in one and key in other))
    ]


def _answers_value(key: str, fields: Mapping[str, str]) -> str | None:
    """Return a field's value as far as scores of answers depend on it."""
    value = fields.get(key)
    if value is None:
        return None
    # Scores of thoughts are scores of their own.
    if key == THOUGHTS:
        return value.replace("scored", "left-out")
    # The mask says what margins mean, and changes no verdict.
    return _MASKED_VALUE.sub("", value) if key == "judge" else value


def shown_apart(one: str, other: str, limit: int) -> tuple[str, str]:
    """Return two values for a message; of long ones the part in which they begin to differ.

    Args:
        one: A value, such as that of a field of a signature.
        other: Another one.
        limit: Characters that are shown of each.
    """
    pairs = enumerate(zip(one, other, strict=False))
    differ = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    # Some of what is equal says where in the values this is.
    start = max(differ - limit // 4, 0) if max(len(one), len(other)) > limit else 0
    shown = (f"{'…' if start else ''}{text[start : start + limit]}" for text in (one, other))
    first, second = (
        f"{part}…" if len(text) > start + limit else part
        for part, text in zip(shown, (one, other), strict=True)
    )
    return first, second


def unmarked_judges(judges: Mapping[str, str]) -> list[str]:
    """Return the runs whose judges do not say what their margins are, if others of them do.

    Args:
        judges: Run -> the field of its signature about the judge; empty without one.
    """
    marked = {name for name, judge in judges.items() if _MASKED_VALUE.search(judge)}
    others = [name for name, judge in judges.items() if _LOGPROBS in judge and name not in marked]
    return others if marked else []


def signature_field(signature: str, key: str) -> str:
    """Return the value of a field of a printed signature; empty without the field."""
    return parsed_signature(signature).get(key, "")


def before_items(signature: str) -> str:
    """Return a printed signature without the fields that depend on the items of its run.

    Runs over parts of one archive have this in common, and so has the run that merges them.
    """
    # The interval is the first of the last fields, which all depend on the items.
    fields = signature.partition("|ci:")[0].split("|")
    # Whether a part of the items has thoughts, or tokens of a template, depends on the items too.
    return "|".join(each for each in fields if each.partition(":")[0] not in (THOUGHTS, TEMPLATE))


def judge_of(signature: str) -> str:
    """Return the judge of a run from its printed signature, without the judge's report card."""
    return signature_field(signature, "judge").partition(CARD_MARK)[0]


def same_but_versions(one: str, other: str) -> bool:
    """Return whether two signatures, or names of judges, are equal as far as both are known.

    A judge's server that does not answer in time has no version, and the next life of a server or
    run may learn it. What was not known is no change; another version is.
    """
    if one == other:
        return True
    if _SERVER.sub("", one) != _SERVER.sub("", other):
        return False
    fewer, more = sorted((_SERVER.findall(one), _SERVER.findall(other)), key=len)
    # An iterator, so that versions are found in their order.
    rest = iter(more)
    return len(fewer) < len(more) and all(version in rest for version in fewer)


class Signature(Struct, frozen=True, kw_only=True):
    """Declared fields in a declared order, printed as ``metric|key:value|key:value``.

    Two runs with equal signatures over equal responses have equal numbers. Fields are declared by
    the metric, never read off an object, so that renaming an attribute can't change a signature.
    """

    metric: str
    """Name of the metric or score."""
    fields: tuple[tuple[str, str], ...]
    """Keys and values of everything that the score depends on, except the responses."""

    def extended(self, *fields: tuple[str, str]) -> Signature:
        """Return the signature with more fields appended."""
        return Signature(metric=self.metric, fields=(*self.fields, *fields))

    def __str__(self) -> str:
        text = "|".join([self.metric, *[f"{key}:{value}" for key, value in self.fields]])
        # Nearly all values print as they are, so the whole value is checked first.
        if text.count("|") == len(self.fields) and "\n" not in text and "\r" not in text:
            return text
        parts = [f"{key}:{signature_value(value)}" for key, value in self.fields]
        return "|".join([self.metric, *parts])
