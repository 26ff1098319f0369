"""Scores of single responses: an item of each reference, into which responses are put."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct, structs

from hallujudge.metrics import Item, ItemResult, Outcome
from hallujudge.metrics.answers.closed_questions import AnswersItem, ClosedQuestions
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import benchmark_named
from hallujudge.metrics.framework.json_values import json_kind
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.responses import message_text, sent_text

from ..archives.inputs import InputOptions, family_module
from ..archives.json_files import shown
from ..archives.opened_archives import open_references
from ..archives.plain_values import is_plain, plain, plain_source
from ..archives.question_files import id_of
from ..archives.readers import read_items
from ..archives.record_values import canonical_id
from ..archives.records import read_records
from ..errors import ArchiveError, InvalidInputError

if TYPE_CHECKING:
    from hallujudge.metrics import Metric

    from ..archives import References
    from .score_run import ScoreRun

Response: TypeAlias = "str | Mapping[str, str | None] | None"
"""What the model wrote; for a benchmark that counts several answers together, name -> answer."""

# Stands for the response while references are read, and is replaced before anything is scored.
_PLACEHOLDER = "x"
# Items kept of references that came with their responses.
_KEPT = 1 << 14


class ResponseScore(Struct, frozen=True, kw_only=True, gc=False):
    """The scores of one response."""

    id: str
    """The id that was given; the position in the call without one."""
    scores: Mapping[str, float | None] = {}
    """Score -> value; None if it is undefined or the response is unscored."""
    outcome: Outcome = Outcome.UNSCORED
    """Whether the response was scored."""
    reason: str = ""
    """Why it is unscored, such as ``RESPONSE_EMPTY``; the error's reason if the service failed."""
    detail: str = ""
    """Details of the reason."""
    result: ItemResult | None = None
    """The result behind the scores; None if the service failed or a reference is missing."""

    @property
    def evidence(self) -> dict[str, Any]:
        """What the outcome is based on, as ``items.jsonl`` has it."""
        found = self.result.evidence if self.result is not None else None
        return dict(found.to_json()) if found is not None else {}


class ReferenceItems:
    """Items without responses, one for each reference, and the scores that are wanted of them.

    Args:
        run: The metric, how it is used, and the references; without them, each call gives its own.
        metric: The metric as the run uses it.
        scores: Names of scores; empty for the main score.

    Raises:
        ArchiveError: The references can't be read.
        InvalidInputError: The metric has no such score.
    """

    def __init__(self, run: ScoreRun, metric: Metric, scores: Sequence[str] = ()) -> None:
        self.definitions = {score.name: score for score in metric.scores}
        """Score -> its definition."""
        self.scores = _known_scores(metric, scores)
        """Names of the scores that are wanted."""
        self._run = replace(run, references=plain_source(run.references, "references"))
        self._metric = metric
        self._items = _items_of(self._run) if run.references is not None else None
        self._kept: dict[bytes, Item | str] = {}

    def filled(
        self, pairs: Sequence[tuple[str, Response]], references: Sequence[object] | None
    ) -> list[Item | str]:
        """Return an item of each response, or why it has no reference.

        Args:
            pairs: Ids of references and responses.
            references: The reference of each response; None to look them up by id.

        Raises:
            InvalidInputError: There are no references, or an item takes several answers.
        """
        found = self._known(pairs) if references is None else self._given(references)
        return [
            # By position, since several responses may be to one reference.
            item if isinstance(item, str) else _with_response(item, str(at), response)
            for at, (item, (_, response)) in enumerate(zip(found, pairs, strict=True))
        ]

    def scored(
        self,
        pairs: Sequence[tuple[str, Response]],
        items: Sequence[Item | str],
        results: Sequence[ItemResult],
    ) -> list[ResponseScore]:
        """Return the scores of each response.

        Args:
            pairs: What was given to :meth:`filled`.
            items: What it returned.
            results: The results of the items among them, in order.
        """
        columns = [
            self._metric.item_values(self.definitions[score], results) for score in self.scores
        ]
        rest = zip(results, zip(*columns, strict=True), strict=True)
        return [
            self.unscored(name, UnscoredReason.REFERENCE_MISSING, item)
            if isinstance(item, str)
            else self._score_of(name, *next(rest))
            for (name, _), item in zip(pairs, items, strict=True)
        ]

    def unscored(self, name: str, reason: str, detail: str) -> ResponseScore:
        """Return the record of a response without scores."""
        return ResponseScore(
            id=name, scores=dict.fromkeys(self.scores), reason=reason, detail=detail
        )

    def _score_of(
        self, name: str, result: ItemResult, values: tuple[float | None, ...]
    ) -> ResponseScore:
        scores = dict(zip(self.scores, values, strict=True))
        return ResponseScore(
            id=name,
            scores=scores,
            outcome=result.outcome,
            reason=result.reason,
            detail=result.detail,
            result=result,
        )

    def _known(self, pairs: Sequence[tuple[str, Response]]) -> list[Item | str]:
        if self._items is None:
            raise InvalidInputError(
                "there are no references; make the scorer with references=…, or give the reference "
                "of each response in the call"
            )
        return [self._items.get(name, f"no reference has the id {name!r:.80}") for name, _ in pairs]

    def _given(self, references: Sequence[object]) -> list[Item | str]:
        """Return an item of each reference; equal references are read once."""
        references = list(map(plain, references))
        keys = list(map(_key_of, references))
        if len(self._kept) > _KEPT:
            # Another one, and not cleared: another thread may still look into the old one.
            self._kept = {}
        kept = self._kept
        if new := {key: one for key, one in zip(keys, references, strict=True) if key not in kept}:
            kept |= _read_each(self._run, new)
        return [kept[key] for key in keys]


