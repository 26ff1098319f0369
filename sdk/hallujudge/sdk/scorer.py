"""Scores of single responses: no folder, no intervals, no report.

Training code and evaluation harnesses ask for a score of each response, many times, about the same
references. A :class:`Scorer` reads references once, keeps an item of each, and puts responses into
copies of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from hallujudge.judge_service.engine.registry import checked_entry
from hallujudge.metrics import Item, Outcome
from hallujudge.metrics.answers.closed_questions import AnswersItem, ClosedQuestions
from hallujudge.metrics.families import benchmark_named
from hallujudge.metrics.framework.reasons import UnscoredReason

from .archives.inputs import InputOptions, family_module
from .archives.question_files import id_of
from .archives.readers import open_references, read_items
from .archives.records import canonical_id, read_records
from .backends.base import metric_of
from .client import Client
from .errors import ArchiveError, HallujudgeError, InvalidInputError, UnavailableError
from .score_run import ScoreRun

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection
    from hallujudge.metrics import ItemResult, Metric
    from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition

    from .archives import References
    from .backends.base import RunHeader

_LOG = logging.getLogger(__name__)

Response: TypeAlias = "str | Mapping[str, str | None] | None"
"""What the model wrote; for a benchmark that counts several answers together, name -> answer."""
Failures: TypeAlias = Literal["raise", "none"]
"""What a failure of the service does: it raises, or leaves the call's responses unscored."""

# Stands for the response while references are read, and is replaced before anything is scored.
_PLACEHOLDER = "x"
# Items kept of references that came with their responses.
_KEPT = 1 << 14
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseScore:
    """The scores of one response."""

    id: str
    """The id that was given; the position in the call without one."""
    scores: Mapping[str, float | None] = field(default_factory=dict)
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
        self._run = run
        self._metric = metric
        self._items = _items_of(run) if run.references is not None else None
        self._kept: dict[str, Item | str] = {}

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
        rest = iter(results)
        return [
            self.unscored(name, UnscoredReason.REFERENCE_MISSING, item)
            if isinstance(item, str)
            else self._score_of(name, next(rest))
            for (name, _), item in zip(pairs, items, strict=True)
        ]

    def unscored(self, name: str, reason: str, detail: str) -> ResponseScore:
        """Return the record of a response without scores."""
        return ResponseScore(
            id=name, scores=dict.fromkeys(self.scores), reason=reason, detail=detail
        )

    def _score_of(self, name: str, result: ItemResult) -> ResponseScore:
        return ResponseScore(
            id=name,
            scores={score: self._value(score, result) for score in self.scores},
            outcome=result.outcome,
            reason=result.reason,
            detail=result.detail,
            result=result,
        )

    def _value(self, name: str, result: ItemResult) -> float | None:
        """Return a score over one response; None if it is undefined."""
        if result.outcome is not Outcome.SCORED or name in result.scores:
            return result.scores.get(name)
        metric, definition = self._metric, self.definitions[name]
        names = [column.name for column in metric.columns]
        numbers = {metric.unit: 1.0, **dict(zip(names, result.statistics, strict=True))}
        sums = np.array([[numbers.get(column, np.nan) for column in definition.columns]])
        with np.errstate(all="ignore"):
            value = float(definition.values(sums)[0])
        return value if np.isfinite(value) else None

    def _known(self, pairs: Sequence[tuple[str, Response]]) -> list[Item | str]:
        if self._items is None:
            raise InvalidInputError(
                "there are no references; make the scorer with references=…, or give the reference "
                "of each response in the call"
            )
        return [self._items.get(name, f"no reference has the id {name!r:.80}") for name, _ in pairs]

    def _given(self, references: Sequence[object]) -> list[Item | str]:
        """Return an item of each reference; equal references are read once."""
        keys = [json.dumps(given, sort_keys=True, default=repr) for given in references]
        given = dict(zip(keys, references, strict=True))
        if len(self._kept) > _KEPT:
            self._kept = {}
        kept = self._kept
        kept |= _read_each(self._run, {key: given[key] for key in given.keys() - kept.keys()})
        return [kept[key] for key in keys]


