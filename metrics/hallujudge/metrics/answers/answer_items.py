"""The item and the evidence that all benchmarks of closed questions share.

A record of a file may hold several answers: in lists of one length, or in objects by name. In cells
of tables lists and objects are texts.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct, structs

from ..framework.results import CanonicalRecord, Item, ItemRecords, JsonValue

_NOTHING: Mapping[str, str] = {}
UNANSWERED = "unanswered"
"""Field of a question without a record, or that could not be put to the model: it counts nothing.

As a key of a record that ``hallujudge ask`` wrote, it has the reason.
"""


class Answer(Struct, frozen=True, gc=False, array_like=True):
    """A question, its label and the answer."""

    response: str | None
    """What the model wrote; None without a response, which leaves the answer unscored."""
    label: str = ""
    """The right answer."""
    name: str = ""
    """What distinguishes it within its bundle, such as ``basic``; empty for the only answer."""
    question: str = ""
    """What the model was asked; empty where the archive does not say."""
    options: Mapping[str, str] = _NOTHING
    """Choices: letter -> text; empty if there are none, or if they are unknown."""
    fields: Mapping[str, str] = _NOTHING
    """Further values that the benchmark's parsers and counts look at; ``reference`` is a text that
    a judge compares the response with."""


class AnswersItem(Item, frozen=True, kw_only=True):
    """A bundle of answers that count together, often of one."""

    answers: tuple[Answer, ...] = ()
    """Those of one bundle, such as the two of a pair."""

    @property
    def response(self) -> str | None:
        """The response, if there is only one answer; otherwise None."""
        return self.answers[0].response if len(self.answers) == 1 else None

    @property
    def label(self) -> str:
        """The label, if there is only one answer; otherwise empty."""
        return self.answers[0].label if len(self.answers) == 1 else ""

    @property
    def question(self) -> str:
        """The question, if there is only one answer; otherwise empty."""
        return self.answers[0].question if len(self.answers) == 1 else ""

    def records(self) -> ItemRecords:
        """Return the questions with their choices, and the labels."""
        if not self.answers:
            return ItemRecords([], [])
        # Most items have one answer, and every item is hashed.
        first, others = self.answers[0], self.answers[1:]
        for each in others:
            if each.question != first.question or each.options != first.options:
                return ItemRecords(self._questions(), self._labels())
        # One question under several conditions is the same whichever of them were run.
        asked = [("", first.question, _options_of(first))] if first.options else first.question
        said = _said_of(first) if first.fields else ()
        for each in others:
            if each.label != first.label or _said_of(each) != said:
                return ItemRecords(asked, self._labels())
        return ItemRecords(asked, [first.label, said] if said else first.label)

    def _questions(self) -> CanonicalRecord:
        return sorted(
            [
                (each.name, each.question, _options_of(each))
                for each in self.answers
                if each.question or each.options
            ]
        )

    def _labels(self) -> CanonicalRecord:
        """Return the labels, and what the benchmark says of the questions."""
        return sorted([(each.name, each.label, *_said_of(each)) for each in self.answers])


# What a model said in addition to its response, verdicts on it, and its place in a file are no part
# of the reference.
_OF_RESPONSES = frozenset(
    {"confidence", "judgement", "correctness", "same", "review", "place", "similarities"}
)


def _options_of(answer: Answer) -> tuple[tuple[str, str], ...]:
    options = answer.options
    return tuple(sorted(options.items())) if options else ()


def _said_of(answer: Answer) -> Sequence[tuple[str, str]]:
    """Return the fields that the benchmark sets."""
    fields = answer.fields
    # Many answers have none but those that it does not.
    if not (names := _names_said((*fields,))):
        return ()
    return [(name, text) for name in names if (text := fields[name])]


# The answers of an archive have the same fields.
@lru_cache(maxsize=256)
def _names_said(names: tuple[str, ...]) -> Sequence[str]:
    return sorted(set(names) - _OF_RESPONSES)


def one_answer(
    *,
    id: str,
    response: str | None,
    label: str = "",
    question: str = "",
    group_id: str = "",
    fields: Mapping[str, str] | None = None,
    answer_fields: Mapping[str, str] = _NOTHING,
) -> AnswersItem:
    """Return an item with one answer; the arguments are fields of ``Item`` and :class:`Answer`."""
    answer = Answer(response=response, label=label, question=question, fields=answer_fields)
    return AnswersItem(id=id, group_id=group_id, fields=fields or {}, answers=(answer,))


class AnswerVerdict(Struct, frozen=True, gc=False, array_like=True):
    """The outcome of one answer."""

    name: str
    """Its name within the bundle; empty for the only answer."""
    answer: str | None
    """The parsed answer: ``yes``, ``no`` or a letter; None if it could not be parsed."""
    label: str
    """The right answer."""
    correct: bool | None
    """Whether the variant counts it as right; None if it does not count."""
    how: str
    """The parser, or its rule, that parsed it; why there is no answer, for a missing one."""


class AnswersEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of the scores of a bundle."""

    answers: tuple[AnswerVerdict, ...]
    """One verdict for each answer."""
    given: str | None = None
    """The verdict that came with the judged answer, the last one, if it has another verdict."""
    margin: float | None = None
    """The judge's log-probability of its choice minus that of the runner-up."""
    probability: float | None = None
    """The judge's probability that the judged answer counts as right."""
    judging: tuple[dict[str, JsonValue], ...] = ()
    """The judges that were called, in order. Empty if none was."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return each answer with its label, and the judges that were called."""
        line: dict[str, JsonValue] = {"answers": list(map(structs.asdict, self.answers))}
        if self.given is not None:
            line["given"] = self.given
        if self.judging:
            line |= {"margin": self.margin, "probability": self.probability}
            line["judging"] = list(self.judging)
        return line


