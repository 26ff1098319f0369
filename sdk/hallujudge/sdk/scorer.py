"""Scorers: scores of single responses for training code and evaluation harnesses.

Such code asks for a score of each response, many times, about the same references, without a
folder, intervals or a report. A :class:`Scorer` reads references once and keeps its models.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hallujudge.judge_service import is_whole
from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.metrics import Item

from . import runs
from .client import Client
from .errors import HallujudgeError, InvalidInputError, UnavailableError
from .runs.response_scores import ReferenceItems, Response, ResponseScore, pairs_of
from .runs.score_run import ScoreRun

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import RunHeader
    from hallujudge.judge_service.settings.connection import Connection
    from hallujudge.metrics import ItemResult, Metric
    from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition

    from .archives import InputOptions, References

_LOG = logging.getLogger(__name__)

Failures: TypeAlias = Literal["raise", "none"]
"""What a failure of the service does: it raises, or leaves the call's responses unscored."""

# A host that drops packets would otherwise hold the start of a training job for minutes.
_CONNECT_SECONDS = 5.0


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
        evidence: Whether scores hold the evidence; calls are faster without it.
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
        evidence: bool = True,
        on_failure: Failures = "raise",
    ) -> None:
        if on_failure not in ("raise", "none"):
            raise InvalidInputError(f"on_failure={on_failure!r} is unknown; give 'raise' or 'none'")
        if deadline is not None and not _is_positive(deadline):
            raise InvalidInputError(f"deadline={deadline!r:.60} is not a number of seconds above 0")
        self.metric = metric
        """The metric's name."""
        self.deadline = deadline
        """Seconds that a call may take."""
        self._evidence = evidence
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
        if is_whole():
            # A client alone knows no options of judges, which the first call's server checks.
            runs.checked_entry(self._spec)
        check_listening(self._server)
        return metric_of(self.metric, self._spec.variant, self._spec.options)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the connection."""
        # Connections and what a server said of itself belong to this process.
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

    def header(self) -> RunHeader:
        """Return the metric as it is used, with its signature up to what depends on responses.

        Raises:
            HallujudgeError: The service failed.
        """
        if self._header is None:
            self._header = self._client.header(self._spec)
        return self._header

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        # By the next call, the server may be another one.
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
        # Where nothing is left to score, no server is called.
        if not items:
            return []
        return self._client.evaluate(
            self._spec,
            items,
            self.header(),
            deadline=self.deadline,
            scores=self.scores,
            evidence=self._evidence,
        )

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


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and float(value) > 0
