"""Running of jobs: which one is next, what becomes of it, and what is deleted."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..access import acting_as
from ..errors import HallujudgeError, OverloadedError, UnavailableError
from ..llm.failures import CONFIGURATION_REASONS
from ..settings.server_settings import JobSettings
from ..stopping import KEEPING_CALLS, Grace, begun, cancel_all
from . import Job, Problem, caller_of
from .database import FileLock
from .job_scoring import JobScoring, StoppedError

_LOG = logging.getLogger(__name__)
POLL_SECONDS = 2.0
"""How often a server looks for jobs that another one created."""
# A job waits for a judge or a disk: seconds first, then minutes, each pause twice as long.
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 300.0
# Retention counts days, so that an hour more or less does not matter.
_CLEANING_SECONDS = 3600.0
# The same refusal comes at each look; once a minute is enough to notice it.
_LOG_SECONDS = 60.0


class JobRunner:
    """Runs the jobs of a database while it holds the database's lock.

    Args:
        scoring: Scores a job.
        lock: Held by the one server that runs jobs.
        limits: Limits of jobs.
        clock: Seconds on a clock that never goes back: a pause must not outlast its time where the
            system's clock is set back.
    """

    def __init__(
        self,
        scoring: JobScoring,
        lock: FileLock,
        limits: JobSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scoring = scoring
        self._clock = clock
        self._lock = lock
        self._limits = limits
        self._running: dict[int, _Running] = {}
        self._judged: dict[int, bool] = {}
        self._holds_lock = False
        self._pauses: dict[int, _Pause] = {}
        self._cleaned_at = float("-inf")
        self._refusals = _Refusals(clock)

    async def run(self) -> None:
        """Run jobs until the server stops."""
        scoring = self._scoring
        while not scoring.draining.is_set():
            # Taken before the look, so that what changes during it is looked at at once.
            change = scoring.changes.next
            try:
                await self._look()
                await self._count()
            except HallujudgeError as err:
                self._refusals.add(err)
            # The runner outlives every error, since without it no job would ever go on.
            except Exception as err:
                self._refusals.add(err, defect=True)
            await scoring.changes.wait(change, POLL_SECONDS)

    async def stop(self, period: Grace) -> None:
        """Let chunks that are being scored finish, then stop.

        Args:
            period: How long they may take.
        """
        tasks = [running.task for running in self._running.values()]
        await period.wait(*tasks)
        await cancel_all(*tasks)
        await self._scoring.threads.run(self._lock.release)

    def cancel(self, number: int) -> None:
        """Stop work on a job that was cancelled."""
        if number in self._running:
            self._running[number].task.cancel()

    async def _look(self) -> None:
        """Start jobs if this server holds the lock."""
        threads, progress = self._scoring.threads, self._scoring.progress
        suspicions = self._scoring.suspicions
        if not await threads.run(self._lock.acquire):
            # Another server has taken over: it finds the replies of calls that are sent.
            self._holds_lock = False
            self._scoring.activity.moved()
            for running in self._running.values():
                running.task.cancel(KEEPING_CALLS)
            return
        if not self._holds_lock:
            # Jobs that run here, since the lock was lost for a moment only, were left by no dead
            # server.
            for death in await threads.run(suspicions.recover, tuple(self._running)):
                _LOG.warning(
                    "a server died while it scored job %s; %d items of it were in flight",
                    *death,
                )
            self._holds_lock = True
        await self._clean()
        waiting = await threads.run(progress.waiting)
        self._judged = {job.number: await self._is_judged(job.number) for job in waiting}
        self._start(waiting)

    async def _count(self) -> None:
        scoring = self._scoring
        if scoring.activity.count_is_due:
            scoring.activity.counted(await scoring.threads.run(scoring.progress.counts))

    async def _is_judged(self, number: int) -> bool:
        """Return whether language models judge or extract in a job."""
        if (known := self._judged.get(number)) is not None:
            return known
        scoring = self._scoring
        job = await scoring.threads.run(scoring.progress.job, number)
        try:
            return job is not None and await asyncio.to_thread(scoring.is_judged, job)
        except HallujudgeError:
            return False  # its run says what is wrong

    def _start(self, waiting: Sequence[Job]) -> None:
        now = self._clock()
        ready = [
            job
            for job in waiting
            if job.number not in self._running
            and (job.number not in self._pauses or self._pauses[job.number].until <= now)
        ]
        while (job := self._next_of(ready)) is not None:
            ready.remove(job)
            self._running[job.number] = _Running(
                job.owner, self._judged[job.number], begun(self._job(job.number))
            )

    def _next_of(self, ready: Sequence[Job]) -> Job | None:
        """Return the oldest job of the caller with the fewest running jobs, of those that may run.

        Jobs with and without a judge have places of their own, and every owner may run one of each.
        """
        running = Counter((one.judged, one.owner) for one in self._running.values())
        places = Counter(one.judged for one in self._running.values())
        may_run = [
            (running[judged, job.owner], job.number, job)
            for job in ready
            for judged in [self._judged[job.number]]
            if places[judged] < self._limits.max_running or not running[judged, job.owner]
        ]
        return min(may_run, default=(0, 0, None))[-1]

    async def _job(self, number: int) -> None:
        try:
            job = await self._scoring.threads.run(self._scoring.progress.job, number)
            if job is not None:
                await self._run(job)
        except HallujudgeError as err:
            self._refusals.add(err)
        finally:
            self._running.pop(number, None)
            self._scoring.changes.notify()

    async def _run(self, job: Job) -> None:
        try:
            with acting_as(caller_of(job.caller)):
                await self._scoring.score(job)
            self._pauses.pop(job.number, None)
        except (StoppedError, asyncio.CancelledError) as err:
            _LOG.info("job %s stopped", job.id)
            if self._scoring.draining.is_set():  # or the next server would take this for a death
                await self._note(job, Problem())
            if isinstance(err, asyncio.CancelledError):
                raise
        except (UnavailableError, OverloadedError) as err:
            await self._pause(job, err)
        except HallujudgeError as err:
            # The judge answered this job before, so its key or its address is being changed.
            if err.reason in CONFIGURATION_REASONS and await self._has_scores(job):
                await self._pause(job, err)
            else:
                await self._fail(job, err.reason, err.message)
        except Exception as err:
            error_id = uuid.uuid4().hex[:12]
            _LOG.error("error %s in job %s", error_id, job.id, exc_info=err)
            detail = f"the server failed; its log has the details under {error_id}"
            await self._fail(job, "INTERNAL", detail)

    async def _has_scores(self, job: Job) -> bool:
        """Return whether a job has scores, of this run or an earlier one."""
        scoring = self._scoring
        try:
            now = await scoring.threads.run(scoring.progress.job, job.number)
        except HallujudgeError:
            return bool(job.scored)
        return now is not None and now.scored > 0

    async def _pause(self, job: Job, error: HallujudgeError) -> None:
        """Let a job wait for what is away, each time twice as long."""
        pause = self._pauses.get(job.number) or _Pause()
        self._pauses[job.number] = pause.longer(self._clock())
        _LOG.warning("job %s waits: %s", job.id, error)
        await self._note(job, Problem(reason=error.reason, detail=error.message))

    async def _note(self, job: Job, problem: Problem) -> None:
        try:
            await self._scoring.threads.run(self._scoring.progress.wait, job.number, problem)
        except HallujudgeError as err:
            _LOG.warning("job %s: its problem can't be noted: %s", job.id, err)

    async def _fail(self, job: Job, reason: str, detail: str) -> None:
        _LOG.warning("job %s failed: %s: %s", job.id, reason, detail[:500])
        problem, scoring = Problem(reason=reason, detail=detail), self._scoring
        try:
            await scoring.threads.run(scoring.progress.fail, job.number, problem, scoring.now())
            scoring.activity.moved()
        except HallujudgeError as err:
            # The job is still queued: it is tried again.
            await self._pause(job, err)

    async def _clean(self) -> None:
        """Delete old jobs, once an hour."""
        scoring, now = self._scoring, self._clock()
        if now - self._cleaned_at < _CLEANING_SECONDS:
            return
        days = self._limits.retention_days
        count = await scoring.threads.run(scoring.progress.delete_old, scoring.now(), days)
        self._cleaned_at = now
        if count:
            _LOG.info("%d jobs older than %g days were deleted", count, days)


class _Refusals:
    """Logs why no job is started: at once, then once a minute with a count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next_at = float("-inf")
        self._count = 0

    def add(self, error: Exception, *, defect: bool = False) -> None:
        """Count an error; log it if none was logged for a minute.

        Args:
            error: Why no job is started.
            defect: Whether its traceback is logged.
        """
        self._count += 1
        now = self._clock()
        if now < self._next_at:
            return
        many = "" if self._count == 1 else f" ({self._count} times since this was logged)"
        _LOG.warning("no job is started now%s: %s", many, error, exc_info=error if defect else None)
        self._count, self._next_at = 0, now + _LOG_SECONDS


class _Running(NamedTuple):
    """A job that runs."""

    owner: str
    judged: bool
    task: asyncio.Task[None]


class _Pause:
    """How long a job waits for what is away."""

    def __init__(self, seconds: float = 0.0, until: float = float("-inf")) -> None:
        self._seconds = seconds
        self.until = until

    def longer(self, now: float) -> _Pause:
        """Return the next pause."""
        seconds = min(2 * self._seconds or _FIRST_PAUSE, _LONGEST_PAUSE)
        return _Pause(seconds, now + seconds)
