"""The verdict cache as a file, and what it does when the file cannot be used."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from support.clocks import Clock
from support.messages import expected_message
from support.threads import PATIENCE

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.cache_file import (
    CACHE_FORMAT,
    CacheFile,
    Record,
    cache_key,
    new_owner,
)
from hallujudge.judge_service.llm.verdict_cache import VerdictCache

KEY = cache_key({"a": 1})
RECORD: Record = {"answers": {"0": {"choice": "supported", "margin": 0.1}}}


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[VerdictCache]:
    cache = VerdictCache(path, **options)
    try:
        yield cache
    finally:
        await cache.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_what_is_put_is_got_by_others_too(tmp_path: Path) -> None:
    async with opened(tmp_path / "c") as one, opened(tmp_path / "c") as two:
        await one.put(KEY, "m", RECORD)
        assert await two.get(KEY) == RECORD
        assert await two.get(cache_key({"a": 2})) is None
        assert await two.count() == 1


async def test_a_claim_that_ends_after_the_close_leaves_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Calls that a failed run cancels end their claims while its cache is closed."""
    cache = VerdictCache(tmp_path / "c")
    assert await cache.claim(KEY) is None
    await asyncio.gather(cache.close(), cache.release(KEY))
    await cache.release(KEY)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    async with opened(tmp_path / "c", sleep=_never) as other:
        assert await other.claim(KEY) is None
    assert warnings(caplog) == []


async def _never(_seconds: float) -> None:
    raise AssertionError("another process is waited for")


def test_a_file_that_many_make_at_once(tmp_path: Path) -> None:
    for number in range(10):
        gate = Barrier(8)

        def count(path: Path, gate: Barrier = gate) -> int:
            gate.wait()
            with closing(CacheFile(path, busy_seconds=10)) as file:
                return len(file)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(count, [tmp_path / f"c{number}"] * 8)) == [0] * 8


def test_keys_do_not_depend_on_order_and_do_on_every_value() -> None:
    assert cache_key({"a": 1, "b": [1.0, "x"]}) == cache_key({"b": [1.0, "x"], "a": 1})
    assert len({cache_key({"a": value}) for value in (1, 1.5, "1", None, [1], "é", "e\u0301")}) == 7


async def refused(path: Path, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        async with opened(path) as cache:
            await cache.open()
    assert str(path) in str(caught.value)
    assert caught.value.reason == "CACHE_INVALID"


async def test_files_that_are_not_a_cache(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello, I am a text file that is long enough to be read\n" * 50)
    await refused(tmp_path / "text", "damaged.*move this one away")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (a)")
    other.close()
    await refused(tmp_path / "other", "another program")
    await refused(tmp_path / "absent" / "c", "folder exists")


async def test_a_file_of_a_newer_release(tmp_path: Path) -> None:
    async with opened(tmp_path / "c") as cache:
        await cache.open()
    newer = sqlite3.connect(tmp_path / "c")
    newer.execute(f"PRAGMA user_version = {CACHE_FORMAT + 1}")
    newer.close()
    await refused(tmp_path / "c", "update hallujudge")


async def test_a_record_that_is_not_json_is_made_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "c") as cache:
        await cache.open()
        other = sqlite3.connect(tmp_path / "c", isolation_level=None)
        other.execute("INSERT INTO answers VALUES (?, 'm', 'oops')", (bytes.fromhex(KEY),))
        other.close()
        assert await cache.claim(KEY) is None
        await cache.put(KEY, "m", RECORD)
        assert await cache.get(KEY) == RECORD


# Another process makes the same call --------------------------------------------------------------


async def test_a_claimed_call_is_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path / "c") as one, opened(tmp_path / "c") as two:
        assert await one.claim(KEY) is None
        waiting = asyncio.ensure_future(two.claim(KEY))
        await one.put(KEY, "m", RECORD)
        assert await waiting == RECORD


async def test_a_released_call_is_taken_over(tmp_path: Path) -> None:
    async with opened(tmp_path / "c") as one, opened(tmp_path / "c") as two:
        assert await one.claim(KEY) is None
        waiting = asyncio.ensure_future(two.claim(KEY))
        await one.release(KEY)
        assert await waiting is None
        await two.put(KEY, "m", RECORD)
        assert await one.claim(KEY) == RECORD


def test_a_claim_holds_as_long_as_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, mine, other = Clock(), new_owner(), new_owner()
    monkeypatch.setattr(time, "time", clock)
    with closing(CacheFile(tmp_path / "c", busy_seconds=5)) as file:
        assert file.claim(KEY, mine, 60).ours
        clock.now += 50
        file.renew(KEY, mine, 60)
        clock.now += 50
        assert not file.claim(KEY, other, 60).ours
        clock.now += 11
        assert file.claim(KEY, other, 60).ours


# The file cannot be used for a while --------------------------------------------------------------


@pytest.fixture
def locked(tmp_path: Path) -> Callable[[], sqlite3.Connection]:
    def lock() -> sqlite3.Connection:
        other = sqlite3.connect(tmp_path / "c", isolation_level=None)
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        return other

    return lock


