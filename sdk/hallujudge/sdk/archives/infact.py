"""Answers under every operator, joined to questions, for INFACT."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hallujudge.metrics.infact import InfactItem, InfactRun
from hallujudge.metrics.infact.operators import BASE, OPERATORS

from ..errors import ArchiveError
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .joins import Faults, refuse
from .records import (
    ID_FLAG,
    TEXT_FLAG,
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

_QUESTION_KEYS = ("question_id",)
_ANSWER_KEYS = ("response", "answer", "prediction", "output", "text")
_VIDEO_KEYS = ("video", "video_id", "group_id")
_DIMENSIONS = ("faithfulness", "factuality")
# The pipeline sets these fields itself.
_TAXONOMY_FIELDS = frozenset({"dimension", "level", "category", "order_sensitive"})


@dataclass(slots=True)
class _Question:
    """A question whose lines are being collected."""

    label: str
    dimension: str
    category: str
    order_sensitive: bool
    group_id: str
    options: Mapping[str, str]
    fields: Mapping[str, str]
    runs: dict[str, InfactRun] = field(default_factory=dict)


def read_infact(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return questions, each with its lines under every operator.

    Args:
        responses: One line for each question and operator.
        references: What lines leave out (label, dimension, category, …), by ``question_id``; None
            where lines carry everything.
        options: How the archive is read.
        group_by: Fields to group by.

    Raises:
        ArchiveError: See :func:`read_items`; also if an operator is unknown, a question has no
            base run, lines of one question contradict each other, or a confidence is not in [0, 1].
    """
    known = _known_questions(references)
    questions = _Gathering(options, known, group_by).read(responses)
    if not options.allow_missing:
        bare = [question for question, row in questions.items() if BASE not in row.runs]
        if bare:
            raise refuse(
                "questions have no base run",
                bare,
                "Give their base answers, or pass InputOptions(allow_missing=True) to leave "
                "them unscored",
            )
        silent = [question for question in known if question not in questions]
        if silent:
            raise refuse(
                "questions have no answer",
                silent,
                "Give them, or pass InputOptions(allow_missing=True)",
            )
    return ItemSource(count=len(questions), make=lambda: _items(questions))


def _items(questions: Mapping[str, _Question]) -> Iterator[InfactItem]:
    for identifier, row in questions.items():
        yield InfactItem(
            id=identifier,
            group_id=row.group_id,
            fields=row.fields,
            label=row.label,
            dimension=row.dimension,
            category=row.category,
            order_sensitive=row.order_sensitive,
            options=row.options,
            runs=row.runs,
        )


def _known_questions(references: References | None) -> dict[str, Mapping[str, object]]:
    known: dict[str, Mapping[str, object]] = {}
    duplicates: list[str] = []
    for record in () if references is None else read_records(references):
        key = choose_key(record, None, ("question_id", "id"), "the question")
        question = canonical_id(record.values[key], record.place)
        if question in known:
            duplicates.append(question)
        known[question] = record.values
    if duplicates:
        raise refuse(
            "duplicate questions in the references",
            duplicates,
            "Merge the entries of each question",
        )
    return known


