"""Answers, nouns, annotations and tables for AMBER."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hallujudge.metrics.amber import GENERATIVE, QUESTIONS, AmberItem, AmberObject
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem
from hallujudge.metrics.framework.metric import InputOption

from ..errors import ArchiveError
from .inputs import DeclaredInputs, InputOptions, ItemSource, Reader, References, Responses, uses
from .joins import JoinCheck, read_mapping, refuse
from .json_files import read_text
from .records import (
    ID_FLAG,
    Record,
    canonical_id,
    choose_key,
    fields_of,
    no_records,
    optional_text,
    read_records,
    shown,
    text_of,
)
from .table_files import structured

_KEYS = QUESTIONS.keys
# AMBER's type of an annotation -> our kind of question.
_KINDS = {
    "generative": GENERATIVE,
    "discriminative-hallucination": "existence",
    "discriminative-attribute-state": "state",
    "discriminative-attribute-number": "number",
    "discriminative-attribute-action": "action",
    "discriminative-relation": "relation",
    "relation": "relation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Annotation:
    """The benchmark's fields of an item."""

    kind: str
    values: Mapping[str, object]
    label: str = ""
    objects: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Said:
    """A model's response and nouns."""

    values: Mapping[str, object] = field(default_factory=dict)
    response: str | None = None
    nouns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """The association table and the safe words."""

    associated: Mapping[str, tuple[str, ...]]
    safe: tuple[str, ...]
    known: frozenset[str]
    vocabulary: tuple[str, ...] = ()


