"""Scoring of one job: from the items without a result to the report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.signature import same_but_versions

from ..access import caller_now, current_caller
from ..engine import Engine, ScoringSession
from ..engine.registry import metric_entry
from ..engine.streams import ordered_map
from ..errors import InvalidInputError, OverloadedError, UnavailableError
from ..fair_queue import FairQueue
from ..flights import FlightLog, Flights
from ..llm.ask_once import run_bounded
from ..stopping import CallDrain, HeldBackError, JointWork
from ..threads import in_thread, shielded
from ..wire.convert import items_of, report_bytes, report_of, result_bytes, result_of, spec_of
from . import Answer, Job, JobWork, JobWorkers, Problem, ScoredChunk, Trial
from .job_progress import Activity, Changes, JobProgress, JobSuspicions

_LOG = logging.getLogger(__name__)

# As large as the batches of a stream, and as many of them at the same time.
_CHUNK_ITEMS = 64
_CHUNK_BYTES = 1 << 20
MAX_CONCURRENCY = 8
"""Chunks of one job that are scored at the same time."""
_DIED = "the server died each time it scored this item"
# A database that was locked or full is mostly available again after seconds.
_STORE_PAUSE = 2.0
# Enough for one call besides the runner; SQLite lets one writer in at a time anyway.
_THREADS = 4
_P = ParamSpec("_P")
_T = TypeVar("_T")
_Chunk = Sequence[tuple[int, bytes]]


class StoppedError(Exception):
    """The job was cancelled, or the server stops."""


def stopping_error() -> UnavailableError:
    """Return the error of calls that need the jobs of a server that stops."""
    return UnavailableError("the server stops", reason="SERVER_DRAINING", retry_after=_STORE_PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScoring:
    """Scores jobs.

    A result goes to the database together with its outcome as soon as its chunk is scored. A server
    that is killed therefore repeats at most the chunks that were being scored, and calls to judges
    that were made for them are in the verdict cache. Results enter the report as they are scored;
    only a job that was resumed reads them from the database.
    """

    engine: Engine
    """Scores items."""
    progress: JobProgress
    """The database."""
    threads: DatabaseThreads
    """Threads for the database."""
    changes: Changes
    """Notified of every change."""
    activity: Activity
    """Notes when results are stored."""
    draining: asyncio.Event
    """Set when the server stops: no further chunk is begun, and no further judge call sent."""
    calls: CallDrain
    """Lets judge calls that are under way end when the server stops."""
    now: Callable[[], float]
    """Seconds since 1970."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits."""
    workers: JobWorkers | None = None
    """Does what needs no models, if set; otherwise the engine does."""
    lanes: Lanes
    """Lets chunks begin."""
    suspicions: JobSuspicions
    """Items in flight, and those that were when the server died."""
    sessions: dict[int, ScoringSession] = field(default_factory=dict)
    """The sessions of the jobs that are being scored, by job number."""

    def with_verdicts(self, job: Job) -> Job:
        """Return a job with the verdicts that were given while this server scores it."""
        session = self.sessions.get(job.number)
        return job if session is None else replace(job, verdicts=session.progress().verdicts)

    def is_judged(self, job: Job) -> bool:
        """Return whether language models judge or extract in a job."""
        spec = spec_of(job.spec)
        return metric_entry(spec.metric).calls_models(spec)

    async def score(self, job: Job) -> None:
        """Score what a job has not scored yet, and finish it.

        Raises:
            StoppedError: The job was cancelled, or the server stops.
            HallujudgeError: The job can't go on, now or at all.
        """
        if not await self.threads.run(self.progress.begin, job.number):
            raise StoppedError
        self.changes.notify()
        await self.threads.run(self.suspicions.land, job.number)
        session = await self._session(job)
        work = self._work(job, session)
        fly = self.suspicions.fly
        log = FlightLog(lambda *sets: self.threads.run(fly, job.number, *sets), self.sleep)
        self.sessions[job.number] = session
        try:
            with closing(self.lanes.turns(job, judged=session.calls_models)) as turns:
                run = _Run(job, work, log, turns)
                resumed = await self._try_suspects(run) or bool(job.answered)
                await self._score_chunks(run, report=not resumed)
        finally:
            del self.sessions[job.number]
            await log.close()
        if resumed:
            # The report needs the results of earlier runs, in the order of the items. They are
            # read last: a job may be resumed often while its judge is away.
            async with aclosing(self._chunks(job, answered=True)) as pages:
                async for page in pages:
                    await work.add(await work.share_of([result for _, result in page]))
        if self.draining.is_set():
            raise StoppedError
        report = await work.report()
        await self.threads.run(self.progress.finish, job.number, report, self.now())
        self.activity.moved()
        self.changes.notify()

    async def _try_suspects(self, run: _Run) -> bool:
        """Score what was in flight when the server died, in small groups.

        Other jobs go on meanwhile: each has suspects of its own.

        Returns:
            Whether there was anything.
        """
        tried = False
        while not self.draining.is_set():
            await run.turns.enter()
            try:
                trial = await self.threads.run(self.suspicions.next_trial, run.job.number)
                if trial is None:
                    break
                await self._try(run, trial)
                tried = True
            finally:
                run.turns.leave()
            self.changes.notify()
        if tried:
            await self.threads.run(self.progress.note, run.job.number, Problem())
        return tried

    async def _try(self, run: _Run, trial: Trial) -> None:
        job, (position, _) = run.job, trial.items[0]
        if trial.is_blamed:
            _LOG.warning("job %s: item %d is not scored: %s", job.id, position, _DIED)
            await self._answer(run, trial.items, _DIED)
            return
        problem = Problem(reason="SERVER_DIED", detail=_trial_text(trial))
        await self.threads.run(self.progress.note, job.number, problem)
        self.changes.notify()
        await self._answer(run, trial.items)
        if len(trial.items) == 1:
            await self.threads.run(self.suspicions.survived, job.number, position)

    async def _score_chunks(self, run: _Run, *, report: bool) -> None:
        async def share_of(chunk: _Chunk) -> Any:
            try:
                if self.draining.is_set():  # the chunk was read before
                    raise StoppedError
                return await self._answer(run, chunk)
            finally:
                run.turns.leave()

        chunks, joint = self._chunks(run.job, answered=False, turns=run.turns), JointWork()
        results = ordered_map(chunks, share_of, limit=MAX_CONCURRENCY, joint=joint)
        async with aclosing(results) as shares:
            with joint:
                async for share in shares:
                    if report:
                        await run.work.add(share)
                    self.changes.notify()

    async def _session(self, job: Job) -> ScoringSession:
        """Open the job's session, with the same judges as when the job was created."""
        spec = await asyncio.to_thread(spec_of, job.spec)
        session = await self.engine.open(spec)
        content = await self.threads.run(self.progress.header, job.number)
        # The signature names metric, variant, judges and release: what a number depends on.
        before, now = report_of(content).signature, session.report().signature
        if not same_but_versions(before, now):
            raise InvalidInputError(
                f"the server's judges or release changed since the job began; its numbers would "
                f"mix {before!r} with {now!r}. Create the job again",
                reason="JOB_CHANGED",
            )
        return session

    def _work(self, job: Job, session: ScoringSession) -> JobWork:
        if self.workers is not None and not session.needs_models:
            return self.workers(job.spec, session.metric.name)
        return _EngineWork(session, self.calls)

    async def _chunks(
        self, job: Job, *, answered: bool, turns: Turns | None = None
    ) -> AsyncGenerator[_Chunk, None]:
        after = -1
        while not self.draining.is_set():
            if turns is not None:  # before the chunk takes memory
                await turns.enter()
                # Ends the job of a key that was revoked, or has expired, since the last chunk.
                caller_now()
            chunk = await self.threads.run(
                self.progress.chunk,
                job.number,
                after,
                answered=answered,
                count=_CHUNK_ITEMS,
                max_bytes=_CHUNK_BYTES,
            )
            if not chunk:
                return
            yield chunk
            after = chunk[-1][0]

    async def _answer(self, run: _Run, chunk: _Chunk, died: str = "") -> Any:
        """Store results of items, scored unless the server died of them; return their share."""
        contents = [content for _, content in chunk]
        flights = Flights(run.log, [position for position, _ in chunk])
        work = run.work
        scored = await (work.unscored(contents, died) if died else work.score(contents, flights))
        answers = [
            Answer(position=position, scored=not reason, reason=reason, result=result)
            for (position, _), reason, result in zip(
                chunk, scored.reasons, scored.results, strict=True
            )
        ]
        if not await self._stored(run.job, answers):
            raise StoppedError
        self.activity.moved()
        return scored.share

    async def _stored(self, job: Job, answers: Sequence[Answer]) -> bool:
        """Store results; what was paid for is kept until the database takes it."""
        while True:
            try:
                return await self.threads.run(self.progress.store, job.number, answers)
            except (UnavailableError, OverloadedError) as err:
                _LOG.warning("job %s: %d results wait: %s", job.id, len(answers), err)
                # A server that stops waits for no database: replies of judges are in the verdict
                # cache.
                if self.draining.is_set():
                    raise
                await self.sleep(_STORE_PAUSE)