class Scorer:
    """Scores responses one by one; references are read once, and models are loaded once.

    It may be called from several threads. It can be pickled, and forked while it scores in this
    process. A process that is forked can't use a server that its parent has called: gRPC does not
    work there, so a scorer calls the server when it first scores, not when it is made.

    Args:
        metric: The metric's name, such as ``"chair"``.
        references: As for ``Client.score``; the records of questions with labels for a benchmark
            whose answers hold the labels; None if every call gives references.
        scores: Names of the scores that are wanted; empty for the metric's main score.
        variant: The metric's variant; empty for its default.
        graph: As for ``Client.score``.
        options: As for ``Client.score``.
        inputs: How references are read.
        server: A server's host and port; empty to score in this process.
        connection: Certificates and API key for the server.
        settings: Settings of the judges in this process, as for ``Client.embedded``.
        deadline: Seconds that a call may take; None for no limit.
        on_failure: Whether a failure of the service raises, or leaves responses unscored with the
            error as their reason. It is logged when it begins and when it ends.

    Raises:
        ArchiveError: The references can't be read.
        InvalidInputError: An argument is invalid.
        NotFoundError: The metric or graph is unknown.
        UnavailableError: Nothing listens at the server's address.

    Example:
        >>> scorer = Scorer("chair", references={"42": ["cat", "couch"]}, scores=["chair_i"])
        >>> [score] = scorer([("42", "A cat and a dog.")])
        >>> score.scores
        {'chair_i': 0.5}
        >>> scorer.close()
    """

    def __init__(
        self,
        metric: str,
        *,
        references: References | None = None,
        scores: Sequence[str] = (),
        variant: str = "",
        graph: str | Path | Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
        inputs: InputOptions | None = None,
        server: str = "",
        connection: Connection | None = None,
        settings: Mapping[str, object] | None = None,
        deadline: float | None = None,
        on_failure: Failures = "raise",
    ) -> None:
        if on_failure not in ("raise", "none"):
            raise InvalidInputError(f"on_failure={on_failure!r} is unknown; give 'raise' or 'none'")
        if deadline is not None and not deadline > 0:
            raise InvalidInputError(f"deadline={deadline!r} is not a number of seconds above 0")
        self.metric = metric
        """The metric's name."""
        self.deadline = deadline
        """Seconds that a call may take."""
        self.on_failure: Failures = on_failure
        """What a failure of the service does."""
        run = ScoreRun(
            metric,
            responses=(),
            references=references,
            variant=variant,
            graph=graph,
            options=options,
            inputs=inputs,
        )
        self._spec = run.spec()
        self._server, self._connection, self._settings = server, connection, dict(settings or {})
        self._failing = False
        self._connect()
        self._references = ReferenceItems(run, self._checked_metric(), scores)
        self.scores = self._references.scores
        """Names of the scores that calls return."""

    def _connect(self) -> None:
        self._header: RunHeader | None = None
        if self._server:
            self._client = Client(self._server, connection=self._connection)
        else:
            self._client = Client.embedded(self._settings)

    def _checked_metric(self) -> Metric:
        """Return the metric as it is used, so that a wrong setting fails before the first call."""
        if not self._server:
            self._header = self._client.header(self._spec)
            return self._header.metric
        checked_entry(self._spec)
        check_listening(self._server)
        return metric_of(self.metric, self._spec.variant, self._spec.options)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the connection."""
        gone = {"_client", "_header"}
        return {name: value for name, value in self.__dict__.items() if name not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Connect in the process that unpickles the scorer."""
        self.__dict__.update(state)
        self._connect()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def definition(self, score: str) -> ScoreDefinition:
        """Return the definition of a score: its range, and which end of it is better."""
        return self._references.definitions[score]

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._header = None
        self._client.close()

    def __call__(
        self,
        responses: Sequence[tuple[str, Response]] | Sequence[Response],
        references: Sequence[object] | None = None,
    ) -> list[ResponseScore]:
        """Return the scores of each response, in order.

        Args:
            responses: Pairs of a reference's id and a response; ids may repeat. With
                ``references``, the responses alone.
            references: The reference of each response, as a mapping of references holds it: a
                list of objects for CHAIR, of triplets for Tri-HE, a label or a record with it for
                questions.

        Raises:
            HallujudgeError: The service failed, and ``on_failure`` is ``"raise"``.
            InvalidInputError: The arguments don't fit together.
        """
        pairs = pairs_of(responses, references)
        items = self._references.filled(pairs, references)
        try:
            results = self._results([item for item in items if isinstance(item, Item)])
        except HallujudgeError as err:
            if self.on_failure == "raise":
                raise
            self._note(err)
            return [self._references.unscored(name, err.reason, str(err)) for name, _ in pairs]
        self._note(None)
        return self._references.scored(pairs, items, results)

    async def score(
        self,
        responses: Sequence[tuple[str, Response]] | Sequence[Response],
        references: Sequence[object] | None = None,
    ) -> list[ResponseScore]:
        """Return what a call of the scorer returns, without blocking the caller's event loop."""
        return await asyncio.to_thread(self, responses, references)

    def _results(self, items: Sequence[Item]) -> list[ItemResult]:
        if not items:
            return []
        if self._header is None:
            self._header = self._client.header(self._spec)
        return self._client.evaluate(self._spec, items, self._header, deadline=self.deadline)

    def _note(self, err: HallujudgeError | None) -> None:
        """Log when failures begin and end, not each one."""
        if err is not None and not self._failing:
            _LOG.warning("%s: responses are not scored: %s", self.metric, err)
        elif err is None and self._failing:
            _LOG.warning("%s: responses are scored again", self.metric)
        self._failing = err is not None