class HeldAnswers(NamedTuple):
    """The answers that a record holds."""

    keys: frozenset[str]
    """The keys that hold them."""
    answers: Mapping[str, Mapping[str, object]]
    """Name of an answer -> what the record says of it alone; what is missing is empty."""
    others: frozenset[str]
    """Names of which the first key says nothing, so that they are none of the answers."""


def in_columns(record: Mapping[str, object], columns: Mapping[str, str]) -> HeldAnswers | None:
    """Return the answers that a record holds; None if it has none of the keys.

    Args:
        record: The record.
        columns: Key of a list, or of an object by name, with a value for each answer -> key of such
            a value. The first one that the record has says which answers there are.

    Raises:
        ValueError: They are no lists of one length, and no objects; with the next step.
    """
    given = with_lists(record, columns)
    found: dict[str, Any] = {key: given[key] for key in columns if given.get(key) is not None}
    if not found:
        return None
    size, held = -1, {}
    for number, (key, value) in enumerate(found.items()):
        # Objects have the length -1: they may have other names, and may not be mixed with lists.
        by_number = isinstance(value, (list, tuple))
        length = len(value) if by_number else -1
        size = size if number else length
        if length != size or not (by_number or isinstance(value, Mapping)):
            raise ValueError(
                f"columns that are no lists of one length, and no objects: {key} of {value!r:.60}",
                f"Write {', '.join(columns)} with a value for each answer",
            )
        names = map(str, range(1, length + 1))
        held[columns[key]] = dict(zip(names, value, strict=True)) if by_number else value
    first, *_ = held.values()
    answers = {
        name: {key: "" if (said := of.get(name)) is None else said for key, of in held.items()}
        for name in first
    }
    others = frozenset(name for of in held.values() for name in of if name not in first)
    return HeldAnswers(frozenset(found), answers, others)


# Python's parser takes a hundred times the memory of its text.
_MAX_LIST_CHARS = 1 << 16


def with_lists(record: Mapping[str, object], keys: Iterable[str]) -> Mapping[str, object]:
    """Return a record whose lists and objects under some keys are no longer texts.

    Args:
        record: The record.
        keys: Keys that never hold a text: a response may begin with a bracket too.
    """
    for key in keys:
        if isinstance(cell := record.get(key), str) and cell.startswith(("[", "{")):
            record = {**record, key: listed(cell)}
    return record


def listed(text: str) -> object:
    """Return the list or object that a text is, as JSON or as Python prints it; else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _printed(text)


def _printed(text: str) -> object:
    """Return the list or object that a cell holds as Python prints it; other texts as they are.

    pandas writes columns of lists so: ``['dining table', "chef's knife"]``. An array of numpy,
    ``['dog' 'cat']``, would be read as one text, so a list counts only if it prints as the cell.
    """
    # Python's parser warns of backslashes that escape nothing; names of objects have none.
    if not text.startswith(("[", "{")) or "\\" in text or len(text) > _MAX_LIST_CHARS:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value if repr(value) == text else text