class _Run(NamedTuple):
    """A job that is scored."""

    job: Job
    work: JobWork
    log: FlightLog
    turns: Turns


def _trial_text(trial: Trial) -> str:
    count = len(trial.items)
    return (
        f"the server died while it scored this job. {trial.left} items that were in flight are "
        f"scored first, {count} at a time now, to see whether one of them is the cause; the "
        "others wait for them"
    )


class Lanes:
    """Lets chunks of jobs begin: owners take turns, by their weight.

    Every owner has at least one chunk under way in each lane, so that chunks that wait for a judge
    hold back neither another owner's nor those that need no judge. In addition, at most two of
    each other owner of its weight begin between two chunks of an owner that waits.

    Args:
        places: Chunks under way in each lane, in addition to every owner's first one.
    """

    def __init__(self, places: int) -> None:
        self._judged, self._other = (FairQueue(places, each=True) for _ in range(2))

    def turns(self, job: Job, *, judged: bool) -> Turns:
        """Return the turns of one job.

        Args:
            job: The job.
            judged: Whether language models judge or extract.
        """
        return Turns(self._judged if judged else self._other, job.owner)


class Turns:
    """Turns of the chunks of one job.

    Args:
        lane: Where it waits for them.
        owner: The owner of the job.
    """

    def __init__(self, lane: FairQueue, owner: str) -> None:
        self._lane = lane
        self._owner = owner
        self._held = 0

    async def enter(self) -> None:
        """Wait until a chunk may begin."""
        weight = current_caller().limits.weight
        await self._lane.enter(self._owner, cost=1.0, weight=weight)
        self._held += 1

    def leave(self) -> None:
        """Note that a chunk has ended."""
        if self._held:  # otherwise the job was closed before
            self._held -= 1
            self._lane.leave(self._owner)

    def close(self) -> None:
        """Give back the turns of chunks that were read and not scored."""
        while self._held:
            self.leave()


