"""Runs one fault schedule, and looks for what must never happen."""

from __future__ import annotations

import asyncio
import gc
import re
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.fault_callers import Books, Caller
from support.fault_life import Nursery
from support.fault_schedule import Schedule
from support.fault_world import AT_ONCE, World

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.tenancy import Limits

__all__ = ["Keys", "Ran", "check_payments", "run_schedule"]

_CALLS_OF_BEN = 4
_MONEY_OF_CY = 0.025
# After the last fault. The longest pause of a job takes six seconds here.
_PATIENCE = 60.0
_LOOKS = 250
_BETWEEN_LOOKS = 0.02
# No fault needs a slow disk: what a killed process has written, the system keeps.
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_DEFECTS = re.compile(rb"Traceback|never retrieved|Unclosed|INTERNAL")
_AT_WORK = (jobs_pb2.JobState.JOB_STATE_QUEUED, jobs_pb2.JobState.JOB_STATE_RUNNING)
# One connection of each of four threads for jobs, one of the ledger, one of the cache; each has the
# file and its log.
_MOST_DATABASE_FILES = 2 * 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What happened in a schedule."""

    problems: tuple[str, ...]
    """What must not happen, and did."""
    items: int
    """Items that were answered."""
    unscored: int
    """Those of them without a score."""
    calls: int
    """Calls that the judge got."""
    twice: int
    """Answers of the judge to calls that it had answered before: in flight at a kill."""
    lives: int
    """Processes that served."""


class Keys:
    """The keys of the callers, and the file that a server knows them from.

    Args:
        folder: Where the file is made.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys.json"
        scopes = [Scope.SCORE, Scope.JUDGE]
        limits = {
            "ana": Limits(),
            "ben": Limits(judge_calls_per_day=_CALLS_OF_BEN),
            "cy": Limits(cost_per_day=_MONEY_OF_CY),
        }
        self.by_caller = {
            name: create_key(self.path, name, scopes=scopes, limits=limit)
            for name, limit in limits.items()
        }
        self.ids = {name: key.split("_")[1] for name, key in self.by_caller.items()}
        self.root = create_key(self.path, "root", scopes=[Scope.ADMIN])


async def run_schedule(schedule: Schedule, nursery: Nursery, keys: Keys) -> Ran:
    """Run a schedule, and return what happened.

    Args:
        schedule: The schedule.
        nursery: Makes processes of the server.
        keys: The callers' keys.
    """
    with tempfile.TemporaryDirectory(prefix="hallujudge-faults-", dir=_MEMORY) as folder:
        world = World(nursery, Path(folder), keys.path, keys.by_caller)
        books = Books(world, keys.by_caller)
        callers = [Caller(books, work, number) for number, work in enumerate(schedule.work)]
        async with world:
            if await _all_answered(schedule, world, books, callers):
                await _check_revoked(world, books, keys)
                await _check_rest(world, books)
                await check_payments(world, books)
                await _check_end(world, books)
        books.check(world.was_refused, "a start with an emptied database was not refused")
        log = world.log.decode(errors="replace")
        books.check(not _DEFECTS.search(world.log), f"the log: {log[-6000:]}")
    return Ran(
        problems=tuple(books.problems),
        items=sum(caller.answered.total() for caller in callers),
        unscored=sum(caller.unscored for caller in callers),
        calls=world.judge.chats,
        twice=world.judge.paid.total() - len(world.judge.paid),
        lives=1 + world.ends,
    )


async def _all_answered(
    schedule: Schedule, world: World, books: Books, callers: list[Caller]
) -> bool:
    """Let everything happen; return whether the callers came to an end after the last fault."""
    working = [asyncio.create_task(caller.run()) for caller in callers]
    try:
        for fault in schedule.faults:
            await world.suffer(fault)
        await world.heal()
        done, late = await asyncio.wait(working, timeout=_PATIENCE)
        log = world.life.log.decode(errors="replace")
        books.check(not late, f"not answered within {_PATIENCE:g} s: {log[-3000:]}")
        for task in done:
            await task
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    for caller in callers:
        caller.check_answers()
        if not late:
            await caller.check_jobs()
    return not late


