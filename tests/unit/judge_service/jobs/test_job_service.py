"""The database of jobs is opened once and closed, whatever becomes of the calls that wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.threads import Gate

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.errors import NotFoundError, UnavailableError
from hallujudge.judge_service.jobs import database
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.wire.job_messages import WireCodec


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

        monkeypatch.setattr(database, "Database", Watched)


def service_of(folder: Path) -> JobService:
    return JobService(str(folder / "jobs.sqlite"), Engine(), WireCodec())


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
