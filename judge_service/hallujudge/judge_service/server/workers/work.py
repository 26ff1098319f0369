"""What a worker does with a task: bytes of messages in, bytes of messages out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from time import process_time

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Item, Report

from ...access.memory import MemoryBudget
from ...engine import Engine, ScoringSession, metric_names
from ...engine.registry import metric_entry
from ...engine.resources import Resources
from ...engine.spec import ScoreSpec
from ...errors import HallujudgeError, InvalidInputError
from ...observe.recorder import Outcomes, Recorder, begin_recording
from ...wire.jobs import WireCodec
from ..calls import Calls
from ..costs import groups_of
from ..failures import internal_error
from ..requests import MoreMemoryError, read_message
from .frames import Failure, Reply, Task, WorkerSettings

__all__ = ["Work"]


class Work:
    """Does tasks, one at a time.

    Args:
        settings: What it needs to know.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        resources = Resources(memory=MemoryBudget(settings.max_graph_bytes))
        self._calls = Calls(Engine(resources, keep_graphs=True), settings)
        self._runner = asyncio.Runner()  # opened with the first task: processes must not share it
        self._kinds: Mapping[str, Callable[[Task], Awaitable[Reply]]] = {
            "score": self._score,
            "open": self._open,
            "batch": self._batch,
            "merge": self._merge,
            "report": self._report,
            "items": self._items,
            "tally": self._tally,
            "job_report": self._job_report,
            "extract": self._extract,
            "normalize": self._normalize,
        }

    def do(self, task: Task) -> Reply:
        """Do a task; errors are replies."""
        began = process_time()
        outcomes = _OutcomeCount()
        try:
            reply = self._runner.run(self._done(task, outcomes))
        except MoreMemoryError as error:
            reply = Reply(needs=error.size)
        except HallujudgeError as error:
            reply = Reply(failure=Failure.of(error))
        except Exception as error:
            reply = Reply(failure=Failure.of(internal_error(error)))
        return replace(reply, outcomes=dict(outcomes.count), seconds=process_time() - began)

    def close(self) -> None:
        """Close its event loop."""
        self._runner.close()

    def warm_up(self) -> None:
        """Score an item of each metric, so that forks of this process share what that loads."""
        for name in metric_names():
            entry = metric_entry(name)
            spec = ScoreSpec(metric=name)
            if not entry.needs_models(spec):
                asyncio.run(self._scored(spec, entry.trial.item))

    async def _scored(self, spec: ScoreSpec, item: Item) -> None:
        session = await self._calls.engine.open(spec)
        await self._calls.batch_response(await session.evaluate([item]))
        session.report()

    async def _done(self, task: Task, outcomes: _OutcomeCount) -> Reply:
        begin_recording(outcomes)
        return await self._kinds[task.kind](task)

    async def _score(self, task: Task) -> Reply:
        request = read_message(pb.ScoreRequest, task.parts[0], task.memory)
        _refuse_models(request.spec)
        response = await self._calls.score(request)
        return Reply(parts=(response.SerializeToString(),))

    async def _open(self, task: Task) -> Reply:
        _, session = await self._session(task)
        accepted = pb.StreamAccepted(statistic_names=session.statistic_names)
        return Reply(parts=(pb.ScoreStreamResponse(accepted=accepted).SerializeToString(),))

    async def _batch(self, task: Task) -> Reply:
        """Score a batch of a stream; the second part is its share of the report."""
        spec, session = await self._session(task)
        request = read_message(pb.ScoreStreamRequest, task.parts[1], task.memory)
        items = await self._calls.stream_items(spec, request)
        results = await session.evaluate(items)
        response = await self._calls.batch_response(results)
        groups = groups_of(items, spec.group_by, session.metric)
        return Reply(
            parts=(
                response.SerializeToString(),
                session.tally_of(results) if task.report else b"",
            ),
            groups={key: tuple(values) for key, values in groups.items()},
        )

    async def _merge(self, task: Task) -> Reply:
        """Make one share of the report of several, which takes less memory."""
        _, session = await self._session(task)
        for tally in task.parts[1:]:
            session.merge(tally)
        return Reply(parts=(session.merged(),))

    async def _report(self, task: Task) -> Reply:
        """Make the report of a stream from the shares of its batches."""
        pieces = self._calls.report_pieces(await self._merged_report(task))
        return Reply(parts=tuple(piece.SerializeToString() for piece in pieces))

    async def _job_report(self, task: Task) -> Reply:
        """Make the report of a job from the shares of its results."""
        return Reply(parts=(WireCodec().report_bytes(await self._merged_report(task)),))

    async def _merged_report(self, task: Task) -> Report:
        _, session = await self._session(task)
        for tally in task.parts[1:]:
            session.merge(tally)
        return session.report()

    async def _tally(self, task: Task) -> Reply:
        """Make the share of a report of stored results."""
        _, session = await self._session(task)
        codec = WireCodec()
        results = [codec.result(content) for content in task.parts[1:]]
        return Reply(parts=(session.tally_of(results),))

    async def _items(self, task: Task) -> Reply:
        """Score items of a job, each for itself."""
        _, session = await self._session(task)
        codec = WireCodec()
        results = await session.evaluate(codec.items(task.parts[1:]))
        return Reply(
            parts=tuple(map(codec.result_bytes, results)),
            reasons=tuple(str(result.reason) for result in results),
        )

    async def _extract(self, task: Task) -> Reply:
        request = read_message(pb.ExtractRequest, task.parts[0], task.memory)
        response = await self._calls.extract(request)
        return Reply(parts=(response.SerializeToString(),))

    async def _normalize(self, task: Task) -> Reply:
        request = read_message(pb.NormalizeRequest, task.parts[0], task.memory)
        response = await self._calls.normalize(request)
        return Reply(parts=(response.SerializeToString(),))

    async def _session(self, task: Task) -> tuple[ScoreSpec, ScoringSession]:
        message = read_message(scoring_pb2.ScoreSpec, task.parts[0])
        _refuse_models(message)
        return await self._calls.open(message)


def _refuse_models(message: scoring_pb2.ScoreSpec) -> None:
    """Refuse a spec that is another one than the server read: its bytes hold two.

    Raises:
        InvalidInputError: It needs models, which workers don't have.
    """
    options = dict(message.options)
    spec = ScoreSpec(metric=message.metric, options=options)
    if metric_entry(spec.metric).needs_models(spec):
        raise InvalidInputError(
            "the request has more than one spec; send one", reason="MALFORMED_MESSAGE"
        )


class _OutcomeCount(Recorder):
    """Counts outcomes of items, which the server records."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def items_scored(self, metric: str, outcomes: Outcomes) -> None:  # noqa: ARG002
        """Count outcomes."""
        self.count.update(outcomes)
