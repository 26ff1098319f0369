"""The database of jobs is opened once and closed, whatever becomes of the calls that wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.threads import Gate

from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.errors import NotFoundError, UnavailableError
from hallujudge.judge_service.jobs import NewJob, database, job_service
from hallujudge.judge_service.jobs.job_service import JobService


class Databases:
    """Makes databases behind a gate, and counts those that are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = Gate()
        self.made: list[database.Database] = []
        self.open: list[database.Database] = []
        everything = self

        class Watched(database.Database):
            def __init__(self, address: str) -> None:
                everything.gate.wait()
                super().__init__(address)
                everything.made.append(self)
                everything.open.append(self)

            def close(self) -> None:
                super().close()
                everything.open.remove(self)

        monkeypatch.setattr(job_service, "Database", Watched)


def service_of(folder: Path) -> JobService:
    return JobService(str(folder / "jobs.sqlite"), Engine())


async def cancelled_while_opening(service: JobService, databases: Databases) -> None:
    call = asyncio.create_task(service.get("owner", "job"))
    await databases.gate.reached()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert call.cancelled()


async def test_the_next_call_uses_what_a_cancelled_call_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, databases = service_of(tmp_path), Databases(monkeypatch)
    await cancelled_while_opening(service, databases)
    following = asyncio.create_task(service.get("owner", "job"))
    databases.gate.open()
    with pytest.raises(NotFoundError):
        await following
    await service.close()
    assert (len(databases.made), databases.open) == (1, [])


async def test_a_database_that_opens_while_the_server_stops_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, databases = service_of(tmp_path), Databases(monkeypatch)
    await cancelled_while_opening(service, databases)
    closing = asyncio.create_task(service.close())
    databases.gate.open()
    await closing
    assert (len(databases.made), databases.open) == (1, [])
    with pytest.raises(UnavailableError, match="the server stops"):
        await service.get("owner", "job")


class HeldEngine(Engine):
    """Opens no session before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        self.reached.set()
        await self.released.wait()
        return await super().open(spec)


async def test_a_call_that_goes_on_when_the_database_is_closed_is_refused(tmp_path: Path) -> None:
    """Other calls may still run in the drain, after the jobs have stopped."""
    engine, spec = HeldEngine(), ScoreSpec(metric="chair")
    service = JobService(str(tmp_path / "jobs.sqlite"), engine)
    new = NewJob(owner="ann", caller="", request_id="r", spec=b"")
    call = asyncio.create_task(service.create(new, spec, [], more=True))
    await engine.reached.wait()
    await service.close()
    engine.released.set()
    with pytest.raises(UnavailableError) as refused:
        await call
    assert refused.value.reason == "SERVER_DRAINING"