def check_listening(server: str) -> None:
    """Refuse an address where nothing listens. gRPC is not used, so that the process may fork.

    Raises:
        UnavailableError: A connection to the host and port fails.
    """
    host, _, port = server.rpartition(":")
    if not port.isdigit() or ":" in host.strip("[]"):
        return  # another kind of target, which gRPC resolves
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as err:
        raise UnavailableError(
            f"nothing listens at {server!r} ({err.strerror or err}); start the server, or correct "
            "the address",
            metadata={"target": server},
        ) from err


def _known_scores(metric: Metric, names: Sequence[str]) -> tuple[str, ...]:
    known = [score.name for score in metric.scores]
    if unknown := [name for name in names if name not in known]:
        raise InvalidInputError(
            f"{metric.name} has no score {unknown[0]!r}; known: {', '.join(known)}"
        )
    return tuple(names) or (metric.main_score,)


def pairs_of(
    responses: Sequence[Any], references: Sequence[object] | None
) -> list[tuple[str, Response]]:
    """Return ids and responses; without ids, the positions.

    Raises:
        InvalidInputError: Responses and references differ in number.
    """
    if references is None:
        return [(str(name), response) for name, response in responses]
    if len(references) != len(responses):
        raise InvalidInputError(
            f"{len(responses)} responses, but {len(references)} references; give one for each"
        )
    return [(str(at), response) for at, response in enumerate(responses)]


def _with_response(item: Item, name: str, response: Response) -> Item:
    if not isinstance(item, AnswersItem):
        # Every other item has the field.
        return replace(item, id=name, response=response)  # type: ignore[call-arg]
    given = response
    if len(item.answers) == 1 and not isinstance(response, Mapping):
        given = {item.answers[0].name: response}
    if not isinstance(given, Mapping):
        names = ", ".join(answer.name for answer in item.answers)
        raise InvalidInputError(
            f"item {item.id!r:.80} has {len(item.answers)} answers; give a mapping from {names} to "
            "what the model wrote"
        )
    answers = tuple(answer._replace(response=given.get(answer.name)) for answer in item.answers)
    return replace(item, id=name, answers=answers)


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


def _read_each(run: ScoreRun, given: Mapping[str, object]) -> dict[str, Item | str]:
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