_encode = msgspec.msgpack.Encoder().encode


def _key_of(reference: object) -> bytes:
    """Return a key that only equal references share. They are plain values."""
    try:
        # The encoder would write a date as its text, and a data class as its object.
        return _encode(reference) if is_plain(reference) else repr(reference).encode()
    except (ValueError, OverflowError):  # half a surrogate pair, or a number above 64 bits
        return repr(reference).encode()


def _known_scores(metric: Metric, names: Sequence[str]) -> tuple[str, ...]:
    known = [score.name for score in metric.scores]
    if unknown := [name for name in names if name not in known]:
        raise InvalidInputError(
            f"{metric.name} has no score {unknown[0]!r}; {choose_from(unknown[0], known)}"
        )
    return tuple(names) or (metric.main_score,)


def check_call(responses: Sequence[Any], references: Sequence[object] | None) -> None:
    """Refuse responses and references that are not two lists of one length, or one of pairs.

    A text has a length too, and would be scored letter by letter; a mapping, key by key.

    Raises:
        InvalidInputError: They are something else.
    """
    for name, given in (("responses", responses), ("references", references)):
        if given is None and name == "references":
            continue
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sized):
            raise InvalidInputError(
                f"the {name} are of type {type(given).__name__}, not a list; give a list with one "
                "for each response"
            )
    if references is None:
        for at, given in enumerate(responses):
            is_other = isinstance(given, str | bytes | Mapping) or not isinstance(given, Sized)
            if is_other or len(given) != 2:
                raise InvalidInputError(
                    f"response {at} ({shown(plain(given))}) is not a pair of a reference's id and "
                    "a response; give such pairs, or the reference of each response too"
                )
    elif len(references) != len(responses):
        raise InvalidInputError(
            f"{len(responses)} responses, but {len(references)} references; give one for each"
        )


def pairs_of(
    responses: Sequence[Any], references: Sequence[object] | None
) -> list[tuple[str, Response]]:
    """Return ids and responses; without ids, the positions.

    Raises:
        InvalidInputError: They don't fit together; see :func:`check_call`.
    """
    check_call(responses, references)
    if references is None:
        return [(_id_of(name), response_of(one, at)) for at, (name, one) in enumerate(responses)]
    return [(str(at), response_of(response, at)) for at, response in enumerate(responses)]


