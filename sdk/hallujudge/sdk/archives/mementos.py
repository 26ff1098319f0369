"""Descriptions of image sequences, or their keywords, for Mementos."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.metrics.mementos import MementosItem

from ..errors import ArchiveError
from .archive_keys import refuse_other_texts
from .inputs import DeclaredInputs, ItemSource, Reader, ReaderInput, References, Responses, uses
from .joins import JoinCheck, refuse
from .json_files import named
from .layouts.archive_reader import mapping_at
from .local_files import as_path, read_bytes
from .record_fields import fields_of
from .record_values import ID_FLAG, TEXT_FLAG, choose_key, id_under, listed_texts, response_text
from .records import Record, Records, first_record, read_records
from .table_files import decoded

LISTS = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
"""The four lists, in the order of the released files."""
_ID_KEYS = ("image_name", "image", "id", "image_id")
_RESPONSE_KEYS = (
    "description",
    "gt_description",
    "response",
    "prediction",
    "text",
    "output",
    "caption",
    "answer",
)
_REFERENCE_KEYS = ("description", "gt_description", "reference", "text", "caption")
_WHAT = "image sequences"
_REFERENCES_FLAG = "one of these names, or give a file with references=…"


class _Reference(NamedTuple):
    text: str | None
    values: Mapping[str, object]


def read_mementos(given: ReaderInput) -> ItemSource:
    """Return descriptions joined with the human ones, or given keywords.

    Responses are a CSV or JSON file of descriptions; a JSON file of keywords, ``items.jsonl`` of an
    earlier run among them; a folder of released keyword files, or one of them.

    Raises:
        ArchiveError: See :func:`read_items`.
    """
    return _Descriptions(given).checked()


READERS: Mapping[str, Reader] = {"mementos": read_mementos}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "mementos": uses("id_key", "allow_unknown", "allow_duplicates", "allow_missing")
}
"""Metric -> what its reader takes."""


MAPPED_KEYS = frozenset((*LISTS, "reference", "domain", "episode_length"))
"""Keys that may be mapped, those of id and response apart."""


def reference_ids(references: References) -> list[str]:
    """Return the image names of human descriptions, before any response is known."""
    return list(_references(references) or ())


def folder_files(folder: Path) -> tuple[Path, ...]:
    """Return the released keyword files of a folder; other texts, such as notes, are not."""
    return tuple(path for path in _texts(folder) if _has_list(path))


def _texts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() == ".txt")


def _has_list(path: Path) -> bool:
    """Return whether a text has the heading of a keyword list; a truncated file has one too."""
    try:
        with path.open("rb") as file:
            # Only the heading counts here; the reader of the file says what is wrong with it.
            text = file.read(_MAX_KEYWORD_BYTES).decode("utf-8-sig", "replace")
    except (OSError, ArchiveError):
        return False
    return any(map(_LIST_LABEL.match, text.splitlines()))


def _references(references: References | None) -> dict[str, _Reference] | None:
    """Map each image to its human description."""
    if references is None:
        return None
    known: dict[str, _Reference] = {}
    duplicates: list[str] = []
    keys: tuple[str, str] | None = None
    for record in _records_of(references):
        if keys is None:
            keys = (
                choose_key(record, None, _ID_KEYS, "the image name"),
                choose_key(record, None, _REFERENCE_KEYS, "the description"),
            )
        identifier = id_under(record, keys[0], "the image name")
        if identifier in known:
            duplicates.append(identifier)
        text = response_text(record, keys[1])
        known[identifier] = _Reference(text if text and text.strip() else None, record.values)
    if duplicates:
        raise refuse(
            "duplicate image names in the references",
            duplicates,
            "Keep one description of each image",
        )
    if not known:
        raise ArchiveError("the references have no descriptions; give one for each image")
    return known


class _Descriptions:
    """An archive of descriptions or keywords, read once to check and once to score."""

    def __init__(self, given: ReaderInput) -> None:
        options = given.options
        self._known = _references(given.references)
        self._records = _records_of(given.responses)
        self._notes = _other_texts(given.responses)
        self._options = options
        self._group_by = given.group_by
        first = first_record(self._records, given.responses, "response")
        self._id_key = choose_key(first, options.id_key, _ID_KEYS, "the image name", ID_FLAG)
        self._text_key = self._find_text_key(first)
        refuse_other_texts(self._records, self._text_key, _RESPONSE_KEYS, options)
        # Items of an earlier run hold what they were compared with among their evidence.
        whole = {"evidence", "outcome"}.isdisjoint(first.values)
        if self._known is None and whole and not options.allow_unknown:
            keys = ("reference", "reference_objects")
            choose_key(first, None, keys, "the human description", _REFERENCES_FLAG)

    def checked(self) -> ItemSource:
        """Return the items after checking every id."""
        check = JoinCheck(_WHAT, self._options, self._known)
        source = check.items(self._records, self._image, self._item)
        missing = [self._unanswered(image) for image in check.missing()]
        return ItemSource(
            count=len(source) + len(missing),
            make=lambda: chain(source, missing),
            notes=self._notes,
        )

    def _unanswered(self, image: str) -> MementosItem:
        assert self._known is not None, "without references none is missing"
        reference = self._known[image]
        return MementosItem(
            id=image,
            reference=reference.text,
            domain=_domain(reference.values),
            fields=fields_of(self._group_by, reference.values),
        )

    def _image(self, record: Record) -> str:
        return id_under(record, self._id_key, "the image name")

    def _item(self, record: Record, identifier: str) -> MementosItem:
        values, image, given = record.values, self._image(record), _given_keywords(record)
        if given is None and self._text_key is None:
            raise ArchiveError(
                f"{record.place}: neither keywords nor a description; lists are "
                f"{', '.join(LISTS)}, and a description is under {', '.join(_RESPONSE_KEYS)} or "
                "the key that InputOptions(text_key=…) names"
            )
        reference = (self._known or {}).get(image, _Reference(None, {}))
        text = reference.text
        if self._known is None and isinstance(values.get("reference"), str):
            text = well_formed(str(values["reference"]))
        keywords = given or {}
        lists: dict[str, Any] = {name: keywords.get(name) for name in LISTS}
        return MementosItem(
            id=identifier,
            group_id=_group(values) or image,
            response=response_text(record, self._text_key) if self._text_key else None,
            reference=text,
            domain=_domain(values) or _domain(reference.values),
            episode_length=_length(record, reference.values),
            fields=fields_of(
                self._group_by, values, mapping_at(values, "fields"), reference.values
            ),
            **lists,
        )

    def _find_text_key(self, first: Record) -> str | None:
        if self._options.text_key is not None or _given_keywords(first) is None:
            flag = f"{TEXT_FLAG}, or give the four keyword lists"
            wanted = self._options.text_key
            return choose_key(first, wanted, _RESPONSE_KEYS, "the description", flag)
        return next((key for key in _RESPONSE_KEYS if key in first.values), None)


def _records_of(source: Responses | References) -> Iterable[Record]:
    """Return records of any source, which each iteration reads again."""
    if isinstance(source, (str, Path)):
        path = as_path(source)
        if path.is_dir():
            return _keyword_records(path)
        if path.suffix.lower() == ".txt":
            return [_keyword_record(path, 0)]
    return Records(lambda: read_records(source))


def _keyword_records(folder: Path) -> Records:
    """Return a folder of released keyword files, one for each image sequence."""
    if not (paths := folder_files(folder)):
        raise ArchiveError(f"{folder}: no .txt file of keywords; give the folder that has them")
    return Records(lambda: (_keyword_record(path, index) for index, path in enumerate(paths)))


def _other_texts(source: Responses) -> tuple[str, ...]:
    """Return a note on the texts of a folder that are not keyword files."""
    if not isinstance(source, (str, Path)) or not (folder := Path(source)).is_dir():
        return ()
    others = sorted({*_texts(folder)} - {*folder_files(folder)})
    if not others:
        return ()
    names = named([path.name for path in others])
    return (f"{folder}: left out, without a list of keywords: {names}",)


def _keyword_record(path: Path, position: int) -> Record:
    lists = read_keyword_text(path)
    return Record(values={"id": path.stem, **lists}, position=position, place=str(path))


def _given_keywords(record: Record) -> Mapping[str, tuple[str, ...]] | None:
    """Return the keyword lists of a record or of an ``items.jsonl`` line; None if it has none.

    Raises:
        ArchiveError: Some lists are missing, or one is not a list of texts.
    """
    values = record.values
    evidence = values.get("evidence")
    if isinstance(evidence, Mapping) and not any(name in values for name in LISTS):
        if not evidence and "outcome" in values:
            # Unscored in the earlier run, which kept no keywords, so it is unscored here too.
            return {}
        values = evidence
    present = {name: values[name] for name in LISTS if values.get(name) is not None}
    if not present:
        return None
    lacking = [name for name in LISTS if name not in present]
    if lacking and not any(key in record.values for key in _RESPONSE_KEYS):
        raise ArchiveError(
            f"{record.place}: no list {', '.join(lacking)}; found {named(sorted(values))}; write "
            "an empty list as []"
        )
    return {name: listed_texts(value, name, record.place) for name, value in present.items()}


def _domain(values: Mapping[str, object]) -> str:
    # A domain that is not a text is unknown, not general: the item becomes unscored.
    holders = (values, mapping_at(values, "evidence"), mapping_at(values, "fields"))
    domain = next(filter(None, (holder.get("domain") for holder in holders)), "")
    return well_formed(str(domain).strip())


def _group(values: Mapping[str, object]) -> str:
    """Return the cluster of an ``items.jsonl`` line; empty if it is not such a line."""
    group = values.get("group_id") if "outcome" in values else None
    return well_formed(group) if isinstance(group, str) else ""


def _length(record: Record, reference: Mapping[str, object]) -> int | None:
    holders = (record.values, mapping_at(record.values, "evidence"), reference)
    found = (holder.get("episode_length") for holder in holders)
    value = next((value for value in found if value is not None and value != ""), None)
    if value is None:
        return None
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ArchiveError(f"{record.place}: episode_length {value!r:.40} is not a whole number")
    return int(text)


# The four lists of a sequence are far shorter.
_MAX_KEYWORD_BYTES = 1 << 20
_LIST_LABEL = re.compile(
    r"^[\s*#\-•]*(?P<kind>object|action|behaviou?r)s?\s+list\s*(?P<number>\d+)\s*\**\s*:\**(?P<rest>.*)$",
    re.IGNORECASE,
)
# List 1 is the annotator's, list 2 the model's.
_SIDES = {"1": "reference", "2": "predicted"}
_BULLET = re.compile(r"(?:[-*•]|\d+[.)])\s+")
_BRACKET = re.compile(r"[\[\]]")
_ESCAPED = re.compile(r"\\(['\"\\])")
_QUOTED = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?:,|$)""")


