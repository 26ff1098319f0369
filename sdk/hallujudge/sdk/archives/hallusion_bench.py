"""Answers and correctness labels of HallusionBench, joined with its questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hallujudge.metrics.hallusion_bench.question_groups import CATEGORIES, HallusionBenchItem

from ..errors import ArchiveError
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .joins import Faults, refuse
from .records import (
    TEXT_FLAG,
    Record,
    canonical_id,
    choose_key,
    fields_of,
    no_records,
    read_records,
    shown,
    text_of,
)
from .table_files import structured

_PLACE_KEYS = ("category", "subcategory", "set_id", "figure_id", "question_id")
_ANSWER_KEYS = ("model_prediction", "response", "prediction", "answer", "output", "text")
_CORRECTNESS_KEYS = ("correctness", "gpt4v_output_gpt_check")
_QUESTION_KEYS = ("question", "gt_answer", "gt_answer_details", "visual_input")
_LABELS = {"1": "yes", "0": "no", "yes": "yes", "no": "no", "true": "yes", "false": "no"}
# The pipeline sets these fields itself.
_OWN_FIELDS = frozenset({"category", "subcategory"})


class _Place(NamedTuple):
    """Fields that identify a question in the benchmark."""

    category: str
    subcategory: str
    set_id: str
    figure_id: str
    question_id: str

    @property
    def id(self) -> str:
        return "_".join(self)


def read_hallusion_bench(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return answers with their questions.

    Args:
        responses: One record for each answer: ``category``, ``subcategory``, ``set_id``,
            ``figure_id``, ``question_id``, the answer, and what the references leave out.
        references: ``HallusionBench.json``, for answers without ``gt_answer``; None if they have
            it.
        options: How the archive is read.
        group_by: Fields to group by.

    Raises:
        ArchiveError: See :func:`read_items`; also if a place, a label, a correctness or
            ``visual_input`` has an invalid value.
    """
    known = {} if references is None else _questions(references)
    items = _Gathering(options, known, group_by).read(responses)
    return ItemSource(count=len(items), make=lambda: iter(items))


def _questions(references: References) -> dict[_Place, Mapping[str, object]]:
    known: dict[_Place, Mapping[str, object]] = {}
    twice: list[str] = []
    for record in read_records(references):
        place = _place(record)
        if place in known:
            twice.append(place.id)
        known[place] = record.values
    if twice:
        raise refuse("duplicate questions in the references", twice, "Remove the duplicates")
    return known


def _place(record: Record) -> _Place:
    missing = [key for key in _PLACE_KEYS if record.values.get(key) is None]
    if missing:
        raise ArchiveError(
            f"{record.place}: {', '.join(missing)} missing or null; an answer is identified by "
            f"{', '.join(_PLACE_KEYS)}. Found keys: {', '.join(sorted(record.values)) or 'no key'}"
        )
    return _Place(*(canonical_id(record.values[key], record.place) for key in _PLACE_KEYS))