class _Gathering:
    """Groups lines into questions and collects faults by kind."""

    def __init__(
        self,
        options: InputOptions,
        known: Mapping[str, Mapping[str, object]],
        group_by: tuple[str, ...],
    ) -> None:
        self._options = options
        self._known = known
        self._group_by = tuple(key for key in group_by if key not in _TAXONOMY_FIELDS)
        self._questions: dict[str, _Question] = {}
        self._ids: set[str] = set()
        self._faults = Faults(_REMEDIES)

    def read(self, responses: Responses) -> dict[str, _Question]:
        """Return all questions.

        Raises:
            ArchiveError: A line can't be used; the message names all lines with the same fault.
        """
        keys: tuple[str, str] | None = None
        for record in read_records(responses):
            keys = keys or self._keys(record)
            self._add(record, *keys)
        if not self._questions and not self._faults:
            raise no_records(responses, "answers", "answer")
        self._faults.check()
        return self._questions

    def _keys(self, first: Record) -> tuple[str, str]:
        return (
            choose_key(first, self._options.id_key, _QUESTION_KEYS, "the question", ID_FLAG),
            choose_key(first, self._options.text_key, _ANSWER_KEYS, "the answer", TEXT_FLAG),
        )

    def _add(self, record: Record, question_key: str, text_key: str) -> None:
        if "operator" not in record.values or question_key not in record.values:
            raise ArchiveError(
                f"{record.place}: a line needs {question_key!r} and 'operator'; found "
                f"{', '.join(sorted(record.values))}. Remove the line, or give INFACT answers"
            )
        question = canonical_id(record.values[question_key], record.place)
        operator = _operator(record.values["operator"])
        if operator is None:
            self._faults.add(_UNKNOWN_OPERATOR, f"{question} ({record.values['operator']!r:.40})")
            return
        self._check_id(record)
        confidence, fine = _confidence(record.values.get("confidence"))
        if not fine:
            self._faults.add(
                _BAD_CONFIDENCE, f"{question} ({record.values.get('confidence')!r:.40})"
            )
            return
        if self._known and question not in self._known and not self._options.allow_unknown:
            self._faults.add(_NO_REFERENCE, question)
        row = self._question(question, record)
        if operator in row.runs:
            self._faults.add(_TWICE, f"{question} ({operator})")
            return
        row.runs[operator] = InfactRun(response=text_of(record, text_key), confidence=confidence)

    def _check_id(self, record: Record) -> None:
        value = record.values.get("id")
        if value is None:
            return
        identifier = canonical_id(value, record.place)
        if identifier in self._ids:
            self._faults.add(_ID_TWICE, identifier)
        self._ids.add(identifier)

    def _question(self, question: str, record: Record) -> _Question:
        values: Mapping[str, object] = {**self._known.get(question, {}), **record.values}
        label, sensitive = values.get("label"), _truth(values.get("order_sensitive"))
        dimension = str(values.get("dimension") or "").strip().casefold()
        if not isinstance(label, (str, int)) or not str(label).strip():
            self._faults.add(_NO_LABEL, question)
        if sensitive is None:
            self._faults.add(_BAD_TRUTH, f"{question} ({values.get('order_sensitive')!r:.40})")
        if dimension not in _DIMENSIONS and dimension:
            self._faults.add(_BAD_DIMENSION, f"{question} ({dimension:.40})")
        category = str(values.get("category") or "").strip()
        row = self._questions.get(question)
        if row is None:
            merged = Record(values=values, position=record.position, place=record.place)
            row = self._questions[question] = _Question(
                label=str(label),
                dimension=dimension,
                category=category,
                order_sensitive=bool(sensitive),
                group_id=optional_text(merged, _VIDEO_KEYS) or question,
                options=_options(values.get("options"), record.place),
                fields=fields_of(self._group_by, values),
            )
            return row
        if (row.label, row.order_sensitive) != (str(label), bool(sensitive)):
            self._faults.add(_CONTRADICTION, question)
        # Lines may omit these fields; lines that have them must agree.
        row.dimension, row.category = row.dimension or dimension, row.category or category
        if (row.dimension, row.category) != (dimension or row.dimension, category or row.category):
            self._faults.add(_MISPLACED, question)
        return row


_UNKNOWN_OPERATOR = "operators are not known"
_BAD_CONFIDENCE = "confidences are not a number from 0 to 1"
_NO_REFERENCE = "answers are to questions that the references lack"
_TWICE = "questions are answered more than once under one operator"
_ID_TWICE = "duplicate line ids"
_NO_LABEL = "questions have no label"
_BAD_TRUTH = "values of order_sensitive are neither true nor false"
_BAD_DIMENSION = "dimensions are neither faithfulness nor factuality"
_CONTRADICTION = "questions have lines with another label or order_sensitive"
_MISPLACED = "questions have lines with another dimension or category"
_REMEDIES = {
    _UNKNOWN_OPERATOR: f"Use one of {', '.join(OPERATORS)}",
    _BAD_CONFIDENCE: "Write 85 % as 0.85, and omit the key if the model gave no confidence",
    _TWICE: "Remove the duplicates, or give other samples another question_id",
}


def _operator(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    name = value.strip().casefold().replace("-", "_").replace(" ", "_")
    return next((known for known in OPERATORS if known == name), None)


def _confidence(given: object) -> tuple[float | None, bool]:
    value = structured(given)
    if value is None:
        return None, True
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None, False
    return float(value), math.isfinite(value) and 0 <= value <= 1


def _truth(value: object) -> bool | None:
    if isinstance(value, bool) or value is None:
        return bool(value)
    text = str(value).strip().casefold()
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(text)


def _options(given: object, place: str) -> Mapping[str, str]:
    """Return the choices from an object letter -> text, or a list in the order of the letters."""
    value = structured(given)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(letter).strip(): str(text) for letter, text in value.items()}
    if isinstance(value, (list, tuple)) and len(value) <= 26:
        return {chr(ord("A") + index): str(text) for index, text in enumerate(value)}
    raise ArchiveError(
        f"{place}: 'options' must be an object letter -> text or a list; found {shown(value)}"
    )


READERS: Mapping[str, Reader] = {"infact": read_infact}
"""Metric -> its archive reader."""