class _EngineWork:
    """Scores the items of a job in this process. Shares of the report are results.

    Args:
        session: Scores items, and makes the report.
        calls: Lets judge calls that are under way end when the server stops.
    """

    def __init__(self, session: ScoringSession, calls: CallDrain) -> None:
        self._session = session
        self._calls = calls

    async def score(self, contents: Sequence[bytes], flights: Flights) -> ScoredChunk:
        """Score items.

        Raises:
            StoppedError: The server stops, and no further judge call is sent.
        """
        items = items_of(contents)
        try:
            results = await self._calls.run(self._evaluated(items, flights))
        except HeldBackError as err:
            raise StoppedError from err
        return self._chunk(results)

    async def _evaluated(self, items: Sequence[Item], flights: Flights) -> Sequence[ItemResult]:
        """Evaluate items, each by itself if it calls models: then each leaves when it waits."""
        if not self._session.calls_models:
            async with flights.all():
                return await self._session.evaluate(items)

        async def one(index: int) -> ItemResult:
            async with flights.one(index).work():
                [result] = await self._session.evaluate([items[index]])
            return result

        # All at once: calls queue at the judge, and the runway bounds how many items are at work.
        return await run_bounded(range(len(items)), one, len(items))

    async def unscored(self, contents: Sequence[bytes], died: str) -> ScoredChunk:
        """Return results of items that are not scored."""
        return self._chunk(self._session.unscored(items_of(contents), died))

    def _chunk(self, results: Sequence[ItemResult]) -> ScoredChunk:
        kept = list(map(result_bytes, results))
        return ScoredChunk([str(result.reason) for result in results], kept, results)

    async def share_of(self, results: Sequence[bytes]) -> Sequence[ItemResult]:
        """Return the results."""
        return await in_thread(lambda: list(map(result_of, results)))

    async def add(self, share: Sequence[ItemResult]) -> None:
        """Add results to the report."""
        await in_thread(partial(self._session.add, share))

    async def report(self) -> bytes:
        """Return the report."""
        return await in_thread(lambda: report_bytes(self._session.report()))


class DatabaseThreads:
    """Runs blocking calls in a few threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="hallujudge-jobs")

    async def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a call; a caller that is cancelled does not stop it halfway.

        Raises:
            UnavailableError: The threads have ended: a call may outlast the database in the drain.
        """
        try:
            running = self._threads.submit(work, *args, **kwargs)
        except RuntimeError as err:
            raise stopping_error() from err
        return await shielded(running)

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._threads.shutdown(wait=True)