def read_keyword_text(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the four keyword lists of a file.

    Raises:
        ArchiveError: A list is missing or appears twice; the message names file and line.
    """
    text, _ = decoded(read_bytes(path, _MAX_KEYWORD_BYTES), path)
    return parse_keyword_text(text, place=str(path))


def parse_keyword_text(text: str, *, place: str) -> dict[str, tuple[str, ...]]:
    """Return the four keyword lists of a text.

    Line ends of any kind, further colons, brackets left out or never closed, empty lists, quoted
    words, lists over several lines and a word a line behind bullets are read; lines that belong to
    no list are left out. Nothing is evaluated.

    Raises:
        ArchiveError: A list is missing, appears twice, has another number, or two lists are in
            one; its line is named.
    """
    raw: dict[str, str] = {}
    places: dict[str, str] = {}
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _LIST_LABEL.match(line)
        if match is None:
            if current:
                raw[current] = _with_next_line(raw[current], line.strip())
            continue
        current = _list_name(match, f"{place} line {number}")
        if current in raw:
            raise ArchiveError(
                f"{place} line {number}: the list {match[0].split(':')[0].strip()!r} appears twice"
            )
        raw[current], places[current] = match["rest"].strip(), f"{place} line {number}"
    missing = [name for name in LISTS if name not in raw]
    if missing:
        last = len(text.splitlines()) or 1
        raise ArchiveError(
            f"{place} line {last}: the file ends without {_list_heading(missing[0])} "
            f"({', '.join(missing)} missing); write an empty list as []"
        )
    return {name: _keywords(_between_brackets(raw[name], places[name])) for name in LISTS}


def _list_name(match: re.Match[str], place: str) -> str:
    side = _SIDES.get(match["number"])
    if side is None:
        raise ArchiveError(
            f"{place}: list {match['number']}: the number must be 1 (human) or 2 (model)"
        )
    return f"{side}_{'objects' if match['kind'].lower() == 'object' else 'behaviors'}"


def _list_heading(name: str) -> str:
    side, _, kind = name.partition("_")
    number = "1" if side == "reference" else "2"
    return f"'{'Object' if kind == 'objects' else 'Action'} list {number}: [...]'"


def _with_next_line(value: str, line: str) -> str:
    """Return the list with the next line appended, if that line continues it."""
    bullet = _BULLET.match(line)
    if bullet and (not value or value.endswith(",")):
        return f"{value} {line[bullet.end() :].rstrip(',')},"
    is_open = not value or ("[" in value and "]" not in value)
    return f"{value} {line}".strip() if is_open else value


def _between_brackets(value: str, place: str) -> str:
    """Return the text between the brackets, or all of it if there are none."""
    before, bracket, rest = value.partition("[")
    if not bracket or (before.strip() and not before.rstrip().endswith(":")):
        return value.strip("[] \t")  # words without brackets, or with a stray one at an end
    depth, end = 1, len(rest)
    for mark in _BRACKET.finditer(rest):
        depth += 1 if mark[0] == "[" else -1
        if not depth:
            end = mark.start()
            break
    if _BRACKET.search(rest, end + 1):
        raise ArchiveError(
            f"{place}: text after the end of the list: {value!r:.80}; write one list per line"
        )
    return rest[:end]


def _keywords(inner: str) -> tuple[str, ...]:
    words: list[str] = []
    while inner:
        quoted = _QUOTED.match(inner)
        if quoted is not None:
            words.append(_ESCAPED.sub(r"\1", quoted[1][1:-1]))
            inner = inner[quoted.end() :]
        else:
            word, _, inner = inner.partition(",")
            words.append(word)
    # The released reader makes one empty word of [], so that two empty lists score 1.
    return tuple(filter(None, (" ".join(word.split()) for word in words)))
