"""Readers of files of labels: JSON lines, CSV, the HTML page's export, HAT's marked words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ..archives.formats import read_format
from ..archives.records import Record, canonical_id, named, read_records, shown
from ..errors import ArchiveError
from ..verdicts import DecidedItem
from .values import Label

__all__ = ["FoundLabels", "find_labels", "read_labels"]

_WORDS: Mapping[str, bool | None] = {
    "supported": False,
    "not_supported": True,
    "hallucinated": True,
    "unsure": None,
}
_ANSWERS = ("agree", "disagree")
_VERDICTS: Mapping[str, bool | None] = {
    "supported": False,
    "not_supported": True,
    "unscored": None,
}
# Equal to 0 and 1, which some tools write instead.
_MARKS = (True, False)
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class _Items:
    """Items of a run, for marked words that name them in another way."""

    ids: frozenset[str]
    by_response: Mapping[str, Sequence[DecidedItem]]

    @classmethod
    def of(cls, items: Iterable[DecidedItem]) -> _Items:
        ids, by_response = set(), defaultdict(list)
        for item in items:
            ids.add(item.id)
            # A run may not keep its responses.
            if item.response:
                by_response[item.response].append(item)
        return cls(frozenset(ids), by_response)

    def named(self, identifier: str, response: str, image: str) -> str:
        """Return the id of the item with an id, or with a response, if this is one item."""
        if identifier in self.ids:
            return identifier
        same = self.by_response.get(response, ())
        if len(same) > 1:
            same = [item for item in same if item.cluster == image]
        return same[0].id if len(same) == 1 else identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLabels:
    """The labels of files."""

    labels: tuple[Label, ...]
    """The labels; of those with one key the last."""
    blank: int
    """Number of rows of sheets that are not filled in."""
    changed: int
    """Number of labels that another one replaced and contradicts."""

    @property
    def changed_note(self) -> str:
        """Return a warning about labels that were replaced; empty if there are none."""
        if not self.changed:
            return ""
        return (
            f"{self.changed:,} labels contradict an earlier one of the same annotator and replace "
            "it; if they are of several people, name them in the column annotator."
        )


def read_labels(*paths: str | Path, items: Iterable[DecidedItem] = ()) -> list[Label]:
    """Return the labels of files; see :func:`find_labels`."""
    return list(find_labels(*paths, items=items).labels)


def find_labels(*paths: str | Path, items: Iterable[DecidedItem] = ()) -> FoundLabels:
    """Return the labels of files, and what became of the others.

    A file of JSON lines or a table has the keys ``item`` and ``label``, and ``claim``, ``start``,
    ``end``, ``text``, ``annotator`` where they are known. A label is ``supported``,
    ``not_supported`` (or ``hallucinated``) or ``unsure``; a row whose label is blank has none. The
    HTML page's ``agree`` and ``disagree`` need its ``verdict``. Records with ``words``, pairs of a
    word and whether it is hallucinated, label the words and the whole item, as in HAT (Petryk et
    al., ALOHa, 2024).

    Args:
        paths: The files; a later label of one annotator replaces an earlier one.
        items: Items of the run. Records with marked words whose id is not that of an item label
            the item with the same response.

    Raises:
        ArchiveError: A file can't be read, a record is not a label, or there is no label.
    """
    found: dict[tuple[object, ...], Label] = {}
    known = _Items.of(items)
    blank = changed = 0
    for path in paths:
        for record in read_records(read_format(Path(path)).source):
            blank += (given := _labels(record, known)) is None
            for label in given or ():
                earlier = found.get(label.key)
                changed += earlier is not None and earlier.hallucinated != label.hallucinated
                found[label.key] = label
            if len(found) > _MOST:
                raise ArchiveError(f"{path}: more than {_MOST:,} labels; give fewer files")
    if not found:
        names = ", ".join(map(str, paths))
        raise ArchiveError(f"{names}: no label in {blank:,} rows; fill in the column 'label'")
    return FoundLabels(labels=tuple(found.values()), blank=blank, changed=changed)


def _labels(record: Record, known: _Items) -> Iterable[Label] | None:
    """Return the labels of a record; None if it is a row of a sheet that is not filled in."""
    if "words" in record.values:
        return _marked(record, known)
    if "label" in record.values and str(record.values["label"] or "").strip() == "":
        return None
    return (_label(record),)


def _label(record: Record) -> Label:
    values = record.values
    missing = [key for key in ("item", "label") if values.get(key) in (None, "")]
    if missing:
        raise ArchiveError(
            f"{record.place}: no {missing[0]!r}, found {named(sorted(values))}; a label has item, "
            "label, and claim, start, end, text and annotator where they are known"
        )
    return Label(
        item=canonical_id(values["item"], record.place),
        hallucinated=_truth(record),
        claim=_number(record, "claim"),
        span=_span(record),
        text=_text(record, "text"),
        annotator=_text(record, "annotator"),
        signature=_text(record, "signature"),
        run=_text(record, "run"),
    )


def _truth(record: Record) -> bool | None:
    """Return whether the claim is hallucinated, from a verdict if the label is about that."""
    label = str(record.values["label"]).strip().lower().replace(" ", "_").replace("-", "_")
    if label in _WORDS:
        return _WORDS[label]
    if label not in _ANSWERS:
        raise ArchiveError(
            f"{record.place}: the label {shown(record.values['label'])} is unknown; use "
            f"{', '.join((*_WORDS, *_ANSWERS))}"
        )
    verdict = str(record.values.get("verdict", ""))
    if verdict not in _VERDICTS:
        raise ArchiveError(
            f"{record.place}: {label!r} needs the verdict it is about; 'verdict' is "
            f"{shown(record.values.get('verdict'))}, use {', '.join(_VERDICTS)}"
        )
    said = _VERDICTS[verdict]
    return None if said is None else said == (label == "agree")


def _number(record: Record, key: str) -> int | None:
    value = record.values.get(key)
    if value is None or value == "":
        return None
    try:
        # A column of numbers with an empty cell becomes one of floats in many tools.
        number = int(str(value).removesuffix(".0"))
    except ValueError:
        number = -1
    if number < 0:
        raise ArchiveError(
            f"{record.place}: {key} is {shown(value)}; give a whole number from 0 on"
        )
    return number


def _span(record: Record) -> tuple[int, int] | None:
    start, end = _number(record, "start"), _number(record, "end")
    if start is None and end is None:
        return None
    if start is None or end is None or end <= start:
        raise ArchiveError(
            f"{record.place}: 'start' is {shown(start)} and 'end' is {shown(end)}; give start "
            "and a larger end"
        )
    return start, end


def _text(record: Record, key: str) -> str:
    value = record.values.get(key)
    return "" if value is None else str(value)


def _marked(record: Record, known: _Items) -> Iterator[Label]:
    """Yield a label of each word, and one of the whole response."""
    values = record.values
    words, response = values["words"], values.get("caption", values.get("response"))
    identifier = values.get("item", values.get("id"))
    if not isinstance(words, list) or not all(map(_is_marked, words)):
        raise ArchiveError(
            f"{record.place}: words is {shown(words)}; give pairs of a word and true or false"
        )
    text = response if isinstance(response, str) else " ".join(word for word, _ in words)
    item = canonical_id(identifier, record.place)
    item, annotator = known.named(item, text, _text(record, "image_id")), _text(record, "annotator")
    for (word, marked), span in zip(words, _places(record, words, text), strict=True):
        yield Label(item=item, hallucinated=bool(marked), span=span, text=word, annotator=annotator)
    whole = values.get("contains_hallucination", any(marked for _, marked in words))
    if whole not in _MARKS:
        raise ArchiveError(
            f"{record.place}: contains_hallucination is {shown(whole)}; give true or false"
        )
    yield Label(item=item, hallucinated=bool(whole), annotator=annotator)


def _is_marked(pair: object) -> bool:
    """Return whether a value is a word and whether it is hallucinated; the text "false" is not."""
    return (
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[1] in _MARKS
    )


def _places(record: Record, words: list[list[str]], text: str) -> list[tuple[int, int]]:
    """Return where words are in a response, one after the other."""
    ends = [0]
    starts = []
    for word, _ in words:
        start = text.find(word, ends[-1])
        if start < 0:
            raise ArchiveError(f"{record.place}: the word {word!r:.60} is not in the response")
        starts.append(start)
        ends.append(start + len(word))
    assert all(one <= other for one, other in pairwise(ends)), "searched from left to right"
    return list(zip(starts, ends[1:], strict=True))