def response_of(given: object, at: int) -> Response:
    """Return a response as the plain text that is scored.

    Args:
        given: A text; None, or an object with several answers by name; or the messages of a
            conversation, whose last one counts.
        at: Its position, for the message.

    Raises:
        InvalidInputError: It is none of these.
    """
    if type(given) is str:
        return given
    found: Any = sent_text(plain(given))
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        found = message_text(found[-1]) if found else None
    if isinstance(found, float) and math.isnan(found):
        return "nan"  # What tables have in place of a failed call, which scoring recognises.
    texts = found.values() if isinstance(found, dict) else (found,)
    if not all(text is None or isinstance(text, str) for text in texts):
        raise InvalidInputError(
            f"response {at} is {json_kind(found)}, not a text ({shown(found)}); give the text that "
            "the model wrote"
        )
    return found  # type: ignore[no-any-return]  # texts, as was checked


def _id_of(name: object) -> str:
    """Return an id as archives have it; a value that is not an id as its text, which none has."""
    try:
        return canonical_id(plain(name), "responses")
    except ArchiveError:
        return str(name)


def _with_response(item: Item, name: str, response: Response) -> Item:
    if not isinstance(item, AnswersItem):
        if isinstance(response, Mapping):
            raise InvalidInputError(
                f"response {name} is an object ({shown(response)}), where one text is scored; give "
                "what the model wrote"
            )
        # Every item but a closed question's has the field.
        return structs.replace(item, id=name, response=response)
    given = response
    if len(item.answers) == 1 and not isinstance(response, Mapping):
        given = {item.answers[0].name: response}
    if not isinstance(given, Mapping):
        names = ", ".join(answer.name for answer in item.answers)
        raise InvalidInputError(
            f"item {item.id!r:.80} has {len(item.answers)} answers; give a mapping from {names} to "
            "what the model wrote"
        )
    answers = tuple(
        structs.replace(answer, response=given.get(answer.name)) for answer in item.answers
    )
    return structs.replace(item, id=name, answers=answers)


def _items_of(run: ScoreRun) -> dict[str, Item]:
    """Return an item without a response for each reference."""
    declared, given = benchmark_named(run.metric), run.references
    assert given is not None, "the caller has references"
    options = run.inputs or InputOptions()
    if declared is not None and (isinstance(given, Mapping) or not declared.question_files):
        records = _labelled(declared, given)
        return {item.id: item for item in read_items(run.metric, records, None, options=options)}
    if declared is not None:
        # The other questions are missing answers, which have items too.
        options = replace(options, allow_missing=True)
        first = next(iter(read_records(open_references(given).source)), None)  # type: ignore[arg-type]
        ids = [id_of(declared, first, required=True)] if first is not None else []
    elif isinstance(given, Mapping):
        ids = [canonical_id(name, "references") for name in given]
    else:
        ids = _ids_in(run.metric, given)
    responses = dict.fromkeys(ids, _PLACEHOLDER)
    return {item.id: item for item in read_items(run.metric, responses, given, options=options)}


def _ids_in(metric: str, references: References) -> list[str]:
    reads = getattr(family_module(metric), "reference_ids", None)
    if reads is None:
        raise InvalidInputError(
            f"the ids of {metric}'s references in a file are not known before the responses; give "
            "a mapping from id to reference, or the reference of each response in the call"
        )
    return list(reads(references))


def _labelled(declared: ClosedQuestions, given: References) -> list[dict[str, object]]:
    """Return records of answers with labels, in place of records or a mapping of references."""
    answer, label = declared.keys.response[0], declared.keys.label[0]
    if not isinstance(given, Mapping):
        rows = read_records(open_references(given).source)  # type: ignore[arg-type]  # not None
        return [{**row.values, answer: _PLACEHOLDER} for row in rows]
    name = declared.keys.id[0] if declared.keys.id else "id"
    return [
        {name: key, **(one if isinstance(one, Mapping) else {label: one}), answer: _PLACEHOLDER}
        for key, one in given.items()
    ]


def _read_each(run: ScoreRun, given: Mapping[bytes, object]) -> dict[bytes, Item | str]:
    """Return an item of each reference, or why it can't be read."""
    names = {key: str(at) for at, key in enumerate(given)}
    references = {names[key]: one for key, one in given.items() if one is not None}
    try:
        items = _items_of(replace(run, references=references)) if references else {}
    except ArchiveError as err:
        if len(given) == 1:
            return dict.fromkeys(given, str(err))
        # One of them can't be read; the others are read without it.
        return {k: v for key, one in given.items() for k, v in _read_each(run, {key: one}).items()}
    return {key: items.get(name, "the reference is null") for key, name in names.items()}
