"""Jobs of callers, over any transport: create, add, get, list, watch, cancel, results."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ..engine import Engine
from ..engine.spec import ScoreSpec
from ..errors import HallujudgeError, InvalidInputError, UnavailableError, VersionMismatchError
from ..observe import JobsActivity
from ..settings.server_settings import JobSettings
from ..stopping import CallDrain, Grace, begun, cancel_all
from ..wire.convert import report_bytes
from . import FINISHED, Job, JobDetails, JobWorkers, NewItem, NewJob
from .database import Database
from .job_progress import Activity, Changes, JobProgress, JobSuspicions
from .job_runner import POLL_SECONDS, JobRunner
from .job_scoring import MAX_CONCURRENCY, DatabaseThreads, JobScoring, Lanes, stopping_error
from .job_store import JobStore

_LOG = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")
# UUIDs and hashes fit; the column has room for 200.
_MAX_ID_CHARS = 128
# The note is a run's manifest, which is kept with the job and sent back with it.
_MAX_NOTE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A database in use."""

    database: Database
    store: JobStore
    scoring: JobScoring
    runner: JobRunner
    task: asyncio.Task[None]


class JobService:
    """Keeps jobs in a database and runs them.

    A file that does not exist yet is created by the first call, so that a server without jobs
    writes nothing.

    Args:
        address: The database: a file.
        engine: Scores items.
        limits: Limits of jobs.
        now: Seconds since 1970.
        workers: Does what needs no models, if set; otherwise the engine does.
        opened: Called in a thread with the id of a file that was opened.
    """

    def __init__(
        self,
        address: str,
        engine: Engine,
        limits: JobSettings | None = None,
        *,
        now: Callable[[], float] = time.time,
        workers: JobWorkers | None = None,
        opened: Callable[[str], None] = lambda _id: None,
    ) -> None:
        self._address = address
        self._engine = engine
        self._limits = limits or JobSettings()
        self._now = now
        self._workers = workers
        self._opened = opened
        self._threads = DatabaseThreads()
        self._changes = Changes()
        self._activity = Activity()
        self._draining = asyncio.Event()
        self._opening: asyncio.Task[_Opened] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._context = copy_context()

    @property
    def activity(self) -> JobsActivity:
        """How many jobs there are, and whether they move. It may be read from another thread."""
        return self._activity.state

    async def start(self) -> None:
        """Go on with the jobs of a database that exists.

        Jobs run in the context of the task that calls this, also those whose database is opened by
        a later call.

        Raises:
            HallujudgeError: The database can't be used, even later.
        """
        self._context = copy_context()
        # An address is not a file; it goes on to the opening, which refuses it at the start.
        if "://" not in self._address and not Path(self._address).exists():
            return
        try:
            await self._open_once()
        except UnavailableError as err:
            _LOG.warning("jobs wait: %s", err)
            self._waking = begun(self._open_later())

    def drain(self) -> None:
        """Begin no further work, and end the calls that watch jobs."""
        self._draining.set()
        self._changes.notify()

    async def close(self, period: Grace | None = None) -> None:
        """Stop the work on jobs and close the database.

        Args:
            period: How long items that are being scored may take; None for no time.
        """
        self.drain()
        if self._waking is not None:
            await cancel_all(self._waking)
        opened = await self._last_opened()
        if opened is not None:
            await opened.task
            await opened.runner.stop(period or Grace(0))
        # A call whose caller was cancelled may still use a connection.
        await asyncio.to_thread(self._threads.close)
        if opened is not None:
            await asyncio.to_thread(opened.database.close)

    async def create(
        self, new: NewJob, spec: ScoreSpec, items: Sequence[NewItem], *, more: bool
    ) -> Job:
        """Create a job, or return the one that the same request created before.

        Args:
            new: The job.
            spec: How its items are scored.
            items: Its first items.
            more: Whether more items will be added.

        Raises:
            HallujudgeError: The job can't be created, or the same request id created another one;
                the error has the reason.
        """
        _check(new)
        store = (await self._open()).store
        job = await self._threads.run(store.find, new.owner, new.request_id)
        if job is None:
            # Opened here too, so that a spec that can't be scored is refused before anything is
            # kept.
            session = await self._engine.open(spec)
            header = report_bytes(session.report())
            job = await self._threads.run(
                store.create, new, header, items, more=more, now=self._now()
            )
        if job.spec != new.spec:
            raise InvalidInputError(
                f"request_id {new.request_id!r} created job {job.id} with another spec; choose "
                "another request_id for another job",
                reason="JOB_REQUEST_DIFFERS",
            )
        await self._threads.run(store.check_repeated, job, items, more=more)
        self._changes.notify()
        return job

    async def add(
        self, owner: str, job_id: str, position: int, items: Sequence[NewItem], *, more: bool
    ) -> Job:
        """Add items to an open job; those that it has already are ignored."""
        store = (await self._open()).store
        job = await self._threads.run(
            store.add, owner, job_id, position, items, more=more, now=self._now()
        )
        self._changes.notify()
        return job

    async def get(self, owner: str, job_id: str) -> JobDetails:
        """Return a job."""
        opened = await self._open()
        details = await self._threads.run(opened.store.get, owner, job_id)
        return replace(details, job=opened.scoring.with_verdicts(details.job))

    async def ask(
        self, work: Callable[Concatenate[JobStore, _P], _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Return what the stored jobs say, such as the results of one.

        Args:
            work: A method of the store that changes nothing.
            args: Its arguments.
            kwargs: The same.
        """
        return await self._threads.run(work, (await self._open()).store, *args, **kwargs)

    async def watch(self, owner: str, job_id: str) -> AsyncGenerator[Job, None]:
        """Yield a job now and after every change, until it is finished.

        Raises:
            UnavailableError: The server stops.
        """
        before: Job | None = None
        while True:
            change = self._changes.next
            job = (await self.get(owner, job_id)).job
            if job != before:
                yield job
            if job.state in FINISHED:
                return
            if self._draining.is_set():
                raise UnavailableError(
                    "the server stops; the job goes on when it is back. Watch it again then",
                    reason="SERVER_DRAINING",
                    retry_after=POLL_SECONDS,
                )
            before = job
            await self._changes.wait(change, POLL_SECONDS)

    async def cancel(self, owner: str | None, job_id: str) -> Job:
        """Cancel a job of a caller, or of any, unless it is finished."""
        opened = await self._open()
        job = await self._threads.run(opened.store.cancel, owner, job_id, now=self._now())
        opened.runner.cancel(job.number)
        self._changes.notify()
        return job

    async def delete(self, owner: str, job_id: str) -> None:
        """Delete a finished job."""
        await self._threads.run((await self._open()).store.delete, owner, job_id)
        self._changes.notify()

    async def _open(self) -> _Opened:
        """Return the open database for a call.

        Raises:
            UnavailableError: It can't be used now.
        """
        try:
            return await self._open_once()
        except (InvalidInputError, VersionMismatchError) as err:
            # The caller can't help it, and need not know where the server keeps its files.
            _LOG.error("jobs can't be kept: %s", err)
            raise UnavailableError(
                "the server's database of jobs can't be used; the server's log says why",
                reason="JOBS_UNAVAILABLE",
            ) from err

    async def _open_once(self) -> _Opened:
        """Open the database; a call that is cancelled meanwhile leaves it to the next one."""
        opening = self._opening
        if opening is None or _failed(opening):
            if self._draining.is_set():
                raise stopping_error()
            self._activity.begin()
            # Not in the context of the call that opens it: every job would be in that call's trace.
            opening = self._context.copy().run(begun, self._made())
            self._opening = opening
        # Shielded: all calls that come meanwhile wait for the same opening.
        return await asyncio.shield(opening)

    async def _last_opened(self) -> _Opened | None:
        """Return the open database, for the last time; None if there is none."""
        opening, self._opening = self._opening, None
        if opening is None:
            return None
        await asyncio.wait({opening})
        return None if _failed(opening) else opening.result()

    async def _made(self) -> _Opened:
        database = await self._threads.run(Database, self._address)
        await asyncio.to_thread(self._opened, database.id)
        scoring = JobScoring(
            engine=self._engine,
            progress=JobProgress(database),
            suspicions=JobSuspicions(database),
            threads=self._threads,
            changes=self._changes,
            activity=self._activity,
            draining=self._draining,
            calls=CallDrain(self._draining),
            now=self._now,
            workers=self._workers,
            lanes=Lanes(MAX_CONCURRENCY * self._limits.max_running),
        )
        runner = JobRunner(scoring, database.runner_lock(), self._limits)
        return _Opened(
            database=database,
            store=JobStore(database, self._limits),
            scoring=scoring,
            runner=runner,
            task=begun(runner.run()),
        )

    async def _open_later(self) -> None:
        """Open a database that was away when the server started."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self._open()
                return
            except HallujudgeError as err:
                _LOG.warning("jobs wait: %s", err)


def _failed(task: asyncio.Task[_Opened]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _check(new: NewJob) -> None:
    """Refuse a job that can't be stored."""
    if not 0 < len(new.request_id) <= _MAX_ID_CHARS or not new.request_id.isprintable():
        raise InvalidInputError(
            f"request_id has {len(new.request_id)} characters; give 1 to {_MAX_ID_CHARS} that can "
            "be printed, such as a UUID"
        )
    if len(new.note.encode()) > _MAX_NOTE_BYTES or "\0" in new.note:
        raise InvalidInputError(
            f"note has {len(new.note)} characters; give at most {_MAX_NOTE_BYTES} bytes without "
            "zero characters"
        )