async def test_a_locked_file_stops_nothing_and_is_written_later(
    tmp_path: Path, locked: Callable[[], sqlite3.Connection], caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with opened(tmp_path / "c", busy_seconds=0.05, clock=clock) as cache:
        await cache.open()
        lock = locked()
        for number in range(20):
            assert await cache.claim(cache_key({"n": number})) is None
            await cache.put(cache_key({"n": number}), "m", RECORD)
        assert await cache.get(cache_key({"n": 7})) == RECORD
        assert len(warnings(caplog)) == 1
        assert (
            expected_message("judge_service.llm.verdict_cache:cannot-be-used-now")
            in warnings(caplog)[0]
        )
        assert "locked" in warnings(caplog)[0]
        lock.close()
        clock.now += 60
        await cache.put(KEY, "m", RECORD)
    async with opened(tmp_path / "c") as again:
        assert await again.count() == 21


async def test_what_waits_is_written_when_the_file_is_free_without_another_call(
    tmp_path: Path, locked: Callable[[], sqlite3.Connection]
) -> None:
    clock, waits, free = Clock(), asyncio.Semaphore(0), asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.release()
        await free.wait()
        clock.now += seconds
        await asyncio.sleep(0)

    path = tmp_path / "c"
    async with opened(path, busy_seconds=0.05, clock=clock, sleep=sleep) as cache:
        await cache.open()
        lock = locked()
        await keep(cache)
        assert await found(cache) == (RECORD, "yes")
        async with asyncio.timeout(PATIENCE):
            await waits.acquire()
            lock.close()
            free.set()
            async with opened(path) as other:
                while await found(other) != (RECORD, "yes"):
                    await asyncio.sleep(0)


async def keep(cache: VerdictCache) -> None:
    await cache.keep_fact("http://a", "m", "answered", "yes")
    await cache.put(KEY, "m", RECORD)


async def found(cache: VerdictCache) -> tuple[Record | None, str | None]:
    return await cache.get(KEY), await cache.fact_of("http://a", "m", "answered")


async def test_the_event_loop_goes_on_while_the_file_is_locked(
    tmp_path: Path, locked: Callable[[], sqlite3.Connection]
) -> None:
    async with opened(tmp_path / "c", busy_seconds=30) as cache:
        await cache.open()
        lock = locked()
        putting = asyncio.ensure_future(cache.put(KEY, "m", RECORD))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not putting.done()
        lock.close()
        await putting
        assert await cache.count() == 1


async def test_a_file_that_is_locked_from_the_start_stops_nothing(
    tmp_path: Path, locked: Callable[[], sqlite3.Connection], caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path / "c") as cache:
        await cache.open()
    lock = locked()
    async with opened(tmp_path / "c", busy_seconds=0.05) as cache:
        await cache.open()
        assert await cache.claim(KEY) is None
        await cache.put(KEY, "m", RECORD)
        lock.close()
    async with opened(tmp_path / "c") as again:
        assert await again.get(KEY) == RECORD
    assert len(warnings(caplog)) <= 2


@pytest.mark.parametrize("with_logs", [True, False])
async def test_a_deleted_file_is_made_again_with_what_it_held(
    tmp_path: Path, with_logs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path / "c") as cache:
        await cache.put(KEY, "m", RECORD)
        for file in tmp_path.iterdir():
            if with_logs or file.name == "c":
                file.unlink()
        await cache.put(cache_key({"a": 2}), "m", RECORD)
        assert await cache.get(KEY) == RECORD
    async with opened(tmp_path / "c") as again:
        assert await again.count() == 2
    assert len(warnings(caplog)) == 1
    assert "was deleted" in warnings(caplog)[0]


@pytest.mark.parametrize("mishap", ["replaced", "set back"])
async def test_a_file_that_is_another_now_is_noticed_and_gets_the_records(
    tmp_path: Path, mishap: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, old, later = tmp_path / "c", tmp_path / "old", cache_key({"a": 2})
    async with opened(path) as cache:
        await cache.put(KEY, "m", RECORD)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(old)) as copy:
            source.backup(copy)
        await cache.put(later, "m", RECORD)
        if mishap == "replaced":
            old.replace(path)
        else:
            with closing(sqlite3.connect(old)) as source, closing(sqlite3.connect(path)) as now:
                source.backup(now)
        # Noticed before a call is paid for again.
        found = await cache.claim(later)
        assert (found is None) == (mishap == "set back")
        assert (
            expected_message("judge_service.llm.verdict_cache:are-paid-for-again")
            in warnings(caplog)[0]
        )
        await cache.put(later, "m", RECORD)
    async with opened(path) as again:
        assert await again.get(KEY) == await again.get(later) == RECORD


async def test_a_folder_that_is_gone_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with caplog.at_level(logging.WARNING):
        async with opened(folder / "c") as cache:
            await cache.put(KEY, "m", RECORD)
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
            folder.write_text("not a folder")
            other = cache_key({"a": 2})
            assert await cache.claim(other) is None
            await cache.put(other, "m", RECORD)
            assert await cache.get(other) == RECORD
    assert (
        expected_message("judge_service.llm.verdict_cache:cannot-be-used-now")
        in warnings(caplog)[0]
    )
    assert "were not written" in warnings(caplog)[-1]


async def test_a_folder_that_is_deleted_is_made_again_with_every_record(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "c"
    path.parent.mkdir()
    other = cache_key({"a": 2})
    async with opened(path) as cache:
        await cache.put(KEY, "m", RECORD)
        shutil.rmtree(path.parent)
        await cache.put(other, "m", RECORD)
        assert path.parent.stat().st_mode & 0o077 == 0
    async with opened(path) as again:
        assert await again.get(KEY) == await again.get(other) == RECORD