def read_amber(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Read responses, nouns, annotations and queries, joined by id.

    Args:
        responses: ``id`` and ``response``; a description may also have its ``nouns``.
        references: AMBER's ``annotations.json``; None where responses have ``type`` and ``truth``.
        options: ``nouns``, ``questions``, ``associations`` and ``safe_words`` name further files.
        group_by: Fields to group by; ``kind`` is one.

    Raises:
        ArchiveError: A file can't be read, an id is unknown, duplicate or missing, or a table is
            missing.
    """
    if references is None and not _carry_annotations(responses):
        raise ArchiveError("AMBER needs its annotations.json: give it with references=…")
    annotations = _annotations(responses if references is None else references)
    said = _gather(responses, options)
    _refuse_wrong_counts(said, annotations)
    kinds = {annotations[key].kind for key in said if key in annotations}
    known = {key: entry for key, entry in annotations.items() if entry.kind in kinds}
    check = JoinCheck("items", options, known)
    for identifier in said:
        check.add(identifier)
    check.refuse(lambda: iter(said))
    for identifier in check.missing():
        said[identifier] = _Said()
    tables = _tables(options, annotations) if GENERATIVE in kinds else _NO_TABLES
    asked = options.own.get("questions")
    images = {} if asked is None else _by_id(asked, "questions")
    made = _Items(annotations, images, tables, group_by)
    items = [made.item(identifier, row) for identifier, row in said.items()]
    note = (
        "images are unknown, so intervals treat each item as an image of its own: "
        "give the questions"
    )
    images_known = all(item.group_id != item.id for item in items)
    notes = () if asked is not None or images_known else (note,)
    return ItemSource(count=len(items), make=lambda: iter(items), notes=notes)


@dataclass(frozen=True, slots=True)
class _Items:
    """Builds items from the records."""

    annotations: Mapping[str, _Annotation]
    images: Mapping[str, Record]
    tables: _Tables
    group_by: tuple[str, ...]

    def item(self, identifier: str, said: _Said) -> AnswersItem:
        about = self.annotations.get(identifier, _NOTHING)
        asked = self.images.get(identifier, Record(values={}, position=0, place=""))
        fields = fields_of(
            self.group_by, {"kind": about.kind}, asked.values, about.values, said.values
        )
        image = (
            optional_text(asked, _KEYS.media)
            or optional_text(Record(values=said.values, position=0, place=""), _KEYS.media)
            or identifier
        )
        question = optional_text(asked, _KEYS.asked)
        answer = Answer(said.response, about.label, "", question, fields={"kind": about.kind})
        if about.kind != GENERATIVE:
            return AnswersItem(id=identifier, group_id=image, fields=fields, answers=(answer,))
        return AmberItem(
            id=identifier,
            group_id=image,
            fields=fields,
            answers=(answer._replace(fields={}),),
            nouns=tuple(noun for noun in said.nouns or () if noun in self.tables.known),
            nouns_given=said.nouns is not None,
            objects=self._objects(about.objects),
            targets=self._objects(about.targets),
            safe_words=self.tables.safe,
            vocabulary=self.tables.vocabulary if said.response is not None else (),
        )

    def _objects(self, words: Iterable[str]) -> tuple[AmberObject, ...]:
        table = self.tables.associated
        return tuple(AmberObject(word=word, associated=table.get(word, ())) for word in words)


def _by_id(source: References, what: str, id_key: str | None = None) -> dict[str, Record]:
    """Return records by their id, without duplicates."""
    rows: dict[str, Record] = {}
    twice: list[str] = []
    key = ""
    for record in read_records(source):
        key = key or choose_key(record, id_key, _KEYS.id, "the id", ID_FLAG)
        identifier = canonical_id(record.values.get(key), record.place)
        if identifier in rows:
            twice.append(identifier)
        rows[identifier] = record
    if twice:
        raise refuse(f"duplicate ids in the {what}", twice, "Remove the duplicates")
    if not rows:
        raise no_records(source, what, "id")
    return rows


def _carry_annotations(responses: Responses) -> bool:
    """Return whether the responses themselves say what each item is about."""
    first = next(read_records(responses), None)
    return first is not None and {"type", "truth"} <= first.values.keys()


def _refuse_wrong_counts(said: Mapping[str, _Said], annotations: Mapping[str, _Annotation]) -> None:
    """Refuse responses whose logged counts of objects are not those of their annotations.

    Samples of lmms-eval have no id, so their position is taken as the id.

    Raises:
        ArchiveError: The positions are not AMBER's ids.
    """
    wrong = [
        identifier
        for identifier, row in said.items()
        if isinstance(count := row.values.get("truth_count"), int)
        and (about := annotations.get(identifier)) is not None
        and (count, row.values.get("hallu_count")) != (len(about.objects), len(about.targets))
    ]
    if wrong:
        raise refuse(
            "the log's counts of objects differ from the annotations",
            wrong,
            "Its positions are not AMBER's ids: name the key of the id, "
            "InputOptions(id_key=…), or give AMBER's own answers",
        )


def _annotations(references: References) -> dict[str, _Annotation]:
    found: dict[str, _Annotation] = {}
    wrong: list[str] = []
    for identifier, record in _by_id(references, "annotations").items():
        kind = _KINDS.get(str(record.values.get("type")))
        truth = structured(record.values.get("truth"))
        truth = truth.strip().casefold() if isinstance(truth, str) else truth
        if kind == GENERATIVE:
            found[identifier] = _Annotation(
                kind=kind,
                values=record.values,
                objects=_words(record, "truth"),
                targets=_words(record, "hallu"),
            )
        elif kind is not None and truth in ("yes", "no"):
            found[identifier] = _Annotation(kind=kind, values=record.values, label=str(truth))
        else:
            given = record.values.get("type")
            wrong.append(f"{identifier} (type {shown(given)}, truth {shown(truth)})")
    if wrong:
        raise refuse(
            "annotations have an unknown type, or a truth that is neither yes nor no",
            wrong,
            "Use AMBER's own annotations.json",
        )
    return found


def _words(record: Record, key: str) -> tuple[str, ...]:
    """Return a list of words.

    Raises:
        ArchiveError: The value is not a list of words.
    """
    value = structured(record.values.get(key))
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ArchiveError(f"{record.place}: {key!r} must be a list of words; found {shown(value)}")


def _gather(responses: Responses, options: InputOptions) -> dict[str, _Said]:
    said: dict[str, _Said] = {}
    for identifier, record in _by_id(responses, "responses", options.id_key).items():
        key = next(
            (key for key in (options.text_key, *_KEYS.response) if key and key in record.values),
            None,
        )
        nouns = _words(record, "nouns") if record.values.get("nouns") is not None else None
        if key is None and nouns is None:
            raise ArchiveError(
                f"{record.place}: no key for the response: looked for {', '.join(_KEYS.response)}. "
                "Name it with InputOptions(text_key=…)"
            )
        text = None if key is None else text_of(record, key)
        said[identifier] = _Said(values=record.values, response=text, nouns=nouns)
    if options.own.get("nouns") is not None:
        for identifier, record in _by_id(options.own["nouns"], "nouns").items():
            said.setdefault(identifier, _Said()).nouns = _words(record, "nouns")
    return said


def _tables(options: InputOptions, annotations: Mapping[str, _Annotation]) -> _Tables:
    if options.own.get("associations") is None or options.own.get("safe_words") is None:
        raise ArchiveError(
            "descriptions are compared by AMBER's association table and safe words: give "
            "relation.json with InputOptions(own=dict(associations=…)) and safe_words.txt with "
            "InputOptions(own=dict(safe_words=…))"
        )
    table = {
        word: _words(Record(values={word: words}, position=0, place="the association table"), word)
        for word, words in read_mapping(options.own["associations"], "associations").items()
    }
    used = {word for entry in annotations.values() for word in (*entry.objects, *entry.targets)}
    if lacking := sorted(used - table.keys()):
        raise refuse(
            "annotated objects are not in the association table",
            lacking,
            "Use the relation.json of the same release as the annotations",
        )
    known = frozenset(table).union(*table.values())
    given = options.own["safe_words"]
    lines = given if isinstance(given, tuple) else read_text(Path(given)).splitlines()
    safe = tuple(word for line in lines if (word := line.strip()))
    return _Tables(associated=table, safe=safe, known=known, vocabulary=tuple(sorted(known)))


_NOTHING = _Annotation(kind="", values={})
_NO_TABLES = _Tables(associated={}, safe=(), known=frozenset())

READERS: Mapping[str, Reader] = {"amber": read_amber}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "amber": uses(
        "id_key",
        "allow_unknown",
        "allow_missing",
        own=(
            InputOption(name="questions", meaning="AMBER's query_all.json: id to image."),
            InputOption(
                name="nouns", named="--nouns-file", meaning="Nouns of the descriptions by id."
            ),
            InputOption(name="associations", meaning="AMBER's relation.json."),
            InputOption(name="safe_words", meaning="AMBER's safe_words.txt."),
        ),
    )
}
"""Metric -> what its reader takes."""