async def check_payments(world: World, books: Books) -> None:
    """Check that no call was paid twice, that all are written down, and that budgets hold."""
    judge = world.judge
    twice = {
        claim: f"{paid} times, of which {books.excused[claim]} may be repeated"
        for claim, paid in judge.paid.items()
        if paid > 1 + books.excused[claim]
    }
    books.check(not twice, f"paid for twice: {twice}")
    for _ in range(_LOOKS):
        rows = _rows(world, "spending", "SELECT key, calls, cost FROM spending")
        if judge.chats - sum(calls for _, calls, _ in rows) <= AT_ONCE * world.kills:
            break
        await asyncio.sleep(_BETWEEN_LOOKS)
    names = {key.split("_")[1]: name for name, key in books.keys.items()}
    written: Counter[str] = Counter()
    for key, calls, cost in rows:
        written[names[key]] += calls
        fits = (names[key] != "ben" or calls <= _CALLS_OF_BEN) and (
            names[key] != "cy" or cost <= _MONEY_OF_CY + 1e-9
        )
        books.check(fits, f"{names[key]} spent {calls} calls and {cost} in a day")
    _check_written(world, books, written)
    # A process that ends may not be able to write what it has in memory.
    if not (world.ends and "verdicts" in world.troubled):
        for _ in range(_LOOKS):
            kept = len(_rows(world, "verdicts", "SELECT key FROM answers"))
            if kept >= len(books.settled):
                break
            await asyncio.sleep(_BETWEEN_LOOKS)
        books.check(kept >= len(books.settled), f"{len(books.settled)} verdicts, {kept} kept")


def _rows(world: World, database: str, query: str) -> list[tuple[Any, ...]]:
    with closing(world.database(database)) as file:
        return file.execute(query).fetchall()


def _check_written(world: World, books: Books, written: Counter[str]) -> None:
    """Check that calls are written down: those of a key with a budget before they are sent."""
    judge = world.judge
    for name in ("ben", "cy"):
        own = judge.sent_for(name)
        books.check(
            own <= written[name], f"{name} made {own} calls, of which {written[name]} count"
        )
    # Those of other keys are written down soon, also while the file is locked: at a kill as many as
    # are at the judge may be in the queue of the writing thread, beside those that are sent next.
    if not (world.kills and "spending" in world.troubled):
        lost = judge.chats - written.total()
        books.check(
            lost <= 2 * AT_ONCE * world.kills, f"{lost} of {judge.chats} calls do not count"
        )


async def _check_revoked(world: World, books: Books, keys: Keys) -> None:
    """Check that revoked keys have no job that runs, and sent no call after that."""
    if not world.revoked:
        return
    stub = jobs_pb2_grpc.ScoringJobServiceStub(world.channel)
    metadata = (("authorization", f"Bearer {keys.root}"),)
    owners = {f"key:{keys.ids[name]}" for name in world.revoked}
    for _ in range(_LOOKS):
        listed = await stub.ListJobs(jobs_pb2.ListJobsRequest(all=True), metadata=metadata)
        running = [job for job in listed.jobs if job.owner in owners and job.state in _AT_WORK]
        if not running:
            break
        await asyncio.sleep(_BETWEEN_LOOKS)
    books.check(not running, f"jobs of revoked keys: {running}")
    for name, sent in world.revoked.items():
        # On their way when the file was read.
        more = world.judge.sent_for(name) - sent
        books.check(more <= AT_ONCE, f"{more} calls of {name} after its key was revoked")


async def _check_rest(world: World, books: Books) -> None:
    """Check that a server without work holds nothing that only work needs."""

    async def held() -> dict[str, float]:
        now = await world.metrics()
        names = ("memory_bytes", *(f"{of}{what}_calls" for of in ("", "judge_")
                 for what in ("running", "waiting")))  # fmt: skip
        return {name: value for name in names if (value := now.get(f"hallujudge_{name}", 0.0))}

    for _ in range(_LOOKS):
        if not (problem := await held()):
            break
        await asyncio.sleep(_BETWEEN_LOOKS)
    if problem:
        await world.life.ask(collect=True)
        left = await held()
        books.problems.append(f"a server at rest holds {problem}; without its garbage {left}")


async def _check_end(world: World, books: Books) -> None:
    """Check that connections are closed with their callers, and that SIGTERM ends the server."""
    await world.disconnect()
    for _ in range(_LOOKS):
        # gRPC keeps the connection of a closed channel while an error here refers to its call.
        gc.collect()
        names = world.open_files()
        sockets = sum(name.startswith("socket:") for name in names)
        if sockets <= world.sockets_at_start:
            break
        await asyncio.sleep(_BETWEEN_LOOKS)
    books.check(
        sockets <= world.sockets_at_start,
        f"{sockets} sockets without a caller; {world.sockets_at_start} at the start",
    )
    databases = [name for name in names if name.endswith((".sqlite", "-wal"))]
    books.check(len(databases) <= _MOST_DATABASE_FILES, f"open databases: {sorted(databases)}")
    await world.end()
    books.check(world.life.ended_well, "SIGTERM did not end the server well")
