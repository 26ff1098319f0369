"""Tasks of worker processes: the blocks they are sent as, and the work itself."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from types import FrameType
from typing import TypeVar

import msgspec
from google.protobuf.message import Message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Item
from hallujudge.metrics.families import add_benchmarks, metric_names

from ..engine import Engine, ScoringSession
from ..engine.registry import metric_entry
from ..engine.resources import Resources
from ..engine.spec import ScoreSpec
from ..engine.streams import keys_of
from ..errors import REASONS, HallujudgeError, InvalidInputError, Violation
from ..forked_workers import Answer, Program
from ..observe import Recorder, begin_recording
from ..settings.server_settings import LimitSettings
from ..tenancy import EvaluatedItem, MemoryBudget, Outcomes
from ..wire.convert import items_of, report_bytes, result_bytes, result_of
from .calls import Calls, died_of, with_scores
from .logs import internal_error, set_up_logging
from .request_checks import groups_of
from .request_reader import MoreMemoryError, read_message

_MessageT = TypeVar("_MessageT", bound=Message)
# Work in C code may not notice the exception of the first timer; after this margin it is killed.
_MARGIN_SECONDS = 5.0
# Workers have lower priority than the server's process, which all calls wait for.
_NICE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of workers, without keys, addresses or files of the server."""

    limits: LimitSettings
    """The limits of messages, and of a task's processor time."""
    max_graph_bytes: int
    """Memory for the graphs that callers send."""
    log_level: str = "info"
    """The lowest level of messages that are logged."""
    benchmarks: tuple[str, ...] = ()
    """Files and names of benchmarks from outside."""
    wants_items: bool = False
    """Whether replies name the scores of each item, for evaluation events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Work for a worker."""

    kind: str
    """What to do; see :class:`Work`."""
    parts: tuple[bytes, ...]
    """The messages as they were received."""
    report: bool = False
    """Whether the batch counts for a report."""
    died: str = ""
    """Why the items are not scored; empty to score them."""
    memory: int | None = None
    """Maximum memory for parsing the messages, in bytes, or None for no limit."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error of a worker, for the caller."""

    reason: str
    """A key of ``REASONS``."""
    message: str
    """What is wrong and what to do."""
    metadata: dict[str, str] = {}
    """The variable parts of the message."""
    violations: tuple[Violation, ...] = ()
    """The fields that are invalid."""
    retry_after: float | None = None
    """Seconds to wait before another attempt."""

    @classmethod
    def of(cls, error: HallujudgeError) -> Failure:
        """Return an error as it is sent."""
        return cls(**{name: getattr(error, name) for name in cls.__struct_fields__})

    def error(self) -> HallujudgeError:
        """Return the error."""
        return REASONS[self.reason].error(**msgspec.structs.asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a task."""

    parts: tuple[bytes, ...] = ()
    """Messages to send, and partial tallies for the report."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Reason -> number of unscored items; the empty reason has the scored items."""
    evaluated: tuple[EvaluatedItem, ...] = ()
    """The scores of each item, if the settings want them."""
    reasons: tuple[str, ...] = ()
    """Why each item of a job is unscored; empty if it is scored."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Field to report groups by -> values in a batch."""
    keys: bytes = b""
    """The keys of the ids of a batch, from :func:`keys_of`."""
    needs: int = 0
    """The memory that the messages need, if they need more than the task allows."""
    failure: Failure | None = None
    """Why the task failed."""
    seconds: float = 0.0
    """The processor time that it took."""


encode = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


class TooLongError(BaseException):
    """A task took too long. It is not an Exception, so that no handler of errors swallows it."""


class WorkerJob:
    """What worker processes do with the blocks of tasks.

    Args:
        settings: The settings of workers.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._limited = False
        self._work = Work(settings)

    def prepare(self) -> None:
        """Load what all workers share."""
        set_up_logging(self._settings.log_level)
        add_benchmarks(self._settings.benchmarks, alone=True)
        self._work.warm_up()
        # A fork copies no thread, such as the log's: each worker starts its own.
        logging.shutdown()

    def begin(self) -> None:
        """Limit the processor time of each task, which needs the timers of a process."""
        signal.signal(signal.SIGPROF, _too_long)
        self._limited = True
        logging.getLogger().handlers.clear()
        set_up_logging(self._settings.log_level)

    def do(self, block: bytes) -> Answer:
        """Return the reply to a task; if it takes too long, the worker ends after its reply."""
        task = decode_task(block)
        if not self._limited:
            return Answer(encode(self._work.do(task)))
        seconds = self._settings.limits.max_work_seconds
        signal.setitimer(signal.ITIMER_PROF, seconds)
        # The signal of this timer has no handler, so that the system kills the process.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds + _MARGIN_SECONDS)
        try:
            return Answer(encode(self._work.do(task)))
        except TooLongError:
            reply = Reply(failure=too_long(seconds), seconds=seconds)
            return Answer(encode(reply), last=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def close(self) -> None:
        """Close the event loop of the work."""
        self._work.close()


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TooLongError


def too_long(seconds: float) -> Failure:
    """Return the failure of a task that takes too long."""
    return Failure(
        reason="TOO_COSTLY",
        message=f"the request took more than {seconds:g} s of processor time (setting "
        "limits.max_work_seconds); send fewer or shorter items, or group by fewer values",
    )


def worker_program(settings: WorkerSettings) -> Program:
    """Return the program of workers."""
    return Program.of(worker_job, encode(settings), nice=_NICE)


def worker_job(settings: bytes) -> WorkerJob:
    """Return what workers do."""
    return WorkerJob(msgspec.msgpack.decode(settings, type=WorkerSettings))


class Work:
    """Does the tasks of a worker, one at a time.

    Args:
        settings: The settings of workers.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        resources = Resources(memory=MemoryBudget(settings.max_graph_bytes))
        # Graphs that callers send are kept, because parsing a large one takes seconds.
        self._calls = Calls(Engine(resources, keep_graphs=True), settings.limits)
        self._wants_items = settings.wants_items
        # Its loop is opened with the first task, because forks must not share one.
        self._runner = asyncio.Runner()
        self._kinds: Mapping[str, Callable[[Task], Awaitable[Reply]]] = {
            "score": self._answer(pb.ScoreRequest, self._calls.Score),
            "open": self._open,
            "batch": self._batch,
            "merge": self._merge,
            "report": self._report,
            "items": self._items,
            "tally": self._tally,
            "job_report": self._job_report,
            "extract": self._answer(pb.ExtractRequest, self._calls.Extract),
            "normalize": self._answer(pb.NormalizeRequest, self._calls.Normalize),
        }

    def do(self, task: Task) -> Reply:
        """Do a task; errors become replies."""
        began = process_time()
        outcomes = _OutcomeCount(wants_items=self._wants_items)
        try:
            reply = self._runner.run(self._done(task, outcomes))
        except MoreMemoryError as error:
            # The server charges the memory to the call, and sends the task again.
            reply = Reply(needs=error.size)
        except HallujudgeError as error:
            reply = Reply(failure=Failure.of(error))
        except Exception as error:
            reply = Reply(failure=Failure.of(internal_error(error)))
        return replace(
            reply,
            outcomes=dict(outcomes.count),
            evaluated=tuple(outcomes.evaluated),
            seconds=process_time() - began,
        )

    def close(self) -> None:
        """Close its event loop."""
        self._runner.close()

    def warm_up(self) -> None:
        """Score an item of each metric, so that forks of this process share what it loads."""
        for name in metric_names():
            entry = metric_entry(name)
            spec = ScoreSpec(metric=name)
            if not entry.needs_models(spec):
                # In a loop that ends here, because forks must not share one.
                asyncio.run(self._scored(spec, entry.trial.item))

    async def _scored(self, spec: ScoreSpec, item: Item) -> None:
        session = await self._calls.engine.open(spec)
        await self._calls.batch_response(await session.evaluate([item]))
        session.report()

    async def _done(self, task: Task, outcomes: _OutcomeCount) -> Reply:
        begin_recording(outcomes)
        return await self._kinds[task.kind](task)

    def _answer(
        self, kind: type[_MessageT], call: Callable[[_MessageT], Awaitable[Message]]
    ) -> Callable[[Task], Awaitable[Reply]]:
        """Return what answers the only message of a task."""

        async def answered(task: Task) -> Reply:
            request = read_message(kind, task.parts[0], task.memory)
            if isinstance(request, pb.ScoreRequest):
                _refuse_models(request.spec)
            response = await call(request)
            return Reply(parts=(response.SerializeToString(),))

        return answered

    async def _open(self, task: Task) -> Reply:
        _, session = await self._session(task)
        accepted = pb.StreamAccepted(statistic_names=session.statistic_names)
        return Reply(parts=(pb.ScoreStreamResponse(accepted=accepted).SerializeToString(),))

    async def _batch(self, task: Task) -> Reply:
        """Score a batch of a stream; the second part is its tally."""
        spec, session = await self._session(task)
        request = read_message(pb.ScoreStreamRequest, task.parts[1], task.memory)
        items = await self._calls.stream_items(spec, request)
        died = task.died or died_of(request)
        results = session.unscored(items, died) if died else await session.evaluate(items)
        named = with_scores(session.metric, results, request)
        response = await self._calls.batch_response(named)
        groups = groups_of(items, spec.group_by, session.metric)
        return Reply(
            parts=(response.SerializeToString(), session.tally_of(results) if task.report else b""),
            groups={key: tuple(values) for key, values in groups.items()},
            keys=keys_of(item.id for item in items),
        )

    async def _merge(self, task: Task) -> Reply:
        """Merge partial tallies into one, which takes less memory."""
        return Reply(parts=((await self._merged(task)).merged(),))

    async def _report(self, task: Task) -> Reply:
        """Make the report of a stream from its partial tallies."""
        pieces = self._calls.report_pieces((await self._merged(task)).report())
        return Reply(parts=tuple(piece.SerializeToString() for piece in pieces))

    async def _job_report(self, task: Task) -> Reply:
        """Make the report of a job from its partial tallies."""
        return Reply(parts=(report_bytes((await self._merged(task)).report()),))

    async def _merged(self, task: Task) -> ScoringSession:
        """Return a session with all partial tallies of a task."""
        _, session = await self._session(task)
        for tally in task.parts[1:]:
            session.merge(tally)
        return session

    async def _tally(self, task: Task) -> Reply:
        """Return the tally of stored results."""
        _, session = await self._session(task)
        results = list(map(result_of, task.parts[1:]))
        return Reply(parts=(session.tally_of(results),))

    async def _items(self, task: Task) -> Reply:
        """Score items of a job; the first part is their tally."""
        _, session = await self._session(task)
        items = items_of(task.parts[1:])
        results = session.unscored(items, task.died) if task.died else await session.evaluate(items)
        return Reply(
            parts=(session.tally_of(results), *map(result_bytes, results)),
            reasons=tuple(str(result.reason) for result in results),
        )

    async def _session(self, task: Task) -> tuple[ScoreSpec, ScoringSession]:
        message = read_message(scoring_pb2.ScoreSpec, task.parts[0])
        _refuse_models(message)
        return await self._calls.open(message)


def _refuse_models(message: scoring_pb2.ScoreSpec) -> None:
    """Refuse a spec that needs models, which workers don't have.

    The server has checked the spec. If the bytes hold two specs, though, protobuf merges them.

    Raises:
        InvalidInputError: The spec needs models.
    """
    options = dict(message.options)
    spec = ScoreSpec(metric=message.metric, options=options)
    if metric_entry(spec.metric).needs_models(spec):
        raise InvalidInputError(
            "the request has more than one spec; send one", reason="MALFORMED_MESSAGE"
        )


class _OutcomeCount(Recorder):
    """Counts outcomes of items, for the server to record.

    Args:
        wants_items: Whether the scores of each item are kept too.
    """

    def __init__(self, *, wants_items: bool) -> None:
        self.wants_items = wants_items
        self.count: Counter[str] = Counter()
        self.evaluated: list[EvaluatedItem] = []

    def items_scored(self, metric: str, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Count outcomes."""
        self.count.update(outcomes)

    def items_evaluated(self, metric: str, items: Sequence[EvaluatedItem]) -> None:  # noqa: ARG002
        """Keep scores."""
        self.evaluated += items