class _Gathering:
    """Builds items from answers and collects faults by kind."""

    def __init__(
        self,
        options: InputOptions,
        known: Mapping[_Place, Mapping[str, object]],
        group_by: tuple[str, ...],
    ) -> None:
        self._options = options
        self._known = known
        self._group_by = tuple(key for key in group_by if key not in _OWN_FIELDS)
        self._faults = Faults(_REMEDIES)
        self._met: set[_Place] = set()

    def read(self, responses: Responses) -> list[HallusionBenchItem]:
        """Return all items.

        Raises:
            ArchiveError: An answer can't be used; the message names all with the same fault.
        """
        items = list(self._answers(responses))
        if not items and not self._faults:
            raise no_records(responses, "answers", "answer")
        silent = [place for place in self._known if place not in self._met]
        if silent and not self._options.allow_missing:
            self._faults.add(_SILENT, *(place.id for place in silent))
        self._faults.check()
        return items + [item for place in silent if (item := self._silent(place)) is not None]

    def _answers(self, responses: Responses) -> Iterator[HallusionBenchItem]:
        text_key: str | None = None
        for record in read_records(responses):
            place = _place(record)
            text_key = text_key or choose_key(
                record, self._options.text_key, _ANSWER_KEYS, "the answer", TEXT_FLAG
            )
            if place in self._met:
                self._faults.add(_TWICE, place.id)
            if self._known and place not in self._known and not self._options.allow_unknown:
                self._faults.add(_UNKNOWN, place.id)
            self._met.add(place)
            item = self._item(place, record, text_of(record, text_key))
            if item is not None:
                yield item

    def _silent(self, place: _Place) -> HallusionBenchItem | None:
        empty = Record(values=self._known[place], position=0, place=place.id)
        return self._item(place, empty, None, given=False)

    def _item(
        self, place: _Place, record: Record, response: str | None, *, given: bool = True
    ) -> HallusionBenchItem | None:
        values = {**self._question(place), **record.values}
        label = _label(values.get("gt_answer"))
        visual_input = _number(values.get("visual_input"))
        correctness, fine = self._correctness(record) if given else (None, True)
        unlabelled = label == "" and correctness is None and not self._options.allow_unknown
        faults = {
            _BAD_CATEGORY: place.category not in CATEGORIES,
            _BAD_INPUT: visual_input not in (0, 1, 2),
            _BAD_LABEL: label is None,
            _BAD_CORRECTNESS: not fine,
            _NO_LABEL: unlabelled,
        }
        given_values = {
            _BAD_CATEGORY: place.category,
            _BAD_INPUT: values.get("visual_input"),
            _BAD_LABEL: values.get("gt_answer"),
            _BAD_CORRECTNESS: self._given_correctness(record),
        }
        for problem in (problem for problem, wrong in faults.items() if wrong):
            value = f" ({shown(given_values[problem])})" if problem in given_values else ""
            self._faults.add(problem, f"{place.id}{value}")
        if any(faults.values()):
            return None
        return HallusionBenchItem(
            id=place.id,
            fields=fields_of(self._group_by, values),
            response=response,
            question=_text(values.get("question")),
            label=label or "",
            details=_text(values.get("gt_answer_details")),
            **place._asdict(),
            visual_input=visual_input or 0,
            correctness=correctness,
            same=_same(record.values.get("same")) if given else None,
        )

    def _question(self, place: _Place) -> Mapping[str, object]:
        """Return a question's fields from the references, without any answers."""
        row = self._known.get(place, {})
        return {key: row[key] for key in _QUESTION_KEYS if key in row}

    def _given_correctness(self, record: Record) -> object:
        """Return the correctness as the record has it; None if it has none."""
        wanted = self._options.correctness_key
        if wanted is not None and wanted not in record.values:
            choose_key(record, wanted, (), "the correctness", "InputOptions(correctness_key=…)")
        keys = (wanted,) if wanted else _CORRECTNESS_KEYS
        return next((record.values[key] for key in keys if key in record.values), None)

    def _correctness(self, record: Record) -> tuple[int | None, bool]:
        """Return the given correctness, and whether it is valid."""
        value = self._given_correctness(record)
        if value is None or value == "":
            return None, True
        number = _number(value)
        return number, number in (0, 1, 2)


_TWICE = "questions are answered more than once"
_UNKNOWN = "answers are to questions that the references lack"
_SILENT = "questions have no answer"
_BAD_CATEGORY = "categories are neither VD nor VS"
_BAD_INPUT = "values of visual_input are not 0, 1 or 2"
_BAD_LABEL = "values of gt_answer are neither 1 (yes) nor 0 (no)"
_BAD_CORRECTNESS = "values of correctness are not 1 (right), 0 (wrong) or 2 (unclear)"
_NO_LABEL = "answers have neither gt_answer nor a correctness"
_REMEDIES = {
    _TWICE: "Remove the duplicates",
    _UNKNOWN: "Give their questions, or pass InputOptions(allow_unknown=True)",
    _SILENT: "Give their answers, or pass InputOptions(allow_missing=True) to leave them unscored",
    _BAD_CATEGORY: "Correct them",
    _BAD_INPUT: "Correct them, or give HallusionBench.json with references=…",
    _BAD_LABEL: "Correct them",
    _BAD_CORRECTNESS: "Correct them, or name another key with InputOptions(correctness_key=…)",
    _NO_LABEL: "Give the benchmark's questions, HallusionBench.json, with references=…, "
    "or pass InputOptions(allow_unknown=True) to leave them unscored",
}


def _label(value: object) -> str | None:
    """Return ``yes``, ``no`` or, without a label, an empty text; None for invalid labels."""
    if value is None or value == "":
        return ""
    text = str(_number(value)) if isinstance(value, float) else str(value)
    return _LABELS.get(text.strip().rstrip(".").casefold())


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _same(value: object) -> bool | None:
    found = structured(value)
    if isinstance(found, bool):
        return found
    return {1: True, 0: False}.get(number) if (number := _number(found)) is not None else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


READERS: Mapping[str, Reader] = {"hallusion-bench": read_hallusion_bench}
"""Metric -> its archive reader."""
